//! A port that makes another one worse, so that what a line does to frames can be tested from a seed.
//!
//! ```text
//!   receive    wrapped port -> taken batch -> lane -> the caller's batch
//!   transmit   the caller's batch -> lane -> ready batch -> wrapped port
//! ```
//!
//! A lane loses, doubles, damages, delays and reorders. A way without faults has none: frames pass as if
//! nobody stood between. Every frame stands in exactly one counter, in a lane or in the port that is wrapped, whose
//! own [`Port::counters`] stay what they are.
//!
//! Frames that wait leave when somebody asks: `receive` of any handle also sends on what is due to be
//! transmitted. So a port whose transmitted frames may have to wait has no descriptor, and one whose received
//! frames may has one only while none does. A lane is behind a lock, and a handle waits while its twin is in
//! it; this port alone does so, because it is for tests and none of the ports below waits.

use std::{
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{Batch, Counters, Frame, Kind, Port, PortError, Sizes, limits};
use lane::{Lane, storage_octets};

mod bits;
mod chance;
mod counters;
mod lane;
mod loss;
mod radio;
mod settings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod timing;

pub use counters::{FaultCounters, Impairments};
pub use radio::Radio;
pub use settings::{Delay, Faults, GilbertElliott, ImpairedConfig, Impairment, Loss, Reorder};

/// Tells the time in nanoseconds since any moment; never goes back.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock of the machine.
pub fn monotonic() -> Clock {
    let start = Instant::now();
    Arc::new(move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Puts faults between a port and its user. `sizes` are those that the port was opened with. The same
/// seed, frames and times give the same frames, whichever threads bring them.
///
/// # Errors
/// When a setting is out of its bounds; the sentence names it.
pub fn impair(
    port: Box<dyn Port>,
    impairment: &Impairment,
    sizes: &Sizes,
    clock: Clock,
) -> Result<Box<dyn Port>, PortError> {
    impairment.check()?;
    // What happens one way must not repeat what happens the other.
    let seeds = [impairment.seed, !impairment.seed];
    let lane = |faults: &Faults, seed| (!faults.are_none()).then(|| Lane::new(faults, seed, sizes));
    Ok(Box::new(ImpairedPort {
        port,
        inbox: lane(&impairment.receive, seeds[0]).map(|lane| Inbox::shared(lane, sizes)),
        outbox: lane(&impairment.transmit, seeds[1]).map(|lane| Outbox::shared(lane, sizes)),
        clock,
    }))
}

/// A port and the faults between it and its user.
struct ImpairedPort {
    port: Box<dyn Port>,
    inbox: Option<Arc<Mutex<Inbox>>>,
    outbox: Option<Arc<Mutex<Outbox>>>,
    clock: Clock,
}

impl Port for ImpairedPort {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn kind(&self) -> Kind {
        self.port.kind()
    }

    fn describe(&self) -> String {
        format!("{}, impaired", self.port.describe())
    }

    fn mac(&self) -> Option<[u8; 6]> {
        self.port.mac()
    }

    fn frame_octets_max(&self) -> Option<usize> {
        self.port.frame_octets_max()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        if let Some(outbox) = &self.outbox {
            let (_, sent) = locked(outbox).transmit(&mut *self.port, &[], (self.clock)());
            sent?;
        }
        match &self.inbox {
            Some(inbox) => locked(inbox).receive(&mut *self.port, batch, (self.clock)()),
            None => self.port.receive(batch),
        }
    }

    /// Takes what the lane takes; frames that the lane drops are counted there.
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let Some(outbox) = &self.outbox else {
            return self.port.transmit(batch);
        };
        let (taken, done) =
            locked(outbox).transmit(&mut *self.port, batch.frames(), (self.clock)());
        batch.drop_front(taken);
        done.map(|()| taken)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let asked_anyway = self.outbox.is_some()
            || (self.inbox.as_ref()).is_some_and(|inbox| !locked(inbox).is_empty());
        if asked_anyway {
            return None;
        }
        self.port.descriptor()
    }

    fn counters(&self) -> Counters {
        self.port.counters()
    }

    fn impairments(&self) -> Option<Impairments> {
        let receive = self.inbox.as_ref().map(|inbox| locked(inbox).counters());
        let transmit = self.outbox.as_ref().map(|outbox| locked(outbox).counters());
        Some(Impairments {
            receive: receive.unwrap_or_default(),
            transmit: transmit.unwrap_or_default(),
        })
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(Self {
            port: self.port.twin()?,
            inbox: self.inbox.clone(),
            outbox: self.outbox.clone(),
            clock: self.clock.clone(),
        }))
    }

    fn finished(&self) -> bool {
        self.port.finished() && (self.inbox.as_ref()).is_none_or(|inbox| locked(inbox).is_empty())
    }
}

/// The way of received frames.
struct Inbox {
    lane: Lane,
    /// Frames that came out of the wrapped port at once; those before `admitted` are in the lane.
    taken: Batch,
    admitted: usize,
    /// Whether the wrapped port had no more when it was asked last.
    exhausted: bool,
}

impl Inbox {
    fn shared(lane: Lane, sizes: &Sizes) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            lane,
            taken: Batch::with_sizes(limits::IMPAIRED_BATCH_FRAMES, *sizes),
            admitted: 0,
            exhausted: true,
        }))
    }

    /// A frame is admitted only while those that are due find room, so that a caller who takes few at once
    /// loses none.
    fn receive(
        &mut self,
        port: &mut dyn Port,
        batch: &mut Batch,
        now_ns: u64,
    ) -> Result<usize, PortError> {
        let before = batch.len();
        let mut asked = 0;
        loop {
            self.hand_on(batch, now_ns);
            if batch.is_full() {
                break;
            }
            if let Some(frame) = self.taken.frames().get(self.admitted) {
                self.lane.admit(frame.octets(), now_ns);
                self.admitted += 1;
                continue;
            }
            if asked > 0 && self.exhausted || asked == limits::IMPAIRED_BATCHES_MAX {
                break;
            }
            asked += 1;
            self.admitted = 0;
            self.taken.clear();
            port.receive(&mut self.taken)?;
            self.exhausted = !self.taken.is_full();
        }
        Ok(batch.len() - before)
    }

    fn hand_on(&mut self, batch: &mut Batch, now_ns: u64) {
        while !batch.is_full()
            && let Some(waiting) = self.lane.leave(now_ns)
        {
            let passed = batch.push(waiting.octets());
            self.lane.done(waiting, passed);
        }
    }

    /// Whether nothing waits here and the wrapped port was asked until it had no more.
    fn is_empty(&self) -> bool {
        self.lane.is_empty() && self.admitted == self.taken.len() && self.exhausted
    }

    fn counters(&self) -> FaultCounters {
        self.lane.counters()
    }
}

