//! The key management system: ETSI GS QKD 014 in front, a ledger behind, a QKD link beside.
//!
//! ```text
//! QKD link -> ingest -> store (ledger) -> deliver -> etsi014 -> SAE
//!               |                           |
//!               +------ inter-KMS door -----+----> the peer KME, for its SAEs
//! ```
//!
//! What always holds: a key is given at most once to each of its consumers, over restart and crash too;
//! in doubt it is lost, never given twice; keys at rest are wrapped; a key leaves only over mutual TLS,
//! to an SAE that it was made for, or to the peer KME as a block of an emulated link, which stands for
//! the quantum channel and is labelled so. The store is bounded, and so is every message.
//!
//! Relay over other KMEs, real QKD devices and a database for several machines are left to later.

use std::{future::Future, path::Path};

pub mod config;
pub mod limits;

pub use config::{Config, ConfigError};

/// Why a KMS could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is at fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Certificates cannot be used, or the address cannot be had.
    #[error(transparent)]
    Door(#[from] qloak_door::DoorError),
}

/// Runs a KMS from its configuration file until `shutdown` completes.
///
/// # Errors
/// [`Error`], before any request is served.
pub async fn run(config_path: &Path, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let config = Config::read(config_path)?;
    let tls = qloak_door::server_config(&config.tls)?;
    qloak_door::serve(config.listen, tls, axum::Router::new(), shutdown).await?;
    Ok(())
}
