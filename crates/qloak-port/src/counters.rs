//! What went through a port. The handles of a port share one set; each number only grows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What went through a port since it was opened. `received` is from the outside to us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub received_frames: u64,
    /// Octets received, without FCS.
    pub received_octets: u64,
    /// Frames transmitted.
    pub transmitted_frames: u64,
    /// Octets transmitted, without FCS.
    pub transmitted_octets: u64,
    /// Frames that the kernel dropped before we saw them.
    pub receive_dropped: u64,
    /// Frames that the other side would never take: too long for it, or it is down.
    pub transmit_dropped: u64,
    /// Received frames under 14 octets, over the port's size, or damaged; dropped.
    pub malformed: u64,
}

impl Counters {
    /// Both together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            received_frames: self.received_frames + other.received_frames,
            received_octets: self.received_octets + other.received_octets,
            transmitted_frames: self.transmitted_frames + other.transmitted_frames,
            transmitted_octets: self.transmitted_octets + other.transmitted_octets,
            receive_dropped: self.receive_dropped + other.receive_dropped,
            transmit_dropped: self.transmit_dropped + other.transmit_dropped,
            malformed: self.malformed + other.malformed,
        }
    }
}

/// The same, shared by the handles of one port.
#[derive(Default)]
pub(crate) struct Shared {
    received_frames: AtomicU64,
    received_octets: AtomicU64,
    transmitted_frames: AtomicU64,
    transmitted_octets: AtomicU64,
    receive_dropped: AtomicU64,
    transmit_dropped: AtomicU64,
    malformed: AtomicU64,
}

impl Shared {
    pub(crate) fn received(&self, frames: u64, octets: u64) {
        if frames > 0 {
            self.received_frames.fetch_add(frames, Relaxed);
            self.received_octets.fetch_add(octets, Relaxed);
        }
    }

    pub(crate) fn transmitted(&self, frames: u64, octets: u64) {
        if frames > 0 {
            self.transmitted_frames.fetch_add(frames, Relaxed);
            self.transmitted_octets.fetch_add(octets, Relaxed);
        }
    }

    pub(crate) fn receive_dropped(&self, frames: u64) {
        self.receive_dropped.fetch_add(frames, Relaxed);
    }

    pub(crate) fn transmit_dropped(&self, frames: u64) {
        self.transmit_dropped.fetch_add(frames, Relaxed);
    }

    pub(crate) fn malformed(&self, frames: u64) {
        self.malformed.fetch_add(frames, Relaxed);
    }

    pub(crate) fn read(&self) -> Counters {
        Counters {
            received_frames: self.received_frames.load(Relaxed),
            received_octets: self.received_octets.load(Relaxed),
            transmitted_frames: self.transmitted_frames.load(Relaxed),
            transmitted_octets: self.transmitted_octets.load(Relaxed),
            receive_dropped: self.receive_dropped.load(Relaxed),
            transmit_dropped: self.transmit_dropped.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
        }
    }
}
