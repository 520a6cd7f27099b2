//! Asking the KME: which requests are under way, what failed, when to try again.
//!
//! Outbound keys are taken ahead until enough wait; inbound keys are fetched as the peer names them.
//! What always holds: a key ID that was delivered, used or finally refused is never asked for again; a
//! failure is followed by a pause that doubles; a request without an answer is given up in time.

use std::collections::{HashMap, VecDeque};

use qloak_api::{KeyId, manage::AlarmKind};
use qloak_keys::NamedKey;

use super::{
    Channel, KeyHandler,
    door::{Action, Note, SourceFailure},
    limits,
    ram::Origin,
};

/// Requests and what is known of the KME.
#[derive(Default)]
pub(super) struct Supply {
    last_request: u64,
    open: Vec<Request>,
    /// When keys were last asked for.
    asked_ns: Option<u64>,
    take: Pause,
    fetch: Pause,
    /// Keys ahead that the peer named, in its order.
    wanted: VecDeque<KeyId>,
    records: HashMap<KeyId, Record>,
    pub(super) reachable: bool,
    pub(super) requests: u64,
    pub(super) failures: u64,
}

struct Request {
    number: u64,
    asked: Asked,
    deadline_ns: u64,
}

enum Asked {
    Take { count: usize },
    Fetch { ids: Vec<KeyId>, purpose: Purpose },
}

/// What a fetched key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The peer will announce it some time.
    Ahead,
    /// The peer announced it, or says hello with it: it is waited for.
    Now,
    /// The operator wants it here.
    Operator,
}

/// What is known of a key ID that was asked for and has not come.
#[derive(Default)]
struct Record {
    attempts: u32,
    not_before_ns: u64,
    open: bool,
}

/// Failures in a row, and until when to wait.
#[derive(Default)]
struct Pause {
    failures: u32,
    until_ns: u64,
}

/// What can be done about a key ID now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chance {
    /// It may be asked for.
    Ask,
    /// It is asked for, or it is too early to ask again.
    Wait,
    /// It will never come.
    Never,
}

impl Supply {
    /// Forgets what is under way and what failed; answers that still come are zeroised.
    pub(super) fn reset(&mut self) {
        self.open.clear();
        self.wanted.clear();
        self.records.clear();
        self.take = Pause::default();
        self.fetch = Pause::default();
    }

    /// Forgets which keys the peer named.
    pub(super) fn forget_wanted(&mut self) {
        self.wanted.clear();
        self.records.retain(|_, record| record.open);
    }

    /// What failed long ago is forgotten, so that neither a forger's key IDs nor keys that the peer gave
    /// up can fill the records for good.
    fn forget_stale(&mut self, now_ns: u64) {
        if self.records.len() > limits::RECORDS_KEPT {
            self.records.retain(|_, record| {
                record.open || now_ns < record.not_before_ns.saturating_add(limits::RECORD_STALE_NS)
            });
        }
    }

    fn request(&mut self, asked: Asked, deadline_ns: u64) -> u64 {
        self.last_request += 1;
        self.requests += 1;
        self.open.push(Request {
            number: self.last_request,
            asked,
            deadline_ns,
        });
        self.last_request
    }

    fn close(&mut self, number: u64) -> Option<Asked> {
        let at = self.open.iter().position(|open| open.number == number)?;
        Some(self.open.swap_remove(at).asked)
    }

    fn coming(&self) -> usize {
        let count = |request: &Request| match request.asked {
            Asked::Take { count } => count,
            Asked::Fetch { .. } => 0,
        };
        self.open.iter().map(count).sum()
    }

    fn prefetches(&self) -> usize {
        let ahead = |request: &&Request| {
            matches!(
                request.asked,
                Asked::Fetch {
                    purpose: Purpose::Ahead,
                    ..
                }
            )
        };
        self.open.iter().filter(ahead).count()
    }
}

impl Pause {
    fn failed(&mut self, now_ns: u64, first_ns: u64, most_ns: u64) {
        let doubled = first_ns.saturating_mul(1 << self.failures.min(20));
        self.until_ns = now_ns + doubled.min(most_ns);
        self.failures = self.failures.saturating_add(1);
    }
}

