//! `qloak node`.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Outcome};

/// Run an encryptor node
///
/// Runs until SIGINT or SIGTERM. Several configurations give several nodes in one process, which may be
/// joined by memory ports.
#[derive(Debug, Args)]
pub(crate) struct Node {
    /// Configuration of the node; give it again for each further node
    #[arg(short, long = "config", value_name = "FILE", required = true)]
    configs: Vec<PathBuf>,
}

impl Node {
    pub(super) fn run(&self) -> Result<Outcome, Error> {
        qloak_node::run(&self.configs)?;
        Ok(Outcome::Well)
    }
}
