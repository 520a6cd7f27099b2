//! The one trait, and the door that opens a port of any kind.

use std::{os::fd::BorrowedFd, time::Duration};

use crate::{
    Batch, Counters, Impairments, PortConfig, PortError, Sizes, af_packet::AfPacketPort, af_xdp,
    impair, limits, memory::MemoryPort, pcap::PcapPort, tap::TapPort,
};

/// The kinds of port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A wire in memory.
    Memory,
    /// Capture files.
    Pcap,
    /// A TAP interface.
    Tap,
    /// A packet socket.
    AfPacket,
    /// An AF_XDP socket.
    AfXdp,
    /// Several ports as one.
    Lanes,
}

impl Kind {
    /// The word for it in configuration, state and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pcap => "pcap",
            Self::Tap => "tap",
            Self::AfPacket => "af-packet",
            Self::AfXdp => "af-xdp",
            Self::Lanes => "lanes",
        }
    }
}

/// A place where Ethernet frames come from and go to. No call waits.
pub trait Port: Send {
    /// Its name: of the interface, the wire, or the file.
    fn name(&self) -> &str;

    /// Its kind.
    fn kind(&self) -> Kind;

    /// Its kind, and in brackets what the port found out by itself when it was opened and an operator should
    /// see: which mode, why it is of another kind than was asked for.
    fn describe(&self) -> String {
        self.kind().as_str().to_owned()
    }

    /// The MAC address of the interface; none where there is none.
    fn mac(&self) -> Option<[u8; 6]>;

    /// The longest frame, without FCS, that the interface took when the port was opened (its MTU and the
    /// Ethernet header); none where there is no such bound.
    fn frame_octets_max(&self) -> Option<usize> {
        None
    }

    /// Appends the frames that are there, up to the batch's capacity, and says how many. Nothing there
    /// is `Ok(0)`. Frames that are malformed are counted and left out.
    ///
    /// # Errors
    /// When the port will not give another frame: the interface is gone, a capture file is damaged.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError>;

    /// Takes frames from the front of the batch, says how many, and leaves what the other side had no room
    /// for; the caller decides whether to try again or to drop. A frame that the other side would never take
    /// (too long, interface down) is taken and counted as `transmit_dropped`.
    ///
    /// # Errors
    /// When the port will not take another frame: the interface is gone, the disk is full.
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError>;

    /// What becomes readable when frames may be there; none for a port that has to be asked. To be
    /// waited for only after `receive` left room in its batch.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Longest time until `receive` wants to be called again, readable or not, for what the port does by itself;
    /// none for a port that does nothing.
    fn nap_max(&self) -> Option<Duration> {
        None
    }

    /// What went through the port, by all handles.
    fn counters(&self) -> Counters;

    /// What was done to frames on purpose; none for a port that leaves them as they are.
    fn impairments(&self) -> Option<Impairments> {
        None
    }

    /// Another handle on the same port, for the other thread: one receives, the other transmits. When
    /// both do the same at once, one of them gets nothing.
    ///
    /// # Errors
    /// When the kernel gives no second descriptor.
    fn twin(&self) -> Result<Box<dyn Port>, PortError>;

    /// Whether no frame will ever come again: a capture file was read to its end.
    fn finished(&self) -> bool;
}

/// Opens a port.
///
/// # Errors
/// What is wrong with the configuration, the interface or the file, and what to do about it.
pub fn open(config: &PortConfig, sizes: &Sizes) -> Result<Box<dyn Port>, PortError> {
    if !(limits::FRAME_OCTETS_MIN..=limits::FRAME_OCTETS_MAX).contains(&sizes.octets_max) {
        return Err(PortError::Setting {
            setting: "the longest frame",
            given: format!("{} octets", sizes.octets_max),
            allowed: format!(
                "{} to {}",
                limits::FRAME_OCTETS_MIN,
                limits::FRAME_OCTETS_MAX
            ),
        });
    }
    config.check()?;
    Ok(match config {
        PortConfig::Memory(config) => Box::new(MemoryPort::open(config, sizes)?),
        PortConfig::Pcap(config) => Box::new(PcapPort::open(config, sizes)?),
        PortConfig::Tap(config) => Box::new(TapPort::open(config, sizes)?),
        PortConfig::AfPacket(config) => Box::new(AfPacketPort::open(config, sizes)?),
        PortConfig::AfXdp(config) => af_xdp::open(config, sizes)?,
        PortConfig::Impaired(config) => {
            let port = open(&config.port, sizes)?;
            impair::impair(port, &config.impairment, sizes, impair::monotonic())?
        }
    })
}
