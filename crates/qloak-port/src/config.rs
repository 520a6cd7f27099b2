//! What a port is asked to be. Plain data: a program maps its own configuration file to it.

use std::path::PathBuf;

mod check;

pub(crate) use check::bounded;

use crate::{ImpairedConfig, limits};

/// Which kind of port, and its particulars.
#[derive(Debug, Clone, PartialEq)]
pub enum PortConfig {
    /// A wire between two ends in one process.
    Memory(MemoryConfig),
    /// Capture files: frames come from one and go to another.
    Pcap(PcapConfig),
    /// A TAP interface: the host's own stack is the other side.
    Tap(TapConfig),
    /// A packet socket on an existing interface.
    AfPacket(AfPacketConfig),
    /// An AF_XDP socket on an existing interface.
    AfXdp(AfXdpConfig),
    /// A port of another kind, and what happens to frames that pass it. For tests and demonstrations.
    Impaired(Box<ImpairedConfig>),
}

/// One of the two ends of a memory wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The one end.
    A,
    /// The other.
    B,
}

/// A wire in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Name of the wire; the two ends that name it are joined.
    pub wire: String,
    /// Which end this port is.
    pub end: End,
    /// Frames that the wire holds each way: 1 to 65536.
    pub frames: usize,
}

impl MemoryConfig {
    /// An end of a wire of the usual length.
    pub fn new(wire: impl Into<String>, end: End) -> Self {
        Self {
            wire: wire.into(),
            end,
            frames: limits::MEMORY_FRAMES,
        }
    }
}

/// When the frames of a capture file come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Pace {
    /// As fast as they are taken.
    #[default]
    Unpaced,
    /// At the distances that their time stamps have.
    Captured,
    /// At this many frames per second.
    FramesPerSecond(f64),
}

/// Capture files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PcapConfig {
    /// Frames are received from this pcap or pcapng file.
    pub read: Option<PathBuf>,
    /// Transmitted frames are written to this pcap file; an existing one is replaced.
    pub write: Option<PathBuf>,
    /// When frames come.
    pub pace: Pace,
    /// How many times the file is read beyond the first: 0 reads it once.
    pub repeat: u64,
}

/// An interface of the kernel, and what is done to it when a port is opened there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name, 1 to 15 octets.
    pub name: String,
    /// Network namespace (a name under /run/netns) in which it is; ours when none.
    pub namespace: Option<String>,
    /// MTU to set, octets; left as it is when none.
    pub mtu: Option<usize>,
    /// Whether to bring it up; one that is down is refused otherwise.
    pub up: bool,
}

impl InterfaceConfig {
    /// An interface in our namespace that is brought up with the MTU it has.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            mtu: None,
            up: true,
        }
    }
}

impl From<&str> for InterfaceConfig {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// A TAP interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapConfig {
    /// Made when it does not exist, and gone again with the port.
    pub interface: InterfaceConfig,
    /// Whether the kernel hands over and takes super-frames of up to 64 KiB and begun checksums, as far as
    /// it knows how to; without, each frame crosses it by itself.
    pub offload: bool,
}

impl TapConfig {
    /// An interface with super-frames.
    pub fn new(interface: impl Into<InterfaceConfig>) -> Self {
        Self {
            interface: interface.into(),
            offload: true,
        }
    }
}

/// A packet socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfPacketConfig {
    /// The interface, which must exist.
    pub interface: InterfaceConfig,
    /// Octets of the receive ring.
    pub ring_octets: usize,
    /// Hear frames of this EtherType only, beside a kernel that goes on with all the others: its offloads are
    /// then left as they are. Every frame when none.
    pub ethertype: Option<u16>,
}

impl AfPacketConfig {
    /// A ring of the usual size.
    pub fn new(interface: impl Into<InterfaceConfig>) -> Self {
        Self {
            interface: interface.into(),
            ring_octets: limits::RING_OCTETS,
            ethertype: None,
        }
    }
}

/// How an AF_XDP socket gets its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    /// The card writes and reads our memory; few drivers can.
    ZeroCopy,
    /// The driver hands frames over before the kernel makes anything of them, and copies.
    Native,
    /// The kernel's own path, for every driver, and copies.
    Skb,
}

impl XdpMode {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::ZeroCopy, Self::Native, Self::Skb];

    /// The word for it in configuration, state and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ZeroCopy => "zero-copy",
            Self::Native => "native",
            Self::Skb => "skb",
        }
    }
}

/// Frames are fetched by the thread that asks for them, instead of by an interrupt
/// (SO_PREFER_BUSY_POLL; kernel documentation, networking/napi).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long one call may look for frames, microseconds: 1 to 10000.
    pub microseconds: u32,
    /// Most frames of one call: 1 to 65535; 64 is the kernel's usual number.
    pub frames: u32,
}

/// An AF_XDP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfXdpConfig {
    /// The interface, which must exist and have one receive queue.
    pub interface: InterfaceConfig,
    /// Modes to try, in this order; the first that works is taken.
    pub modes: Vec<XdpMode>,
    /// Places for frames each way, each of 4096 octets: a power of two, 128 to 32768.
    pub frames: usize,
    /// Busy polling; none leaves it off.
    pub busy_poll: Option<BusyPoll>,
    /// Whether to open an AF_PACKET port instead where AF_XDP is refused.
    pub fallback: bool,
}

impl AfXdpConfig {
    /// The fastest mode that works, and AF_PACKET where none does.
    pub fn new(interface: impl Into<InterfaceConfig>) -> Self {
        Self {
            interface: interface.into(),
            modes: XdpMode::ALL.into(),
            frames: limits::XDP_FRAMES,
            busy_poll: None,
            fallback: true,
        }
    }
}
