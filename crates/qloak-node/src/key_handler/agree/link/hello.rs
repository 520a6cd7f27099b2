//! First contact: a hello of ours, and what becomes of one of the peer's.
//!
//! A stranger's hello is weighed before it may cost anything: a copy of a known one gets the same
//! answer, nobody is admitted while the present peer speaks, a spent key is a replay, and only a token
//! buys a request to the KME.

use qloak_keys::{
    Key,
    derive::{self, Parties},
};

use super::{Calling, Inward, Knocking, Outward, Window};
use crate::key_handler::{
    KeyHandler,
    door::{Action, Note},
    message::{self, Body, Hello, Received, Welcome},
    supply::{Chance, Purpose},
};

impl KeyHandler {
    /// True while the present inward association speaks.
    pub(super) fn listening(&self) -> bool {
        let silent_ns = self.config.timings.silent_ns;
        let fresh = |inward: &Inward| self.now_ns.saturating_sub(inward.heard_ns) < silent_ns;
        self.link.inward.as_ref().is_some_and(fresh)
    }

    pub(super) fn hello(
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
    pub(in crate::key_handler) fn open_to_knocking(&mut self, actions: &mut Vec<Action>) {
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

    pub(super) fn welcome(
        &mut self,
        welcome: Welcome,
        received: &Received<'_>,
        actions: &mut Vec<Action>,
    ) {
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
            confirmed: false,
        });
        // At once, since only a message under the new keys makes the target listen to us.
        self.link.sync_at_ns = self.now_ns;
        actions.push(Action::Note(Note::PeerFound));
        self.dirty = true;
    }

    pub(super) fn call(&mut self, actions: &mut Vec<Action>) {
        let timings = self.config.timings;
        let patience_ns =
            timings.hello_renew_ns << self.link.hello_renewals.saturating_sub(3).min(5);
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
}
