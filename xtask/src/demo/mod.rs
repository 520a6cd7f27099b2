//! `cargo xtask demo`: the product at work.

mod count;
pub(crate) mod parts;
mod pcap;
mod ping;
mod raw;
mod state;

use crate::{
    setup::Need,
    ui::{Done, Failure},
};

/// What the demo needs from outside.
pub(crate) const NEEDS: [Need; 4] = [Need::Iproute2, Need::Ping, Need::Ethtool, Need::Tshark];

/// Show the product at work.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The short form: under a minute.
    #[arg(long)]
    quick: bool,
}

impl Arguments {
    /// The short form.
    pub(crate) fn quick() -> Self {
        Self { quick: true }
    }
}

/// `cargo xtask demo`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    Err(Failure::new(format!(
        "the demo is not built yet (quick: {})",
        arguments.quick
    )))
}
