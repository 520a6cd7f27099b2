//! The key handler: it agrees keys with the far node, keeps them ready, and says when an SA changes.
//!
//! It lies on the way of a key, between the KME and the SecY. Its core is a pure state machine: events
//! and the time go in, actions come out; frames, HTTP, threads and the clock are the driver's. Each
//! direction of each channel is agreed for itself, by an initiator at its sender and a target at its
//! receiver, under one control link (`agree/link.rs`).
//!
//! ```text
//! initiator      | event                          | what it does                         | next
//! ---------------+--------------------------------+--------------------------------------+---------
//! no SA, SA due, | link up, key in RAM            | take the key, announce               | announced
//! suite or rekey |                                |                                      |
//!   asked for    |                                |                                      |
//! announced      | 20 ms (late: 100 ms)           | announce again                       | same
//! announced      | ready, proof good              | install, encode, retire the old SA   | encoding
//! announced      | ready, proof wrong             | give the key up, alarm mismatch      | as before
//! announced      | refuse: key unknown            | give the key up                      | as before
//! announced      | refuse: suite, carriage, ...   | key back, alarm, wait 1 s            | as before
//! announced      | 500 ms                         | alarm no-ready; the old SA goes on   | same
//! announced,late | another suite is wanted        | give the key up                      | as before
//! any            | frames, octets, time: share    | the SA is due                        | SA due
//! any            | frames, octets, time: whole    | close, retire, alarm channel-closed  | no SA
//! refused        | an earlier suite is wanted     | rekey: a success ends the alarms     | announced
//! any            | the peer restarted             | close, retire, give up, say hello    | no SA
//!
//! target         | event                          | what it does                         | next
//! ---------------+--------------------------------+--------------------------------------+---------
//! any            | announce answered before       | the same answer again                | same
//! any            | announce, unwanted             | refuse, alarm mismatch               | same
//! any            | announce, AN still draining    | keep it                              | waiting
//! any            | announce, key not here         | fetch the key                        | waiting
//! any, waiting   | announce, key here             | install, ready with proof            | accepting
//! waiting        | the key will never come        | refuse: key unknown                  | as before
//! accepting      | a valid frame, a sync or an    | older SAs drain (100 ms), then       | accepting
//!                |   announce says it encodes     |   retire                             |
//! any            | the peer restarted             | retire all                           | no SA
//! ```
//!
//! What always holds: a key serves one SA or none; an SA encodes only after its target has proved that
//! it accepts it; a message that is not authentic changes nothing but a counter while the link is
//! alive; no message is needed twice, and none that is lost is missed for good. The bytes stand in
//! `message.rs`, the story in docs/key-agreement.md.

mod agree;
mod alarms;
mod commands;
pub mod door;
pub(crate) mod drive;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod message;
pub(crate) mod peers;
pub(crate) mod plane;
mod ram;
pub(crate) mod source;
mod supply;

use std::collections::HashMap;

use qloak_api::{
    Carriage, ChannelNumber, KeyId, SuiteId,
    manage::{AlarmKind, ChannelStatus, KeyHandlerState},
};
use qloak_cipher::suite::Suite;

use self::{
    agree::{Initiator, Link, Target},
    alarms::Alarms,
    ram::{KeyRam, Spent},
    supply::Supply,
};

pub use door::{
    Action, AgreeChannel, AgreeState, AgreedSa, ChannelAgreement, Command, Event, KeyHandlerConfig,
    Note, Refusal, SourceFailure, Timings,
};

/// The key handler of one link.
pub struct KeyHandler {
    config: KeyHandlerConfig,
    now_ns: u64,
    started_ns: u64,
    wake_ns: u64,
    started: bool,
    /// Something happened that may let another part go on.
    dirty: bool,
    channels: Vec<Channel>,
    by_number: HashMap<u16, usize>,
    ram: KeyRam,
    spent: Spent,
    supply: Supply,
    link: Link,
    alarms: Alarms,
}

/// A channel: an SC each way.
struct Channel {
    number: ChannelNumber,
    xpn: bool,
    carriage: Carriage,
    initiator: Initiator,
    target: Target,
}