impl KeyHandler {
    /// Takes keys ahead, fetches keys that the peer named, gives up what was never answered.
    pub(super) fn drive_supply(&mut self, actions: &mut Vec<Action>) {
        let now_ns = self.now_ns;
        let late = |request: &Request| request.deadline_ns <= now_ns;
        while let Some(request) = self.supply.open.iter().find(|r| late(r)) {
            let number = request.number;
            let failure = || SourceFailure::Unreachable("no answer in time".to_owned());
            match request.asked {
                Asked::Take { .. } => self.taken(number, Err(failure()), actions),
                Asked::Fetch { .. } => self.fetched(number, Err(failure()), actions),
            }
        }
        self.supply.forget_stale(now_ns);
        let coming = self.ram.outbound_len() + self.supply.coming();
        let (fill, at_once) = (self.fill(), self.config.keys_per_request as usize);
        let missing = fill.saturating_sub(coming);
        // Not a request for each key that goes: a quarter of those kept ready may, or a little time.
        let many = missing >= at_once.min((fill / 4).max(1));
        let asked_ns = self.supply.asked_ns;
        let late = asked_ns.is_none_or(|ns| now_ns.saturating_sub(ns) >= limits::TAKE_PAUSE_NS);
        if missing > 0 && (many || late) && now_ns >= self.supply.take.until_ns {
            // One request while the KME fails, several side by side while it serves.
            if self.supply.take.failures == 0 || self.supply.coming() == 0 {
                self.ask_take(missing.min(at_once), actions);
            }
        }
        self.prefetch(actions);
    }

    /// Asks for new keys.
    pub(super) fn ask_take(&mut self, count: usize, actions: &mut Vec<Action>) {
        self.supply.asked_ns = Some(self.now_ns);
        let deadline_ns = self.now_ns + self.config.timings.kme_timeout_ns;
        let request = self.supply.request(Asked::Take { count }, deadline_ns);
        // `count` is bounded by KEYS_PER_REQUEST.
        let count = count as u32;
        actions.push(Action::Take { request, count });
    }

    fn prefetch(&mut self, actions: &mut Vec<Action>) {
        let at_once = self.config.keys_per_request as usize;
        while !self.supply.wanted.is_empty()
            && self.now_ns >= self.supply.fetch.until_ns
            && self.supply.prefetches() < limits::PREFETCHES_MAX
        {
            let mut ids = Vec::new();
            while ids.len() < at_once {
                let Some(id) = self.supply.wanted.pop_front() else {
                    break;
                };
                if !self.ram.has_inbound(id) && self.chance(id) == Chance::Ask {
                    ids.push(id);
                }
            }
            if !ids.is_empty() {
                self.ask_fetch(ids, Purpose::Ahead, actions);
            }
        }
    }

    /// The peer named keys that it will use. Returns up to four of them that can never come.
    pub(super) fn named_ahead(&mut self, ids: &[KeyId]) -> Vec<KeyId> {
        let mut never = Vec::new();
        let open = self.supply.records.values().filter(|record| record.open);
        let coming = open.count();
        for &id in ids {
            if self.ram.mention_inbound(id, self.now_ns) {
                continue;
            }
            match self.chance(id) {
                Chance::Never if never.len() < 4 => never.push(id),
                Chance::Ask => {
                    let full = self.supply.wanted.len() >= limits::WANTED_MAX
                        || self.ram.inbound_room() <= self.supply.wanted.len() + coming;
                    if (!full || self.make_room()) && !self.supply.wanted.contains(&id) {
                        self.supply.wanted.push_back(id);
                    }
                }
                _ => {}
            }
        }
        never
    }

    fn make_room(&mut self) -> bool {
        match self.ram.evict(self.now_ns) {
            Some(gone) => self.spent.insert(gone),
            None => false,
        }
    }

    /// Whether a key ID that is not here may be asked for.
    pub(super) fn chance(&self, id: KeyId) -> Chance {
        if self.spent.contains(id) {
            return Chance::Never;
        }
        match self.supply.records.get(&id) {
            Some(record) if record.open || self.now_ns < record.not_before_ns => Chance::Wait,
            None if self.supply.records.len() >= limits::WANTED_MAX => Chance::Wait,
            _ => Chance::Ask,
        }
    }

