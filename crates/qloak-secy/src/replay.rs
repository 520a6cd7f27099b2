//! The replay window: each PN is accepted once, and only while it is recent.
//!
//! ```text
//!        late          |  seen or not: one bit each  |   not yet seen
//!  --------------------+-----------------------------+------------------->  PN
//!                    lowest                        next
//! ```
//!
//! `next` is one more than the greatest PN of a valid frame; `lowest = next - size`. The bits are a
//! ring of 64-bit words as in RFC 6479, so moving the window zeroes whole words and never shifts.
//! The window moves only after the ICV has verified: a forged PN cannot push it.
//!
//! IEEE 802.1AE-2018, 10.6.2 and 10.6.4 ask for the lower edge only; the bitmap beyond that makes a
//! frame inside the window good for one delivery.

use crate::limits;

/// Why a PN is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Below the window.
    Late,
    /// In the window and seen before.
    Replayed,
}

/// The window of one SA.
#[derive(Debug)]
pub struct ReplayWindow {
    size: u64,
    first: u64,
    next: u64,
    words: Box<[u64]>,
}

impl ReplayWindow {
    /// A window of `size` frames (0: strictly in order), at most [`limits::REPLAY_WINDOW_MAX`]; larger
    /// sizes are cut to it. Starts before PN 1.
    pub fn new(size: u64) -> Self {
        let size = size.min(limits::REPLAY_WINDOW_MAX);
        // A window that is not aligned to a word touches one more word at each end.
        let words = size as usize / 64 + 2;
        Self {
            size,
            first: 1,
            next: 1,
            words: vec![0; words].into_boxed_slice(),
        }
    }

    /// Starts again for a new SA in the same place. `first` is the lowest PN that it may use.
    pub fn reset(&mut self, first: u64) {
        self.first = first;
        self.next = first;
        self.words.fill(0);
    }

    /// The lowest PN that can still be accepted.
    pub fn lowest(&self) -> u64 {
        self.next.saturating_sub(self.size).max(self.first)
    }

    /// One more than the greatest PN accepted so far.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a frame of this PN would be accepted now. Asked before the ICV is verified, so that
    /// late and replayed frames cost no cipher.
    pub fn check(&self, pn: u64) -> Result<(), Refused> {
        //= IEEE 802.1AE-2018 10.6.2
        // A PN below the lowest acceptable one is late.
        if pn < self.lowest() || pn == u64::MAX {
            return Err(Refused::Late);
        }
        let (word, bit) = self.place(pn);
        if pn < self.next && self.words[word] & bit != 0 {
            return Err(Refused::Replayed);
        }
        Ok(())
    }

    /// Accepts a PN whose ICV verified, and moves the window.
    pub fn accept(&mut self, pn: u64) -> Result<(), Refused> {
        //= IEEE 802.1AE-2018 10.6.4
        // Checked once more: another frame of the same batch may have moved the window meanwhile.
        self.check(pn)?;
        if pn >= self.next {
            let (old, new) = (self.next.saturating_sub(1) / 64, pn / 64);
            let fresh = (new - old).min(self.words.len() as u64);
            for block in new - fresh + 1..=new {
                let word = (block % self.words.len() as u64) as usize;
                self.words[word] = 0;
            }
            self.next = pn + 1;
        }
        let (word, bit) = self.place(pn);
        self.words[word] |= bit;
        Ok(())
    }

    fn place(&self, pn: u64) -> (usize, u64) {
        ((pn / 64 % self.words.len() as u64) as usize, 1 << (pn % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    //= IEEE 802.1AE-2018 10.6.4
    #[test]
    fn a_window_of_zero_wants_strict_order() {
        let mut window = ReplayWindow::new(0);
        assert_eq!(window.accept(1), Ok(()));
        assert_eq!(window.accept(3), Ok(()));
        assert_eq!(window.accept(2), Err(Refused::Late));
        assert_eq!(window.accept(3), Err(Refused::Late));
    }

    #[test]
    fn inside_late_and_replayed_are_told_apart() {
        let mut window = ReplayWindow::new(64);
        assert_eq!(window.accept(100), Ok(()));
        assert_eq!(window.lowest(), 37);
        assert_eq!(window.accept(37), Ok(()));
        assert_eq!(window.accept(37), Err(Refused::Replayed));
        assert_eq!(window.accept(36), Err(Refused::Late));
        assert_eq!(window.accept(0), Err(Refused::Late));
        assert_eq!(window.accept(u64::MAX), Err(Refused::Late));
    }

    proptest! {
        // The window agrees with the plain definition: a set of all PNs ever accepted.
        #[test]
        fn it_agrees_with_a_set(
            size in prop_oneof![0..200_u64, Just(1024)],
            start in prop_oneof![Just(1_u64), Just(u32::MAX as u64 - 50), Just(u64::MAX - 9000)],
            steps in prop::collection::vec((0..300_u64, any::<bool>(), prop::bool::weighted(0.02)), 1..400),
        ) {
            let mut window = ReplayWindow::new(size);
            window.reset(if start > 1000 { start - 200 } else { 1 });
            let first = window.lowest();
            let mut seen = BTreeSet::new();
            let mut top = start;
            let _ = window.accept(start);
            seen.insert(start);
            for (distance, back, leap) in steps {
                let distance = if leap { distance * 20 } else { distance / 8 };
                let pn = if back { top.saturating_sub(distance * 4) } else { top.saturating_add(distance) };
                let lowest = (top + 1).saturating_sub(size).max(first);
                let expected = if pn < lowest || pn == u64::MAX { Err(Refused::Late) }
                    else if pn <= top && seen.contains(&pn) { Err(Refused::Replayed) }
                    else { Ok(()) };
                prop_assert_eq!(window.check(pn), expected);
                prop_assert_eq!(window.accept(pn), expected);
                if expected.is_ok() {
                    seen.insert(pn);
                    top = top.max(pn);
                }
                prop_assert_eq!(window.next(), top + 1);
            }
        }
    }
}
