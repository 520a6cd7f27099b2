//! `qloak pki`: certificates for a whole lab in one command, and what is in one.

mod init;
mod show;

use clap::{Args, Subcommand};

use crate::error::{Error, Outcome};

/// Make and read the certificates of a lab
#[derive(Debug, Args)]
pub(crate) struct Pki {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Init(init::Init),
    Show(show::Show),
}

impl Pki {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        match &self.action {
            Action::Init(init) => init.run(json),
            Action::Show(show) => show.run(json),
        }
    }
}
