//! The line frames of one aggregated channel on their way from mux to line: begun, sealed, leaving.
//!
//! ```text
//!   mux -> begun -> protect -------------------> leaving -> line      when full or due
//!   mux -> begun -> protect -> ready (a queue) -> leaving -> line     constant rate: so many at each beat
//! ```
//!
//! At a constant rate a line frame that carries nothing takes the place of one that is not there, and client
//! frames that come faster wait in their ports: [`Trunk::has_room`] is what holds them back. Pieces of one
//! client frame may then leave in several beats, so everything begun is sealed before the SA changes.

use qloak_port::{Batch, Sizes};
use qloak_secy::{ChannelRef, LineFrames, Outbound, Room};

use super::{
    pace::{Pace, Step},
    room,
};
use crate::{
    latency::{Stopwatch, Waiting},
    limits::BATCH_FRAMES,
};

/// A time at which every line frame is due.
pub(super) const ALL: u64 = u64::MAX;

/// An aggregated channel and its line frames.
pub(crate) struct Trunk {
    pub(crate) channel: ChannelRef,
    /// Not sealed yet; the last may take more records.
    begun: Batch,
    pace: Option<Pace>,
    /// Line frames sealed since the start: the number of the first that is begun.
    sealed: u64,
    /// Of them, those that left.
    left: u64,
    waiting: Waiting,
}

impl Trunk {
    /// A channel whose line frames leave when they are full or due, so many at a time.
    pub(crate) fn new(channel: ChannelRef, frames: usize, sizes: Sizes) -> Self {
        Self {
            channel,
            begun: Batch::with_sizes(frames, sizes),
            pace: None,
            sealed: 0,
            left: 0,
            waiting: Waiting::new(),
        }
    }

    /// A channel of constant rate: bits per second on the wire, of line frames of so many octets.
    pub(crate) fn paced(channel: ChannelRef, sizes: Sizes, rate_bps: u64, octets: usize) -> Self {
        let pace = Pace::new(rate_bps, octets, 2 * BATCH_FRAMES, sizes);
        Self {
            pace: Some(pace),
            ..Self::new(channel, BATCH_FRAMES, sizes)
        }
    }

