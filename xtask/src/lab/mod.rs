//! `cargo xtask lab`: the demo's network to play with.

pub(crate) mod config;
pub(crate) mod network;
pub(crate) mod programs;

use crate::ui::{Done, Failure};

/// The demo's network to play with.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// `cargo xtask lab`.
pub(crate) fn run(_: &Arguments) -> Done {
    Err(Failure::new("the lab is not built yet"))
}
