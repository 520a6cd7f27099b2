//! One node: the real key handler and the real halves of the SecY, and what its threads would do.

use std::collections::VecDeque;

use qloak_api::{An, ChannelNumber, ClientPort, KeyId, Limits, MacAddress};
use qloak_cipher::{
    level::Level,
    suite::{SUITES, Suite},
};
use qloak_keys::derive::SakMaterial;
use qloak_node::key_handler::{
    AgreeChannel, AgreeState, KeyHandler, KeyHandlerConfig, Note, Timings,
};
use qloak_secy::{ChannelConfig, Inbound, LineConfig, Outbound, Room, Sa, Verdict};

use crate::{Book, Plan, Side};

/// Octets of a client frame without addresses and EtherType: its number, and something to seal.
const PAYLOAD_OCTETS: usize = 64;
const HEADROOM: usize = 64;
const TAILROOM: usize = 64;

/// A node between two restarts.
pub struct Node {
    /// Whose end it is.
    pub side: Side,
    /// The key handler.
    pub handler: KeyHandler,
    /// Everything that it had to say, in order.
    pub notes: Vec<Note>,
    outbound: Outbound,
    inbound: Inbound,
    changes: VecDeque<(u64, OutboundChange)>,
    /// Which start of the node this is; answers to an earlier one are lost.
    pub life: u64,
}

/// What the protecting thread is told.
enum OutboundChange {
    Install(ChannelNumber, An, Sa),
    Encode(ChannelNumber, An),
    Retire(ChannelNumber, An),
    Close(ChannelNumber),
    Limits(ChannelNumber, Limits),
}

impl Node {
    /// A node that has just started. `boot` tells its starts apart.
    ///
    /// # Panics
    /// The plan contradicts itself.
    pub fn start(side: Side, plan: &Plan, boot: [u8; 16], life: u64) -> Self {
        let line = LineConfig {
            address: side.address(),
            peer_address: side.other().address(),
            frame_octets_max: 1600,
        };
        let number = |n: u16| ChannelNumber::try_from(n).unwrap_or_else(|e| panic!("{e}"));
        let port = |n: u16| ClientPort::try_from(n as u8).unwrap_or_else(|e| panic!("{e}"));
        let numbers = 1..=plan.channels;
        let secy: Vec<ChannelConfig> = numbers
            .clone()
            .map(|n| ChannelConfig {
                number: number(n),
                peer_address: None,
                carriage: plan.carriage[side.index()],
                clients: vec![port(n)],
                vlans: Vec::new(),
                xpn: true,
                replay_window: 4096,
                limits: plan.limits,
            })
            .collect();
        let config = KeyHandlerConfig {
            address: line.address,
            peer_address: line.peer_address,
            sae_id: side.sae(),
            peer_sae_id: side.other().sae(),
            ram_slots: plan.ram_slots[side.index()],
            fill_keys: 16,
            keys_per_request: 4,
            channels: numbers
                .map(|n| AgreeChannel {
                    number: number(n),
                    suite: plan.suite,
                    limits: plan.limits,
                    xpn: true,
                    carriage: plan.carriage[side.index()],
                })
                .collect(),
            offered: plan.offered[side.index()].clone(),
            boot,
            timings: plan.timings,
        };
        Self {
            side,
            handler: KeyHandler::new(config).unwrap_or_else(|e| panic!("{e}")),
            notes: Vec::new(),
            outbound: Outbound::new(&line, &secy).unwrap_or_else(|e| panic!("{e}")),
            inbound: Inbound::new(&line, &secy).unwrap_or_else(|e| panic!("{e}")),
            changes: VecDeque::new(),
            life,
        }
    }

    /// The state that the node shows.
    pub fn state(&self, now_ns: u64) -> AgreeState {
        self.handler.state(now_ns)
    }

    /// The protecting thread applies what is due.
    pub fn apply(&mut self, now_ns: u64, book: &mut Book) {
        while self
            .changes
            .front()
            .is_some_and(|(due_ns, _)| *due_ns <= now_ns)
        {
            let Some((_, change)) = self.changes.pop_front() else {
                return;
            };
            match change {
                OutboundChange::Install(channel, an, sa) => {
                    let installed = self.outbound.install(channel, an, sa);
                    assert!(installed.is_ok(), "{installed:?}");
                }
                OutboundChange::Encode(channel, an) => {
                    assert!(self.outbound.encode(channel, an, now_ns));
                    book.encoded[self.side.index()] += 1;
                }
                OutboundChange::Retire(channel, an) => drop(self.outbound.retire(channel, an)),
                OutboundChange::Close(channel) => self.outbound.close(channel),
                OutboundChange::Limits(channel, limits) => {
                    self.outbound.set_limits(channel, limits);
                }
            }
        }
    }

