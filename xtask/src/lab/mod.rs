//! `cargo xtask lab`: the demo's network to play with.

use crate::ui::{Done, Failure};

/// The demo's network to play with.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// `cargo xtask lab`.
pub(crate) fn run(_: &Arguments) -> Done {
    Err(Failure::new("the lab is not built yet"))
}
