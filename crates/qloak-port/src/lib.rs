//! Where frames come from and go to: memory, capture files, TAP, AF_PACKET, AF_XDP behind one trait.
//!
//! A [`Port`] hands over whole Ethernet frames without FCS, a [`Batch`] at a time, and never waits.
//! What holds for every kind:
//!
//! - `receive` appends to a batch and returns at once, with nothing when there is nothing;
//! - `transmit` takes from the front of a batch what the other side has room for and leaves the rest;
//! - no frame is lost without a counter, and no call on the way of a frame allocates;
//! - a frame lies in its own storage with room before and behind it, so that a SecTAG and an ICV
//!   are put around it where it is.
//!
//! All `unsafe` of the crate stands in `sys`, one file for each thing that is asked of the kernel.
//! A port of any kind can be impaired: frames that pass it are lost, doubled, late or damaged, from a seed.
//! Nothing here knows a key, a SecTAG or a channel.

mod af_packet;
mod af_xdp;
mod batch;
pub mod capture;
mod checksum;
mod coalesce;
mod config;
mod counters;
mod error;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod impair;
mod interface;
mod lanes;
mod lasting;
pub mod limits;
mod memory;
mod offload;

mod pcap;
mod port;
mod super_frame;
mod sys;
mod tap;
#[cfg(test)]
mod testing;
mod wait;

pub use batch::{Batch, Sizes};
pub use config::{
    AfPacketConfig, AfXdpConfig, BusyPoll, End, InterfaceConfig, MemoryConfig, Pace, PcapConfig,
    PortConfig, TapConfig, XdpMode,
};
pub use counters::Counters;
pub use error::PortError;
pub use frame::Frame;
pub use impair::{
    Clock, Delay, FaultCounters, Faults, GilbertElliott, ImpairedConfig, Impairment, Impairments,
    Loss, Radio, Reorder, impair, monotonic,
};
pub use lanes::{LanesConfig, OrderOf, open_lanes};
pub use lasting::open_lasting;
pub use memory::pair;
pub use port::{Kind, Port, open};
pub use wait::{Waker, wait};
