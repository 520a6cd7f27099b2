//! What a port is asked to be. Plain data: a program maps its own configuration file to it.

use std::path::PathBuf;

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

/// A TAP interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapConfig {
    /// Its name, 1 to 15 octets; made when it does not exist, and gone again with the port.
    pub interface: String,
    /// Network namespace (a name under /run/netns) in which it is; ours when none.
    pub namespace: Option<String>,
    /// MTU to set, octets; left as it is when none.
    pub mtu: Option<usize>,
    /// Whether to bring it up.
    pub up: bool,
    /// Whether the kernel hands over and takes super-frames of up to 64 KiB and begun checksums, as far as
    /// it knows how to; without, each frame crosses it by itself.
    pub offload: bool,
}

impl TapConfig {
    /// An interface with super-frames that is brought up with the MTU it has.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            namespace: None,
            mtu: None,
            up: true,
            offload: true,
        }
    }
}

/// A packet socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfPacketConfig {
    /// Name of the interface, which must exist.
    pub interface: String,
    /// Network namespace (a name under /run/netns) in which it is; ours when none.
    pub namespace: Option<String>,
    /// MTU to set, octets; left as it is when none.
    pub mtu: Option<usize>,
    /// Whether to bring it up; an interface that is down is refused otherwise.
    pub up: bool,
    /// Octets of the receive ring.
    pub ring_octets: usize,
}

impl AfPacketConfig {
    /// An interface that is brought up with the MTU it has, and a ring of the usual size.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            namespace: None,
            mtu: None,
            up: true,
            ring_octets: limits::RING_OCTETS,
        }
    }
}
