//! The network as one answer: a controller's overview, or one node's state in the same form.

use clap::Args;
use qloak_api::{
    control::{ChannelView, EndView, NodeRecord, NodeView, Overview},
    manage::{Alarm, ChannelState, ChannelStatus, NodeState},
};

use crate::{
    connect::{Connection, Peer, is_door},
    error::Error,
};

/// Where the picture comes from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Source {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Ask this node itself, by its door (https://192.0.2.1:7443 or NAME=https://192.0.2.1:7443), or the
    /// controller about it, by its name
    #[arg(long, value_name = "URL|NAME", help_heading = "Connection")]
    pub(crate) node: Option<String>,
}

/// Who answers.
pub(crate) enum Answerer {
    /// A controller, about everything or one node.
    Controller(Peer, Option<String>),
    /// A node.
    Node(Peer),
}

impl Source {
    /// Makes ready to ask.
    pub(crate) fn answerer(&self) -> Result<Answerer, Error> {
        Ok(match &self.node {
            Some(door) if is_door(door) => Answerer::Node(self.connection.node(door)?),
            name => Answerer::Controller(self.connection.controller()?, name.clone()),
        })
    }
}

impl Answerer {
    /// Who that is.
    pub(crate) fn who(&self) -> &str {
        match self {
            Self::Controller(peer, _) | Self::Node(peer) => peer.who(),
        }
    }

    /// The picture now.
    pub(crate) async fn overview(&self) -> Result<Overview, Error> {
        match self {
            Self::Controller(peer, None) => peer.get("/v1/overview").await,
            Self::Controller(peer, Some(name)) => about(peer.get("/v1/overview").await?, name),
            Self::Node(peer) => Ok(of_one_node(peer.get("/v1/state").await?)),
        }
    }
}

/// What of a picture concerns one node.
fn about(mut overview: Overview, name: &str) -> Result<Overview, Error> {
    let known: Vec<_> = overview
        .nodes
        .iter()
        .map(|node| node.record.name.to_string())
        .collect();
    if !known.iter().any(|node| node == name) {
        return Err(Error::unknown(
            "node",
            name,
            known.iter().map(String::as_str),
        ));
    }
    overview
        .nodes
        .retain(|node| node.record.name.as_str() == name);
    overview
        .links
        .retain(|link| link.a.as_str() == name || link.b.as_str() == name);
    overview
        .channels
        .retain(|view| view.observed.iter().any(|end| end.node.as_str() == name));
    Ok(overview)
}

/// A node alone, as if a controller had seen it just now.
fn of_one_node(state: NodeState) -> Overview {
    let channels = state.channels.iter().map(|channel| ChannelView {
        link: "-".into(),
        channel: channel.number,
        name: channel.name.clone(),
        intent: None,
        observed: vec![EndView {
            node: state.node.clone(),
            encoding_suite: channel
                .outbound
                .encoding
                .as_ref()
                .map(|sa| sa.suite.clone()),
            suite_intended: channel.suite_intended.clone(),
            limits: channel.limits,
            status: status_word(channel.status).into(),
        }],
        converged: encodes(channel, &channel.suite_intended),
        converged_after_ms: None,
        trouble: None,
    });
    Overview {
        channels: channels.collect(),
        nodes: vec![NodeView {
            record: NodeRecord {
                name: state.node.clone(),
                url: "-".into(),
            },
            reachable: true,
            error: None,
            age_ms: Some(0),
            state: Some(state),
        }],
        kms: Vec::new(),
        links: Vec::new(),
    }
}

/// The state of a channel's end, if the node was seen.
pub(crate) fn end<'a>(
    overview: &'a Overview,
    view: &ChannelView,
    index: usize,
) -> Option<&'a ChannelState> {
    let end = view.observed.get(index)?;
    let node = overview
        .nodes
        .iter()
        .find(|node| node.record.name == end.node)?;
    node.state
        .as_ref()?
        .channels
        .iter()
        .find(|channel| channel.number == view.channel)
}

/// Alarms of all nodes and KMSs in words, each with who raises it.
pub(crate) fn alarms(overview: &Overview) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for node in &overview.nodes {
        let who = node.record.name.to_string();
        if !node.reachable {
            let why = node
                .error
                .clone()
                .unwrap_or_else(|| "does not answer".into());
            all.push((who.clone(), format!("not reachable: {why}")));
        }
        for alarm in node.state.iter().flat_map(|state| &state.alarms) {
            all.push((who.clone(), in_words(alarm)));
        }
    }
    for kms in &overview.kms {
        let who = kms.record.kme_id.clone();
        if !kms.reachable {
            let why = kms
                .error
                .clone()
                .unwrap_or_else(|| "does not answer".into());
            all.push((who.clone(), format!("not reachable: {why}")));
        }
        for alarm in kms.state.iter().flat_map(|state| &state.alarms) {
            all.push((who.clone(), alarm.clone()));
        }
    }
    for channel in overview
        .channels
        .iter()
        .filter(|channel| !channel.converged)
    {
        if let Some(trouble) = &channel.trouble {
            all.push((
                format!("{} channel {}", channel.link, channel.channel),
                trouble.clone(),
            ));
        }
    }
    all
}

