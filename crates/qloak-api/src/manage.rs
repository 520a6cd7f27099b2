//! Management messages of a node: what it shows and what it can be told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{An, Carriage, ChannelNumber, ClientPort, KeyId, Limits, NodeLatency, SaeId, Sci};

/// `GET /v1/state` of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeState {
    /// Name of the node; also its SAE ID.
    pub node: SaeId,
    /// Version of the program.
    pub version: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// The line port.
    pub line: PortState,
    /// The client ports, by number.
    pub clients: Vec<ClientState>,
    /// The channels, by number.
    pub channels: Vec<ChannelState>,
    /// Frames that no channel took, by reason.
    pub strays: StrayCounters,
    /// How long client frames are in the node; none where the kernel carries them.
    #[serde(default)]
    pub latency: Option<NodeLatency>,
    /// The key handler.
    pub key_handler: KeyHandlerState,
    /// What is wrong now, oldest first; empty when all is well.
    pub alarms: Vec<Alarm>,
    /// Hazmat suites that the configuration allows; loud wherever it is shown.
    pub hazmat_allowed: Vec<String>,
}

/// A port and what went through it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortState {
    /// Name, such as `line0`.
    pub name: String,
    /// Kind, such as `af-packet`.
    pub kind: String,
    /// Counters since start.
    pub counters: PortCounters,
    /// What is done to its frames on purpose; none for a port that is left alone. Loud wherever it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impairments: Option<PortImpairments>,
}

/// What an impaired port, which is a thing of the lab, has done to frames since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortImpairments {
    /// To frames that it received.
    pub receive: FaultCounters,
    /// To frames that it transmitted.
    pub transmit: FaultCounters,
}

/// What was done to frames of one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultCounters {
    /// Frames that came.
    pub taken: u64,
    /// Frames that vanished, those for which there was no room included.
    pub lost: u64,
    /// Frames that were made because a frame was to come twice.
    pub duplicated: u64,
    /// Frames that had to wait.
    pub delayed: u64,
    /// Frames that went on behind one that had come later.
    pub reordered: u64,
    /// Frames with wrong bits, by bit errors or the radio.
    pub damaged: u64,
}

impl FaultCounters {
    /// The faults by their names.
    pub fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("lost", self.lost),
            ("duplicated", self.duplicated),
            ("delayed", self.delayed),
            ("reordered", self.reordered),
            ("damaged", self.damaged),
        ]
    }
}

/// What went through a port. `received` is from the outside to the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortCounters {
    /// Frames received.
    pub received_frames: u64,
    /// Octets received, without FCS.
    pub received_octets: u64,
    /// Frames transmitted.
    pub transmitted_frames: u64,
    /// Octets transmitted, without FCS.
    pub transmitted_octets: u64,
    /// Frames that the kernel dropped before the node saw them.
    pub receive_dropped: u64,
    /// Frames that the port would not take.
    pub transmit_dropped: u64,
    /// Frames under 14 octets or over the port's size.
    pub malformed: u64,
}

/// A client port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientState {
    /// Number of the client port.
    pub number: ClientPort,
    /// The channel that carries it.
    pub channel: ChannelNumber,
    /// The port itself.
    pub port: PortState,
    /// Frames discarded because the channel was closed.
    pub discarded_closed: u64,
    /// Frames discarded at the entrance because they do not fit the line.
    pub discarded_oversize: u64,
    /// Frames discarded at the entrance because no channel carries their VLAN.
    #[serde(default)]
    pub discarded_vlan: u64,
    /// Frames of the far node's port of this number that were handed out here.
    pub delivered_frames: u64,
}

/// Whether a channel carries frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelStatus {
    /// No SA yet.
    Starting,
    /// Both directions carry frames.
    Open,
    /// A limit was reached without a new key: nothing leaves.
    Closed,
}

/// A channel: one SC each way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChannelState {
    /// Its number.
    pub number: ChannelNumber,
    /// Its name in the configuration.
    pub name: String,
    /// The far node.
    pub peer: SaeId,
    /// How client frames are carried.
    pub carriage: Carriage,
    /// Whether it carries frames.
    pub status: ChannelStatus,
    /// The suite that was asked for.
    pub suite_intended: String,
    /// Limits of each SA.
    pub limits: Limits,
    /// The SC this node transmits on.
    pub outbound: OutboundState,
    /// The SC this node receives on.
    pub inbound: InboundState,
    /// Rekeys finished since start, outbound.
    pub rekeys: u64,
    /// The last change of suite: milliseconds from the command to the last frame under the old suite.
    pub last_suite_change_ms: Option<f64>,
}

/// The transmitting side of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundState {
    /// Its SCI.
    pub sci: Sci,
    /// The encoding SA, if there is one.
    pub encoding: Option<SaState>,
    /// Counters, IEEE 802.1AE-2018, 10.7.
    pub counters: OutboundCounters,
}

