//! How long frames are in a node: a histogram as it crosses a management door.
//!
//! Buckets are 1/16 of their value wide, so whatever is read off one is at most 6.25 % too high. Histograms only grow;
//! the difference of two is the histogram of what lies between.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Time of client frames in the node, both ways, since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeLatency {
    /// From receive at a client port to transmit on the line, waiting for other client frames or a beat included.
    pub outbound: Latency,
    /// From receive at the line port to transmit at a client port.
    pub inbound: Latency,
}

/// A histogram of times, each weighted by the client frames that it is the time of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Latency {
    /// Client frames.
    pub frames: u64,
    /// Their times added up, nanoseconds.
    pub sum_ns: u64,
    /// Half of the frames took no longer; 0 where there are none.
    pub p50_ns: u64,
    /// 99 of 100 frames took no longer; 0 where there are none.
    pub p99_ns: u64,
    /// The longest, to the nanosecond.
    pub max_ns: u64,
    /// Buckets that hold a frame, shortest times first.
    pub buckets: Vec<LatencyBucket>,
}

/// A bucket of a [`Latency`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// The longest time that falls into it, nanoseconds.
    pub at_most_ns: u64,
    /// Client frames in it.
    pub frames: u64,
}

impl Latency {
    /// From buckets that hold a frame, shortest times first.
    pub fn new(sum_ns: u64, max_ns: u64, buckets: Vec<LatencyBucket>) -> Self {
        let mut latency = Self {
            frames: buckets.iter().map(|bucket| bucket.frames).sum(),
            sum_ns,
            max_ns,
            buckets,
            ..Self::default()
        };
        latency.p50_ns = latency.not_exceeded_by(0.5);
        latency.p99_ns = latency.not_exceeded_by(0.99);
        latency
    }

    /// The time that this share of the frames (0 to 1) did not exceed, nanoseconds; 0 where there are none.
    pub fn not_exceeded_by(&self, share: f64) -> u64 {
        let wanted = ((self.frames as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            below += bucket.frames;
            below >= wanted
        });
        bucket.map_or(0, |bucket| bucket.at_most_ns.min(self.max_ns))
    }

    /// What was added since `before`; all of it where the node was started anew meanwhile. Its longest time is
    /// the one of its last bucket.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.frames < before.frames {
            return self.clone();
        }
        let mut old = before.buckets.iter().peekable();
        let added = self.buckets.iter().filter_map(|bucket| {
            while old
                .next_if(|old| old.at_most_ns < bucket.at_most_ns)
                .is_some()
            {}
            let same = old.next_if(|old| old.at_most_ns == bucket.at_most_ns);
            let frames = bucket
                .frames
                .saturating_sub(same.map_or(0, |old| old.frames));
            (frames > 0).then_some(LatencyBucket { frames, ..*bucket })
        });
        let added: Vec<_> = added.collect();
        let longest = added.last().map_or(0, |bucket| bucket.at_most_ns);
        Self::new(
            self.sum_ns.saturating_sub(before.sum_ns),
            longest.min(self.max_ns),
            added,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buckets: &[(u64, u64)], max_ns: u64) -> Latency {
        let buckets = buckets
            .iter()
            .map(|&(at_most_ns, frames)| LatencyBucket { at_most_ns, frames });
        Latency::new(0, max_ns, buckets.collect())
    }

    #[test]
    fn shares_are_read_off_the_buckets() {
        let times = of(&[(10, 50), (20, 49), (400, 1)], 390);
        assert_eq!(
            (times.p50_ns, times.p99_ns, times.not_exceeded_by(1.0)),
            (10, 20, 390)
        );
        assert_eq!(of(&[(10, 1)], 9).p50_ns, 9);
        assert_eq!(Latency::default().not_exceeded_by(0.5), 0);
    }

    #[test]
    fn a_difference_holds_what_came_between() {
        let before = of(&[(10, 5), (30, 1)], 25);
        let after = of(&[(10, 5), (20, 2), (30, 4)], 28);
        let between = after.since(&before);
        assert_eq!(between, of(&[(20, 2), (30, 3)], 28));
        assert_eq!(before.since(&after), before, "the node was started anew");
        assert_eq!(after.since(&after).frames, 0);
    }
}
