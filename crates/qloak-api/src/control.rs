//! What the controller shows and takes at its north side.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ChannelNumber, Limits, SaeId, kms::KmsState, manage::NodeState};

/// A node that the controller steers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeRecord {
    /// Its name, also the identity in its certificate.
    pub name: SaeId,
    /// Its management door, such as `https://192.0.2.1:7443`.
    pub url: String,
}

/// A KMS that the controller watches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KmsRecord {
    /// Its KME ID, also the identity in its certificate.
    pub kme_id: String,
    /// Its operator's door.
    pub url: String,
}

/// A line between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRecord {
    /// Its name.
    pub name: String,
    /// The node at one end.
    pub a: SaeId,
    /// The node at the other.
    pub b: SaeId,
}

/// What an operator wants of a channel of a link: the same at both ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The cipher suite, by name.
    pub suite: String,
    /// Limits of each SA.
    #[serde(default)]
    pub limits: Limits,
}

/// A channel of a link: what is wanted and what is seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChannelView {
    /// The link.
    pub link: String,
    /// The channel's number.
    pub channel: ChannelNumber,
    /// Its name.
    pub name: String,
    /// What is wanted; none until an operator says so.
    pub intent: Option<Intent>,
    /// What each end does: node, suite wanted there, suite encoding there.
    pub observed: Vec<EndView>,
    /// Whether the intent is met at both ends.
    pub converged: bool,
    /// Milliseconds from the last command until both ends were seen to meet it.
    #[serde(default)]
    pub converged_after_ms: Option<f64>,
    /// Why the intent is not met, in words: an end that refuses or cannot be reached.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// One end of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndView {
    /// The node.
    pub node: SaeId,
    /// The suite that its outbound SA encodes with now.
    pub encoding_suite: Option<String>,
    /// The suite that the node was told.
    pub suite_intended: String,
    /// Limits in force.
    pub limits: Limits,
    /// Status in words.
    pub status: String,
}

/// A node as the controller last saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// The record.
    pub record: NodeRecord,
    /// Whether it answered the last time.
    pub reachable: bool,
    /// Why not, in words.
    pub error: Option<String>,
    /// Milliseconds since `state` was seen.
    pub age_ms: Option<u64>,
    /// What it said.
    pub state: Option<NodeState>,
}

/// A KMS as the controller last saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KmsView {
    /// The record.
    pub record: KmsRecord,
    /// Whether it answered the last time.
    pub reachable: bool,
    /// Why not, in words.
    pub error: Option<String>,
    /// What it said.
    pub state: Option<KmsState>,
}

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// Number, without gaps.
    pub number: u64,
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// Who: the identity in the caller's certificate.
    pub caller: String,
    /// What was asked, such as `PUT /v1/links/metro/channels/1/intent`.
    pub action: String,
    /// What became of it.
    pub outcome: String,
}

/// The whole picture in one answer: `GET /v1/overview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// Nodes.
    pub nodes: Vec<NodeView>,
    /// KMSs.
    pub kms: Vec<KmsView>,
    /// Links.
    pub links: Vec<LinkRecord>,
    /// Channels of all links.
    pub channels: Vec<ChannelView>,
}