impl Channel {
    /// The identifier of a suite in the form of the channel's PNs.
    fn suite_id(&self, suite: &Suite) -> SuiteId {
        SuiteId(match suite.id_pn32 {
            Some(id) if !self.xpn => id,
            _ => suite.id,
        })
    }
}

impl KeyHandler {
    /// A key handler that knows nobody yet. Its first act is to ask the KME for keys.
    ///
    /// # Errors
    /// The configuration contradicts itself; see [`Refusal`].
    pub fn new(config: KeyHandlerConfig) -> Result<Self, Refusal> {
        if !limits::RAM_SLOTS.contains(&config.ram_slots) {
            return Err(Refusal::Slots(config.ram_slots));
        }
        if !limits::KEYS_PER_REQUEST.contains(&config.keys_per_request) {
            return Err(Refusal::Count {
                given: config.keys_per_request as usize,
                allowed: *limits::KEYS_PER_REQUEST.end() as usize,
            });
        }
        let mut handler = Self {
            now_ns: 0,
            started_ns: 0,
            wake_ns: 0,
            started: false,
            dirty: true,
            channels: Vec::new(),
            by_number: HashMap::new(),
            ram: KeyRam::new(config.ram_slots),
            spent: Spent::default(),
            supply: Supply::default(),
            link: Link::new(config.boot, config.timings.hello_token_ns),
            alarms: Alarms::default(),
            config,
        };
        for channel in handler.config.channels.clone() {
            let (number, xpn) = (channel.number, channel.xpn);
            handler.check_suite(channel.suite, xpn, number)?;
            commands::check_limits(&channel.limits)?;
            let at = handler.channels.len();
            if handler.by_number.insert(number.number(), at).is_some() {
                return Err(Refusal::DoubleChannel(number));
            }
            handler.channels.push(Channel {
                number,
                xpn,
                carriage: channel.carriage,
                initiator: Initiator::new(channel.suite, channel.limits),
                target: Target::default(),
            });
        }
        Ok(handler)
    }

    /// Takes in one event; what is to be done is appended to `actions`, in order.
    /// `now_ns` is the driver's clock; it never runs backwards.
    pub fn handle(&mut self, now_ns: u64, event: Event<'_>, actions: &mut Vec<Action>) {
        self.advance(now_ns);
        match event {
            Event::Tick => {}
            Event::Frame(frame) => self.frame(frame, actions),
            Event::Taken { request, result } => {
                self.taken(request, result, actions);
                self.dirty = true;
            }
            Event::Fetched { request, result } => {
                self.fetched(request, result, actions);
                self.dirty = true;
            }
            Event::Usage {
                channel,
                an,
                frames,
                octets,
            } => self.usage(channel, an, frames, octets),
            Event::Heard { channel, an } => self.heard_under(channel, an),
            Event::Command(command) => {
                if let Err(refusal) = self.order(command, actions) {
                    actions.push(Action::Note(Note::Refused(refusal)));
                }
            }
        }
        self.proceed(actions);
    }

    /// Carries out a command, or says why not.
    ///
    /// # Errors
    /// See [`Refusal`]; nothing has changed then.
    pub fn command(
        &mut self,
        now_ns: u64,
        command: Command,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        self.advance(now_ns);
        let outcome = self.order(command, actions);
        self.proceed(actions);
        outcome
    }

    /// When [`Event::Tick`] is due, on the clock of the events.
    pub fn next_wake_ns(&self) -> u64 {
        self.wake_ns
    }

    fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.started {
            self.started = true;
            self.started_ns = self.now_ns;
        }
    }

    /// Everything that time, or what has just happened, makes due.
    fn proceed(&mut self, actions: &mut Vec<Action>) {
        if !self.dirty && self.now_ns < self.wake_ns {
            return;
        }
        // One round can let an earlier part go on: a switch frees a key's place, a lost key wants
        // another. Two rounds are the longest chain; the next wake would take care of more.
        for _ in 0..3 {
            self.dirty = false;
            self.open_to_knocking(actions);
            for at in 0..self.channels.len() {
                self.drive_target(at, actions);
                self.drive_initiator(at, actions);
                self.hazmat_alarm(at, actions);
            }
            self.drive_link(actions);
            self.drive_supply(actions);
            if !self.dirty {
                break;
            }
        }
        let idle_ns = self.now_ns + self.config.timings.keepalive_ns;
        let mut wake_ns = idle_ns.min(self.link_wake_ns()).min(self.supply_wake_ns());
        for channel in &self.channels {
            wake_ns = wake_ns
                .min(channel.initiator.wake_ns(self.now_ns))
                .min(channel.target.wake_ns());
        }
        self.wake_ns = wake_ns;
    }

    fn channel_at(&self, number: u16) -> Option<usize> {
        self.by_number.get(&number).copied()
    }

    fn offers(&self, suite: &Suite) -> bool {
        self.config
            .offered
            .iter()
            .any(|offered| offered.id == suite.id)
    }

    /// True for a key that is announced now, of a channel or of the link.
    fn in_change(&self, id: KeyId) -> bool {
        let mut initiators = self.channels.iter().map(|channel| &channel.initiator);
        self.link.calls_with(id) || initiators.any(|initiator| initiator.changes_with(id))
    }

    fn hazmat_alarm(&mut self, at: usize, actions: &mut Vec<Action>) {
        let channel = &self.channels[at];
        let outbound = channel.initiator.encoding.iter().map(|sa| sa.suite);
        let mut suites = outbound.chain(channel.target.sas.iter().map(|sa| sa.suite));
        let number = Some(channel.number);
        match suites.find(|suite| suite.hazmat) {
            Some(suite) => {
                let text = || format!("{} does not authenticate: frames can be forged", suite.name);
                self.alarms
                    .raise(AlarmKind::Hazmat, number, self.now_ns, text, actions);
            }
            None => self.alarms.clear(AlarmKind::Hazmat, number, actions),
        }
    }

    /// The state at this time, for people and the controller.
    pub fn state(&self, now_ns: u64) -> AgreeState {
        let since_ns = self.link.heard_ns.map(|ns| now_ns.saturating_sub(ns));
        AgreeState {
            key_handler: KeyHandlerState {
                ram_slots: self.ram.slots(),
                outbound_keys: count(self.ram.outbound_len()),
                inbound_keys: count(self.ram.inbound_len()),
                kme_reachable: self.supply.reachable,
                peer_alive: since_ns.is_some_and(|ns| ns < self.config.timings.silent_alarm_ns),
                kme_requests: self.supply.requests,
                kme_failures: self.supply.failures,
                forged: self.link.forged,
                replayed: self.link.replayed,
                zeroised: self.ram.zeroised(),
            },
            alarms: self.alarms.list(now_ns),
            channels: self.channels.iter().map(|c| c.shown(now_ns)).collect(),
            malformed: self.link.malformed,
        }
    }
}

impl Channel {
    fn shown(&self, now_ns: u64) -> ChannelAgreement {
        let age_s = |since_ns: u64| now_ns.saturating_sub(since_ns) / 1_000_000_000;
        let encoding = self.initiator.encoding.map(|sa| AgreedSa {
            an: sa.an,
            suite: sa.suite,
            key_id: sa.key_id,
            age_s: age_s(sa.since_ns),
        });
        let accepted = self.target.sas.iter().map(|sa| AgreedSa {
            an: sa.an,
            suite: sa.suite,
            key_id: sa.key_id,
            age_s: age_s(sa.since_ns),
        });
        let accepted: Vec<AgreedSa> = accepted.collect();
        ChannelAgreement {
            number: self.number,
            status: match (&encoding, accepted.is_empty()) {
                _ if self.initiator.closed => ChannelStatus::Closed,
                (Some(_), false) => ChannelStatus::Open,
                _ => ChannelStatus::Starting,
            },
            suite_intended: self.initiator.suite,
            limits: self.initiator.limits,
            encoding,
            accepted,
            changing: self.initiator.changing(),
            rekeys: self.initiator.rekeys,
            last_suite_change_ms: self
                .initiator
                .last_suite_change_ns
                .map(|ns| ns as f64 / 1_000_000.0),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