fn in_words(alarm: &Alarm) -> String {
    let channel = alarm
        .channel
        .map_or(String::new(), |channel| format!("channel {channel}: "));
    format!(
        "{channel}{} ({} ago)",
        alarm.text,
        crate::words::seconds(alarm.age_s)
    )
}

/// Whether a channel's outbound SA is of this suite.
pub(crate) fn encodes(channel: &ChannelState, suite: &str) -> bool {
    channel
        .outbound
        .encoding
        .as_ref()
        .is_some_and(|sa| sa.suite == suite)
}

/// Suites that do not authenticate and that a node of the picture allows; "node: suites" each.
pub(crate) fn hazmat(overview: &Overview) -> Vec<String> {
    let seen = overview.nodes.iter().filter_map(|node| node.state.as_ref());
    seen.filter(|state| !state.hazmat_allowed.is_empty())
        .map(|state| {
            let suites = state.hazmat_allowed.join(", ");
            format!(
                "{} allows suites that do not authenticate: {suites}",
                state.node
            )
        })
        .collect()
}

/// Ports that do something to frames on purpose, which belongs in a lab; in words.
pub(crate) fn impaired(overview: &Overview) -> Vec<String> {
    let seen = overview.nodes.iter().filter_map(|node| node.state.as_ref());
    let ports = seen.flat_map(|state| {
        let clients = state.clients.iter().map(|client| &client.port);
        std::iter::once(&state.line)
            .chain(clients)
            .filter_map(move |port| Some((&state.node, &port.name, port.impairments.as_ref()?)))
    });
    ports
        .map(|(node, port, done)| {
            let ways = [("received", done.receive), ("transmitted", done.transmit)];
            let ways = ways
                .iter()
                .filter(|(_, faults)| faults.taken > 0)
                .map(|(way, faults)| {
                    let taken = crate::words::count(faults.taken);
                    let faults: Vec<_> = faults
                        .by_name()
                        .into_iter()
                        .filter(|(_, count)| *count > 0)
                        .map(|(fault, count)| format!("{} {fault}", crate::words::count(count)))
                        .collect();
                    let faults = if faults.is_empty() {
                        "none harmed".into()
                    } else {
                        faults.join(", ")
                    };
                    format!("of {taken} frames {way} {faults}")
                });
            let ways: Vec<_> = ways.collect();
            let sofar = if ways.is_empty() {
                "no frame so far".into()
            } else {
                ways.join("; ")
            };
            format!("port {port} of {node} harms frames on purpose: {sofar}")
        })
        .collect()
}

/// Whether a channel uses such a suite now.
pub(crate) fn uses_hazmat(overview: &Overview, view: &ChannelView) -> bool {
    let seen = overview.nodes.iter().filter_map(|node| node.state.as_ref());
    let mut allowed = seen.flat_map(|state| &state.hazmat_allowed);
    allowed.any(|suite| {
        view.observed
            .iter()
            .any(|end| end.encoding_suite.as_ref() == Some(suite))
    })
}

/// The word for a channel's status.
pub(crate) fn status_word(status: ChannelStatus) -> &'static str {
    match status {
        ChannelStatus::Starting => "starting",
        ChannelStatus::Open => "open",
        ChannelStatus::Closed => "closed",
    }
}

/// Frames that a channel did not carry though it was asked to: outbound at this end, inbound here.
pub(crate) fn discarded(channel: &ChannelState) -> u64 {
    let (out, into) = (&channel.outbound.counters, &channel.inbound.counters);
    out.no_sa
        + out.too_long
        + into.late
        + into.replayed
        + into.not_valid
        + into.no_sa
        + into.mux_errors
        + into.fragments_lost
}

/// The channel of a link that is meant, by number or name.
pub(super) fn channel<'a>(
    overview: &'a Overview,
    link: &str,
    channel: &str,
) -> Result<&'a ChannelView, Error> {
    let links = overview.links.iter().map(|link| link.name.as_str());
    if !links.clone().any(|known| known == link) {
        return Err(Error::unknown("link", link, links));
    }
    let mine = overview.channels.iter().filter(|view| view.link == link);
    mine.clone()
        .find(|view| view.channel.to_string() == channel || view.name == channel)
        .ok_or_else(|| {
            let known: Vec<_> = mine
                .flat_map(|view| [view.channel.to_string(), view.name.clone()])
                .collect();
            Error::unknown("channel", channel, known.iter().map(String::as_str))
        })
}
