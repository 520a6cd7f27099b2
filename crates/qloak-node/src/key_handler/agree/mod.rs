//! Agreeing: the control link to the peer, and for each channel an initiator and a target.

pub(super) mod initiator;
pub(super) mod link;
pub(super) mod target;
mod window;

pub(super) use self::{initiator::Initiator, link::Link, target::Target};
