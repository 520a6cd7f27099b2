//! Every bound of the key handler, and why.

use std::ops::RangeInclusive;

/// Slots of the key RAM: the seed's 512 by default, resizable (seed 000, III.C).
pub const RAM_SLOTS: RangeInclusive<u32> = 8..=65_536;

/// Slots when nothing else is said: the seed's depth.
pub const RAM_SLOTS_DEFAULT: u32 = 512;

/// Outbound keys kept ready when nothing else is said: enough for a second of the fastest rekeying,
/// few enough that one link does not empty a KME that others need too.
pub const FILL_KEYS_DEFAULT: u32 = 32;

/// Keys of one request or one loading.
pub const KEYS_PER_REQUEST: RangeInclusive<u32> = 1..=128;

/// Least octets of a key that an SA is made of: no suite may be weaker than its name says.
pub const KEY_OCTETS_MIN: usize = 32;

/// Key IDs ahead that one agreement frame carries; with 32 kept ready, two sync frames name them all.
pub const AHEAD_MAX: usize = 16;

/// Channels in one sync frame, so that it stays under one standard Ethernet frame. A node with more
/// channels tells them in turn.
pub const SYNC_CHANNELS_MAX: usize = 48;

/// Octets of an agreement frame, without FCS: one standard Ethernet frame.
pub const FRAME_OCTETS_MAX: usize = 1514;

/// Key IDs remembered so that no key is ever used or fetched again: a week at one rekey in five seconds, or
/// a minute at a thousand a second each way, in ten megabytes. The KME's own rule (delivered once) covers all
/// before.
pub const SPENT_MAX: usize = 131_072;

/// Key IDs that are asked for or wait to be asked for. Only an authenticated peer can name them.
pub const WANTED_MAX: usize = 1024;

/// Failed key IDs that are remembered in any case; beyond, the stale ones go.
pub const RECORDS_KEPT: usize = 128;

/// A key ID that failed is remembered for this long after it might have been asked for again.
pub const RECORD_STALE_NS: u64 = 10_000_000_000;

/// A few keys that are missing are asked for this long after the last ones.
pub const TAKE_PAUSE_NS: u64 = 20_000_000;

/// Fetches of keys ahead that may be under way at once; an announced key is always fetched.
pub const PREFETCHES_MAX: usize = 4;

/// A KME without keys is no alarm while this many wait, or a quarter of those that are kept ready.
pub const FAIR_SHARE_MAX: usize = 4;

/// How often a key that the KME does not know is asked for: its peer KME may be a moment behind.
pub const FETCH_ATTEMPTS_MAX: u32 = 4;

/// First announces of unknown origin that may cost a KME request at once.
pub const HELLO_TOKENS: u64 = 3;

/// Alarms at once: one of each kind for each channel is far below.
pub const ALARMS_MAX: usize = 4096;

/// A key that the peer has not named for this long may give its slot to one that it has.
pub const FORGOTTEN_NS: u64 = 2_000_000_000;

/// The pipeline is taken to have switched after this long even if it has not said so: longer than it
/// waits for room on a line that stalls, since frames under the old SA may wait there.
pub const CONFIRM_NS: u64 = 1_500_000_000;

/// Frames under one SAK with 32-bit PNs (IEEE 802.1AE-2018, 10.5.2: PN 0 is never sent).
pub const PN32_FRAMES_MAX: u64 = u32::MAX as u64;

/// Keys that are waited for and may pass through a full inbound half on their way into an SA.
pub const PASSING_MAX: usize = 16;

/// The same complaint to the peer is made at most once in this time.
pub const COMPLAINT_NS: u64 = 100_000_000;

/// Frames that prove nothing are said to arrive for this long after the last.
pub const UNPROVEN_NS: u64 = 5_000_000_000;

/// A peer that announces what we do not have is believed to go on for this long.
pub const STRAY_NS: u64 = 5_000_000_000;
