//! Every bound of the crate, and why.

use std::{ops::RangeInclusive, time::Duration};

/// Shortest frame: two addresses and an EtherType.
pub const FRAME_OCTETS_MIN: usize = 14;

/// Longest frame that a port may be opened for: a jumbo frame of 16000 octets, its Ethernet header
/// included, and a VLAN tag twice.
pub const FRAME_OCTETS_MAX: usize = 16_022;

/// Bounds of an MTU: the least that IPv4 asks for (RFC 791), and what fits the longest frame.
pub const MTU_OCTETS: RangeInclusive<usize> = 68..=FRAME_OCTETS_MAX - 22;

/// Name of an interface: IFNAMSIZ less its closing zero.
pub const INTERFACE_OCTETS_MAX: usize = 15;

/// Frames that a memory wire holds each way unless told otherwise: more than 100 ms at the rates of a
/// demonstration, so that a thread may be off its core for a while and no frame is lost.
pub const MEMORY_FRAMES: usize = 4096;

/// Bounds of the same: at least one frame, at most a gigabyte of the longest.
pub const MEMORY_FRAMES_RANGE: RangeInclusive<usize> = 1..=65_536;

/// Octets of an AF_PACKET receive ring unless told otherwise: 16384 frames of 2048 octets, some
/// 10 ms at the rate that one core can take.
pub const RING_OCTETS: usize = 32 << 20;

/// Bounds of the same: one block, and what the kernel still maps in one piece for an ordinary user's limits.
pub const RING_OCTETS_RANGE: RangeInclusive<usize> = (1 << 16)..=(1 << 30);

/// Octets of the buffers of a packet socket: super-frames that the ring has no room for wait in the
/// one, frames that the interface has not sent yet in the other.
pub const SOCKET_BUFFER_OCTETS: usize = 8 << 20;

/// Longest super-frame that a kernel hands over before it is cut into frames: 64 KiB of IP and the
/// Ethernet header. BIG TCP makes longer ones; they are counted as malformed.
pub const SUPER_FRAME_OCTETS_MAX: usize = (64 << 10) + 64;

/// Frames put together into one super-frame: its parts lie on the stack. 64 KiB are 45 frames of 1500
/// octets of IP.
pub const SUPER_FRAME_SEGMENTS_MAX: usize = 64;

/// Frames given to one sendmmsg call: its headers lie on the stack.
pub const SEND_FRAMES_MAX: usize = 64;

/// Frames that the rings of an AF_XDP port hold each way unless told otherwise: some 2 ms at the rate
/// that one core can take; 16 MiB each way.
pub const XDP_FRAMES: usize = 4096;

/// Bounds of the same, a power of two: two batches, and 128 MiB each way.
pub const XDP_FRAMES_RANGE: RangeInclusive<usize> = 128..=32_768;

/// Octets of one place in the memory of an AF_XDP port: a page, the most that the kernel allows.
pub const XDP_CHUNK_OCTETS: usize = 4096;

/// Longest frame, without FCS, that every driver with native XDP takes in one piece: a page less
/// XDP's headroom of 256 octets and what the kernel keeps behind a frame, with room to spare (veth takes an
/// MTU of 3500 and refuses 3520). Longer frames come in fragments.
pub const XDP_WHOLE_OCTETS_MAX: usize = 3072;

/// How long to try again, in steps, when the queue is in use: the kernel frees that of a socket that was
/// closed a little later.
pub const XDP_BIND_ATTEMPTS: usize = 50;

/// One such step.
pub const XDP_BIND_PAUSE: Duration = Duration::from_millis(10);

/// Microseconds of a busy poll: beyond ten milliseconds it is a thread that hangs.
pub const BUSY_POLL_US_RANGE: RangeInclusive<u32> = 1..=10_000;

/// Frames of a busy poll (SO_BUSY_POLL_BUDGET), which the kernel keeps in 16 bits.
pub const BUSY_POLL_FRAMES_RANGE: RangeInclusive<u32> = 1..=65_535;

