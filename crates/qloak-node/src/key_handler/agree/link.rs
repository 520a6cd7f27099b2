//! Who the peer is: one control association for each direction, and how a restart is survived.
//!
//! ```text
//!  initiator                                        target
//!  nobody     take K; send hello(K) ------------->  nobody, or silent for 200 ms: a token, fetch K
//!  calling    (again each 50 ms)                    MAC under K good: candidate
//!             <------------------------ welcome(K)  (again for each copy of that hello)
//!  known      sync under control(K, both starts) >  candidate -> listening; what was agreed with
//!             announces, syncs                      the peer's former start is gone
//! ```
//!
//! What always holds: while the present association speaks, a hello costs nothing but a counter; a
//! candidate takes over only once the peer has shown, with a message that nobody could have recorded,
//! that it holds the control key of this very start of both nodes; a lost message is repeated by its
//! sender. Where the two ends still come to disagree, the peer's sync tells it (`hears`) and a new
//! hello mends it. See docs/key-agreement.md for what a forger on the line can still do.

use qloak_api::{KeyId, manage::AlarmKind};
use qloak_keys::{
    Key, NamedKey,
    derive::{self, ControlKeys, MAC_OCTETS, Parties},
};

use super::window::{Tokens, Window};
use crate::key_handler::{
    KeyHandler,
    door::{Action, Note},
    limits,
    message::{self, Body, Envelope, Hello, Received, Sync, SyncChannel, Unread, Welcome},
    supply::{Chance, Purpose},
};

/// Both directions of the control link.
pub(in super::super) struct Link {
    pub(in super::super) boot: [u8; 16],
    calling: Option<Calling>,
    pub(in super::super) outward: Option<Outward>,
    inward: Option<Inward>,
    candidate: Option<Inward>,
    knocking: Option<Knocking>,
    tokens: Tokens,
    renewals: u32,
    hello_renewals: u32,
    sync_at_ns: u64,
    ahead_at_ns: u64,
    ahead_turn: usize,
    sync_turn: usize,
    pub(in super::super) heard_ns: Option<u64>,
    /// When the peer's address was last seen on the line, whatever it said.
    seen_ns: Option<u64>,
    stray_ns: Option<u64>,
    pub(in super::super) forged: u64,
    pub(in super::super) replayed: u64,
    pub(in super::super) malformed: u64,
}

/// A hello that waits for its welcome.
struct Calling {
    named: NamedKey,
    frame: Vec<u8>,
    next_ns: u64,
    since_ns: u64,
}

/// The association in which this node is the initiator.
pub(in super::super) struct Outward {
    keys: ControlKeys,
    target_boot: [u8; 16],
    counter: u64,
    window: Window,
    since_ns: u64,
}

/// An association in which this node is the target.
struct Inward {
    keys: ControlKeys,
    initiator_boot: [u8; 16],
    key_id: KeyId,
    hello_mac: [u8; MAC_OCTETS],
    welcome: Vec<u8>,
    counter: u64,
    window: Window,
    heard_ns: u64,
    sync_counter: u64,
}

/// A hello whose key is being fetched.
struct Knocking {
    frame: Vec<u8>,
    key_id: KeyId,
}

impl Link {
    pub(in super::super) fn new(boot: [u8; 16], token_ns: u64) -> Self {
        Self {
            boot,
            calling: None,
            outward: None,
            inward: None,
            candidate: None,
            knocking: None,
            tokens: Tokens::new(token_ns, limits::HELLO_TOKENS),
            renewals: 0,
            hello_renewals: 0,
            sync_at_ns: 0,
            ahead_at_ns: 0,
            ahead_turn: 0,
            sync_turn: 0,
            heard_ns: None,
            seen_ns: None,
            stray_ns: None,
            forged: 0,
            replayed: 0,
            malformed: 0,
        }
    }

    /// Forgets the peer, as a restart does; counters stay.
    pub(in super::super) fn restart(&mut self, boot: [u8; 16]) {
        let old = std::mem::replace(self, Self::new(boot, 0));
        self.tokens = old.tokens;
        self.forged = old.forged;
        self.replayed = old.replayed;
        self.malformed = old.malformed;
        self.heard_ns = old.heard_ns;
    }

