//! Parts of the demo and of the benchmarks that run inside a namespace: `ip netns exec <name> xtask part ...`.
//!
//! Each talks with its starter over its own standard input and output, one line each way: JSON out, words
//! in. Each ends when its input closes, so that none outlives its starter.

mod client;
mod line;
mod observe;
mod raw;
mod traffic;

use clap::Subcommand;

use crate::ui::Done;

/// A part.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Answer the traffic of `send`.
    Answer,
    /// Send and receive over TCP through all client ports.
    Send(traffic::SendArguments),
    /// Record the line and inject frames.
    Line(line::LineArguments),
    /// Write down size and time of each line frame that comes.
    Observe(observe::ObserveArguments),
    /// Record a client port.
    Client(client::ClientArguments),
}

pub(crate) use line::{Injected, changed};
pub(crate) use observe::{Observed, Sighting};
pub(crate) use traffic::Sent;

/// Runs a part.
pub(crate) fn run(arguments: &Arguments) -> Done {
    match &arguments.part {
        Part::Answer => traffic::answer(),
        Part::Send(arguments) => traffic::send(arguments),
        Part::Line(arguments) => line::run(arguments),
        Part::Observe(arguments) => observe::run(arguments),
        Part::Client(arguments) => client::run(arguments),
    }
}
