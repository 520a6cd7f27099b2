//! `qloak key`: the key handlers of the nodes.

mod operate;
mod status;

use clap::{Args, Subcommand};

use crate::error::{Error, Outcome};

/// Show key handlers, and tell them what to do
///
/// Keys have names (UUIDs); the keys themselves never leave a node.
#[derive(Debug, Args)]
pub(crate) struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Status(status::Status),
    Rekey(operate::Rekey),
    #[command(flatten)]
    Operate(operate::Operation),
}

impl Key {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        match &self.action {
            Action::Status(status) => status.run(json),
            Action::Rekey(rekey) => rekey.run(json),
            Action::Operate(operation) => operation.run(json),
        }
    }
}
