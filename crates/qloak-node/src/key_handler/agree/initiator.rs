//! The sender's side of a channel: which SA encodes, when the next one is due, and how it is agreed.
//!
//! The states are drawn in `mod.rs`. What always holds: there is at most one change in flight; the
//! encoding SA changes only on a ready whose proof was made with the next key; a key that the peer may
//! have touched is used for this one SA or for none; at the hard limit nothing encodes, whatever else
//! is going on.

mod life;
mod refused;

use qloak_api::{An, ChannelNumber, KeyId, Limits, Sci, manage::AlarmKind};
use qloak_cipher::suite::Suite;
use qloak_keys::{NamedKey, derive};

use self::life::Life;
use crate::key_handler::{
    KeyHandler,
    door::{Action, Note},
    limits,
    message::{Announce, Body, Ready},
};

/// The outbound half of a channel.
pub(in crate::key_handler) struct Initiator {
    pub(in crate::key_handler) suite: &'static Suite,
    pub(in crate::key_handler) limits: Limits,
    pub(in crate::key_handler) encoding: Option<Encoding>,
    change: Option<Change>,
    last_an: Option<An>,
    last_change: u64,
    rekey_asked: bool,
    /// When the command came that the present change of suite serves.
    commanded_ns: Option<u64>,
    not_before_ns: u64,
    /// The peer refused the last change; one that it takes ends the alarm at both ends.
    refused: bool,
    pub(in crate::key_handler) closed: bool,
    pub(in crate::key_handler) rekeys: u64,
    pub(in crate::key_handler) last_suite_change_ns: Option<u64>,
}

/// The SA that encodes.
#[derive(Clone, Copy)]
pub(in crate::key_handler) struct Encoding {
    pub(in crate::key_handler) an: An,
    pub(in crate::key_handler) key_id: KeyId,
    pub(in crate::key_handler) suite: &'static Suite,
    pub(in crate::key_handler) change: u64,
    pub(in crate::key_handler) since_ns: u64,
    frames: u64,
    octets: u64,
    confirmed: bool,
    /// The peer was told that it encodes, by one sync at least.
    told: bool,
}

/// The next SA, announced and not yet ready.
struct Change {
    number: u64,
    an: An,
    named: NamedKey,
    suite: &'static Suite,
    since_ns: u64,
    next_ns: u64,
    /// An order that this change serves; it stands until one succeeds.
    asked: bool,
}

impl Initiator {
    pub(in crate::key_handler) fn new(suite: &'static Suite, limits: Limits) -> Self {
        Self {
            suite,
            limits,
            encoding: None,
            change: None,
            last_an: None,
            last_change: 0,
            rekey_asked: false,
            commanded_ns: None,
            not_before_ns: 0,
            refused: false,
            closed: false,
            rekeys: 0,
            last_suite_change_ns: None,
        }
    }

    /// The encoding SA once the pipeline was seen to use it.
    pub(in crate::key_handler) fn confirmed(&self, now_ns: u64) -> Option<Encoding> {
        let sure = |sa: &Encoding| {
            sa.confirmed || now_ns.saturating_sub(sa.since_ns) >= limits::CONFIRM_NS
        };
        self.encoding.filter(sure)
    }

    pub(in crate::key_handler) fn changing(&self) -> bool {
        self.change.is_some()
    }

