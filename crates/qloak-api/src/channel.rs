//! What a channel is asked to be.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How client frames are carried on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carriage {
    /// One client frame, one protected frame; addresses stay readable. Plain MACsec; one client port.
    Transparent,
    /// Frames of many client ports muxed into line frames; addresses and ports hidden.
    Aggregated,
}

/// How long an SA may encode. The limit reached first starts a rekey (at the soft share of it) and,
/// when no rekey comes, closes the channel (at the whole of it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Frames protected under one SAK.
    pub frames: u64,
    /// Octets of secure data protected under one SAK.
    pub octets: u64,
    /// Seconds since the SA became the encoding SA.
    pub seconds: u64,
    /// The share of a limit at which the rekey starts, in percent: 1 to 99.
    pub rekey_at_percent: u8,
}

impl Default for Limits {
    /// 2^32 frames, 4 TiB and an hour: far inside the bounds of every suite (SP 800-38D, 8.3;
    /// RFC 7253, 5), and short enough that a stolen key opens little.
    fn default() -> Self {
        Self {
            frames: 1 << 32,
            octets: 1 << 42,
            seconds: 3600,
            rekey_at_percent: 80,
        }
    }
}
