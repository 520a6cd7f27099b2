//! The receiver's side of a channel: which SAs are accepted, and the answer to each announce.
//!
//! The states are drawn in `mod.rs`. What always holds: an SA is accepted only after an authentic
//! announce whose suite this node offers, with a key that leaves the RAM for it; one announce has one
//! answer, repeated as often as it is asked; an old SA goes only when the peer was seen to encode under
//! a newer one and the line has had time to drain.

use qloak_api::{An, Carriage, ChannelNumber, KeyId, Sci, manage::AlarmKind};
use qloak_cipher::suite::Suite;
use qloak_keys::derive;

use crate::key_handler::{
    KeyHandler,
    door::Action,
    limits,
    message::{Announce, Body, Ready, Reason, Refuse, Sync},
    supply::{Chance, Purpose},
};

/// The inbound half of a channel.
#[derive(Default)]
pub(in crate::key_handler) struct Target {
    /// Accepted SAs, oldest first.
    pub(in crate::key_handler) sas: Vec<InboundSa>,
    /// The newest change that was answered, and how.
    answered: Option<Answered>,
    /// An announce whose key or AN is not free yet.
    waiting: Option<Announce>,
    /// The newest change that the peer was seen to encode with.
    encoding: u64,
    complained_ns: Option<u64>,
}

/// An SA that is accepted.
#[derive(Clone, Copy)]
pub(in crate::key_handler) struct InboundSa {
    pub(in crate::key_handler) an: An,
    pub(in crate::key_handler) key_id: KeyId,
    pub(in crate::key_handler) suite: &'static Suite,
    pub(in crate::key_handler) since_ns: u64,
    change: u64,
    /// When it goes, once a newer one is in use.
    until_ns: Option<u64>,
}

struct Answered {
    change: u64,
    key_id: KeyId,
    body: Body,
}

impl Target {
    /// When an SA has to go.
    pub(in crate::key_handler) fn wake_ns(&self) -> u64 {
        let ends = self.sas.iter().filter_map(|sa| sa.until_ns);
        ends.min().unwrap_or(u64::MAX)
    }
}

impl KeyHandler {
    /// An authentic announce of the peer.
    pub(in crate::key_handler) fn announced(
        &mut self,
        announce: &Announce,
        actions: &mut Vec<Action>,
    ) {
        self.complain(&announce.ahead, actions);
        let Some(at) = self.channel_at(announce.channel) else {
            self.stray_channel(announce.channel, actions);
            let body = refusal(announce, Reason::UnknownChannel);
            return self.answer(&body, actions);
        };
        self.encodes(at, announce.encoding);
        let target = &self.channels[at].target;
        if let Some(answered) = &target.answered {
            if announce.change < answered.change {
                // An announce that was overtaken by its successor.
                return;
            }
            if announce.change == answered.change && announce.key_id == answered.key_id {
                let body = answered.body.clone();
                return self.answer(&body, actions);
            }
        }
        if let Some(reason) = self.objection(at, announce) {
            self.objected(at, announce, reason, actions);
            return self.conclude(at, announce, refusal(announce, reason), actions);
        }
        let newer = |waiting: &Announce| waiting.change > announce.change;
        if !target.waiting.as_ref().is_some_and(newer) {
            self.channels[at].target.waiting = Some(announce.clone());
            self.drive_target(at, actions);
        }
    }

    /// What speaks against an announce before its key is touched. The same announce meets the same
    /// objection, so that a refused key is untouched for good.
    fn objection(&self, at: usize, announce: &Announce) -> Option<Reason> {
        let channel = &self.channels[at];
        let Some(suite) = Suite::by_id(announce.suite.0).filter(|suite| self.offers(suite)) else {
            return Some(Reason::UnknownSuite);
        };
        if channel.suite_id(suite) != announce.suite {
            return Some(Reason::PnForm);
        }
        if channel.carriage != announce.carriage {
            return Some(Reason::Carriage);
        }
        let sci = Sci::new(self.config.peer_address, channel.number);
        (sci != announce.sci).then_some(Reason::WrongSci)
    }