    /// Whether its line frames leave at a constant rate.
    pub(crate) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Where the mux writes.
    pub(super) fn lines(&mut self) -> Lines<'_> {
        Lines(&mut self.begun)
    }

    /// Whether client frames may be muxed: always, but for a channel of constant rate that has enough for the
    /// next beat.
    pub(super) fn has_room(&self) -> bool {
        let Some(pace) = &self.pace else { return true };
        pace.ready.len() + self.begun.len() <= pace.frames()
    }

    /// Whether room can be made for a client frame that did not fit.
    pub(super) fn is_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Line frames that leave at once at most.
    pub(crate) fn frames(&self) -> usize {
        self.pace
            .as_ref()
            .map_or(self.begun.capacity(), Pace::frames)
    }

    /// Moves what is due, sealed, to `leaving`; [`ALL`] of what is begun, when it has to make room.
    pub(super) fn depart(
        &mut self,
        secy: &mut Outbound,
        due_ns: u64,
        now_ns: u64,
        leaving: &mut Batch,
    ) {
        let Some(pace) = &mut self.pace else {
            let due = secy.shape(self.channel, self.begun.len(), due_ns);
            let given = seal(secy, self.channel, &mut self.begun, due, leaving, now_ns);
            self.count(due, given);
            self.left = self.sealed;
            return;
        };
        if due_ns == ALL {
            return self.settle(secy, now_ns);
        }
        while let Some(step) = pace.step(now_ns) {
            match step {
                Step::Prepare => {
                    let (count, given) = prepare(secy, self.channel, &mut self.begun, pace, now_ns);
                    pace.prepared();
                    self.sealed += given as u64;
                    if given < count {
                        self.waiting.forget();
                    }
                }
                Step::Leave => {
                    let count = pace.frames().min(pace.ready.len());
                    for index in 0..count {
                        if !pace.ready.give(index, leaving) {
                            break;
                        }
                    }
                    pace.ready.drop_front(count);
                    pace.left();
                    self.left += count as u64;
                    return;
                }
            }
        }
    }

    /// Seals everything that is begun, since its SA may be another soon or room is wanted.
    pub(super) fn settle(&mut self, secy: &mut Outbound, now_ns: u64) {
        if let Some(pace) = &mut self.pace {
            secy.fill(self.channel, &mut Lines(&mut self.begun), 0, now_ns);
            let count = self.begun.len();
            let given = seal(
                secy,
                self.channel,
                &mut self.begun,
                count,
                &mut pace.ready,
                now_ns,
            );
            self.count(count, given);
        }
    }

    /// A client frame that came then has its end in the last line frame that is begun.
    pub(super) fn entered(&mut self, came_ns: u64) {
        let last = self.sealed + (self.begun.len() as u64).saturating_sub(1);
        self.waiting.enter(came_ns, last);
    }

    /// What was in the batch of those leaving is on the line now.
    pub(super) fn left(&mut self, now_ns: u64, stopwatch: &Stopwatch) {
        self.waiting.leave(self.left, now_ns, stopwatch);
    }

    /// So many line frames were sealed, and so many of them went on. Where some were refused, numbers no longer say
    /// which client frames leave.
    fn count(&mut self, sealed: usize, given: usize) {
        self.sealed += given as u64;
        if given < sealed {
            self.waiting.forget();
        }
    }

    /// When something is to be done next; `None` when nothing waits.
    pub(super) fn next_ns(&self, secy: &Outbound) -> Option<u64> {
        match &self.pace {
            Some(pace) => pace.next_ns(),
            None => secy.leaves_at(self.channel),
        }
    }

    /// Line frames that were left out since the node came too late for them.
    pub(super) fn late_frames(&self) -> u64 {
        self.pace.as_ref().map_or(0, |pace| pace.late_frames)
    }
}

/// Seals line frames until none is missing for the next beat, with made-up ones where none are begun. Returns how many
/// were to be sealed, and how many were.
fn prepare(
    secy: &mut Outbound,
    channel: ChannelRef,
    begun: &mut Batch,
    pace: &mut Pace,
    now_ns: u64,
) -> (usize, usize) {
    let mut sum = (0, 0);
    while pace.missing() > 0 {
        let missing = pace.missing();
        if begun.len() <= missing {
            let empty = missing - begun.len();
            secy.fill(channel, &mut Lines(begun), empty, now_ns);
        }
        let count = begun.len().min(missing);
        let given = seal(secy, channel, begun, count, &mut pace.ready, now_ns);
        sum = (sum.0 + count, sum.1 + given);
        if count == 0 {
            // The channel is closed.
            break;
        }
    }
    sum
}

/// The first `count` of the begun line frames, sealed, go to the end of another batch. Returns how many did.
fn seal(
    secy: &mut Outbound,
    channel: ChannelRef,
    begun: &mut Batch,
    count: usize,
    to: &mut Batch,
    now_ns: u64,
) -> usize {
    if count == 0 {
        return 0;
    }
    let frames = begun.frames_mut().iter_mut().take(count).map(room);
    secy.protect(channel, frames, now_ns);
    let before = to.len();
    for index in 0..count {
        // What was refused is empty and counted.
        let given = begun.frames()[index].is_empty() || begun.give(index, to);
        debug_assert!(given, "more line frames than there is room for");
    }
    begun.drop_front(count);
    to.len() - before
}

/// A batch of line frames as the mux sees it.
pub(super) struct Lines<'a>(&'a mut Batch);

impl LineFrames for Lines<'_> {
    fn free(&self) -> usize {
        self.0.spare()
    }

    fn begin(&mut self) -> Option<Room<'_>> {
        self.0.extend().map(room)
    }

    fn last(&mut self) -> Option<Room<'_>> {
        self.0.frames_mut().last_mut().map(room)
    }
}

#[cfg(test)]
mod tests;
