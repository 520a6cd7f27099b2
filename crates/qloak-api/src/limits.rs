//! Every bound of this crate, and why.

/// Octets of an SAE ID. ETSI GS QKD 014 leaves the length open; a URL segment and a log line do not.
pub const SAE_ID_OCTETS_MAX: usize = 128;

/// Client ports of a node: the ten of the seeds' boards, with room for more on the same octet.
pub const CLIENT_PORTS_MAX: u8 = 64;

/// Channels of a node. A channel number is the port identifier of an SCI (16 bits); the data path
/// keeps a table of them that must stay in the nearest cache.
pub const CHANNELS_MAX: u16 = 1024;
