//! How far the encoding SA is used: the limit that is reached first counts.

use super::Initiator;
use crate::key_handler::limits;

/// How far an SA is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Fresh,
    /// A soft share of a limit is reached.
    Due,
    /// The limit named is reached.
    Over(&'static str),
}

impl Initiator {
    /// When the encoding SA next comes due or ends by time alone, after `now_ns`.
    pub(super) fn ages_ns(&self, now_ns: u64) -> u64 {
        let Some(sa) = &self.encoding else {
            return u64::MAX;
        };
        let whole_ns = self.limits.seconds.saturating_mul(1_000_000_000);
        let ends = [self.limits.due_after_ns(), whole_ns];
        let mut ends = ends.map(|ns| sa.since_ns.saturating_add(ns)).into_iter();
        ends.find(|end_ns| *end_ns > now_ns).unwrap_or(u64::MAX)
    }

    /// Where the encoding SA stands now. `xpn`: its PNs have 64 bits.
    pub(super) fn life(&self, now_ns: u64, xpn: bool) -> Life {
        let Some(sa) = &self.encoding else {
            return Life::Fresh;
        };
        let frames = if xpn {
            self.limits.frames
        } else {
            self.limits.frames.min(limits::PN32_FRAMES_MAX)
        };
        let ns = self.limits.seconds.saturating_mul(1_000_000_000);
        let age_ns = now_ns.saturating_sub(sa.since_ns);
        let uses = [
            ("frames", sa.frames, frames),
            ("octets", sa.octets, self.limits.octets),
            ("time", age_ns, ns),
        ];
        if let Some((what, _, _)) = uses.iter().find(|(_, used, most)| used >= most) {
            return Life::Over(what);
        }
        let share = u128::from(self.limits.rekey_at_percent);
        let due = |used: u64, most: u64| u128::from(used) * 100 >= u128::from(most) * share;
        let aged = age_ns >= self.limits.due_after_ns();
        if aged || uses.iter().any(|&(_, used, most)| due(used, most)) {
            Life::Due
        } else {
            Life::Fresh
        }
    }
}