    /// What becomes of the frames while a change does not come about.
    fn meanwhile(&self) -> &'static str {
        match self.encoding {
            Some(_) => "the old SA goes on",
            None if self.closed => "the channel stays closed",
            None => "there is no SA yet",
        }
    }

    pub(in crate::key_handler) fn changes_with(&self, id: KeyId) -> bool {
        self.change.as_ref().is_some_and(|c| c.named.id == id)
    }

    /// True while a sync has to tell of a new encoding SA.
    pub(in crate::key_handler) fn has_news(&self, now_ns: u64) -> bool {
        self.confirmed(now_ns).is_some_and(|sa| !sa.told)
    }

    /// The encoding SA as a sync tells of it.
    pub(in crate::key_handler) fn tell(&mut self, now_ns: u64) -> Option<Encoding> {
        let sa = self.confirmed(now_ns)?;
        self.encoding = Some(Encoding { told: true, ..sa });
        Some(sa)
    }

    /// When the change in flight has to be announced again, or the SA comes due or ends by time alone.
    pub(in crate::key_handler) fn wake_ns(&self, now_ns: u64) -> u64 {
        let again_ns = self.change.as_ref().map(|change| change.next_ns);
        again_ns.unwrap_or(u64::MAX).min(self.ages_ns(now_ns))
    }
}

impl KeyHandler {
    /// Limits, copies of an announce, the next change.
    pub(in crate::key_handler) fn drive_initiator(&mut self, at: usize, actions: &mut Vec<Action>) {
        let channel = &self.channels[at];
        let life = channel.initiator.life(self.now_ns, channel.xpn);
        if let Life::Over(limit) = life {
            self.close(at, limit, actions);
        }
        if self.channels[at].initiator.change.is_some() {
            return self.press(at, actions);
        }
        let now_ns = self.now_ns;
        let initiator = &self.channels[at].initiator;
        let wanted = match &initiator.encoding {
            None => true,
            Some(sa) => {
                initiator.rekey_asked
                    || initiator.refused
                    || life == Life::Due
                    || sa.suite.id != initiator.suite.id
            }
        };
        let settled = initiator.encoding.is_none() || initiator.confirmed(now_ns).is_some();
        if wanted && settled && now_ns >= initiator.not_before_ns && self.link.outward.is_some() {
            self.propose(at, actions);
        }
    }

    /// Takes the next key and announces it.
    fn propose(&mut self, at: usize, actions: &mut Vec<Action>) {
        let Some(named) = self.ram.pop_outbound() else {
            return;
        };
        let now_ns = self.now_ns;
        let initiator = &mut self.channels[at].initiator;
        let asked = std::mem::take(&mut initiator.rekey_asked);
        initiator.last_change += 1;
        initiator.change = Some(Change {
            number: initiator.last_change,
            // Never that of the encoding SA; after four changes round again.
            an: initiator.last_an.map_or(An::from_low_bits(0), An::next),
            named,
            suite: initiator.suite,
            since_ns: now_ns,
            next_ns: now_ns,
            asked,
        });
        self.press(at, actions);
    }

    /// Announces the change in flight, again if need be.
    fn press(&mut self, at: usize, actions: &mut Vec<Action>) {
        let (now_ns, timings) = (self.now_ns, self.config.timings);
        let channel = &mut self.channels[at];
        let (number, meanwhile) = (channel.number, channel.initiator.meanwhile());
        let (intended, encoding) = (channel.initiator.suite, channel.initiator.confirmed(now_ns));
        let Some(change) = &mut channel.initiator.change else {
            return;
        };
        let late = now_ns.saturating_sub(change.since_ns) >= timings.ready_timeout_ns;
        if late && change.suite.id != intended.id {
            // The operator wants another suite meanwhile. The SA never encoded; its key is lost.
            return self.drop_change(at, actions);
        }
        if now_ns < change.next_ns {
            return;
        }
        // Once it is late, copies become rarer: the peer is away or cannot get the key.
        change.next_ns = now_ns + timings.announce_retry_ns * if late { 5 } else { 1 };
        let (an, key_id, suite, change) = (change.an, change.named.id, change.suite, change.number);
        let body = Body::Announce(Announce {
            channel: number.number(),
            an,
            carriage: channel.carriage,
            suite: channel.suite_id(suite),
            sci: Sci::new(self.config.address, number),
            change,
            encoding: encoding.map_or(0, |sa| sa.change),
            key_id,
            ahead: self.ram.ahead(0, 4),
        });
        self.say(&body, actions);
        if late {
            let peer = &self.config.peer_sae_id;
            let text =
                || format!("{peer} does not answer the announce of key {key_id}; {meanwhile}");
            self.alarms
                .raise(AlarmKind::NoReady, Some(number), now_ns, text, actions);
        }
    }