    /// The next sync goes out at once.
    pub(in super::super) fn hurry(&mut self, now_ns: u64) {
        self.sync_at_ns = now_ns;
    }

    /// True while a hello waits for its welcome with this key.
    pub(in super::super) fn calls_with(&self, id: KeyId) -> bool {
        self.calling.as_ref().is_some_and(|c| c.named.id == id)
    }
}

impl KeyHandler {
    /// A frame came from the line.
    pub(in super::super) fn frame(&mut self, frame: &[u8], actions: &mut Vec<Action>) {
        let (own, peer) = (self.config.address, self.config.peer_address);
        let received = match Received::read(frame, own, peer) {
            Ok(received) => received,
            Err(Unread::Stranger) => return,
            Err(Unread::Malformed) => {
                self.link.malformed += 1;
                return;
            }
        };
        self.link.seen_ns = Some(self.now_ns);
        match &received.body {
            Body::Hello(hello) => self.hello(*hello, frame, &received, actions),
            Body::Welcome(welcome) => self.welcome(*welcome, &received, actions),
            Body::Announce(_) | Body::Sync(_) => self.heard_initiator(received, actions),
            Body::Ready(_) | Body::Refuse(_) => self.heard_target(received, actions),
        }
    }

    /// True while the present inward association speaks.
    fn listening(&self) -> bool {
        let silent_ns = self.config.timings.silent_ns;
        let fresh = |inward: &Inward| self.now_ns.saturating_sub(inward.heard_ns) < silent_ns;
        self.link.inward.as_ref().is_some_and(fresh)
    }

    fn hello(
        &mut self,
        hello: Hello,
        frame: &[u8],
        received: &Received<'_>,
        actions: &mut Vec<Action>,
    ) {
        let id = hello.key_id;
        let same = |inward: &&Inward| inward.key_id == id;
        if let Some(candidate) = self.link.candidate.as_ref().filter(same) {
            // Our welcome was lost: an honest copy is answered again, which costs no key.
            if candidate.hello_mac == *received.mac() {
                actions.push(Action::Send(candidate.welcome.clone()));
            } else {
                self.link.forged += 1;
            }
            return;
        }
        if self.link.inward.as_ref().filter(same).is_some() || self.spent.contains(id) {
            self.link.replayed += 1;
            return;
        }
        if self.listening() {
            self.link.forged += 1;
            return;
        }
        if self.ram.has_inbound(id) {
            return self.admit(hello, received, actions);
        }
        if self.link.knocking.is_some() || self.chance(id) != Chance::Ask {
            return;
        }
        if self.link.tokens.take(self.now_ns) {
            self.link.knocking = Some(Knocking {
                frame: frame.to_vec(),
                key_id: id,
            });
            self.ask_fetch(vec![id], Purpose::Now, actions);
        }
    }

    /// The key of a hello may have come.
    pub(in super::super) fn open_to_knocking(&mut self, actions: &mut Vec<Action>) {
        let Some(knocking) = self.link.knocking.take() else {
            return;
        };
        if self.ram.has_inbound(knocking.key_id) {
            let (own, peer) = (self.config.address, self.config.peer_address);
            if let Ok(received) = Received::read(&knocking.frame, own, peer)
                && let Body::Hello(hello) = received.body
                && !self.listening()
            {
                self.admit(hello, &received, actions);
            }
        } else if self.chance(knocking.key_id) == Chance::Wait && self.fetching(knocking.key_id) {
            self.link.knocking = Some(knocking);
        }
    }

    /// Verifies a hello under its own key, which is here, and makes its sender the candidate.
    fn admit(&mut self, hello: Hello, received: &Received<'_>, actions: &mut Vec<Action>) {
        let id = hello.key_id;
        let parties = Parties {
            initiator: &self.config.peer_sae_id,
            target: &self.config.sae_id,
        };
        let authentic = |key: &Key| received.authentic(&derive::hello(key, parties));
        if !self.ram.inbound(id).is_some_and(authentic) {
            // The key stays: an honest peer may still use it.
            self.link.forged += 1;
            return;
        }
        let Some(named) = self.ram.take_inbound(id) else {
            return;
        };
        self.spent.insert(id);
        self.ram.count_zeroised(1);
        let keys = derive::control(&named.key, parties, &hello.boot, &self.link.boot);
        let body = Body::Welcome(Welcome {
            initiator_boot: hello.boot,
            key_id: id,
            target_boot: self.link.boot,
        });
        let envelope = self.envelope(keys.tag, 0);
        let welcome = message::write(envelope, &body, &derive::welcome(&named.key, parties));
        actions.push(Action::Send(welcome.clone()));
        self.link.candidate = Some(Inward {
            keys,
            initiator_boot: hello.boot,
            key_id: id,
            hello_mac: *received.mac(),
            welcome,
            counter: 0,
            window: Window::default(),
            heard_ns: self.now_ns,
            sync_counter: 0,
        });
    }

