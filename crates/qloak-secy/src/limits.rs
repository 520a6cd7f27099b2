//! Every bound of this crate, and why.

use std::ops::RangeInclusive;

/// Octets that protection puts before the secure data: EtherType, TCI/AN, SL, PN and SCI
/// (IEEE 802.1AE-2018, 9.3). A room needs this much before its frame.
pub const HEADROOM: usize = 16;

/// Octets that protection puts behind the secure data: the longest ICV. A room needs this much
/// behind its frame.
pub const TAILROOM: usize = 16;

/// Shortest frame: two addresses and an EtherType.
pub const FRAME_OCTETS_MIN: usize = 14;

/// Longest client frame, without FCS: the largest jumbo frame that ports hand over. It sizes the
/// reassembly buffer of each aggregated channel.
pub const CLIENT_FRAME_OCTETS_MAX: usize = 16_000;

/// Longest line frame, protected, without FCS. Under 256 octets the headers of an aggregated frame
/// would outweigh what it carries; 16 000 is the largest jumbo frame that lines take.
pub const LINE_FRAME_OCTETS: RangeInclusive<usize> = 256..=16_000;

/// Line frames that one client frame may span. With [`LINE_BATCH_FRAMES_MIN`] this makes sure that
/// an empty line batch takes any frame that is taken at all, so a mux never waits for ever.
pub const FRAGMENTS_MAX: usize = 32;

/// Line frames that a line batch must hold when it is empty.
pub const LINE_BATCH_FRAMES_MIN: usize = FRAGMENTS_MAX;

/// Shortest piece that is worth the header of a fragment: a frame is not split to fill less room.
pub const FRAGMENT_OCTETS_MIN: usize = 64;

/// Largest replay window, in frames: 8 KiB of bitmap for each SA. A line that reorders by more than
/// this is no line.
pub const REPLAY_WINDOW_MAX: u64 = 65_536;

/// Frames sealed or opened by one call of the cipher: as many as its kernels see at once, which fills the
/// lanes of any backend; the work list stays on the stack and in the first-level cache.
pub const CHUNK_FRAMES: usize = qloak_cipher::limits::FRAMES_AT_ONCE;

/// Key IDs that each channel half remembers after use, to refuse a key that comes a second time: its
/// PNs, or its replay window, would start anew under the same SAK. The ledger of the KMS and the key
/// handler are the first guard; this is the last one and costs 16 octets for each.
pub const KEY_IDS_REMEMBERED: usize = 64;

/// Channels of a mesh at one client port: as many nodes on a shared line, this one aside.
pub const MESH_CHANNELS_MAX: usize = 16;

/// Stations that a mesh's client ports remember, all together; a frame for any other goes to every node.
pub const STATIONS_MAX: usize = 4096;

/// News of stations between two askings.
pub const STATIONS_LEARNED_MAX: usize = 64;

/// How long a station that says nothing is remembered: IEEE 802.1Q-2022, table 8-6.
pub const STATION_NS: u64 = 300_000_000_000;

/// How long after the last news of a station it is news again.
pub const STATION_NEWS_NS: u64 = 30_000_000_000;

/// Most frames that a limit may allow under one SAK: RFC 7253, 5 wants far less than 2^48 blocks, and
/// a frame has at least one.
pub const SA_FRAMES_MAX: u64 = 1 << 47;

/// Most octets that a limit may allow under one SAK: 2^48 octets are 2^44 blocks, inside the bound of
/// RFC 7253, 5 (2^48 blocks) and of SP 800-38D, 8.3.
pub const SA_OCTETS_MAX: u64 = 1 << 48;

/// Longest that a line frame may wait for more records, in nanoseconds: a millisecond, the distance of sync
/// frames, beyond which a user of the line would notice.
pub const WAIT_NS_MAX: u64 = 1_000_000;