    /// True while the KME is asked for this key.
    pub(super) fn fetching(&self, id: KeyId) -> bool {
        self.supply
            .records
            .get(&id)
            .is_some_and(|record| record.open)
    }

    /// Asks for keys by name. Whether it may is the caller's to know ([`Self::chance`]).
    pub(super) fn ask_fetch(
        &mut self,
        ids: Vec<KeyId>,
        purpose: Purpose,
        actions: &mut Vec<Action>,
    ) -> u64 {
        for &id in &ids {
            self.supply.records.entry(id).or_default().open = true;
        }
        let deadline_ns = self.now_ns + self.config.timings.kme_timeout_ns;
        let key_ids = ids.clone();
        let request = self
            .supply
            .request(Asked::Fetch { ids, purpose }, deadline_ns);
        actions.push(Action::Fetch { request, key_ids });
        request
    }

    /// The KME answered a taking.
    pub(super) fn taken(
        &mut self,
        request: u64,
        result: Result<Vec<NamedKey>, SourceFailure>,
        actions: &mut Vec<Action>,
    ) {
        let known = self.supply.close(request).is_some();
        let keys = match result {
            Ok(keys) if !known => {
                // Given up as lost: nobody waits for these any more.
                self.ram.count_zeroised(keys.len() as u64);
                return;
            }
            Ok(keys) => keys,
            Err(failure) => {
                if known {
                    self.take_failed(&failure, actions);
                }
                return;
            }
        };
        let mut good = 0;
        for named in keys {
            let id = named.id;
            // One name must never serve two SAs, whatever a KME does.
            let again = self.spent.contains(id)
                || self.ram.has_outbound(id)
                || self.ram.has_inbound(id)
                || self.in_change(id);
            if again || named.key.octets() < limits::KEY_OCTETS_MIN {
                self.ram.count_zeroised(1);
            } else if self.ram.push_outbound(named) {
                good += 1;
            }
        }
        if good == 0 {
            let words = "it gave no key that was new and had at least 256 bits".to_owned();
            return self.take_failed(&SourceFailure::Nonsense(words), actions);
        }
        self.supply.reachable = true;
        self.supply.take = Pause::default();
        self.supply_clear(actions);
        // The peer is told of them, so that it fetches them in time.
        self.link.hurry(self.now_ns);
    }

    /// True while enough outbound keys wait that a KME with none to spare is nobody's concern.
    fn fair_share_waits(&self) -> bool {
        let share = (self.fill() / 4).clamp(1, limits::FAIR_SHARE_MAX);
        self.ram.outbound_len() >= share
    }

    /// Outbound keys that are kept ready.
    fn fill(&self) -> usize {
        (self.config.fill_keys as usize).min(self.ram.slots() as usize / 2)
    }

    fn take_failed(&mut self, failure: &SourceFailure, actions: &mut Vec<Action>) {
        let timings = self.config.timings;
        self.supply
            .take
            .failed(self.now_ns, timings.kme_retry_ns, timings.kme_retry_max_ns);
        self.kme_failed(failure);
        if matches!(failure, SourceFailure::Empty(_)) && self.fair_share_waits() {
            // The KME makes keys more slowly than we ask for them: that is how filling goes.
            if self.supply.fetch.failures == 0 {
                self.alarms.clear(AlarmKind::KeySupply, None, actions);
            }
        } else if self.supply.take.failures >= 2 {
            self.supply_alarm(failure, actions);
        }
    }