/// The way of transmitted frames.
struct Outbox {
    lane: Lane,
    /// Frames whose time has come and for which the wrapped port has had no room yet.
    ready: Batch,
}

impl Outbox {
    fn shared(lane: Lane, sizes: &Sizes) -> Arc<Mutex<Self>> {
        let sizes = Sizes {
            octets_max: storage_octets(sizes),
            ..*sizes
        };
        Arc::new(Mutex::new(Self {
            lane,
            ready: Batch::with_sizes(limits::IMPAIRED_BATCH_FRAMES, sizes),
        }))
    }

    /// Admits frames from the front while those that are due find room, and says how many.
    fn transmit(
        &mut self,
        port: &mut dyn Port,
        frames: &[Frame],
        now_ns: u64,
    ) -> (usize, Result<(), PortError>) {
        let mut taken = 0;
        loop {
            self.make_ready(now_ns);
            match frames.get(taken) {
                Some(frame) if !self.ready.is_full() => {
                    self.lane.admit(frame.octets(), now_ns);
                    taken += 1;
                }
                _ if self.ready.is_empty() => return (taken, Ok(())),
                _ => {
                    let sent = port.transmit(&mut self.ready);
                    if sent.is_err() || !self.ready.is_empty() {
                        return (taken, sent.map(|_| ()));
                    }
                }
            }
        }
    }

    fn make_ready(&mut self, now_ns: u64) {
        while !self.ready.is_full()
            && let Some(waiting) = self.lane.leave(now_ns)
        {
            let passed = self.ready.push(waiting.octets());
            self.lane.done(waiting, passed);
        }
    }

    fn counters(&self) -> FaultCounters {
        let counters = self.lane.counters();
        let ready = self.ready.len() as u64;
        FaultCounters {
            passed: counters.passed - ready,
            waiting: counters.waiting + ready,
            ..counters
        }
    }
}

/// No holder of the lock leaves anything half done, so one that panicked did not either.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