/// Descriptors waited for at once: 64 client ports, the line port, wakers, with room to spare.
pub const WAIT_DESCRIPTORS_MAX: usize = 128;

/// Lanes of a line port: the ten of the seed 002 and more; a bit for each fits a probe.
pub const LANES_MAX: usize = 16;

/// Frames moved to or from a lane at once.
pub const LANE_BATCH_FRAMES: usize = 64;

/// How often each lane is probed.
pub const LANE_PROBE_NS: u64 = 2_000_000;

/// A lane that brought no probe for this long is dead: two probes may be lost. With the time until the far end
/// tells, a dead lane is left out within 10 ms.
pub const LANE_DEAD_NS: u64 = 6_000_000;

/// How much later than others a lane may bring a frame: 100 km of fibre more, or a switch that is busy.
pub const LANE_HOLD_NS: u64 = 500_000;

/// Frames that wait for those of slower lanes: a millisecond of frames of 1500 octets at 6 Gb/s, 8 MiB.
pub const LANES_HELD_FRAMES: usize = 512;

/// Late frames in a row after which the number that made them late is taken for wrong.
pub const LANE_LATE_FRAMES: usize = 64;

/// Orders that are kept at once: four SAs of 256 channels.
pub const LANE_STREAMS_MAX: usize = 1024;

/// How long to wait before an interface that went away is looked for again: nobody misses it for longer, and a
/// port that is opened costs a millisecond.
pub const REOPEN_PAUSE: Duration = Duration::from_millis(250);

/// Octets of one block of a capture file. A pcapng block may claim 4 GiB; a frame with its options
/// is far shorter.
pub const CAPTURE_BLOCK_OCTETS_MAX: usize = 1 << 20;

/// Interfaces of one section of a pcapng file.
pub const CAPTURE_INTERFACES_MAX: usize = 1024;

/// Frames per second of a paced capture: from one in a quarter of an hour to a clock tick each.
pub const PACE_FRAMES_PER_SECOND: RangeInclusive<f64> = 0.001..=1e9;

/// Frames that wait in an impaired port each way unless told otherwise: 10 ms of frames of 1500 octets
/// at 1 Gb/s.
pub const IMPAIRED_FRAMES: usize = 1024;

/// Bounds of the same: at least one frame, at most a gigabyte of the longest.
pub const IMPAIRED_FRAMES_RANGE: RangeInclusive<usize> = 1..=65_536;

/// Frames that an impaired port moves at once to and from the port that it wraps.
pub const IMPAIRED_BATCH_FRAMES: usize = 64;

/// Batches that one call takes from the wrapped port at most, so that a flood of which every frame is
/// lost does not hold the caller.
pub const IMPAIRED_BATCHES_MAX: usize = 16;

/// Longest fixed delay, longest jitter and longest time that a frame is held to be overtaken: a minute,
/// far more than any line.
pub const IMPAIRED_DELAY_NS_MAX: u64 = 60_000_000_000;

/// Bits per second of a rate limit: from a modem to ten times the fastest Ethernet.
pub const IMPAIRED_RATE_BPS: RangeInclusive<u64> = 1000..=10_000_000_000_000;

/// Octets that Ethernet puts around each frame on the wire: preamble 8, FCS 4, gap 12
/// (IEEE 802.3-2022, 3.1.1 and 4.4.2).
pub const WIRE_OCTETS_AROUND_FRAME: usize = 24;

/// Eb/N0 of a radio in dB: below, every octet is noise; above, its error ratio is too small for a
/// floating-point number.
pub const RADIO_EB_N0_DB: RangeInclusive<f64> = -30.0..=25.0;

/// Symbols of a Reed-Solomon code word over GF(256): one fewer than the field has elements, and one of
/// data and one of parity at least.
pub const REED_SOLOMON_OCTETS: RangeInclusive<usize> = 2..=255;
