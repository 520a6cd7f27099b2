//! How long an SA may encode: frames, octets, seconds, and its packet numbers.
//!
//! ```text
//!   Fresh ---- share of the first limit reached ----> RekeyDue ---- the whole of it ----> Spent
//! ```
//!
//! The data path refuses a frame that would pass a limit; the key handler asks [`Usage::life`] and
//! starts the rekey in time. Limits: `qloak_api::Limits`; PN exhaustion: IEEE 802.1AE-2018, 10.5.2
//! (the SA stops; a PN is never used again).

use qloak_api::{An, KeyId, Limits};
use qloak_cipher::Suite;

/// Nanoseconds in a second.
const NS: u64 = 1_000_000_000;

/// What an encoding SA has used so far.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Its association number.
    pub an: An,
    /// Its suite.
    pub suite: &'static Suite,
    /// The name of its key.
    pub key_id: KeyId,
    /// Frames protected.
    pub frames: u64,
    /// Octets of secure data protected; the rest of the limit too, once a frame did not fit it.
    pub octets: u64,
    /// When it first became the encoding SA, in the caller's nanoseconds.
    pub encode_since_ns: u64,
    /// The PN of its next frame.
    pub next_pn: u64,
    /// The last PN of its form: 2^32 - 1, or 2^64 - 2 with XPN.
    pub pn_last: u64,
}

/// Where in its life an SA is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Life {
    /// Goes on.
    Fresh,
    /// The soft share of a limit is reached: the next key is wanted.
    RekeyDue,
    /// A limit is reached: protects nothing more.
    Spent,
}

impl Usage {
    /// Where in its life the SA is at `now_ns`.
    pub fn life(&self, limits: &Limits, now_ns: u64) -> Life {
        let age_ns = now_ns.saturating_sub(self.encode_since_ns);
        let age = if self.too_old(limits, now_ns) {
            Life::Spent
        } else if age_ns >= limits.due_after_ns() {
            Life::RekeyDue
        } else {
            Life::Fresh
        };
        let spans = [
            (u128::from(self.frames), u128::from(limits.frames)),
            (u128::from(self.octets), u128::from(limits.octets)),
            (u128::from(self.next_pn - 1), u128::from(self.pn_last)),
        ];
        let percent = u128::from(limits.rekey_at_percent.min(100));
        let of = |(used, whole): (u128, u128)| {
            if used >= whole {
                Life::Spent
            } else if used * 100 >= whole * percent {
                Life::RekeyDue
            } else {
                Life::Fresh
            }
        };
        spans.into_iter().map(of).fold(age, Life::max)
    }

    /// Whether another frame may be protected: [`Self::life`] without the soft share, and cheap.
    pub(crate) fn may_encode(&self, limits: &Limits, now_ns: u64) -> bool {
        self.frames < limits.frames
            && self.octets < limits.octets
            && self.next_pn <= self.pn_last
            && !self.too_old(limits, now_ns)
    }

    /// Whether the time limit has passed.
    pub(crate) fn too_old(&self, limits: &Limits, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.encode_since_ns) >= limits.seconds.saturating_mul(NS)
    }

    /// Takes the next PN for a frame with so much secure data; `None` when a limit forbids it. A frame
    /// that does not fit the rest of the octets ends the SA, so that all see it spent: else it would
    /// look open for ever and carry short frames alone.
    pub(crate) fn take_pn(&mut self, limits: &Limits, octets: usize) -> Option<u64> {
        //= IEEE 802.1AE-2018 10.5.2
        // A PN is used once; when the last is used the SA stops.
        let pn = self.next_pn;
        let total = self.octets.saturating_add(octets as u64);
        if total > limits.octets {
            self.octets = self.octets.max(limits.octets);
            return None;
        }
        if pn > self.pn_last || self.frames >= limits.frames {
            return None;
        }
        self.next_pn = pn + 1;
        self.frames += 1;
        self.octets = total;
        Some(pn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> Usage {
        Usage {
            an: An::from_low_bits(0),
            suite: &qloak_cipher::suite::SUITES[0],
            key_id: KeyId([0; 16]),
            frames: 0,
            octets: 0,
            encode_since_ns: 5 * NS,
            next_pn: 1,
            pn_last: crate::xpn::PN32_LAST,
        }
    }

    const LIMITS: Limits = Limits {
        frames: 100,
        octets: 1000,
        seconds: 10,
        rekey_at_percent: 80,
        rekey_every_us: None,
    };

    #[test]
    fn the_limit_reached_first_decides() {
        let life = |change: fn(&mut Usage), now_ns| {
            let mut usage = usage();
            change(&mut usage);
            usage.life(&LIMITS, now_ns)
        };
        assert_eq!(life(|_| (), 5 * NS), Life::Fresh);
        assert_eq!(life(|_| (), 0), Life::Fresh, "a clock that stepped back");
        assert_eq!(life(|u| u.frames = 79, 5 * NS), Life::Fresh);
        assert_eq!(life(|u| u.frames = 80, 5 * NS), Life::RekeyDue);
        assert_eq!(life(|u| u.octets = 1000, 5 * NS), Life::Spent);
        assert_eq!(life(|_| (), 13 * NS), Life::RekeyDue);
        assert_eq!(life(|u| u.frames = 80, 15 * NS), Life::Spent);
        let often = Limits {
            rekey_every_us: Some(1000),
            ..LIMITS
        };
        let at = |ns| usage().life(&often, 5 * NS + ns);
        assert_eq!([at(999_999), at(1_000_000)], [Life::Fresh, Life::RekeyDue]);
        assert_eq!(at(10 * NS), Life::Spent);
        assert_eq!(life(|u| u.next_pn = 3_500_000_000, 5 * NS), Life::RekeyDue);
        assert_eq!(life(|u| u.next_pn = 1 << 32, 5 * NS), Life::Spent);
    }

    #[test]
    fn a_limit_refuses_the_frame_that_would_pass_it() {
        let mut sa = usage();
        assert_eq!(sa.take_pn(&LIMITS, 600), Some(1));
        assert_eq!(sa.take_pn(&LIMITS, 400), Some(2));
        assert_eq!(sa.take_pn(&LIMITS, 1), None);
        let mut sa = usage();
        assert_eq!(sa.take_pn(&LIMITS, 600), Some(1));
        assert_eq!(sa.take_pn(&LIMITS, 401), None);
        assert_eq!(sa.life(&LIMITS, 5 * NS), Life::Spent);
        assert_eq!(sa.take_pn(&LIMITS, 400), None, "it is over for all");
        let mut sa = Usage {
            frames: 99,
            ..usage()
        };
        assert!(sa.take_pn(&LIMITS, 1).is_some() && sa.take_pn(&LIMITS, 1).is_none());
        let mut sa = usage();
        sa.next_pn = sa.pn_last;
        assert_eq!(sa.take_pn(&LIMITS, 1), Some(u64::from(u32::MAX)));
        assert_eq!(sa.take_pn(&LIMITS, 1), None, "32-bit PNs are exhausted");
    }
}