    /// Gives the change in flight up; the peer may have touched its key.
    fn drop_change(&mut self, at: usize, actions: &mut Vec<Action>) {
        if let Some(change) = self.channels[at].initiator.change.take() {
            self.channels[at].initiator.rekey_asked |= change.asked;
            self.ram.count_zeroised(1);
            self.lose(change.named.id, actions);
            self.dirty = true;
        }
    }

    /// The hard limit: nothing leaves until a new key is agreed.
    fn close(&mut self, at: usize, limit: &'static str, actions: &mut Vec<Action>) {
        let channel = self.channels[at].number;
        let Some(sa) = self.channels[at].initiator.encoding.take() else {
            return;
        };
        self.channels[at].initiator.closed = true;
        actions.push(Action::Close { channel });
        actions.push(Action::RetireOutbound { channel, an: sa.an });
        self.ram.count_zeroised(1);
        let text = || {
            format!(
                "the SA reached its limit of {limit} and no new key was agreed in time; nothing leaves"
            )
        };
        self.alarms.raise(
            AlarmKind::ChannelClosed,
            Some(channel),
            self.now_ns,
            text,
            actions,
        );
    }

    /// The target has the key and listens under the new SA.
    pub(in crate::key_handler) fn ready(&mut self, ready: &Ready, actions: &mut Vec<Action>) {
        let Some(at) = self.channel_at(ready.channel) else {
            return;
        };
        let now_ns = self.now_ns;
        let channel = &mut self.channels[at];
        let meant = |change: &mut Change| {
            change.number == ready.change
                && change.named.id == ready.key_id
                && change.an == ready.an
        };
        // Copies of a ready are honest: the announce was sent more than once.
        let Some(change) = channel.initiator.change.take_if(meant) else {
            return;
        };
        let number = channel.number;
        let sci = Sci::new(self.config.address, number);
        let (suite, key_id) = (channel.suite_id(change.suite), change.named.id);
        let key = &change.named.key;
        let announced = derive::Announced {
            sci,
            an: change.an,
            suite,
            key_id,
            change: change.number,
        };
        self.ram.count_zeroised(1);
        if !derive::verify_ready(key, announced, &ready.proof) {
            channel.initiator.rekey_asked |= change.asked;
            channel.initiator.not_before_ns = now_ns + self.config.timings.refused_retry_ns;
            let text = || format!("the two KMEs gave different keys under the name {key_id}");
            self.alarms
                .raise(AlarmKind::Mismatch, Some(number), now_ns, text, actions);
            return self.lose(key_id, actions);
        }
        self.spent.insert(key_id);
        let sak = derive::sak(key, sci, suite, change.suite.key_octets);
        let (an, suite) = (change.an, change.suite);
        actions.push(Action::InstallOutbound {
            channel: number,
            an,
            key_id,
            suite,
            sak,
        });
        actions.push(Action::Encode {
            channel: number,
            an,
        });
        let old = channel.initiator.switch(&change, now_ns);
        if let Some(old) = old {
            actions.push(Action::RetireOutbound {
                channel: number,
                an: old.an,
            });
            self.ram.count_zeroised(1);
        }
        self.switched(at, old, actions);
    }

