//! What happens to a frame, in order, both ways. No I/O, clock, randomness or async.
//!
//! A SecY (MAC security entity) belongs to one line port. It has two halves, each owned by one
//! thread, so that nothing on the way of a frame is shared or locked:
//!
//! ```text
//! outbound   client port -> classify -> mux -> shape -> protect  -> line port      [`Outbound`]
//! inbound    line port   -> validate -> demux -> client port                       [`Inbound`]
//! ```
//!
//! What the node writes down in its pipeline:
//!
//! ```text
//! outbound, aggregated                        outbound, transparent
//!   client.receive(batch)                       client.receive(batch)
//!   channel = outbound.classify(client)         channel = outbound.classify(client)
//!   for frame: outbound.mux(channel, client,
//!              frame, line)                     outbound.protect(channel, rooms(batch), now)
//!   n = outbound.shape(channel, line.len(),     line.transmit(batch)
//!              now)
//!   outbound.protect(channel, rooms(line, n), now)
//!   line.transmit(line batch)
//!
//! inbound
//!   line.receive(batch)
//!   inbound.validate(rooms(batch), verdicts)
//!   for each Verdict::Valid(valid): inbound.demux(valid, frame, |client, frame| ...)
//! ```
//!
//! What always holds:
//! - frames are changed in place, in batches, and nothing is allocated for a frame;
//! - no frame is delivered before its ICV has verified, and none twice;
//! - no PN is used twice under one SAK;
//! - a discarded frame has an empty range and stands in exactly one counter;
//! - no octet that a stranger sends can panic.
//!
//! Time is an argument, keys come from the key handler as a [`Sa`], and keys are agreed elsewhere
//! (`qloak-node`). Standard: IEEE 802.1AE-2018, cited by clause at the line.

pub mod association;
pub mod channel;
pub mod classify;
pub mod counters;
pub mod demux;
pub mod frame;
pub mod inbound;
pub mod life;
pub mod limits;
pub mod mux;
pub mod outbound;
pub mod protect;
pub mod replay;
pub mod sectag;
pub mod shape;
pub mod stations;
pub mod validate;
pub mod xpn;

pub use association::{Sa, SaError};
pub use channel::{ChannelConfig, ConfigError, InstallError, LineConfig};
pub use classify::{ChannelRef, Route};
pub use frame::Room;
pub use inbound::{Accepted, Inbound};
pub use life::{Life, Usage};
pub use mux::{LineFrames, Muxed};
pub use outbound::Outbound;
pub use protect::Protected;
pub use stations::Station;
pub use validate::{Valid, Verdict};
