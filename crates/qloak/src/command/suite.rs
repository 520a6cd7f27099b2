//! `qloak suite`: the encryption library, and which of it a channel uses.

mod list;
mod set;

use clap::{Args, Subcommand};

use crate::error::{Error, Outcome};

/// List cipher suites, and set the suite of a channel
#[derive(Debug, Args)]
pub(crate) struct Suite {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::List),
    Set(set::Set),
}

impl Suite {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        match &self.action {
            Action::List(list) => list.run(json),
            Action::Set(set) => set.run(json),
        }
    }
}
