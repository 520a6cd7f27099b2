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
    /// A rekey starts after so many microseconds, however far the limits are: 100 to an hour. None: the limits
    /// alone decide. A limit closes a channel; this never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rekey_every_us: Option<u64>,
}

impl Limits {
    /// What [`Self::rekey_every_us`] may be: a tenth of a millisecond, shorter than any agreement takes, to an hour.
    pub const REKEY_EVERY_US: std::ops::RangeInclusive<u64> = 100..=3_600_000_000;

    /// Nanoseconds after which an SA is due for a rekey by its age: the share of the seconds, or
    /// [`Self::rekey_every_us`] when that is sooner.
    pub fn due_after_ns(&self) -> u64 {
        let share_ns = u128::from(self.seconds) * 10_000_000 * u128::from(self.rekey_at_percent);
        let share_ns = u64::try_from(share_ns).unwrap_or(u64::MAX);
        let every_ns = self.rekey_every_us.map(|us| us.saturating_mul(1000));
        every_ns.map_or(share_ns, |every_ns| every_ns.min(share_ns))
    }
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
            rekey_every_us: None,
        }
    }
}
