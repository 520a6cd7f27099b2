//! The documents of ETSI GS QKD 014 V1.1.1 (2019-02), clause 6, as both sides write and read them:
//! the node is their SAE, the KMS is their KME. The one place that says master and slave.
//!
//! ```text
//! POST /api/v1/keys/{slave SAE}/enc_keys   KeyRequest -> key container     (6.2, 6.3)
//! POST /api/v1/keys/{master SAE}/dec_keys  KeyIds     -> key container     (6.4, 6.3)
//! GET  /api/v1/keys/{slave SAE}/status                -> Status            (6.1)
//!      any of them                                    -> ErrorBody         (6.5)
//! ```
//!
//! What always holds: a document with a wrong type, a repeated member, a name that is no UUID, a key that is no
//! base64 or too many entries is refused as a whole, with words that never contain a key. Members that
//! the standard does not name are ignored, since makers add them. Buffers that held keys are wiped.
//! HTTP, TLS, who may ask, and what is mandatory for a KME are left to the callers.

use qloak_api::{KeyId, SaeId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::limits;

mod container;

pub use container::{parse_container, write_container};

/// A JSON object of a vendor: the standard leaves its content open.
pub type Extension = serde_json::Map<String, serde_json::Value>;

/// Why a document was refused. Says what is wrong, never what a key was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No JSON, a wrong type, or a member missing or given twice.
    #[error("the {document} is not what ETSI GS QKD 014 describes: {reason}")]
    Form {
        /// Which document.
        document: &'static str,
        /// What is wrong and where.
        reason: String,
    },
    /// More octets than any such document needs.
    #[error("the {document} has {given} octets; at most {allowed} are read")]
    TooLong {
        /// Which document.
        document: &'static str,
        /// Octets that were given.
        given: usize,
        /// Octets that are allowed.
        allowed: usize,
    },
    /// More entries than are allowed.
    #[error("{given} entries in {member}; at most {allowed} are allowed")]
    TooMany {
        /// The member of the document.
        member: &'static str,
        /// Entries that were given.
        given: usize,
        /// Entries that are allowed.
        allowed: usize,
    },
    /// A key that is no base64 or has a length that no key has.
    #[error("key {index} of the key container {reason}")]
    Key {
        /// Its place in the container, from 0.
        index: usize,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Status of the keys for one pair of SAEs (6.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The KME that was asked.
    #[serde(rename = "source_KME_ID")]
    pub source_kme_id: String,
    /// The KME of the other SAE.
    #[serde(rename = "target_KME_ID")]
    pub target_kme_id: String,
    /// The SAE that asks.
    #[serde(rename = "master_SAE_ID")]
    pub master_sae_id: String,
    /// The SAE that it wants to share keys with.
    #[serde(rename = "slave_SAE_ID")]
    pub slave_sae_id: String,
    /// Default size of a key, bits.
    pub key_size: u32,
    /// Keys that could be delivered now.
    pub stored_key_count: u64,
    /// Keys that the KME can store at most.
    pub max_key_count: u64,
    /// Keys that one request may ask.
    pub max_key_per_request: u32,
    /// Largest size of a key, bits.
    pub max_key_size: u32,
    /// Smallest size of a key, bits.
    pub min_key_size: u32,
    /// Additional SAEs that one request may name; 0 means no multicast.
    #[serde(rename = "max_SAE_ID_count")]
    pub max_sae_id_count: u32,
    /// What the maker adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_extension: Option<Extension>,
}

/// A request for keys (6.2). Every member is optional; what is absent takes the KME's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyRequest {
    /// How many keys; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Bits of each; the KME's `key_size` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Further SAEs that may fetch the same keys.
    #[serde(
        default,
        rename = "additional_slave_SAE_IDs",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_slave_sae_ids: Vec<SaeId>,
    /// Options that the KME must meet or refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_mandatory: Vec<Extension>,
    /// Options that the KME may ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_optional: Vec<Extension>,
}

/// The names of keys to fetch (6.4).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyIds {
    /// The names, each in an object of its own.
    #[serde(rename = "key_IDs")]
    pub key_ids: Vec<KeyIdEntry>,
    /// What the maker adds.
    #[serde(
        default,
        rename = "key_IDs_extension",
        skip_serializing_if = "Option::is_none"
    )]
    pub key_ids_extension: Option<Extension>,
}

