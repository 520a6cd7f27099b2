//! The configuration: read once, checked whole, then trusted.
//!
//! What is wrong is told with file, line, key and what is allowed ([`ConfigError`]). What comes out is
//! valid by construction: sizes fit each other, names are told apart, a link has a source or waits for one.

use std::{
    collections::HashSet,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use qloak_api::SaeId;
use qloak_door::TlsFiles;
use qloak_qkd::Fibre;

mod raw;
mod refuse;

pub use refuse::ConfigError;

/// A KMS's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The KME ID.
    pub kme_id: String,
    /// Where the door listens.
    pub listen: SocketAddr,
    /// The SAEs that this KME serves.
    pub saes: HashSet<SaeId>,
    /// The KME's certificate.
    pub tls: TlsFiles,
    /// The ledger's file.
    pub ledger: PathBuf,
    /// The file of the key that keys are wrapped under.
    pub kek: PathBuf,
    /// Sizes and counts.
    pub keys: Keys,
    /// Links to other KMEs.
    pub links: Vec<Link>,
}

/// Sizes and counts of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Default size, bits; a multiple of 8, also the size of a block.
    pub size_bits: u32,
    /// Smallest size, bits.
    pub size_bits_min: u32,
    /// Largest size, bits.
    pub size_bits_max: u32,
    /// Keys per request.
    pub per_request_max: u32,
    /// Keys of the default size kept for each end of a link.
    pub store_max: u64,
    /// SAEs that one request may name beside the first.
    pub additional_saes_max: u32,
    /// Seconds until an unfetched key is destroyed.
    pub unfetched_s_max: u64,
}

/// A link to another KME.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its name, the same at both ends.
    pub name: String,
    /// The peer's KME ID, the name in its certificate.
    pub peer: String,
    /// The peer's door.
    pub peer_url: String,
    /// The SAEs that the peer serves.
    pub peer_saes: HashSet<SaeId>,
    /// Where key blocks come from.
    pub end: End,
}

/// Which end of an emulated link this KME is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// Generates blocks and sends them.
    Alice {
        /// The fibre that is emulated.
        fibre: Fibre,
        /// Times faster than physics.
        rate_factor: f64,
    },
    /// Takes the blocks that the peer sends.
    Bob,
}

impl Config {
    /// Reads and checks a configuration file; relative paths are taken from its folder.
    ///
    /// # Errors
    /// [`ConfigError`] with the file and, where they can be told, the line and the key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        refuse::read_bounded(path)
            .and_then(|text| Self::parse(&text, &folder))
            .map_err(|error| error.in_file(path))
    }

    /// Checks the text of a configuration; relative paths are taken from `folder`.
    ///
    /// # Errors
    /// As [`Config::read`], without the file.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ConfigError> {
        raw::parse(text, folder)
    }
}
