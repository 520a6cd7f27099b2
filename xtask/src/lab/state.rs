//! What the programs tell an operator in JSON, as far as the lab looks at it.
//!
//! Nothing of ours is imported, so these are an outsider's structs: fields that are not needed are
//! left out, and a field that goes missing in the product is noticed here.

use serde::Deserialize;

/// A node.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Node {
    pub(crate) node: String,
    pub(crate) line: Port,
    pub(crate) clients: Vec<Client>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) strays: Strays,
    pub(crate) key_handler: KeyHandler,
    pub(crate) alarms: Vec<Alarm>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Port {
    pub(crate) counters: PortCounters,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PortCounters {
    pub(crate) received_frames: u64,
    pub(crate) receive_dropped: u64,
    pub(crate) transmit_dropped: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Client {
    pub(crate) port: Port,
    pub(crate) discarded_closed: u64,
    pub(crate) discarded_oversize: u64,
    pub(crate) delivered_frames: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) outbound: Outbound,
    pub(crate) inbound: Inbound,
    pub(crate) limits: Limits,
    pub(crate) rekeys: u64,
    pub(crate) last_suite_change_ms: Option<f64>,
}

/// What one SA of a channel may be used for, as far as it is changed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Limits {
    pub(crate) seconds: u64,
    pub(crate) rekey_at_percent: u8,
    #[serde(default)]
    pub(crate) rekey_every_us: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Outbound {
    pub(crate) encoding: Option<Sa>,
    pub(crate) counters: OutboundCounters,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Inbound {
    pub(crate) counters: InboundCounters,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Sa {
    pub(crate) an: u8,
    pub(crate) suite: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OutboundCounters {
    pub(crate) protected_frames: u64,
    pub(crate) client_frames: u64,
    pub(crate) no_sa: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct InboundCounters {
    pub(crate) ok: u64,
    pub(crate) late: u64,
    pub(crate) replayed: u64,
    pub(crate) not_valid: u64,
    pub(crate) client_frames: u64,
    pub(crate) client_octets: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Strays {
    pub(crate) bad_agreement: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KeyHandler {
    pub(crate) outbound_keys: u32,
    pub(crate) inbound_keys: u32,
    pub(crate) kme_reachable: bool,
    pub(crate) forged: u64,
    pub(crate) replayed: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Alarm {
    pub(crate) kind: String,
    pub(crate) channel: Option<u16>,
    pub(crate) text: String,
}

impl Node {
    /// Whether every channel carries frames under this suite, both ways as far as this node knows.
    pub(crate) fn all_open(&self) -> bool {
        self.channels
            .iter()
            .all(|channel| channel.status == "open" && channel.outbound.encoding.is_some())
    }

    /// Whether every channel encodes under the suite.
    pub(crate) fn all_encode(&self, suite: &str) -> bool {
        self.channels.iter().all(|channel| {
            channel
                .outbound
                .encoding
                .as_ref()
                .is_some_and(|sa| sa.suite == suite)
        })
    }
}
