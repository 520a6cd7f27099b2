//! Suites that do not authenticate, fenced off from the rest.
//!
//! They exist because the first hardware measured them and because a lab needs them. Anyone on
//! the line can change their frames unseen, so `open` always says valid. A node offers one only
//! when its own configuration names it.

mod ctr;
mod plain;
mod raw_block;
mod xor;

pub(crate) use ctr::Ctr;
pub(crate) use plain::Plain;
pub(crate) use raw_block::RawBlock;
pub(crate) use xor::Xor;