    fn welcome(&mut self, welcome: Welcome, received: &Received<'_>, actions: &mut Vec<Action>) {
        let parties = Parties {
            initiator: &self.config.sae_id,
            target: &self.config.peer_sae_id,
        };
        let meant = |calling: &Calling| {
            calling.named.id == welcome.key_id && welcome.initiator_boot == self.link.boot
        };
        let Some(calling) = self.link.calling.take_if(|calling| meant(calling)) else {
            // Answers to copies of a hello that was answered already are honest.
            let known = self.link.outward.as_ref().map(|outward| outward.keys.tag);
            self.link.replayed += u64::from(known != Some(received.tag));
            return;
        };
        let key = &calling.named.key;
        let keys = derive::control(key, parties, &self.link.boot, &welcome.target_boot);
        if !received.authentic(&derive::welcome(key, parties)) || keys.tag != received.tag {
            self.link.forged += 1;
            self.link.calling = Some(calling);
            return;
        }
        self.ram.count_zeroised(1);
        self.heard();
        self.link.hello_renewals = 0;
        self.link.outward = Some(Outward {
            keys,
            target_boot: welcome.target_boot,
            counter: 0,
            window: Window::default(),
            since_ns: self.now_ns,
        });
        // At once, since only a message under the new keys makes the target listen to us.
        self.link.sync_at_ns = self.now_ns;
        actions.push(Action::Note(Note::PeerFound));
        self.dirty = true;
    }

    /// Announce or sync.
    fn heard_initiator(&mut self, received: Received<'_>, actions: &mut Vec<Action>) {
        let tag = |inward: &&mut Inward| inward.keys.tag == received.tag;
        let from_candidate = self.link.candidate.as_mut().filter(tag).is_some();
        let side = if from_candidate {
            &mut self.link.candidate
        } else {
            &mut self.link.inward
        };
        let Some(inward) = side.as_mut().filter(tag) else {
            // Without an association nothing can be told about it: the peer may still speak to the
            // start of this node before.
            self.link.forged += u64::from(self.link.inward.is_some());
            return;
        };
        if !received.authentic(&inward.keys.forward) {
            self.link.forged += 1;
            return;
        }
        if !inward.window.accept(received.counter) {
            self.link.replayed += 1;
            return;
        }
        inward.heard_ns = self.now_ns;
        let newest = received.counter > inward.sync_counter;
        if from_candidate {
            self.promote(actions);
        }
        self.heard();
        match received.body {
            Body::Announce(announce) => self.announced(&announce, actions),
            Body::Sync(sync) => {
                if newest {
                    if let Some(inward) = &mut self.link.inward {
                        inward.sync_counter = received.counter;
                    }
                    self.peer_hears(sync.hears, actions);
                }
                self.synced(&sync, actions);
            }
            _ => {}
        }
    }

    /// The candidate has shown that it is the peer, now.
    fn promote(&mut self, actions: &mut Vec<Action>) {
        let Some(candidate) = self.link.candidate.take() else {
            return;
        };
        let restarted = self.link.inward.is_some();
        let boot = candidate.initiator_boot;
        self.link.inward = Some(candidate);
        if restarted {
            actions.push(Action::Note(Note::PeerRestarted));
        }
        // Everything that the former start of the peer named or announced is void.
        self.forget_inbound(actions);
        let gone = self
            .ram
            .drop_inbound(|origin| origin == crate::key_handler::ram::Origin::Peer);
        gone.into_iter().for_each(|id| {
            self.spent.insert(id);
        });
        self.supply.forget_wanted();
        let outward = self.link.outward.as_ref();
        if outward.is_some_and(|outward| outward.target_boot != boot) {
            self.call_anew(actions);
        }
    }

