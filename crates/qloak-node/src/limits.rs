//! Every bound of the node, and why.

/// Octets of a configuration file. A node of 64 client ports and 1024 channels stays far below.
pub const CONFIG_OCTETS_MAX: u64 = 1 << 20;

/// Frames handled at once by a pipeline thread: enough to hide the start of a batch, few enough that
/// 64 frames of 1500 octets stay in the second-level cache.
pub const BATCH_FRAMES: usize = 64;

/// Threads of the pipeline: one for both ways, or one each way.
pub const PIPELINE_THREADS: std::ops::RangeInclusive<u8> = 1..=2;

/// Octets kept free before a frame: SecTAG (16), room to align, and the mux header.
pub const HEADROOM: usize = 64;

/// Octets kept free behind a frame: the ICV and room to align.
pub const TAILROOM: usize = 64;

/// Longest line frame, without FCS (jumbo as far as the client side goes).
pub const LINE_FRAME_OCTETS: std::ops::RangeInclusive<usize> = 256..=16_000;

/// Frames in the bounded ring between a pipeline thread and the key handler. At a sync frame each
/// millisecond this is a quarter of a second; beyond it the oldest news is worthless.
pub const CONTROL_RING: usize = 256;

/// Longest key agreement frame; an announce with its key IDs stays far below one standard frame.
pub const CONTROL_FRAME_OCTETS: usize = 1514;

/// Changes (install, encode, retire) in flight from the key handler to a pipeline thread. Four SAs a
/// channel on 1024 channels is the most that a restart of the peer can ask for at once.
pub const CHANGE_RING: usize = 4096;

/// Replay window, frames (IEEE 802.1AE allows any; the bitmap is kept per SA).
pub const REPLAY_WINDOW_MAX: u64 = 65_536;

/// Slots of the key RAM: the seed's 512 by default, resizable.
pub const KEY_RAM_SLOTS: std::ops::RangeInclusive<u32> = 8..=65_536;

/// Keys asked of a KME at once (ETSI GS QKD 014 lets the KME state its own bound, which is obeyed too).
pub const KEYS_PER_REQUEST: std::ops::RangeInclusive<u32> = 1..=128;

/// Management commands waiting for the key handler thread; an operator is slower than that.
pub const COMMANDS_WAITING: usize = 64;

/// News between a pipeline thread and the key handler: a millisecond's worth for 1024 channels and 64
/// client ports, with room for one late round.
pub const NEWS_RING: usize = 4096;

/// Spent SAs on their way to be wiped; one rekey of 256 channels at once.
pub const SPENT_RING: usize = 256;

/// Outbound keys kept ready in the key RAM.
pub const KEY_RAM_FILL: std::ops::RangeInclusive<u32> = 1..=32_768;

/// Weights of client ports: beyond 64 a port of weight 1 would wait for whole megabytes of another's.
pub const WEIGHTS: std::ops::RangeInclusive<u8> = 1..=64;

/// News of stations on their way from the inbound to the outbound thread.
pub const STATION_RING: usize = 1024;

/// Far nodes beside the line's own: as many as a mesh has channels.
pub const FURTHER_PEERS_MAX: usize = qloak_secy::limits::MESH_CHANNELS_MAX - 1;

/// Lanes of a line.
pub const LANES_MAX: usize = qloak_port::limits::LANES_MAX;

/// Microseconds that a lane may be later than another: frames that wait for it must come out long before an SA that
/// was changed is retired; twice this is the least for that.
pub const LANE_HOLD_US: std::ops::RangeInclusive<u32> = 1..=20_000;

/// The same unless told otherwise: 100 km of fibre more, or a switch that is busy.
pub const LANE_HOLD_US_DEFAULT: u32 = (qloak_port::limits::LANE_HOLD_NS / 1000) as u32;

/// Bits per second of a channel of constant rate: 34 line frames of 16 000 octets, the most that can wait for their
/// beat, leave within 44 ms, long before an SA that was changed is retired (100 ms unless told otherwise); and the
/// fastest line that there is a card for.
pub const CONSTANT_RATE_BPS: std::ops::RangeInclusive<u64> = 100_000_000..=400_000_000_000;

/// Line frames that can wait for their beat at the slowest constant rate; faster rates have more and are sooner done.
pub const CONSTANT_RATE_WAITING: u64 = 34;

/// Microseconds that an SA which was changed is still accepted: frames under it may be on the line, or behind others.
/// With four ANs it bounds how often a channel can be rekeyed: three times in this time.
pub const DRAIN_US: std::ops::RangeInclusive<u32> = 200..=1_000_000;

/// The same unless told otherwise: far above the reordering of any line.
pub const DRAIN_US_DEFAULT: u32 = 100_000;

/// Microseconds that a line frame may wait for more client frames: as far as `qloak_secy` allows.
pub const WAIT_US: std::ops::RangeInclusive<u16> = 0..=1000;

/// The same unless told otherwise: a fifth of what the seed 000 adds in all.
pub const WAIT_US_DEFAULT: u16 = 20;

/// Line frames that a channel has begun at most before they are sealed: a full batch with few channels, and no more
/// memory than 512 of them in all as long as a channel has what the longest client frame needs.
pub fn trunk_frames(trunks: usize) -> usize {
    const ALL: usize = 512;
    (ALL / trunks.max(1)).clamp(qloak_secy::limits::LINE_BATCH_FRAMES_MIN, BATCH_FRAMES)
}
/// Batches of client frames whose times are told apart while they wait in the line frames of a channel: more than the
/// frames of 64 octets that fit into a batch of line frames when each came alone.
pub const WAITING_MARKS: usize = 2048;

/// Octets between a pipeline thread and a capture: 8 ms of a line of 8 Gb/s, longer than the door's task sleeps.
pub const CAPTURE_RING_OCTETS: usize = 8 << 20;

/// The same of the key handler's thread, which sends some hundred frames a second.
pub const CAPTURE_AGREEMENT_OCTETS: usize = 256 << 10;

/// Octets that a capture takes out of a ring at once, so that a busy side does not keep the other's frames waiting.
pub const CAPTURE_PIECE_OCTETS: usize = 2 << 20;
