//! The node's clock: nanoseconds since it started, never backwards.

use std::time::Instant;

/// A clock that every thread of a node shares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn started_now() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Nanoseconds since the node started; 584 years fit.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn uptime_s(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}
