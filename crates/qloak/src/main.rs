//! The `qloak` binary: it reads the command line, hands over to one command, and says how it ended.
//!
//! One command is one struct in `command`; nothing else is decided here.

mod cli;
mod command;
mod connect;
mod error;
mod limits;
mod log;
mod nearest;
mod output;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let json = cli.output.json;
    match command::run(cli) {
        Ok(outcome) => outcome.into(),
        Err(error) => error.report(json),
    }
}