    /// The peer's sync says which of our associations it listens to.
    fn peer_hears(&mut self, tag: [u8; 8], actions: &mut Vec<Action>) {
        let Some(outward) = &self.link.outward else {
            return;
        };
        if outward.keys.tag == tag {
            self.link.renewals = 0;
            return;
        }
        let patience_ns = self.config.timings.ready_timeout_ns << self.link.renewals.min(6);
        if self.now_ns.saturating_sub(outward.since_ns) > patience_ns {
            self.link.renewals += 1;
            self.call_anew(actions);
        }
    }

    /// The peer does not know us any more: all that it was to receive is void, and we say hello again.
    fn call_anew(&mut self, actions: &mut Vec<Action>) {
        self.link.outward = None;
        self.forget_outbound(actions);
        self.ram.drop_told();
        self.dirty = true;
    }

    /// Ready or refuse.
    fn heard_target(&mut self, received: Received<'_>, actions: &mut Vec<Action>) {
        let tag = |outward: &&mut Outward| outward.keys.tag == received.tag;
        let Some(outward) = self.link.outward.as_mut().filter(tag) else {
            self.link.forged += u64::from(self.link.outward.is_some());
            return;
        };
        if !received.authentic(&outward.keys.answer) {
            self.link.forged += 1;
            return;
        }
        if !outward.window.accept(received.counter) {
            self.link.replayed += 1;
            return;
        }
        self.heard();
        match received.body {
            Body::Ready(ready) => self.ready(&ready, actions),
            Body::Refuse(refuse) => self.refused(&refuse, actions),
            _ => {}
        }
    }

    fn heard(&mut self) {
        self.link.heard_ns = Some(self.now_ns);
    }

    fn envelope(&self, tag: [u8; 8], counter: u64) -> Envelope {
        Envelope {
            to: self.config.peer_address,
            from: self.config.address,
            tag,
            counter,
        }
    }

    /// Says something as initiator. Nothing is said while the peer does not know us.
    pub(in super::super) fn say(&mut self, body: &Body, actions: &mut Vec<Action>) {
        let (to, from) = (self.config.peer_address, self.config.address);
        if let Some(outward) = &mut self.link.outward {
            outward.counter += 1;
            let envelope = Envelope {
                to,
                from,
                tag: outward.keys.tag,
                counter: outward.counter,
            };
            let frame = message::write(envelope, body, &outward.keys.forward);
            actions.push(Action::Send(frame));
        }
    }

    /// Answers as target.
    pub(in super::super) fn answer(&mut self, body: &Body, actions: &mut Vec<Action>) {
        let (to, from) = (self.config.peer_address, self.config.address);
        if let Some(inward) = &mut self.link.inward {
            inward.counter += 1;
            let envelope = Envelope {
                to,
                from,
                tag: inward.keys.tag,
                counter: inward.counter,
            };
            let frame = message::write(envelope, body, &inward.keys.answer);
            actions.push(Action::Send(frame));
        }
    }

    /// Time for a hello or a sync?
    pub(in super::super) fn drive_link(&mut self, actions: &mut Vec<Action>) {
        if self.link.outward.is_some() {
            if self.now_ns >= self.link.sync_at_ns {
                self.sync(actions);
            }
        } else {
            self.call(actions);
        }
        self.link_alarms(actions);
    }

    fn call(&mut self, actions: &mut Vec<Action>) {
        let timings = self.config.timings;
        let patience_ns = timings.hello_renew_ns << self.link.hello_renewals.min(5);
        let seen_ns = self.link.seen_ns;
        let in_vain = |calling: &Calling| {
            // A peer that is there and does not answer may be unable to fetch this very key.
            self.now_ns.saturating_sub(calling.since_ns) > patience_ns
                && seen_ns.is_some_and(|seen_ns| seen_ns > calling.since_ns)
        };
        if self.link.calling.as_ref().is_some_and(in_vain)
            && self.ram.outbound_len() > 0
            && let Some(calling) = self.link.calling.take()
        {
            self.link.hello_renewals += 1;
            self.ram.count_zeroised(1);
            self.lose(calling.named.id, actions);
        }
        if self.link.calling.is_none() {
            let Some(named) = self.ram.pop_untold() else {
                return;
            };
            self.spent.insert(named.id);
            let parties = Parties {
                initiator: &self.config.sae_id,
                target: &self.config.peer_sae_id,
            };
            let body = Body::Hello(Hello {
                boot: self.link.boot,
                key_id: named.id,
            });
            let mac_key = derive::hello(&named.key, parties);
            let frame = message::write(self.envelope([0; 8], 0), &body, &mac_key);
            self.link.calling = Some(Calling {
                named,
                frame,
                next_ns: self.now_ns,
                since_ns: self.now_ns,
            });
        }
        if let Some(calling) = &mut self.link.calling
            && self.now_ns >= calling.next_ns
        {
            calling.next_ns = self.now_ns + timings.hello_retry_ns;
            actions.push(Action::Send(calling.frame.clone()));
        }
    }

