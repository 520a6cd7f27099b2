//! Why the controller could not start or had to stop. Each text says whose fault and what to do.

use std::{net::SocketAddr, path::PathBuf};

/// Why `run` ended other than by its shutdown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration file is not valid: which key, which line, what is allowed.
    #[error("{}: {what}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        what: String,
    },
    /// The database cannot be used.
    #[error("the state in {} cannot be used: {what}", path.display())]
    Store {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// Certificates cannot be used, or the north door failed.
    #[error(transparent)]
    Door(#[from] qloak_door::DoorError),
    /// The dashboard's listener could not be opened.
    #[error("[dashboard] listen = \"{listen}\" cannot be opened: {source}; choose a free port")]
    Dashboard {
        /// The address.
        listen: SocketAddr,
        /// What the kernel says.
        source: std::io::Error,
    },
}
