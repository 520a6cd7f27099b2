//! The encryption library: what a node says of each cipher suite that it can offer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::SuiteId;

/// One cipher suite as a node offers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SuiteEntry {
    /// The name that people use, such as `aes-256-gcm`.
    pub name: String,
    /// The identifier that crosses the line.
    pub id: SuiteId,
    /// Block or stream cipher, such as `AES-256`.
    pub cipher: String,
    /// Mode, such as `GCM`.
    pub mode: String,
    /// Octets of the SAK.
    pub key_octets: u16,
    /// Octets that the ICV adds to each frame; 0 for an unauthenticated suite.
    pub icv_octets: u16,
    /// True for a suite that does not authenticate: off unless the node's configuration names it.
    pub hazmat: bool,
    /// True when another vendor's MACsec station understands frames of this suite.
    pub macsec: bool,
    /// The backend that runs it on this node, such as `soft` or `aws-lc`.
    pub backend: String,
    /// True when the known answers were met at this start. A suite that fails is not offered.
    pub self_test_passed: bool,
    /// True when the node will take it for a channel.
    pub offered: bool,
    /// Gb/s of one core sealing frames of 1500 octets, measured at this start; 0 where there is nothing to measure.
    pub seal_gbps: f64,
    /// One sentence: what it gives, what it costs.
    pub about: String,
}