/// One name of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyIdEntry {
    /// The UUID.
    #[serde(rename = "key_ID")]
    pub key_id: KeyId,
    /// What the maker adds.
    #[serde(
        default,
        rename = "key_ID_extension",
        skip_serializing_if = "Option::is_none"
    )]
    pub key_id_extension: Option<Extension>,
}

/// What a KME says when it cannot do what was asked (6.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ErrorBody {
    /// In words; some texts are fixed by the standard.
    pub message: String,
    /// More, in objects that the maker defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Vec<Extension>>,
}

impl KeyIds {
    /// The document that asks for these keys.
    pub fn of(key_ids: impl IntoIterator<Item = KeyId>) -> Self {
        let entry = |key_id| KeyIdEntry {
            key_id,
            key_id_extension: None,
        };
        Self {
            key_ids: key_ids.into_iter().map(entry).collect(),
            key_ids_extension: None,
        }
    }

    /// The names alone.
    pub fn names(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.key_ids.iter().map(|entry| entry.key_id)
    }
}

/// Reads a key request.
///
/// # Errors
/// See [`DocumentError`]; more than 64 additional SAEs or 32 extensions are too many.
pub fn parse_key_request(body: &[u8]) -> Result<KeyRequest, DocumentError> {
    let request: KeyRequest = parse(body, "key request")?;
    let saes = request.additional_slave_sae_ids.len();
    bounded(
        "additional_slave_SAE_IDs",
        saes,
        limits::ADDITIONAL_SAES_MAX,
    )?;
    let mandatory = request.extension_mandatory.len();
    bounded("extension_mandatory", mandatory, limits::EXTENSIONS_MAX)?;
    let optional = request.extension_optional.len();
    bounded("extension_optional", optional, limits::EXTENSIONS_MAX)?;
    Ok(request)
}

/// Reads a list of key IDs.
///
/// # Errors
/// See [`DocumentError`]; more than 1024 names are too many.
pub fn parse_key_ids(body: &[u8]) -> Result<KeyIds, DocumentError> {
    let ids: KeyIds = parse(body, "list of key IDs")?;
    bounded("key_IDs", ids.key_ids.len(), limits::KEYS_PER_CONTAINER_MAX)?;
    Ok(ids)
}

/// Reads a status.
///
/// # Errors
/// See [`DocumentError`].
pub fn parse_status(body: &[u8]) -> Result<Status, DocumentError> {
    parse(body, "status")
}

/// Reads an error.
///
/// # Errors
/// See [`DocumentError`]; a KME behind a proxy often answers with HTML.
pub fn parse_error(body: &[u8]) -> Result<ErrorBody, DocumentError> {
    parse(body, "error")
}

fn parse<T: DeserializeOwned>(body: &[u8], document: &'static str) -> Result<T, DocumentError> {
    not_too_long(body, document)?;
    an_object(body, document)?;
    serde_json::from_slice(body).map_err(|error| DocumentError::Form {
        document,
        reason: error.to_string(),
    })
}

/// serde would also take an array of the members in their order, which no document of 014 is.
fn an_object(body: &[u8], document: &'static str) -> Result<(), DocumentError> {
    match body.trim_ascii_start().first() {
        Some(b'{') => Ok(()),
        _ => Err(DocumentError::Form {
            document,
            reason: "it is no JSON object".to_owned(),
        }),
    }
}

fn not_too_long(body: &[u8], document: &'static str) -> Result<(), DocumentError> {
    if body.len() > limits::DOCUMENT_OCTETS_MAX {
        return Err(DocumentError::TooLong {
            document,
            given: body.len(),
            allowed: limits::DOCUMENT_OCTETS_MAX,
        });
    }
    Ok(())
}

fn bounded(member: &'static str, given: usize, allowed: usize) -> Result<(), DocumentError> {
    if given > allowed {
        return Err(DocumentError::TooMany {
            member,
            given,
            allowed,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