    pub(crate) fn install_outbound(
        &mut self,
        due_ns: u64,
        (channel, an): (ChannelNumber, An),
        key_id: KeyId,
        suite: &'static Suite,
        sak: &SakMaterial,
    ) {
        let change = OutboundChange::Install(channel, an, sa(suite, key_id, sak));
        self.changes.push_back((due_ns, change));
    }

    pub(crate) fn encode(&mut self, due_ns: u64, channel: ChannelNumber, an: An) {
        let change = OutboundChange::Encode(channel, an);
        self.changes.push_back((due_ns, change));
    }

    pub(crate) fn retire_outbound(&mut self, due_ns: u64, channel: ChannelNumber, an: An) {
        let change = OutboundChange::Retire(channel, an);
        self.changes.push_back((due_ns, change));
    }

    pub(crate) fn close(&mut self, due_ns: u64, channel: ChannelNumber) {
        let change = OutboundChange::Close(channel);
        self.changes.push_back((due_ns, change));
    }

    pub(crate) fn set_limits(&mut self, due_ns: u64, channel: ChannelNumber, limits: Limits) {
        let change = OutboundChange::Limits(channel, limits);
        self.changes.push_back((due_ns, change));
    }

    pub(crate) fn install_inbound(
        &mut self,
        (channel, an): (ChannelNumber, An),
        key_id: KeyId,
        suite: &'static Suite,
        sak: &SakMaterial,
    ) {
        let installed = self.inbound.install(channel, an, sa(suite, key_id, sak));
        assert!(installed.is_ok(), "{installed:?}");
    }

    pub(crate) fn retire_inbound(&mut self, channel: ChannelNumber, an: An) {
        drop(self.inbound.retire(channel, an));
    }

    /// What the protecting thread reports of the encoding SA of a channel.
    pub fn usage(&self, channel: ChannelNumber) -> Option<(An, u64, u64)> {
        let usage = self.outbound.usage(channel)?;
        Some((usage.an, usage.frames, usage.octets))
    }

    /// Whether an encoding SA has come due for a rekey by its last frame.
    pub fn comes_due(&mut self) -> bool {
        self.outbound.take_due().is_some()
    }

    /// SAs under which a first valid frame came.
    pub fn heard(&mut self) -> Vec<(ChannelNumber, An)> {
        self.inbound.heard().collect()
    }

    /// Protects the client frame `number` of the run; `None` when the channel is closed.
    pub fn protect(&mut self, channel: ChannelNumber, number: u64, now_ns: u64) -> Option<Vec<u8>> {
        let reference = self.outbound.channel(channel)?;
        let mut storage = vec![0; HEADROOM + 14 + PAYLOAD_OCTETS + TAILROOM];
        let mut range = HEADROOM..HEADROOM + 14 + PAYLOAD_OCTETS;
        let frame = &mut storage[range.clone()];
        frame[..6].copy_from_slice(&MacAddress([2, 0, 0, 0, 0, 1]).0);
        frame[6..12].copy_from_slice(&MacAddress([2, 0, 0, 0, 0, 2]).0);
        frame[12..14].copy_from_slice(&[0x88, 0xB6]);
        frame[14..22].copy_from_slice(&number.to_be_bytes());
        let room = Room::new(&mut storage, &mut range);
        let done = self.outbound.protect(reference, [room], now_ns);
        (done.frames == 1).then(|| storage[range].to_vec())
    }

    /// Validates a line frame; the number of the client frame in it if it is good.
    pub fn validate(&mut self, frame: &[u8]) -> Option<u64> {
        let mut storage = frame.to_vec();
        let mut range = 0..storage.len();
        let mut verdicts = [Verdict::NoTag];
        let room = Room::new(&mut storage, &mut range);
        self.inbound.validate([room], &mut verdicts);
        let Verdict::Valid(_) = verdicts[0] else {
            return None;
        };
        let number = storage.get(range)?.get(14..22)?.try_into().ok()?;
        Some(u64::from_be_bytes(number))
    }
}

fn sa(suite: &'static Suite, key_id: KeyId, sak: &SakMaterial) -> Sa {
    Sa::new(suite, Level::Soft, &sak.sak, sak.salt, key_id).unwrap_or_else(|e| panic!("{e}"))
}

/// Timings as they are, for plans.
pub(crate) fn timings() -> Timings {
    Timings::default()
}

/// Every suite that authenticates.
pub(crate) fn offered() -> Vec<&'static Suite> {
    SUITES.iter().filter(|suite| !suite.hazmat).collect()
}