    /// Says what a switch has brought.
    fn switched(&mut self, at: usize, old: Option<Encoding>, actions: &mut Vec<Action>) {
        let channel = &mut self.channels[at];
        let number = channel.number;
        let Some(sa) = channel.initiator.encoding else {
            return;
        };
        let suite = sa.suite.name;
        actions.push(Action::Note(Note::Rekeyed {
            channel: number,
            an: sa.an,
            key_id: sa.key_id,
            suite,
        }));
        if sa.suite.id == channel.initiator.suite.id
            && let Some(commanded_ns) = channel.initiator.commanded_ns.take()
        {
            let took_ns = self.now_ns.saturating_sub(commanded_ns);
            if old.is_none_or(|old| old.suite.id != sa.suite.id) {
                channel.initiator.last_suite_change_ns = Some(took_ns);
                actions.push(Action::Note(Note::SuiteChanged {
                    channel: number,
                    suite,
                    took_us: took_ns / 1000,
                }));
            }
        }
        for kind in [
            AlarmKind::NoReady,
            AlarmKind::ChannelClosed,
            AlarmKind::Mismatch,
        ] {
            self.alarms.clear(kind, Some(number), actions);
        }
        self.dirty = true;
    }

    /// How far the pipeline has used an SA.
    pub(in crate::key_handler) fn usage(
        &mut self,
        channel: ChannelNumber,
        an: An,
        frames: u64,
        octets: u64,
    ) {
        let Some(at) = self.channel_at(channel.number()) else {
            return;
        };
        let now_ns = self.now_ns;
        let channel = &mut self.channels[at];
        let xpn = channel.xpn;
        let initiator = &mut channel.initiator;
        let Some(sa) = initiator.encoding.as_mut().filter(|sa| sa.an == an) else {
            return;
        };
        let news = !sa.confirmed;
        (sa.frames, sa.octets, sa.confirmed) = (frames, octets, true);
        let life = initiator.life(now_ns, xpn);
        let over = matches!(life, Life::Over(_));
        if news {
            // The peer may retire the old SA from now on: tell it.
            self.link.hurry(now_ns);
            self.dirty = true;
        }
        self.dirty |= over || (life == Life::Due && !self.channels[at].initiator.changing());
    }

    /// Sets the suite of the next SAs.
    pub(in crate::key_handler) fn intend(&mut self, at: usize, suite: &'static Suite) {
        let now_ns = self.now_ns;
        let initiator = &mut self.channels[at].initiator;
        if initiator.suite.id == suite.id {
            return;
        }
        initiator.suite = suite;
        initiator.not_before_ns = 0;
        let there = initiator.encoding.is_some_and(|sa| sa.suite.id == suite.id);
        initiator.commanded_ns = (!there || initiator.changing()).then_some(now_ns);
    }

    /// Asks for a new SA.
    pub(in crate::key_handler) fn ask_rekey(&mut self, at: usize) {
        let initiator = &mut self.channels[at].initiator;
        initiator.rekey_asked = true;
        initiator.not_before_ns = 0;
    }

    /// The peer knows nothing of our SAs any more.
    pub(in crate::key_handler) fn forget_outbound(&mut self, actions: &mut Vec<Action>) {
        for at in 0..self.channels.len() {
            self.drop_change(at, actions);
            let channel = self.channels[at].number;
            let initiator = &mut self.channels[at].initiator;
            (initiator.not_before_ns, initiator.refused) = (0, false);
            // Who has restarted may have been given another configuration.
            self.alarms
                .clear(AlarmKind::Mismatch, Some(channel), actions);
            if let Some(sa) = initiator.encoding.take() {
                actions.push(Action::Close { channel });
                actions.push(Action::RetireOutbound { channel, an: sa.an });
                self.ram.count_zeroised(1);
            }
        }
    }
}

impl Initiator {
    /// Makes the change the encoding SA; returns the old one.
    fn switch(&mut self, change: &Change, now_ns: u64) -> Option<Encoding> {
        self.rekeys += u64::from(self.last_an.is_some());
        self.last_an = Some(change.an);
        (self.closed, self.refused) = (false, false);
        self.encoding.replace(Encoding {
            an: change.an,
            key_id: change.named.id,
            suite: change.suite,
            change: change.number,
            since_ns: now_ns,
            frames: 0,
            octets: 0,
            confirmed: false,
            told: false,
        })
    }
}