    fn sync(&mut self, actions: &mut Vec<Action>) {
        let timings = self.config.timings;
        let pause_ns = if self.busy() {
            timings.sync_ns
        } else {
            timings.keepalive_ns
        };
        self.link.sync_at_ns = self.now_ns + pause_ns;
        let mut ahead = Vec::new();
        if self.now_ns >= self.link.ahead_at_ns {
            self.link.ahead_at_ns = self.now_ns + timings.keepalive_ns;
            if self.link.ahead_turn >= self.ram.outbound_len() {
                self.link.ahead_turn = 0;
            }
            ahead = self.ram.ahead(self.link.ahead_turn, limits::AHEAD_MAX);
            self.link.ahead_turn += limits::AHEAD_MAX;
        }
        let inward = self.link.inward.as_ref();
        let body = Body::Sync(Sync {
            hears: inward.map_or([0; 8], |inward| inward.keys.tag),
            channels: self.sync_channels(),
            ahead,
        });
        self.say(&body, actions);
    }

    /// The encoding SAs that the pipeline was seen to use, in turn if they do not fit one frame.
    fn sync_channels(&mut self) -> Vec<SyncChannel> {
        let all = self.channels.len();
        let most = all.min(limits::SYNC_CHANNELS_MAX);
        let start = self.link.sync_turn;
        self.link.sync_turn = if all == 0 { 0 } else { (start + most) % all };
        (0..most)
            .filter_map(|step| {
                let channel = &self.channels[(start + step) % all];
                let sa = channel.initiator.confirmed(self.now_ns)?;
                Some(SyncChannel {
                    channel: channel.number.number(),
                    an: sa.an,
                    suite: channel.suite_id(sa.suite),
                    change: sa.change,
                })
            })
            .collect()
    }

    fn link_alarms(&mut self, actions: &mut Vec<Action>) {
        let since_ns = self.link.heard_ns.unwrap_or(self.started_ns);
        if self.now_ns.saturating_sub(since_ns) >= self.config.timings.silent_alarm_ns {
            let peer = &self.config.peer_sae_id;
            let text = || format!("{peer} is not heard: is it running, is the line connected?");
            self.alarms
                .raise(AlarmKind::PeerSilent, None, self.now_ns, text, actions);
        } else if self.link.heard_ns.is_some() {
            self.alarms.clear(AlarmKind::PeerSilent, None, actions);
        }
        if let Some(stray_ns) = self.link.stray_ns
            && self.now_ns.saturating_sub(stray_ns) > limits::STRAY_NS
        {
            self.link.stray_ns = None;
            self.alarms.clear(AlarmKind::Mismatch, None, actions);
        }
    }

    /// The peer announced a channel that this node does not have.
    pub(in super::super) fn stray_channel(&mut self, channel: u16, actions: &mut Vec<Action>) {
        self.link.stray_ns = Some(self.now_ns);
        let peer = &self.config.peer_sae_id;
        let text = || {
            format!(
                "{peer} announces channel {channel}, which this node does not have: the two configurations differ"
            )
        };
        self.alarms
            .raise(AlarmKind::Mismatch, None, self.now_ns, text, actions);
    }

    /// When the link has something to do.
    pub(in super::super) fn link_wake_ns(&self) -> u64 {
        match (&self.link.outward, &self.link.calling) {
            (Some(_), _) => self.link.sync_at_ns,
            (None, Some(calling)) => calling.next_ns,
            (None, None) => self.now_ns + self.config.timings.hello_retry_ns,
        }
    }
}
