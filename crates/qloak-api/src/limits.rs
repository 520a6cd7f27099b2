//! Every bound of this crate, and why.

/// Octets of an SAE ID. ETSI GS QKD 014 leaves the length open; a URL segment and a log line do not.
pub const SAE_ID_OCTETS_MAX: usize = 128;

/// Client ports of a node: the ten of the seeds' boards, with room for more on the same octet.
pub const CLIENT_PORTS_MAX: u8 = 64;

/// Channels of a node. A channel number is the port identifier of an SCI (16 bits); the data path
/// keeps a table of them that must stay in the nearest cache.
pub const CHANNELS_MAX: u16 = 1024;

/// Seconds of a capture: a door's connection and a place that another operator waits for are held so long.
pub const CAPTURE_SECONDS: std::ops::RangeInclusive<u64> = 1..=3600;

/// Frames of a capture: more make a file that no viewer opens.
pub const CAPTURE_FRAMES: std::ops::RangeInclusive<u64> = 1..=10_000_000;

/// Octets of a frame that a capture keeps: the Ethernet header at least; no frame of a node is longer than the most.
pub const CAPTURE_SNAP_OCTETS: std::ops::RangeInclusive<u64> = 14..=65_535;
