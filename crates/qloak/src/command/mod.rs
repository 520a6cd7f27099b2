//! The commands: one struct each, and the list of them.

mod capture;
mod completions;
mod controller;
mod key;
mod kms;
mod man;
mod node;
mod offline;
mod picture;
mod pki;
mod service;
mod status;
mod suite;
mod top;

use clap::Subcommand;

use crate::{
    cli::Cli,
    error::{Error, Outcome},
    log,
};

/// Everything that `qloak` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Node(node::Node),
    Kms(kms::Kms),
    Controller(controller::Controller),
    Pki(pki::Pki),
    Status(status::Status),
    Suite(suite::Suite),
    Key(key::Key),
    Top(top::Top),
    Capture(capture::Capture),
    Protect(offline::Protect),
    Validate(offline::Validate),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Carries out the command.
pub(crate) fn run(cli: Cli) -> Result<Outcome, Error> {
    let Cli { output, command } = cli;
    let runs_on = matches!(
        command,
        Command::Node(_) | Command::Kms(_) | Command::Controller(_)
    );
    log::set_up(output.log_json, if runs_on { "info" } else { "error" });
    let json = output.json;
    match command {
        Command::Node(command) => command.run(),
        Command::Kms(command) => command.run(),
        Command::Controller(command) => command.run(),
        Command::Pki(command) => command.run(json),
        Command::Status(command) => command.run(json),
        Command::Suite(command) => command.run(json),
        Command::Key(command) => command.run(json),
        Command::Top(command) => command.run(json),
        Command::Capture(command) => command.run(json),
        Command::Protect(command) => command.run(json),
        Command::Validate(command) => command.run(json),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    }
}
