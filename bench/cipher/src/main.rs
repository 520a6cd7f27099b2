//! The cipher benchmark: every suite at every level of ours beside every library that has it, on the
//! same frames in the same run.
//!
//! ```text
//! arguments -> plan -> for each suite: ours at each level, peers -> check -> measure -> results
//!                                                                     |
//!           tables or JSON for people, CSV and SVG for the record  <--+
//! ```
//!
//! Run it with `cargo xtask bench cipher`. It is no part of the product and nothing of the product
//! imports it. Who does not produce our own octets is not measured; who is not installed is said to be
//! absent; figures that rest on time instead of counted cycles say so.

mod arguments;
mod chart;
mod check;
mod csv;
mod floor;
mod frames;
mod limits;
mod machine;
mod measure;
mod party;
mod peers;
mod plan;
mod record;
mod report;
mod results;
mod run;
mod stopwatch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    match run::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            anstream::eprintln!("bench cipher: {what}");
            ExitCode::FAILURE
        }
    }
}