    /// The KME answered a fetching.
    pub(super) fn fetched(
        &mut self,
        request: u64,
        result: Result<Vec<NamedKey>, SourceFailure>,
        actions: &mut Vec<Action>,
    ) {
        let Some(Asked::Fetch { ids, purpose }) = self.supply.close(request) else {
            let keys = result.map_or(0, |keys| keys.len());
            self.ram.count_zeroised(keys as u64);
            return;
        };
        for id in &ids {
            if let Some(record) = self.supply.records.get_mut(id) {
                record.open = false;
            }
        }
        match result {
            Ok(keys) => {
                self.supply.reachable = true;
                self.supply.fetch = Pause::default();
                self.supply_clear(actions);
                self.keep_fetched(keys, &ids, purpose);
                for id in ids {
                    if !self.ram.has_inbound(id) && !self.spent.contains(id) {
                        self.not_known(id);
                    }
                }
            }
            Err(SourceFailure::Refused(_)) if ids.len() > 1 => {
                // One unknown key spoils a whole request (014, 6.5): ask for each alone.
                self.supply.reachable = true;
                for id in ids {
                    self.ask_fetch(vec![id], purpose, actions);
                }
            }
            Err(failure @ SourceFailure::Refused(_)) => {
                self.kme_failed(&failure);
                ids.into_iter().for_each(|id| self.not_known(id));
            }
            Err(failure) => {
                let timings = self.config.timings;
                let (first, most) = (timings.kme_retry_ns, timings.kme_retry_max_ns);
                self.supply.fetch.failed(self.now_ns, first, most);
                self.kme_failed(&failure);
                let not_before_ns = self.supply.fetch.until_ns;
                for id in ids {
                    self.supply.records.entry(id).or_default().not_before_ns = not_before_ns;
                }
                if self.supply.fetch.failures >= 2 {
                    self.supply_alarm(&failure, actions);
                }
            }
        }
    }

    fn keep_fetched(&mut self, keys: Vec<NamedKey>, asked: &[KeyId], purpose: Purpose) {
        let origin = match purpose {
            Purpose::Operator => Origin::Operator,
            Purpose::Ahead | Purpose::Now => Origin::Peer,
        };
        let awaited = purpose == Purpose::Now;
        for named in keys {
            let id = named.id;
            self.supply.records.remove(&id);
            let double = self.ram.has_inbound(id) || self.spent.contains(id);
            if !asked.contains(&id) || double {
                self.ram.count_zeroised(1);
            } else if named.key.octets() < limits::KEY_OCTETS_MIN {
                self.ram.count_zeroised(1);
                self.spent.insert(id);
            } else if let Some(gone) = self.ram.push_inbound(named, origin, awaited, self.now_ns) {
                self.spent.insert(gone);
            }
        }
    }

    /// The KME does not know the key. Its peer may be a moment ahead of it, so it is asked a few times.
    fn not_known(&mut self, id: KeyId) {
        let pause_ns = self.config.timings.kme_retry_ns / 2;
        let record = self.supply.records.entry(id).or_default();
        record.attempts += 1;
        record.not_before_ns = self.now_ns + (pause_ns << record.attempts.min(8)) / 2;
        if record.attempts >= limits::FETCH_ATTEMPTS_MAX {
            self.supply.records.remove(&id);
            self.spent.insert(id);
        }
    }

    fn kme_failed(&mut self, failure: &SourceFailure) {
        self.supply.failures += 1;
        self.supply.reachable = !matches!(failure, SourceFailure::Unreachable(_));
    }

    fn supply_alarm(&mut self, failure: &SourceFailure, actions: &mut Vec<Action>) {
        let waiting = self.ram.outbound_len();
        let encodes = |channel: &Channel| channel.initiator.encoding.is_some();
        let then = if self.channels.iter().any(encodes) {
            "are left, then channels close"
        } else {
            "wait; no channel has an SA yet"
        };
        let text = || format!("{failure}; {waiting} outbound keys {then}");
        self.alarms
            .raise(AlarmKind::KeySupply, None, self.now_ns, text, actions);
    }

    fn supply_clear(&mut self, actions: &mut Vec<Action>) {
        if self.supply.take.failures == 0 && self.supply.fetch.failures == 0 {
            self.alarms.clear(AlarmKind::KeySupply, None, actions);
        }
    }

    /// A key is given up for good.
    pub(super) fn lose(&mut self, key_id: KeyId, actions: &mut Vec<Action>) {
        self.spent.insert(key_id);
        actions.push(Action::Note(Note::KeyLost { key_id }));
    }

    /// When the supply has something to do.
    pub(super) fn supply_wake_ns(&self) -> u64 {
        let deadlines = self.supply.open.iter().map(|request| request.deadline_ns);
        let first = deadlines.min().unwrap_or(u64::MAX);
        let mut wake = first;
        for pause in [&self.supply.take, &self.supply.fetch] {
            if pause.until_ns > self.now_ns {
                wake = wake.min(pause.until_ns);
            }
        }
        wake
    }
}
