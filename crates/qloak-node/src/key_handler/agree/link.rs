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

mod hello;
mod sync;

use qloak_api::KeyId;
use qloak_keys::{
    NamedKey,
    derive::{ControlKeys, MAC_OCTETS},
};

use super::window::{Tokens, Window};
use crate::key_handler::{
    KeyHandler,
    door::{Action, Note},
    limits,
    message::{self, Body, Envelope, Received, Unread},
    ram::Origin,
};

/// Both directions of the control link.
pub(in crate::key_handler) struct Link {
    pub(in crate::key_handler) boot: [u8; 16],
    calling: Option<Calling>,
    pub(in crate::key_handler) outward: Option<Outward>,
    inward: Option<Inward>,
    candidate: Option<Inward>,
    knocking: Option<Knocking>,
    tokens: Tokens,
    renewals: u32,
    hello_renewals: u32,
    sync_at_ns: u64,
    sync_pause_ns: u64,
    ahead_at_ns: u64,
    ahead_turn: usize,
    sync_turn: usize,
    pub(in crate::key_handler) heard_ns: Option<u64>,
    /// When the peer's address was last seen on the line, whatever it said.
    seen_ns: Option<u64>,
    /// When an agreement frame last came that was not between the two configured addresses.
    stranger_ns: Option<u64>,
    stray_ns: Option<u64>,
    pub(in crate::key_handler) forged: u64,
    pub(in crate::key_handler) replayed: u64,
    pub(in crate::key_handler) malformed: u64,
}

/// A hello that waits for its welcome.
struct Calling {
    named: NamedKey,
    frame: Vec<u8>,
    next_ns: u64,
    since_ns: u64,
}

/// The association in which this node is the initiator.
pub(in crate::key_handler) struct Outward {
    keys: ControlKeys,
    target_boot: [u8; 16],
    counter: u64,
    window: Window,
    since_ns: u64,
    /// The target has shown that it listens: by an answer, or in its sync.
    confirmed: bool,
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
    pub(in crate::key_handler) fn new(boot: [u8; 16], token_ns: u64) -> Self {
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
            sync_pause_ns: 0,
            ahead_at_ns: 0,
            ahead_turn: 0,
            sync_turn: 0,
            heard_ns: None,
            seen_ns: None,
            stranger_ns: None,
            stray_ns: None,
            forged: 0,
            replayed: 0,
            malformed: 0,
        }
    }

    /// Forgets the peer, as a restart does; counters stay.
    pub(in crate::key_handler) fn restart(&mut self, boot: [u8; 16]) {
        let old = std::mem::replace(self, Self::new(boot, 0));
        self.tokens = old.tokens;
        self.forged = old.forged;
        self.replayed = old.replayed;
        self.malformed = old.malformed;
        self.heard_ns = old.heard_ns;
    }

    /// The next sync goes out at once, and copies soon after it: it has something new to tell.
    pub(in crate::key_handler) fn hurry(&mut self, now_ns: u64) {
        self.sync_at_ns = now_ns;
        self.sync_pause_ns = 0;
    }

    /// True while a hello waits for its welcome with this key.
    pub(in crate::key_handler) fn calls_with(&self, id: KeyId) -> bool {
        self.calling.as_ref().is_some_and(|c| c.named.id == id)
    }
}

impl KeyHandler {
    /// A frame came from the line.
    pub(in crate::key_handler) fn frame(&mut self, frame: &[u8], actions: &mut Vec<Action>) {
        let (own, peer) = (self.config.address, self.config.peer_address);
        let received = match Received::read(frame, own, peer) {
            Ok(received) => received,
            Err(Unread::Stranger) => {
                self.link.stranger_ns = Some(self.now_ns);
                return;
            }
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
        let gone = self.ram.drop_inbound(|origin| origin == Origin::Peer);
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
        let Some(outward) = &mut self.link.outward else {
            return;
        };
        if outward.keys.tag == tag {
            outward.confirmed = true;
            self.link.renewals = 0;
        } else {
            self.doubt(actions);
        }
    }

    /// The peer may listen to another association than we speak under, since its welcome crossed with
    /// our next hello. If that lasts, we say hello once more; later and later, since each costs a key.
    fn doubt(&mut self, actions: &mut Vec<Action>) {
        let Some(outward) = &self.link.outward else {
            return;
        };
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
        outward.confirmed = true;
        self.link.renewals = 0;
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
    pub(in crate::key_handler) fn say(&mut self, body: &Body, actions: &mut Vec<Action>) {
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
    pub(in crate::key_handler) fn answer(&mut self, body: &Body, actions: &mut Vec<Action>) {
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
    pub(in crate::key_handler) fn drive_link(&mut self, actions: &mut Vec<Action>) {
        if self.link.outward.as_ref().is_some_and(|o| !o.confirmed) {
            self.doubt(actions);
        }
        if self.link.outward.is_some() {
            if self.now_ns >= self.link.sync_at_ns {
                self.sync(actions);
            }
        } else {
            self.call(actions);
        }
        self.link_alarms(actions);
    }

    /// When the link has something to do.
    pub(in crate::key_handler) fn link_wake_ns(&self) -> u64 {
        match (&self.link.outward, &self.link.calling) {
            (Some(_), _) => self.link.sync_at_ns,
            (None, Some(calling)) => calling.next_ns,
            (None, None) => self.now_ns + self.config.timings.hello_retry_ns,
        }
    }
}
