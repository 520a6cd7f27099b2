//! The node as it shows itself: news of the pipeline and the key handler's own state, in one picture.
//!
//! The key handler's thread collects the news and draws the picture every few milliseconds; readers
//! take the last one and never stop anybody.

use std::{collections::BTreeMap, sync::Arc};

use qloak_api::{
    An, NodeLatency, Sci,
    manage::{
        ChannelState, ClientState, InboundCounters, InboundState, NodeState, OutboundCounters,
        OutboundState, PortState, SaState, StrayCounters,
    },
};

use crate::{
    config::{Channel, Config},
    key_handler::{AgreeState, AgreedSa, ChannelAgreement},
    latency::Histogram,
    pipeline::news::{InboundNews, OutboundNews},
};

/// Collects news and draws them.
pub(crate) struct Picture {
    config: Config,
    line: PortState,
    clients: BTreeMap<u8, ClientState>,
    channels: BTreeMap<u16, ChannelNews>,
    line_dropped: u64,
    undelivered: BTreeMap<u8, u64>,
    strays: StrayCounters,
    /// Outbound and inbound.
    times: Option<[Arc<Histogram>; 2]>,
}

#[derive(Default)]
struct ChannelNews {
    outbound: OutboundCounters,
    next_pn: u64,
    inbound: InboundCounters,
    lowest_pn: [u64; An::COUNT],
}

impl Picture {
    /// An empty picture; `line` and `clients` are the names and kinds of the ports.
    pub(crate) fn new(config: Config, line: PortState, clients: Vec<ClientState>) -> Self {
        let channels = config
            .channels
            .iter()
            .map(|channel| (channel.number.number(), ChannelNews::default()));
        Self {
            channels: channels.collect(),
            clients: clients
                .into_iter()
                .map(|client| (client.number.number(), client))
                .collect(),
            config,
            line,
            line_dropped: 0,
            undelivered: BTreeMap::new(),
            strays: StrayCounters::default(),
            times: None,
        }
    }

    /// With the times that the outbound and the inbound thread record, if they see frames.
    pub(crate) fn with_times(self, times: Option<[Arc<Histogram>; 2]>) -> Self {
        Self { times, ..self }
    }

    pub(crate) fn outbound(&mut self, news: OutboundNews) {
        match news {
            OutboundNews::Channel {
                channel,
                usage,
                counters,
            } => {
                if let Some(entry) = self.channels.get_mut(&channel.number()) {
                    entry.outbound = counters;
                    entry.next_pn = usage.map_or(0, |usage| usage.next_pn);
                }
            }
            OutboundNews::Client {
                client,
                counters,
                discarded_closed,
                discarded_oversize,
                discarded_vlan,
            } => {
                if let Some(entry) = self.clients.get_mut(&client.number()) {
                    entry.port.counters = counters;
                    entry.delivered_frames = counters.transmitted_frames;
                    entry.discarded_closed = discarded_closed;
                    entry.discarded_oversize = discarded_oversize;
                    entry.discarded_vlan = discarded_vlan;
                }
            }
            OutboundNews::LineDropped(frames) => self.line_dropped = frames,
        }
    }

    pub(crate) fn inbound(&mut self, news: InboundNews) {
        match news {
            InboundNews::Heard { .. } => {}
            InboundNews::Channel {
                channel,
                counters,
                lowest_pn,
            } => {
                if let Some(entry) = self.channels.get_mut(&channel.number()) {
                    entry.inbound = counters;
                    entry.lowest_pn = lowest_pn;
                }
            }
            InboundNews::Impaired(impairments) => self.line.impairments = Some(impairments),
            InboundNews::ClientDropped { client, frames } => {
                self.undelivered.insert(client.number(), frames);
            }
            InboundNews::Line { counters, strays } => {
                self.line.counters = counters;
                self.strays = strays;
            }
        }
    }

    /// The picture as it is now.
    pub(crate) fn draw(&self, keys: AgreeState, uptime_s: u64) -> NodeState {
        let channels = self.config.channels.iter().zip(&keys.channels);
        let channels = channels
            .map(|(config, agreed)| self.channel(config, agreed))
            .collect();
        let mut line = self.line.clone();
        line.counters.transmit_dropped += self.line_dropped;
        let clients = self.clients.values().cloned().map(|mut client| {
            let undelivered = self.undelivered.get(&client.number.number());
            client.port.counters.transmit_dropped += undelivered.copied().unwrap_or(0);
            client
        });
        NodeState {
            node: self.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s,
            line,
            clients: clients.collect(),
            channels,
            strays: StrayCounters {
                // The pipeline counts those that are too long to reach the key handler.
                bad_agreement: keys.malformed + self.strays.bad_agreement,
                ..self.strays
            },
            latency: self.times.as_ref().map(|[outbound, inbound]| NodeLatency {
                outbound: outbound.read(),
                inbound: inbound.read(),
            }),
            key_handler: keys.key_handler,
            alarms: keys.alarms,
            hazmat_allowed: self
                .config
                .hazmat
                .iter()
                .map(|suite| suite.name.to_owned())
                .collect(),
        }
    }

    fn channel(&self, config: &Channel, agreed: &ChannelAgreement) -> ChannelState {
        let none = ChannelNews::default();
        let news = self.channels.get(&config.number.number()).unwrap_or(&none);
        ChannelState {
            number: config.number,
            name: config.name.clone(),
            peer: self.config.peer(config).clone(),
            carriage: config.carriage,
            status: agreed.status,
            suite_intended: agreed.suite_intended.name.to_owned(),
            limits: agreed.limits,
            outbound: OutboundState {
                sci: Sci::new(self.config.line.address, config.number),
                encoding: agreed.encoding.map(|sa| shown(&sa, news.next_pn)),
                counters: news.outbound,
            },
            inbound: InboundState {
                sci: Sci::new(self.config.peer_address(config), config.number),
                accepted: agreed
                    .accepted
                    .iter()
                    .map(|sa| shown(sa, news.lowest_pn[sa.an.index()]))
                    .collect(),
                counters: news.inbound,
            },
            rekeys: agreed.rekeys,
            last_suite_change_ms: agreed.last_suite_change_ms,
        }
    }
}

fn shown(sa: &AgreedSa, pn: u64) -> SaState {
    SaState {
        an: sa.an,
        suite: sa.suite.name.to_owned(),
        key_id: sa.key_id,
        pn,
        age_s: sa.age_s,
    }
}
