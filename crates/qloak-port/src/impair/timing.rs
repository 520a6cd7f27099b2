//! When a frame may leave: after the frames before it have crossed a slow line, and after a delay.
//!
//! ```text
//!   arrives ----> line free? ----> + its time on the line ----> + fixed + jitter ----> not before the
//!                 (rate)            (rate)                       (delay)                last one's time
//! ```

use super::{Delay, Faults, chance::Chance};
use crate::limits::WIRE_OCTETS_AROUND_FRAME;

const NS_PER_S: u64 = 1_000_000_000;

/// The clock of one way.
pub(super) struct Timing {
    delay: Delay,
    rate_bps: Option<u64>,
    /// When the line has sent what it was given.
    free_at_ns: u64,
    /// What is missing from `free_at_ns`, in parts of a nanosecond that are `rate_bps` to one.
    free_at_rest: u64,
    last_due_ns: u64,
}

impl Timing {
    pub(super) fn new(faults: &Faults) -> Self {
        Self {
            delay: faults.delay,
            rate_bps: faults.rate_bps,
            free_at_ns: 0,
            free_at_rest: 0,
            last_due_ns: 0,
        }
    }

    /// When a frame of so many octets that comes now is due.
    pub(super) fn due_ns(&mut self, now_ns: u64, octets: usize, chance: &mut Chance) -> u64 {
        let mut due_ns = now_ns;
        if let Some(rate_bps) = self.rate_bps {
            if self.free_at_ns < now_ns {
                (self.free_at_ns, self.free_at_rest) = (now_ns, 0);
            }
            let bits = (octets + WIRE_OCTETS_AROUND_FRAME) as u64 * 8;
            let work = bits * NS_PER_S + self.free_at_rest;
            self.free_at_ns = self.free_at_ns.saturating_add(work / rate_bps);
            self.free_at_rest = work % rate_bps;
            due_ns = self.free_at_ns;
        }
        let jitter_ns = match self.delay.jitter_ns {
            0 => 0,
            most => chance.below(most + 1),
        };
        due_ns = due_ns.saturating_add(self.delay.fixed_ns + jitter_ns);
        self.last_due_ns = self.last_due_ns.max(due_ns);
        self.last_due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(faults: Faults) -> impl FnMut(u64, usize) -> u64 {
        let mut timing = Timing::new(&faults);
        let mut chance = Chance::new(8);
        move |now_ns, octets| timing.due_ns(now_ns, octets, &mut chance)
    }

    #[test]
    fn frames_leave_at_the_rate_of_the_line_and_parts_of_a_nanosecond_are_not_lost() {
        let mut due = timing(Faults {
            rate_bps: Some(3_000_000_000),
            ..Faults::default()
        });
        // 84 octets on the wire at 3 Gb/s are 224 ns; 85 are 226.67 ns, three of them 680.
        assert_eq!(due(1000, 60), 1224);
        assert_eq!(
            [due(1000, 61), due(1000, 61), due(1000, 61)],
            [1450, 1677, 1904]
        );
        // An idle line does not save up.
        assert_eq!(due(5000, 60), 5224);
    }

    #[test]
    fn a_delay_is_added_after_the_line_and_jitter_keeps_its_bounds_and_the_order() {
        let mut due = timing(Faults {
            rate_bps: Some(1_000_000_000),
            delay: Delay {
                fixed_ns: 10_000,
                jitter_ns: 0,
            },
            ..Faults::default()
        });
        assert_eq!(due(0, 101), 11_000);
        let mut due = timing(Faults {
            delay: Delay {
                fixed_ns: 500,
                jitter_ns: 100,
            },
            ..Faults::default()
        });
        let (mut last, mut least, mut most) = (0, u64::MAX, 0);
        for round in 0..20_000 {
            // Far apart, so that order does not bind.
            let now = round * 1000;
            let waited = due(now, 60) - now;
            (least, most) = (least.min(waited), most.max(waited));
        }
        assert_eq!((least, most), (500, 600), "both ends are met");
        for _ in 0..1000 {
            let next = due(30_000_000, 60);
            assert!(next >= last, "order is kept");
            last = next;
        }
    }
}
