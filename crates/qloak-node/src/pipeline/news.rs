//! What crosses between the key handler and the pipeline's threads: changes one way, news the other.
//!
//! Both ways are bounded single-producer rings, so that neither side ever waits for the other. A change
//! is applied between two batches. News that find their ring full are dropped; the next round says the
//! same with newer numbers.

use qloak_api::{
    An, ChannelNumber, ClientPort, Limits,
    manage::{
        FaultCounters, InboundCounters, OutboundCounters, PortCounters, PortImpairments,
        StrayCounters,
    },
};
use qloak_secy::Sa;

use crate::limits;

/// A change of the protecting half. `A` is what a key has become for it.
pub(crate) enum OutboundChange<A = Box<Sa>> {
    /// A new SA, not yet used to encode.
    Install {
        channel: ChannelNumber,
        an: An,
        sa: A,
    },
    /// From the next batch on, frames are protected under this SA.
    Encode { channel: ChannelNumber, an: An },
    /// The SA goes, and its key is zeroised.
    Retire { channel: ChannelNumber, an: An },
    /// Nothing leaves on this channel until an SA encodes again.
    Close { channel: ChannelNumber },
    /// Other limits for SAs from now on.
    Limits {
        channel: ChannelNumber,
        limits: Limits,
    },
}

/// A change of the validating half.
pub(crate) enum InboundChange<A = Box<Sa>> {
    /// A further SA is accepted.
    Install {
        channel: ChannelNumber,
        an: An,
        sa: A,
    },
    /// The SA is accepted no longer, and its key is zeroised.
    Retire { channel: ChannelNumber, an: An },
}

impl<A> OutboundChange<A> {
    /// The channel that it is about.
    pub(crate) fn channel(&self) -> ChannelNumber {
        match self {
            Self::Install { channel, .. }
            | Self::Encode { channel, .. }
            | Self::Retire { channel, .. }
            | Self::Close { channel }
            | Self::Limits { channel, .. } => *channel,
        }
    }
}

/// What the protecting thread tells.
#[derive(Clone, Copy)]
pub(crate) enum OutboundNews {
    /// How far the encoding SA of a channel is used, if it has one.
    Channel {
        channel: ChannelNumber,
        usage: Option<qloak_secy::Usage>,
        counters: OutboundCounters,
    },
    /// A client port, both directions.
    Client {
        client: ClientPort,
        counters: PortCounters,
        discarded_closed: u64,
        discarded_oversize: u64,
        discarded_vlan: u64,
    },
    /// Line frames that the line port would not take.
    LineDropped(u64),
}

/// What the validating thread tells.
#[derive(Clone, Copy)]
pub(crate) enum InboundNews {
    /// A frame was valid under this SA for the first time.
    Heard { channel: ChannelNumber, an: An },
    /// What a channel received.
    /// The PNs are the lowest that each AN's SA still accepts.
    Channel {
        channel: ChannelNumber,
        counters: InboundCounters,
        lowest_pn: [u64; An::COUNT],
    },
    /// Client frames that a client port would not take.
    ClientDropped { client: ClientPort, frames: u64 },
    /// The line port, both directions, and frames that no channel took.
    Line {
        counters: PortCounters,
        strays: StrayCounters,
    },
    /// What an impaired line port has done to frames.
    Impaired(PortImpairments),
}

/// Counters of a port in the words of the management door.
pub(crate) fn port_counters(counters: qloak_port::Counters) -> PortCounters {
    PortCounters {
        received_frames: counters.received_frames,
        received_octets: counters.received_octets,
        transmitted_frames: counters.transmitted_frames,
        transmitted_octets: counters.transmitted_octets,
        receive_dropped: counters.receive_dropped,
        transmit_dropped: counters.transmit_dropped,
        malformed: counters.malformed,
    }
}

/// What a port has done to frames on purpose, in the same words.
pub(crate) fn port_impairments(done: &qloak_port::Impairments) -> PortImpairments {
    let way = |faults: &qloak_port::FaultCounters| FaultCounters {
        taken: faults.taken,
        lost: faults.lost + faults.overflowed + faults.too_long,
        duplicated: faults.duplicated,
        delayed: faults.delayed,
        reordered: faults.reordered,
        damaged: faults.bit_damaged + faults.radio_damaged,
    };
    PortImpairments {
        receive: way(&done.receive),
        transmit: way(&done.transmit),
    }
}

/// A key agreement frame on its way from the line to the key handler.
pub(crate) struct ControlFrame {
    octets: [u8; limits::CONTROL_FRAME_OCTETS],
    len: usize,
}

impl ControlFrame {
    /// A copy, or nothing if the frame is longer than any agreement frame.
    pub(crate) fn copy_of(frame: &[u8]) -> Option<Self> {
        let mut octets = [0; limits::CONTROL_FRAME_OCTETS];
        octets.get_mut(..frame.len())?.copy_from_slice(frame);
        Some(Self {
            octets,
            len: frame.len(),
        })
    }

    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}
