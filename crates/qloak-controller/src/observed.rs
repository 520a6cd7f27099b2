//! What is seen, beside what is wanted: the whole picture that the north side shows.
//!
//! One table in memory, fed by the pollers and by commands, read by every view. It is locked for
//! moments and never across a wait. An intent counts as met only by answers that were asked for after
//! the last push, so that a picture from before a command cannot vouch for it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use qloak_api::{
    ChannelNumber, SaeId, SuiteEntry,
    control::{ChannelView, EndView, Intent, KmsView, LinkRecord, NodeView, Overview},
    kms::KmsState,
    manage::{ChannelState, ChannelStatus, NodeState},
};

use crate::{
    intent::{ChannelKey, Standing},
    plan,
    store::Kept,
    topology::Topology,
};

/// What was last seen of a node or KMS.
#[derive(Debug)]
pub struct Seen<T> {
    /// Its last answer.
    pub state: Option<T>,
    /// When that answer was asked for.
    pub asked_at: Option<Instant>,
    /// Why the last question had no answer; none when it had one.
    pub error: Option<String>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self {
            state: None,
            asked_at: None,
            error: Some("it was not asked yet".to_owned()),
        }
    }
}

impl<T> Seen<T> {
    /// Whether it answered the last time.
    pub fn reachable(&self) -> bool {
        self.error.is_none()
    }
}

/// The moments of a command that is under way in this process.
#[derive(Debug, Clone)]
pub struct UnderWay {
    /// When it came; none if it came to an earlier run of the controller.
    pub commanded: Option<Instant>,
    /// When the last push of it ended.
    pub pushed: Instant,
    /// What the ends were put back to, if the last push did that and no intent stood.
    pub put_back: Vec<(SaeId, Intent)>,
}

/// Everything known.
#[derive(Debug, Default)]
pub struct Picture {
    /// What there is.
    pub topology: Topology,
    /// What is wanted.
    pub intents: BTreeMap<ChannelKey, Standing>,
    /// What each node offers, as last seen, also by an earlier run.
    pub libraries: BTreeMap<SaeId, Vec<SuiteEntry>>,
    /// What each node does.
    pub nodes: BTreeMap<SaeId, Seen<NodeState>>,
    /// What each KMS does.
    pub kms: BTreeMap<String, Seen<KmsState>>,
    /// Why an intent is not met.
    pub troubles: BTreeMap<ChannelKey, String>,
    /// Commands of this run.
    pub under_way: BTreeMap<ChannelKey, UnderWay>,
}

impl Picture {
    /// From what was kept.
    pub fn new(kept: Kept) -> Self {
        let mut picture = Self {
            intents: kept.intents,
            libraries: kept.libraries,
            ..Self::default()
        };
        picture.adopt(kept.topology);
        picture
    }

    /// Takes a changed topology, and forgets whatever belonged to records that are gone.
    pub fn adopt(&mut self, topology: Topology) {
        self.topology = topology;
        let Topology { nodes, kms, links } = &self.topology;
        self.nodes.retain(|name, _| nodes.contains_key(name));
        self.libraries.retain(|name, _| nodes.contains_key(name));
        self.kms.retain(|kme_id, _| kms.contains_key(kme_id));
        self.intents.retain(|key, _| links.contains_key(&key.link));
        self.troubles.retain(|key, _| links.contains_key(&key.link));
        self.under_way
            .retain(|key, _| links.contains_key(&key.link));
        for name in nodes.keys() {
            self.nodes.entry(name.clone()).or_default();
        }
        for kme_id in kms.keys() {
            self.kms.entry(kme_id.clone()).or_default();
        }
    }

    /// A channel as one end last showed it.
    pub fn end(&self, node: &SaeId, channel: ChannelNumber) -> Option<&ChannelState> {
        let state = self.nodes.get(node)?.state.as_ref()?;
        state.channels.iter().find(|state| state.number == channel)
    }

    /// The same, if the channel leads along this link.
    pub fn end_of(
        &self,
        link: &LinkRecord,
        node: &SaeId,
        channel: ChannelNumber,
    ) -> Option<&ChannelState> {
        self.end(node, channel)
            .filter(|end| leads_along(end, node, link))
    }

