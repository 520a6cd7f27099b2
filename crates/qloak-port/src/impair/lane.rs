//! One way through an impaired port: where a frame is lost, doubled, damaged and made to wait.
//!
//! ```text
//!   admit -> loss -> duplicate -> radio -> bit errors -> when is it due? -> in order  [..........] -> leave
//!                                                                       \-> held      [...]      -/
//! ```
//!
//! Waiting frames stand in two queues, each in the order in which its frames will leave, so that leaving looks
//! at two heads. A frame that is to be overtaken by n stands in the second, with the place of the n-th frame
//! after it. Storage is made once; a frame that finds none free is dropped and counted.

use std::collections::VecDeque;

use super::{
    FaultCounters, Faults, Reorder, bits::BitErrors, chance::Chance, loss::Losses,
    radio::RadioLink, timing::Timing,
};
use crate::Sizes;

/// One way.
pub(super) struct Lane {
    chance: Chance,
    losses: Losses,
    duplicate: f64,
    radio: Option<RadioLink>,
    bit_errors: Option<BitErrors>,
    timing: Timing,
    reorder: Reorder,
    octets_max: usize,
    spare: Vec<Vec<u8>>,
    in_order: VecDeque<Waiting>,
    held: VecDeque<Waiting>,
    /// Count of frames that were ever queued; the number of the next.
    queued: u64,
    /// One more than the highest number that left.
    left: u64,
    counters: FaultCounters,
}

/// A frame that waits.
pub(super) struct Waiting {
    octets: Vec<u8>,
    number: u64,
    due_ns: u64,
}

impl Waiting {
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }
}

impl Lane {
    /// `faults` were checked; all storage is made here.
    pub(super) fn new(faults: &Faults, seed: u64, sizes: &Sizes) -> Self {
        let mut chance = Chance::new(seed);
        let ratio = faults.bit_error_ratio;
        let bit_errors = (ratio > 0.0).then(|| BitErrors::new(ratio, &mut chance));
        let octets_max = storage_octets(sizes);
        let frames = faults.waiting_frames_max;
        Self {
            chance,
            losses: Losses::new(faults.loss),
            duplicate: faults.duplicate,
            radio: faults.radio.as_ref().map(RadioLink::new),
            bit_errors,
            timing: Timing::new(faults),
            reorder: faults.reorder,
            octets_max,
            spare: (0..frames)
                .map(|_| Vec::with_capacity(octets_max))
                .collect(),
            in_order: VecDeque::with_capacity(frames),
            held: VecDeque::with_capacity(frames),
            queued: 0,
            left: 0,
            counters: FaultCounters::default(),
        }
    }

    /// Takes a frame in. What becomes of it is known from here on.
    pub(super) fn admit(&mut self, octets: &[u8], now_ns: u64) {
        self.counters.taken += 1;
        if self.losses.next(&mut self.chance) {
            self.counters.lost += 1;
            return;
        }
        let twice = self.chance.happens(self.duplicate);
        self.queue(octets, now_ns);
        if twice {
            self.counters.duplicated += 1;
            self.queue(octets, now_ns);
        }
    }

    fn queue(&mut self, octets: &[u8], now_ns: u64) {
        if octets.len() > self.octets_max {
            self.counters.too_long += 1;
            return;
        }
        let Some(mut copy) = self.spare.pop() else {
            self.counters.overflowed += 1;
            return;
        };
        copy.clear();
        copy.extend_from_slice(octets);
        self.damage(&mut copy);
        let due_ns = self.timing.due_ns(now_ns, copy.len(), &mut self.chance);
        self.counters.delayed += u64::from(due_ns > now_ns);
        let waiting = Waiting {
            octets: copy,
            number: self.queued,
            due_ns,
        };
        self.queued += 1;
        if self.chance.happens(self.reorder.probability) {
            self.held.push_back(waiting);
        } else {
            self.in_order.push_back(waiting);
        }
    }

    fn damage(&mut self, octets: &mut [u8]) {
        let counters = &mut self.counters;
        if let Some(radio) = &self.radio {
            let decoded = radio.damage(octets, &mut self.chance);
            counters.radio_words += decoded.words;
            counters.radio_words_failed += decoded.words_failed;
            counters.radio_octets_changed += decoded.octets_changed;
            counters.radio_damaged += u64::from(decoded.octets_changed > 0);
        }
        if let Some(bit_errors) = &mut self.bit_errors {
            let flipped = bit_errors.damage(octets, &mut self.chance);
            counters.bits_flipped += flipped;
            counters.bit_damaged += u64::from(flipped > 0);
        }
    }

    /// The next frame that is due, if there is one. It still counts as waiting until it comes back by
    /// [`Self::done`].
    pub(super) fn leave(&mut self, now_ns: u64) -> Option<Waiting> {
        // Behind the frame of its number and so many more; both queues are sorted by this.
        let frames = self.reorder.frames as u64;
        let held = self.held.front().filter(|held| {
            self.in_order
                .front()
                .is_none_or(|first| held.number + frames < first.number)
        });
        let waiting = match held {
            Some(held) => {
                let overtaken = self.queued > held.number + frames;
                let patience_ns = if overtaken {
                    0
                } else {
                    self.reorder.hold_ns_max
                };
                let due = held.due_ns.saturating_add(patience_ns) <= now_ns;
                due.then(|| self.held.pop_front())??
            }
            None => {
                let due = self.in_order.front()?.due_ns <= now_ns;
                due.then(|| self.in_order.pop_front())??
            }
        };
        self.counters.reordered += u64::from(waiting.number < self.left);
        self.left = self.left.max(waiting.number + 1);
        Some(waiting)
    }

    /// Takes back the storage of a frame that left; false when it found no place where it went.
    pub(super) fn done(&mut self, waiting: Waiting, passed: bool) {
        if passed {
            self.counters.passed += 1;
        } else {
            self.counters.too_long += 1;
        }
        self.spare.push(waiting.octets);
    }

    /// Whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.held.is_empty()
    }

    /// What was done so far.
    pub(super) fn counters(&self) -> FaultCounters {
        FaultCounters {
            waiting: (self.in_order.len() + self.held.len()) as u64,
            ..self.counters
        }
    }
}

/// The longest frame that fits into the storage of a frame of these sizes: one that was protected has grown
/// into both rooms.
pub(super) fn storage_octets(sizes: &Sizes) -> usize {
    sizes.headroom + sizes.octets_max + sizes.tailroom
}
