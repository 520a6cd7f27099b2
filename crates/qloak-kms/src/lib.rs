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

use std::{future::Future, path::Path, sync::Arc};

use tokio::task::JoinSet;

pub mod config;
mod deliver;
mod ingest;
mod kms;
pub mod limits;
mod metrics;
mod operate;
mod peer;
pub mod store;
mod wrap;

pub use config::{Config, ConfigError};
pub use wrap::{KekError, WrapError};

/// Why a KMS could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is at fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Certificates cannot be used, or the address cannot be had.
    #[error(transparent)]
    Door(#[from] qloak_door::DoorError),
    /// The certificate is made out to another name: no peer and no SAE would take this KMS for itself.
    #[error(
        "kme_id is {kme_id:?}, but the certificate {cert:?} is made out to {name:?}; make the two the same"
    )]
    Name {
        /// As configured.
        kme_id: String,
        /// The certificate's file.
        cert: std::path::PathBuf,
        /// Its common name.
        name: String,
    },
    /// The key that keys are wrapped under cannot be used.
    #[error(transparent)]
    Kek(#[from] KekError),
    /// The ledger cannot be opened.
    #[error("the ledger {path:?}: {cause}")]
    Ledger {
        /// Its file.
        path: std::path::PathBuf,
        /// What is wrong.
        cause: store::LedgerError,
    },
    /// The emulated link cannot be made.
    #[error(transparent)]
    Link(#[from] qloak_qkd::EmulatorError),
}

/// Runs a KMS from its configuration file until `shutdown` completes.
///
/// # Errors
/// [`Error`], before any request is served.
pub async fn run(config_path: &Path, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    serve(Config::read(config_path)?, shutdown).await
}

/// Runs a KMS until `shutdown` completes. When this returns the ledger's file is whole and may be copied.
///
/// # Errors
/// [`Error`], before any request is served.
pub async fn serve(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let tls = qloak_door::server_config(&config.tls)?;
    let name = qloak_door::certificate_name(&config.tls)?;
    if name != config.kme_id {
        return Err(Error::Name {
            kme_id: config.kme_id,
            cert: config.tls.cert,
            name,
        });
    }
    let door = qloak_door::Door::bind(config.listen, tls).await?;
    let kms = Arc::new(kms::Kms::open(config)?);
    tracing::info!(kme = kms.config.kme_id, address = %door.address(), "KMS serves");
    let mut tasks = JoinSet::new();
    for link in &kms.links {
        let source = ingest::Source::of(&kms, link)?;
        tasks.spawn(source.run());
    }
    tasks.spawn(kms::upkeep(kms.clone()));
    let router = deliver::etsi014::router()
        .merge(peer::router())
        .merge(operate::router())
        .with_state(kms.clone());
    door.serve(router, shutdown).await;
    tasks.shutdown().await;
    kms::close(kms).await;
    Ok(())
}
