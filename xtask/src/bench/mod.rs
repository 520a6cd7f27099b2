//! `cargo xtask bench`: measurements. None of them is a test: a speed is printed, never asserted.
//!
//! The ciphers and the line in memory are measured by programs of the crates that they measure; here are
//! only their names, so that a person need not know where they live. The others measure the product whole,
//! from outside, in the lab's network.

mod cipher;
mod ground;
mod lab;
mod latency;
mod line;
mod memory;
mod observer;
mod rekey;
mod report;
mod soak;

use std::process::Command;

use clap::Subcommand;

use crate::{
    tree,
    ui::{Context, Done, Failure},
};

/// Measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Protect and validate in memory on one core: every suite, 64 to 9000 octets and IMIX. No lanes: they are the
    /// ports' business, and here are no ports.
    Line(line::Arguments),
    /// Every cipher suite at every level of this CPU, beside the libraries that have it; see `--help`
    /// behind it.
    #[command(disable_help_flag = true)]
    Cipher(cipher::Arguments),
    /// TCP, UDP and ping through two nodes, beside other programs that protect a line and the plain line.
    Lab(lab::Arguments),
    /// Round trips under every suite, as the seed measured them.
    Latency(latency::Arguments),
    /// Two nodes at full load for minutes, with rekeys and changes of suite all the while: nothing is lost,
    /// memory is flat.
    Soak(soak::Arguments),
    /// Throughput and loss against rekeys per second.
    Rekey(rekey::Arguments),
    /// What an observer of sizes and times learns, with constant rate and without, and what constant rate costs.
    Observer(observer::Arguments),
}

/// `cargo xtask bench`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    match &arguments.what {
        What::Line(arguments) => line::run(arguments),
        What::Cipher(arguments) => cipher::run(arguments),
        What::Lab(arguments) => lab::run(arguments),
        What::Latency(arguments) => latency::run(arguments),
        What::Soak(arguments) => soak::run(arguments),
        What::Rekey(arguments) => rekey::run(arguments),
        What::Observer(arguments) => observer::run(arguments),
    }
}

/// Runs a benchmark that is a program of another crate.
fn finish(command: &mut Command) -> Done {
    let status = command
        .current_dir(tree::root())
        .status()
        .cannot("start cargo")?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("the benchmark ended with {status}")))
    }
}