    /// Whether both ends meet the intent, by answers newer than the last push.
    pub fn met(&self, link: &LinkRecord, key: &ChannelKey) -> bool {
        let Some(standing) = self.intents.get(key) else {
            return false;
        };
        let pushed = self.under_way.get(key).map(|under_way| under_way.pushed);
        [&link.a, &link.b].into_iter().all(|node| {
            let fresh = self.nodes.get(node).is_some_and(|seen| {
                seen.reachable()
                    && seen
                        .asked_at
                        .is_some_and(|asked| pushed.is_none_or(|pushed| asked >= pushed))
            });
            let end = self.end_of(link, node, key.channel);
            fresh && end.is_some_and(|end| plan::met(&standing.intent, end))
        })
    }

    /// The numbers of a link's channels: those seen at an end and those that are wanted.
    pub fn channel_numbers(&self, link: &LinkRecord) -> Vec<ChannelNumber> {
        let seen = [&link.a, &link.b]
            .into_iter()
            .filter_map(|node| Some((link, self.nodes.get(node)?.state.as_ref()?)))
            .flat_map(|(link, state)| {
                // On a shared line a node has channels to others too.
                let own = |channel: &&ChannelState| leads_along(channel, &state.node, link);
                state
                    .channels
                    .iter()
                    .filter(own)
                    .map(|channel| channel.number)
            });
        let wanted = self
            .intents
            .keys()
            .filter(|key| key.link == link.name)
            .map(|key| key.channel);
        let mut numbers: Vec<ChannelNumber> = seen.chain(wanted).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// One channel, wanted and seen.
    pub fn channel(&self, link: &LinkRecord, channel: ChannelNumber) -> ChannelView {
        let key = ChannelKey {
            link: link.name.clone(),
            channel,
        };
        let ends: Vec<(&SaeId, &ChannelState)> = [&link.a, &link.b]
            .into_iter()
            .filter_map(|node| Some((node, self.end_of(link, node, channel)?)))
            .collect();
        let standing = self.intents.get(&key);
        ChannelView {
            name: ends
                .first()
                .map(|(_, end)| end.name.clone())
                .unwrap_or_default(),
            intent: standing.map(|standing| standing.intent.clone()),
            observed: ends.iter().map(|(node, end)| end_view(node, end)).collect(),
            converged: self.met(link, &key),
            converged_after_ms: standing.and_then(|standing| standing.converged_after_ms),
            trouble: self.troubles.get(&key).cloned(),
            link: key.link,
            channel,
        }
    }

    /// All channels of a link.
    pub fn channels(&self, link: &LinkRecord) -> Vec<ChannelView> {
        let numbers = self.channel_numbers(link);
        numbers
            .into_iter()
            .map(|channel| self.channel(link, channel))
            .collect()
    }

    /// Everything, for `GET /v1/overview`.
    pub fn overview(&self) -> Overview {
        let nodes = self.topology.nodes.values().map(|record| {
            let seen = self.nodes.get(&record.name);
            NodeView {
                record: record.clone(),
                reachable: seen.is_some_and(Seen::reachable),
                error: seen.and_then(|seen| seen.error.clone()),
                age_ms: seen
                    .and_then(|seen| seen.asked_at)
                    .map(|at| whole_ms(at.elapsed())),
                state: seen.and_then(|seen| seen.state.clone()),
            }
        });
        let kms = self.topology.kms.values().map(|record| {
            let seen = self.kms.get(&record.kme_id);
            KmsView {
                record: record.clone(),
                reachable: seen.is_some_and(Seen::reachable),
                error: seen.and_then(|seen| seen.error.clone()),
                state: seen.and_then(|seen| seen.state.clone()),
            }
        });
        Overview {
            nodes: nodes.collect(),
            kms: kms.collect(),
            links: self.topology.links.values().cloned().collect(),
            channels: self
                .topology
                .links
                .values()
                .flat_map(|link| self.channels(link))
                .collect(),
        }
    }
}

fn end_view(node: &SaeId, end: &ChannelState) -> EndView {
    let status = match end.status {
        ChannelStatus::Starting => "starting",
        ChannelStatus::Open => "open",
        ChannelStatus::Closed => "closed",
    };
    EndView {
        node: node.clone(),
        encoding_suite: end.outbound.encoding.as_ref().map(|sa| sa.suite.clone()),
        suite_intended: end.suite_intended.clone(),
        limits: end.limits,
        status: status.to_owned(),
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
/// Whether a channel of a node leads to the other end of a link.
fn leads_along(channel: &ChannelState, node: &SaeId, link: &LinkRecord) -> bool {
    let far = if link.a == *node { &link.b } else { &link.a };
    channel.peer == *far
}
