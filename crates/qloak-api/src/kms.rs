//! What a KMS tells its operator (never a key).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::SaeId;

/// `GET /v1/state` of a KMS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KmsState {
    /// The KME ID.
    pub kme_id: String,
    /// Version of the program.
    pub version: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// SAEs that this KME serves.
    pub saes: Vec<SaeId>,
    /// One entry for each link to a peer KME.
    pub links: Vec<KmsLink>,
    /// What is wrong now, in words; empty when all is well.
    pub alarms: Vec<String>,
}

/// One QKD link of a KMS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KmsLink {
    /// Name of the link in the configuration.
    pub name: String,
    /// The peer's KME ID.
    pub peer_kme_id: String,
    /// Where its keys come from; an emulated source says so.
    pub source: String,
    /// True when the keys are emulated and protect nothing.
    pub emulated: bool,
    /// True when the source is giving keys and the peer KME answers.
    pub up: bool,
    /// Secret key rate of the source, bits per second.
    pub skr_bps: f64,
    /// Quantum bit error ratio, 0 to 1.
    pub qber_ratio: f64,
    /// Keys ready for this side to give out, in keys of the default size.
    pub stored_key_count: u64,
    /// Most keys the store holds.
    pub max_key_count: u64,
    /// Keys given out to SAEs since the ledger began.
    pub delivered_key_count: u64,
}
