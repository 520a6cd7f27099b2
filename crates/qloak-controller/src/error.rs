//! Why the controller could not start or had to stop. Each text says whose fault and what to do.

use std::{net::SocketAddr, path::PathBuf};

/// Why `run` ended other than by its shutdown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration file is not valid: which key, which line, what is allowed.
    #[error("the configuration {}{fault}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Where in it, and what is wrong.
        fault: crate::config::ConfigFault,
    },
    /// The certificate is somebody else's; nodes and KMSs would refuse it.
    #[error(
        "the certificate {} {}, but a controller needs one of the role \"controller\": nodes and KMSs refuse any other; \
         make it with `qloak pki init --controller NAME` and name it in [tls]",
        cert.display(),
        role.as_ref().map_or("has no role".to_owned(), |role| format!("has the role {role:?}"))
    )]
    Role {
        /// The certificate.
        cert: PathBuf,
        /// Its role (organisational unit), if it has one.
        role: Option<String>,
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
