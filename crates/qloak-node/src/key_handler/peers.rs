//! The key handlers of a node: one for each far node, since each pair of nodes agrees its keys alone.
//!
//! On a line of two nodes there is one. On a shared line an agreement frame goes to the handler of the node that
//! sent it, and what concerns a channel to that of the channel's far node.

use std::collections::HashMap;

use qloak_api::{ChannelNumber, MacAddress, manage::KeyHandlerState};

use super::{AgreeState, KeyHandler, KeyHandlerConfig, Refusal};

/// The key handlers, by peer: the order in which the configuration names them.
pub(crate) struct KeyHandlers {
    cores: Vec<KeyHandler>,
    addresses: Vec<MacAddress>,
    of_channel: HashMap<u16, usize>,
    /// The channels in the order of the configuration.
    channels: Vec<ChannelNumber>,
}

impl KeyHandlers {
    /// A handler for each peer; `channels` in the order in which they are shown.
    pub(crate) fn new(
        peers: Vec<KeyHandlerConfig>,
        channels: Vec<ChannelNumber>,
    ) -> Result<Self, Refusal> {
        let of_peer = |(peer, config): (usize, &KeyHandlerConfig)| {
            let numbers = config
                .channels
                .iter()
                .map(|channel| channel.number.number());
            numbers
                .map(move |number| (number, peer))
                .collect::<Vec<_>>()
        };
        Ok(Self {
            of_channel: peers.iter().enumerate().flat_map(of_peer).collect(),
            addresses: peers.iter().map(|config| config.peer_address).collect(),
            cores: peers
                .into_iter()
                .map(KeyHandler::new)
                .collect::<Result<_, _>>()?,
            channels,
        })
    }

    /// How many there are, one at least.
    pub(crate) fn len(&self) -> usize {
        self.cores.len()
    }

    /// The handler of a peer.
    pub(crate) fn of(&mut self, peer: usize) -> &mut KeyHandler {
        let last = self.cores.len() - 1;
        &mut self.cores[peer.min(last)]
    }

    /// The peer at the far end of a channel.
    pub(crate) fn peer_of(&self, channel: ChannelNumber) -> usize {
        let peer = self.of_channel.get(&channel.number());
        peer.copied().unwrap_or(0)
    }

    /// The peer that sent a frame; the first one counts those of strangers.
    pub(crate) fn sender(&self, frame: &[u8]) -> usize {
        let from = frame.get(6..12).unwrap_or_default();
        let known = self.addresses.iter().position(|address| address.0 == from);
        known.unwrap_or(0)
    }

    /// When the next tick is due.
    pub(crate) fn next_wake_ns(&self) -> u64 {
        let wakes = self.cores.iter().map(KeyHandler::next_wake_ns);
        wakes.min().unwrap_or(u64::MAX)
    }

    /// The state of all in one: what is counted is added up, what has to hold holds for each.
    pub(crate) fn state(&self, now_ns: u64) -> AgreeState {
        let mut states = self.cores.iter().map(|core| core.state(now_ns));
        let Some(mut all) = states.next() else {
            unreachable!("a node has a peer");
        };
        for state in states {
            add(&mut all.key_handler, &state.key_handler);
            all.alarms.extend(state.alarms);
            all.channels.extend(state.channels);
            all.malformed += state.malformed;
        }
        let place = |number: ChannelNumber| self.channels.iter().position(|other| *other == number);
        all.channels.sort_by_key(|channel| place(channel.number));
        all
    }
}

fn add(all: &mut KeyHandlerState, one: &KeyHandlerState) {
    all.ram_slots += one.ram_slots;
    all.outbound_keys += one.outbound_keys;
    all.inbound_keys += one.inbound_keys;
    all.kme_reachable &= one.kme_reachable;
    all.peer_alive &= one.peer_alive;
    all.kme_requests += one.kme_requests;
    all.kme_failures += one.kme_failures;
    all.forged += one.forged;
    all.replayed += one.replayed;
    all.zeroised += one.zeroised;
}