    fn objected(
        &mut self,
        at: usize,
        announce: &Announce,
        reason: Reason,
        actions: &mut Vec<Action>,
    ) {
        let number = self.channels[at].number;
        let suite = Suite::by_id(announce.suite.0)
            .map_or_else(|| announce.suite.to_string(), |suite| suite.name.to_owned());
        let peer = &self.config.peer_sae_id;
        let text = || {
            let lack = match reason {
                Reason::UnknownSuite => "this node does not offer it",
                Reason::PnForm => "the channel has packet numbers of another length here",
                Reason::Carriage if announce.carriage == Carriage::Aggregated => {
                    "its channel is aggregated, this one is transparent"
                }
                Reason::Carriage => "its channel is transparent, this one is aggregated",
                _ => "this node expects another line port address (SCI)",
            };
            format!("{peer} announces {suite}: {lack}")
        };
        self.alarms.raise(
            AlarmKind::Mismatch,
            Some(number),
            self.now_ns,
            text,
            actions,
        );
    }

    /// Old SAs go; a waiting announce is tried again.
    pub(in crate::key_handler) fn drive_target(&mut self, at: usize, actions: &mut Vec<Action>) {
        let (now_ns, channel) = (self.now_ns, self.channels[at].number);
        let gone = |sa: &InboundSa| sa.until_ns.is_some_and(|until_ns| now_ns >= until_ns);
        self.retire_inbound(at, gone, actions);
        let Some(announce) = self.channels[at].target.waiting.take() else {
            return;
        };
        let in_use = |sa: &&InboundSa| sa.an == announce.an;
        let busy = self.channels[at].target.sas.iter().find(in_use).copied();
        if let Some(sa) = busy
            && (sa.until_ns.is_some() || sa.change <= self.channels[at].target.encoding)
        {
            // Four ANs are all there are: the oldest has to drain first.
            self.channels[at].target.waiting = Some(announce);
            return;
        }
        if !self.ram.has_inbound(announce.key_id) {
            match self.chance(announce.key_id) {
                Chance::Never => {
                    let body = refusal(&announce, Reason::KeyUnknown);
                    return self.conclude(at, &announce, body, actions);
                }
                Chance::Ask => {
                    self.ask_fetch(vec![announce.key_id], Purpose::Now, actions);
                }
                Chance::Wait => {}
            }
            self.channels[at].target.waiting = Some(announce);
            return;
        }
        if busy.is_some() {
            // The peer gave up that change before it encoded with it.
            self.retire_inbound(at, |sa| sa.an == announce.an, actions);
        }
        self.accept(at, channel, &announce, actions);
    }

    /// Makes the announced SA of its key and answers ready.
    fn accept(
        &mut self,
        at: usize,
        number: ChannelNumber,
        announce: &Announce,
        actions: &mut Vec<Action>,
    ) {
        let Some(suite) = Suite::by_id(announce.suite.0) else {
            return;
        };
        let Some(named) = self.ram.take_inbound(announce.key_id) else {
            return;
        };
        self.spent.insert(named.id);
        self.ram.count_zeroised(1);
        let (an, sci, change) = (announce.an, announce.sci, announce.change);
        let proven = derive::Announced {
            sci,
            an,
            suite: announce.suite,
            key_id: named.id,
            change,
        };
        let proof = derive::ready_proof(&named.key, proven);
        let sak = derive::sak(&named.key, sci, announce.suite, suite.key_octets);
        actions.push(Action::InstallInbound {
            channel: number,
            an,
            key_id: named.id,
            suite,
            sak,
        });
        self.channels[at].target.sas.push(InboundSa {
            an,
            key_id: named.id,
            suite,
            since_ns: self.now_ns,
            change,
            until_ns: None,
        });
        let body = Body::Ready(Ready {
            channel: announce.channel,
            an,
            change,
            key_id: named.id,
            proof,
        });
        self.conclude(at, announce, body, actions);
        self.alarms
            .clear(AlarmKind::Mismatch, Some(number), actions);
        self.dirty = true;
    }

