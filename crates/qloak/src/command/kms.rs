//! `qloak kms`.

use std::path::PathBuf;

use clap::Args;

use super::service;
use crate::error::{Error, Outcome};

/// Run a key management system (ETSI GS QKD 014)
///
/// Runs until SIGINT or SIGTERM.
#[derive(Debug, Args)]
pub(crate) struct Kms {
    /// Configuration of the KMS
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl Kms {
    pub(super) fn run(&self) -> Result<Outcome, Error> {
        service::serve(async {
            qloak_kms::run(&self.config, service::told_to_stop()).await?;
            Ok(Outcome::Well)
        })
    }
}
