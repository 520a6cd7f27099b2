//! What is asked of the kernel, behind functions that are safe to call.
//!
//! The only `unsafe` of the crate, one file for each matter. Each block says what makes it sound.

pub(crate) mod bpf;
pub(crate) mod interface;
pub(crate) mod namespace;
mod option;
pub(crate) mod packet;
pub(crate) mod poll;
pub(crate) mod ring;
pub(crate) mod tun;
pub(crate) mod umem;
pub(crate) mod xdp;