/// The receiving side of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InboundState {
    /// Its SCI.
    pub sci: Sci,
    /// The SAs that are accepted now.
    pub accepted: Vec<SaState>,
    /// Counters, IEEE 802.1AE-2018, 10.7.
    pub counters: InboundCounters,
}

/// One SA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SaState {
    /// Its association number.
    pub an: An,
    /// Its suite.
    pub suite: String,
    /// The name of its key.
    pub key_id: KeyId,
    /// The next PN to send, or the lowest still accepted.
    pub pn: u64,
    /// Seconds since it was installed.
    pub age_s: u64,
}

/// Counters of a transmitting SC (IEEE 802.1AE-2018, 10.7.18; our words for our extras).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboundCounters {
    /// OutPktsEncrypted: line frames sealed.
    pub protected_frames: u64,
    /// OutOctetsEncrypted: octets of secure data sealed.
    pub protected_octets: u64,
    /// Client frames that went into those line frames.
    pub client_frames: u64,
    /// Octets of those client frames.
    pub client_octets: u64,
    /// Frames discarded since no SA was allowed to encode.
    pub no_sa: u64,
    /// OutPktsTooLong: frames that would not fit the line.
    pub too_long: u64,
    /// Of the line frames sealed, those of a channel of constant rate that carry nothing.
    pub fill_frames: u64,
    /// Line frames that a channel of constant rate left out, since the node came too late for them.
    pub late_frames: u64,
}

/// Counters of a receiving SC (IEEE 802.1AE-2018, 10.7.9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundCounters {
    /// InPktsOK: line frames that were valid and in the window.
    pub ok: u64,
    /// InOctetsDecrypted: octets of secure data opened.
    pub octets: u64,
    /// InPktsLate: below the replay window.
    pub late: u64,
    /// Inside the window and seen before.
    pub replayed: u64,
    /// InPktsNotValid: the ICV did not verify.
    pub not_valid: u64,
    /// InPktsNotUsingSA, InPktsUnusedSA: no SA of that AN.
    pub no_sa: u64,
    /// Client frames handed out.
    pub client_frames: u64,
    /// Octets of those client frames.
    pub client_octets: u64,
    /// Aggregated frames whose records did not parse though the ICV held: the far node's fault.
    pub mux_errors: u64,
    /// Partly received client frames that were given up since a line frame is missing.
    pub fragments_lost: u64,
}

/// Frames on the line that no channel took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StrayCounters {
    /// InPktsNoTag: frames of another EtherType.
    pub no_tag: u64,
    /// InPktsBadTag: SecTAG malformed, or frame truncated.
    pub bad_tag: u64,
    /// InPktsUnknownSCI.
    pub unknown_sci: u64,
    /// Key agreement frames that did not parse.
    pub bad_agreement: u64,
}

/// The key handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyHandlerState {
    /// Slots of the key RAM.
    pub ram_slots: u32,
    /// Outbound keys waiting.
    pub outbound_keys: u32,
    /// Inbound keys waiting.
    pub inbound_keys: u32,
    /// The KME answers.
    pub kme_reachable: bool,
    /// The far node is heard.
    pub peer_alive: bool,
    /// Requests made to the KME.
    pub kme_requests: u64,
    /// Requests that failed.
    pub kme_failures: u64,
    /// Agreement frames that were forged or damaged.
    pub forged: u64,
    /// Agreement frames that were replayed.
    pub replayed: u64,
    /// Keys zeroised since start.
    pub zeroised: u64,
}

/// Something that wants an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alarm {
    /// A fixed word, such as `key-supply`.
    pub kind: AlarmKind,
    /// The channel concerned, if one.
    pub channel: Option<ChannelNumber>,
    /// In words: what, whose fault, what to do.
    pub text: String,
    /// Seconds ago.
    pub age_s: u64,
}

/// The kinds of alarm.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AlarmKind {
    /// No keys come from the KME.
    KeySupply,
    /// The far node does not answer an announce.
    NoReady,
    /// The far node is not heard.
    PeerSilent,
    /// A limit was reached without a new key; the channel is closed.
    ChannelClosed,
    /// A hazmat suite is in use.
    Hazmat,
    /// The two ends differ in configuration.
    Mismatch,
}

/// `PUT /v1/channels/{number}/suite`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSuite {
    /// The suite's name, such as `camellia-256-gcm`.
    pub suite: String,
}

/// `POST /v1/keys`: the operations of the seed's key handler (seed 000, III.C).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "operation", rename_all = "kebab-case", deny_unknown_fields)]
pub enum KeyOperation {
    /// Forget which keys wait and fetch anew; SAs in use go on.
    SoftReset,
    /// Zeroise every key, those of SAs too, and start again.
    HardReset,
    /// Change the number of slots; the youngest keys beyond the new size are zeroised.
    Resize {
        /// Slots, 8 to 65536.
        slots: u32,
    },
    /// Take keys at the KME into the outbound half now.
    LoadOutbound {
        /// How many.
        count: u32,
    },
    /// Fetch these keys from the KME into the inbound half now.
    LoadInbound {
        /// Their names.
        key_ids: Vec<KeyId>,
    },
}