    /// Answers an announce once and for all.
    fn conclude(&mut self, at: usize, announce: &Announce, body: Body, actions: &mut Vec<Action>) {
        self.answer(&body, actions);
        let target = &mut self.channels[at].target;
        let older = |waiting: &mut Announce| waiting.change <= announce.change;
        drop(target.waiting.take_if(older));
        target.answered = Some(Answered {
            change: announce.change,
            key_id: announce.key_id,
            body,
        });
    }

    /// The peer's sync: what it encodes with, and which keys come next.
    pub(in crate::key_handler) fn synced(&mut self, sync: &Sync, actions: &mut Vec<Action>) {
        self.complain(&sync.ahead, actions);
        for entry in &sync.channels {
            let Some(at) = self.channel_at(entry.channel) else {
                self.stray_channel(entry.channel, actions);
                continue;
            };
            let target = &self.channels[at].target;
            let there = target.sas.iter().any(|sa| sa.change == entry.change);
            if there || entry.change <= target.encoding {
                self.encodes(at, entry.change);
                continue;
            }
            // It encodes with what we do not have. That cannot come about, but it must not last.
            let now_ns = self.now_ns;
            let target = &mut self.channels[at].target;
            let since_ns = target.complained_ns.map(|ns| now_ns.saturating_sub(ns));
            if since_ns.is_none_or(|since_ns| since_ns >= limits::COMPLAINT_NS) {
                target.complained_ns = Some(now_ns);
                let body = Body::Refuse(Refuse {
                    channel: entry.channel,
                    reason: Reason::NoSa,
                    change: entry.change,
                    key_id: KeyId([0; 16]),
                });
                self.answer(&body, actions);
            }
        }
    }

    /// Tells the peer which of the keys that it named can never come.
    fn complain(&mut self, ahead: &[KeyId], actions: &mut Vec<Action>) {
        for key_id in self.named_ahead(ahead) {
            let body = Body::Refuse(Refuse {
                channel: 0,
                reason: Reason::KeyUnknown,
                change: 0,
                key_id,
            });
            self.answer(&body, actions);
        }
    }

    /// The pipeline validated a frame under this SA for the first time.
    pub(in crate::key_handler) fn heard_under(&mut self, channel: ChannelNumber, an: An) {
        let Some(at) = self.channel_at(channel.number()) else {
            return;
        };
        let sas = &self.channels[at].target.sas;
        let Some(sa) = sas.iter().find(|sa| sa.an == an) else {
            return;
        };
        let change = sa.change;
        self.encodes(at, change);
    }

    /// The peer encodes with this change: what is older may drain.
    fn encodes(&mut self, at: usize, change: u64) {
        let until_ns = self.now_ns + self.config.timings.drain_ns;
        let target = &mut self.channels[at].target;
        if change <= target.encoding {
            return;
        }
        target.encoding = change;
        for sa in target.sas.iter_mut().filter(|sa| sa.change < change) {
            sa.until_ns.get_or_insert(until_ns);
        }
        self.dirty = true;
    }

    fn retire_inbound(
        &mut self,
        at: usize,
        goes: impl Fn(&InboundSa) -> bool,
        actions: &mut Vec<Action>,
    ) {
        let channel = self.channels[at].number;
        let mut retired = 0;
        self.channels[at].target.sas.retain(|sa| {
            let goes = goes(sa);
            if goes {
                actions.push(Action::RetireInbound { channel, an: sa.an });
                retired += 1;
            }
            !goes
        });
        self.ram.count_zeroised(retired);
    }

    /// Nothing that the peer announced so far holds any more.
    pub(in crate::key_handler) fn forget_inbound(&mut self, actions: &mut Vec<Action>) {
        for at in 0..self.channels.len() {
            self.retire_inbound(at, |_| true, actions);
            self.channels[at].target = Target::default();
            let number = Some(self.channels[at].number);
            self.alarms.clear(AlarmKind::Mismatch, number, actions);
        }
        self.dirty = true;
    }
}

fn refusal(announce: &Announce, reason: Reason) -> Body {
    Body::Refuse(Refuse {
        channel: announce.channel,
        reason,
        change: announce.change,
        key_id: announce.key_id,
    })
}
