//! The encryptor: pipeline, key handler, management.
//!
//! Three ways meet here. A frame goes down the list in `pipeline`; a key comes from the KME through
//! `key_handler` (source, agree, install) into an SA of the SecY; a command comes in at `manage` and
//! reaches the pipeline as one message between two batches. `node` puts one encryptor together, and
//! [`run`] runs one or several in a process.

pub mod capture;
mod clock;
mod config;
mod cores;
mod kernel;
pub mod key_handler;
mod latency;
mod library;
pub mod limits;
mod manage;
mod node;
pub mod offline;
mod pipeline;
mod state;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use qloak_api::{ChannelNumber, SuiteEntry};

pub use config::{CaptureSides, Config, ConfigError, Pipeline};
pub use kernel::KernelError;

/// Why a node does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is at fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A port is at fault.
    #[error(transparent)]
    Port(#[from] qloak_port::PortError),
    /// A certificate, a key file or the management address is at fault.
    #[error(transparent)]
    Door(#[from] qloak_door::DoorError),
    /// The kernel's MACsec or its interface is at fault.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The SecY refuses the configuration.
    #[error("the configuration cannot be: {0}")]
    Secy(#[from] qloak_secy::ConfigError),
    /// The key handler refuses the configuration.
    #[error("the configuration cannot be: {0}")]
    KeyHandler(String),
    /// The line's interface takes shorter frames than the configuration says.
    #[error(
        "line.frame_octets_max is {wanted}, but {interface} takes frames of {takes} octets: set its MTU to {mtu} (`ip link set {interface} mtu {mtu}`, at both ends), or frame_octets_max to {takes}",
        mtu = wanted - 14
    )]
    LineMtu {
        /// The interface.
        interface: String,
        /// What the configuration wants.
        wanted: usize,
        /// What the interface takes.
        takes: usize,
    },
    /// The certificate belongs to somebody else.
    #[error(
        "the certificate {file} is made out to {certificate:?}, but the node's name is {name:?}: name the node's own certificate in [tls]"
    )]
    OtherCertificate {
        /// The file.
        file: String,
        /// The name in it.
        certificate: String,
        /// The node's name.
        name: String,
    },
    /// A suite that a channel needs failed its known answers.
    #[error(
        "channel {channel} wants suite {suite}, which failed its known answers on this machine; `qloak suite list` shows which did not"
    )]
    SuiteFailed {
        /// The channel.
        channel: ChannelNumber,
        /// The suite.
        suite: &'static str,
    },
    /// `QLOAK_CPU_DISABLE` names something that does not exist.
    #[error("QLOAK_CPU_DISABLE: {0}")]
    Level(#[from] qloak_cipher::level::UnknownLevelError),
    /// A thread of the pipeline cannot be on its core.
    #[error(
        "a thread of the pipeline cannot run on core {core} of pipeline.cores: {error}; `taskset -p {pid}` shows which cores the process may use",
        pid = std::process::id()
    )]
    Core {
        /// The core.
        core: usize,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// The system gives no thread or runtime.
    #[error("the system gives no thread: {0}")]
    Thread(std::io::Error),
    /// A thread of the node panicked: a fault of ours.
    #[error("a thread of the node stopped by a fault in Qloak; please report it")]
    Panicked,
}

/// Runs one node for each configuration file until SIGINT or SIGTERM comes or one of them fails. Nodes
/// of one process may be joined by memory ports.
///
/// # Errors
/// See [`Error`]; all nodes are stopped before it returns.
pub fn run(configs: &[PathBuf]) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Error::Thread)?;
    runtime.block_on(run_until(configs, told_to_stop()))
}

/// The encryption library of this machine, each suite self-tested and measured for a moment.
///
/// # Errors
/// When `QLOAK_CPU_DISABLE` names a level that does not exist.
pub fn library() -> Result<Vec<SuiteEntry>, Error> {
    Ok(library::library(
        library::level()?,
        &[],
        Duration::from_millis(10),
    ))
}

/// The same inside a running tokio runtime, until `shutdown` completes.
///
/// # Errors
/// As [`run`].
pub async fn run_until(
    configs: &[PathBuf],
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let level = library::level()?;
    let configs = configs
        .iter()
        .map(|path| Config::read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let mut stoppers: Vec<Arc<AtomicBool>> = Vec::new();
    let mut doors = tokio::task::JoinSet::new();
    let mut threads = Vec::new();
    let mut outcome = Ok(());
    for config in configs {
        match node::Node::start(config, level).await {
            Ok(node) => {
                let stop = node.stopper();
                stoppers.push(Arc::clone(&stop));
                let (door, routes, own) = node.into_parts();
                threads.extend(own);
                doors.spawn(door.serve(routes, stopped(stop)));
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    if outcome.is_ok() {
        tokio::select! {
            () = shutdown => tracing::info!("stopping"),
            () = any_stopped(&stoppers) => {}
        }
    }
    for stop in &stoppers {
        stop.store(true, Ordering::Relaxed);
    }
    while doors.join_next().await.is_some() {}
    for thread in threads {
        let ended = thread.join().unwrap_or(Err(Error::Panicked));
        outcome = outcome.and(ended);
    }
    outcome
}

async fn stopped(stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn any_stopped(stoppers: &[Arc<AtomicBool>]) {
    while !stoppers.iter().any(|stop| stop.load(Ordering::Relaxed)) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        tracing::warn!("signals cannot be had; stop this process by killing it");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
