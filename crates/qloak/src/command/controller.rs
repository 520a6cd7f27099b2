//! `qloak controller`.

use std::path::PathBuf;

use clap::Args;

use super::service;
use crate::error::{Error, Outcome};

/// Run an SDN controller with its dashboard
///
/// Runs until SIGINT or SIGTERM. To reach a controller that runs, see --controller.
#[derive(Debug, Args)]
pub(crate) struct Controller {
    /// Configuration of the controller
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl Controller {
    pub(super) fn run(&self) -> Result<Outcome, Error> {
        service::serve(async {
            qloak_controller::run(&self.config, service::told_to_stop()).await?;
            Ok(Outcome::Well)
        })
    }
}
