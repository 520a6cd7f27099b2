//! A pair of KMEs joined by a QKD link: equal keys at both ends, each delivered once.
//!
//! Side `taker` asks for new keys; only the other side can fetch them by name, once, and not before its
//! KME has heard of them. An outage answers nothing; a lost reply has delivered and says nothing.

use std::collections::HashMap;

use qloak_api::KeyId;
use qloak_keys::{Key, NamedKey};
use qloak_node::key_handler::SourceFailure;

use crate::{Random, Side};

/// Both KMEs.
#[derive(Default)]
pub struct Kme {
    keys: HashMap<KeyId, Stored>,
    last: u64,
    /// No answer on this side while true.
    pub outage: [bool; 2],
    /// The other side's KME learns of a taken key after this long.
    pub behind_ns: u64,
    /// A request is carried out and its reply is lost, with this probability.
    pub lost_replies: f64,
    /// A fault of the KMEs: the far end gets another key under the same name.
    pub differs: bool,
    /// Keys delivered to takers, by side.
    pub taken: [u64; 2],
    /// Requests to fetch, by side.
    pub fetches: [u64; 2],
}

struct Stored {
    key: Key,
    taker: Side,
    known_ns: u64,
}

/// What a KME answers.
pub type Answer = Result<Vec<NamedKey>, SourceFailure>;

impl Kme {
    /// New keys for the SAE at `side`.
    pub fn take(&mut self, side: Side, count: u32, now_ns: u64, random: &mut Random) -> Answer {
        self.reachable(side)?;
        let mut keys = Vec::new();
        for _ in 0..count {
            self.last += 1;
            let mut octets = [0; 32];
            random.fill(&mut octets);
            let mut name = [0; 16];
            random.fill(&mut name[..8]);
            name[8..].copy_from_slice(&self.last.to_be_bytes());
            let (id, key) = (KeyId(name), key_of(&octets));
            keys.push(NamedKey {
                id,
                key: key.duplicate(),
            });
            let far = if self.differs { key_of(&[0; 32]) } else { key };
            let stored = Stored {
                key: far,
                taker: side,
                known_ns: now_ns + self.behind_ns,
            };
            self.keys.insert(id, stored);
        }
        self.taken[side.index()] += u64::from(count);
        self.reply(keys, random)
    }

    /// The keys of these names for the SAE at `side`, if the other side took them.
    pub fn fetch(&mut self, side: Side, ids: &[KeyId], now_ns: u64, random: &mut Random) -> Answer {
        self.fetches[side.index()] += 1;
        self.reachable(side)?;
        let there = |id: &KeyId| {
            self.keys
                .get(id)
                .is_some_and(|key| key.taker == side.other() && key.known_ns <= now_ns)
        };
        if !ids.iter().all(there) {
            let words = "one or more keys specified are not found on KME";
            return Err(SourceFailure::Refused(words.to_owned()));
        }
        let deliver = |id: &KeyId| {
            let stored = self.keys.remove(id)?;
            Some(NamedKey {
                id: *id,
                key: stored.key,
            })
        };
        let keys = ids.iter().filter_map(deliver).collect();
        self.reply(keys, random)
    }

    fn reachable(&self, side: Side) -> Result<(), SourceFailure> {
        if self.outage[side.index()] {
            return Err(SourceFailure::Unreachable(
                "the simulation says so".to_owned(),
            ));
        }
        Ok(())
    }

    fn reply(&self, keys: Vec<NamedKey>, random: &mut Random) -> Answer {
        if random.chance(self.lost_replies) {
            return Err(SourceFailure::Unreachable("the reply was lost".to_owned()));
        }
        Ok(keys)
    }
}

fn key_of(octets: &[u8; 32]) -> Key {
    match Key::from_slice(octets) {
        Ok(key) => key,
        Err(error) => unreachable!("32 octets are a key: {error}"),
    }
}
