//! The key RAM: keys that wait for their use, each under its key ID (seed 000, III.C).
//!
//! ```text
//!   slots 512 (resizable), 384 bits each: key ID 128 | key 256
//!   outbound half: taken from the KME, used in the order of taking   (initiator)
//!   inbound half:  fetched from the KME, looked up by key ID         (target)
//! ```
//!
//! What always holds: neither half exceeds half of the slots; a key leaves the RAM when it is used and
//! never comes back under the same ID ([`Spent`]); what is thrown out is zeroised and counted. When
//! to take and to fetch is the supply's matter.

use std::collections::{HashSet, VecDeque};

use qloak_api::KeyId;
use qloak_keys::{Key, NamedKey};

use super::limits;

/// Keys that wait.
pub(super) struct KeyRam {
    slots: u32,
    outbound: VecDeque<OutboundSlot>,
    inbound: VecDeque<InboundSlot>,
    zeroised: u64,
}

struct OutboundSlot {
    named: NamedKey,
    /// The peer was told of it and may have fetched it.
    named_ahead: bool,
}

struct InboundSlot {
    named: NamedKey,
    origin: Origin,
    /// When the peer last spoke of it.
    mentioned_ns: u64,
}

/// Who asked for an inbound key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The peer named it.
    Peer,
    /// The operator loaded it.
    Operator,
}

impl KeyRam {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots,
            outbound: VecDeque::new(),
            inbound: VecDeque::new(),
            zeroised: 0,
        }
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    fn half(&self) -> usize {
        self.slots as usize / 2
    }

    pub(super) fn outbound_len(&self) -> usize {
        self.outbound.len()
    }

    pub(super) fn inbound_len(&self) -> usize {
        self.inbound.len()
    }

    pub(super) fn outbound_room(&self) -> usize {
        self.half().saturating_sub(self.outbound.len())
    }

    pub(super) fn inbound_room(&self) -> usize {
        self.half().saturating_sub(self.inbound.len())
    }

    pub(super) fn zeroised(&self) -> u64 {
        self.zeroised
    }

    /// Counts keys that were zeroised outside the RAM: those of SAs, and those in use by a change.
    pub(super) fn count_zeroised(&mut self, keys: u64) {
        self.zeroised += keys;
    }

    /// Adds a taken key; without room it is zeroised.
    pub(super) fn push_outbound(&mut self, named: NamedKey) -> bool {
        let room = self.outbound_room() > 0;
        if room {
            self.outbound.push_back(OutboundSlot {
                named,
                named_ahead: false,
            });
        } else {
            self.zeroised += 1;
        }
        room
    }

    /// The next key for an SA, the oldest.
    pub(super) fn pop_outbound(&mut self) -> Option<NamedKey> {
        self.outbound.pop_front().map(|slot| slot.named)
    }

    /// A key for a first announce: the oldest that the peer was not told of, since a peer that has
    /// restarted may have fetched the others in its former life.
    pub(super) fn pop_untold(&mut self) -> Option<NamedKey> {
        let at = self.outbound.iter().position(|slot| !slot.named_ahead)?;
        self.outbound.remove(at).map(|slot| slot.named)
    }

    /// Puts back a key that the peer refused before it touched it.
    pub(super) fn return_outbound(&mut self, named: NamedKey) {
        self.outbound.push_front(OutboundSlot {
            named,
            named_ahead: true,
        });
        self.trim();
    }

    /// The names of the keys that come next, from place `skip` on; they count as told.
    pub(super) fn ahead(&mut self, skip: usize, count: usize) -> Vec<KeyId> {
        let told = |slot: &mut OutboundSlot| {
            slot.named_ahead = true;
            slot.named.id
        };
        self.outbound
            .iter_mut()
            .skip(skip)
            .take(count)
            .map(told)
            .collect()
    }

    /// The names of the oldest keys that the peer was not told of; they count as told from now on.
    pub(super) fn untold(&mut self, count: usize) -> Vec<KeyId> {
        let untold = self.outbound.iter_mut().filter(|slot| !slot.named_ahead);
        let told = |slot: &mut OutboundSlot| {
            slot.named_ahead = true;
            slot.named.id
        };
        untold.take(count).map(told).collect()
    }

    /// Throws out a key that the peer cannot have.
    pub(super) fn drop_outbound(&mut self, id: KeyId) -> bool {
        let before = self.outbound.len();
        self.outbound.retain(|slot| slot.named.id != id);
        let dropped = before - self.outbound.len();
        self.zeroised += dropped as u64;
        dropped > 0
    }

    /// Throws out every key that the peer was told of.
    pub(super) fn drop_told(&mut self) {
        let before = self.outbound.len();
        self.outbound.retain(|slot| !slot.named_ahead);
        self.zeroised += (before - self.outbound.len()) as u64;
    }

    pub(super) fn has_outbound(&self, id: KeyId) -> bool {
        self.outbound.iter().any(|slot| slot.named.id == id)
    }

    pub(super) fn has_inbound(&self, id: KeyId) -> bool {
        self.inbound.iter().any(|slot| slot.named.id == id)
    }

    /// The key of this name, to look at.
    pub(super) fn inbound(&self, id: KeyId) -> Option<&Key> {
        let slot = self.inbound.iter().find(|slot| slot.named.id == id)?;
        Some(&slot.named.key)
    }

    /// Adds a fetched key. Without room, a key that the peer has not spoken of for long gives way; if
    /// there is none, the new key is zeroised, unless it is waited for and about to be used. Returns the
    /// name of the key that went.
    pub(super) fn push_inbound(
        &mut self,
        named: NamedKey,
        origin: Origin,
        awaited: bool,
        now_ns: u64,
    ) -> Option<KeyId> {
        let mut gone = None;
        if self.inbound_room() == 0 {
            gone = self.evict(now_ns);
            let passage = awaited && self.inbound.len() < self.half() + limits::PASSING_MAX;
            if gone.is_none() && !passage {
                self.zeroised += 1;
                return Some(named.id);
            }
        }
        self.inbound.push_back(InboundSlot {
            named,
            origin,
            mentioned_ns: now_ns,
        });
        gone
    }

    /// Makes room by throwing out a forgotten key; returns its name.
    pub(super) fn evict(&mut self, now_ns: u64) -> Option<KeyId> {
        let forgotten = |slot: &InboundSlot| {
            slot.origin == Origin::Peer
                && now_ns.saturating_sub(slot.mentioned_ns) > limits::FORGOTTEN_NS
        };
        let at = self.inbound.iter().position(forgotten)?;
        self.zeroised += 1;
        self.inbound.remove(at).map(|slot| slot.named.id)
    }

    /// The peer spoke of this key again. False if it is not here.
    pub(super) fn mention_inbound(&mut self, id: KeyId, now_ns: u64) -> bool {
        match self.inbound.iter_mut().find(|slot| slot.named.id == id) {
            Some(slot) => {
                slot.mentioned_ns = now_ns;
                true
            }
            None => false,
        }
    }

    /// Takes the key of this name out, to use it.
    pub(super) fn take_inbound(&mut self, id: KeyId) -> Option<NamedKey> {
        let at = self.inbound.iter().position(|slot| slot.named.id == id)?;
        self.inbound.remove(at).map(|slot| slot.named)
    }

    /// Throws out the inbound keys that `which` names; returns their names.
    pub(super) fn drop_inbound(&mut self, which: impl Fn(Origin) -> bool) -> Vec<KeyId> {
        let mut dropped = Vec::new();
        self.inbound.retain(|slot| {
            let goes = which(slot.origin);
            if goes {
                dropped.push(slot.named.id);
            }
            !goes
        });
        self.zeroised += dropped.len() as u64;
        dropped
    }

    /// Throws out every outbound key.
    pub(super) fn drop_all_outbound(&mut self) {
        self.zeroised += self.outbound.len() as u64;
        self.outbound.clear();
    }

    /// Changes the size; the youngest keys beyond it are zeroised. Returns the inbound ones' names.
    pub(super) fn resize(&mut self, slots: u32) -> Vec<KeyId> {
        self.slots = slots;
        self.trim()
    }

    fn trim(&mut self) -> Vec<KeyId> {
        while self.outbound.len() > self.half() {
            self.outbound.pop_back();
            self.zeroised += 1;
        }
        let mut gone = Vec::new();
        while self.inbound.len() > self.half() {
            gone.extend(self.inbound.pop_back().map(|slot| slot.named.id));
            self.zeroised += 1;
        }
        gone
    }
}

/// Names of keys that were used, thrown out or refused: they are never used or asked for again.
#[derive(Default)]
pub(super) struct Spent {
    known: HashSet<KeyId>,
    order: VecDeque<KeyId>,
}

impl Spent {
    pub(super) fn contains(&self, id: KeyId) -> bool {
        self.known.contains(&id)
    }

    /// Remembers a name. False if it was known.
    pub(super) fn insert(&mut self, id: KeyId) -> bool {
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > limits::SPENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(octet: u8) -> NamedKey {
        NamedKey {
            id: KeyId([octet; 16]),
            key: Key::from_slice(&[octet; 32]).unwrap_or_else(|e| panic!("{e}")),
        }
    }

    #[test]
    fn each_half_holds_half_of_the_slots() {
        let mut ram = KeyRam::new(8);
        for octet in 0..6 {
            assert_eq!(ram.push_outbound(named(octet)), octet < 4);
        }
        for octet in 10..16 {
            let given_up = ram.push_inbound(named(octet), Origin::Peer, false, 0);
            assert_eq!(given_up.is_some(), octet >= 14);
        }
        assert_eq!((ram.outbound_len(), ram.inbound_len()), (4, 4));
        assert_eq!(ram.zeroised(), 4);
    }

    #[test]
    fn a_smaller_size_zeroises_the_youngest() {
        let mut ram = KeyRam::new(16);
        for octet in 0..8 {
            ram.push_outbound(named(octet));
            ram.push_inbound(named(100 + octet), Origin::Peer, false, 0);
        }
        let gone = ram.resize(8);
        assert_eq!(gone.len(), 4);
        assert!(gone.iter().all(|id| id.0[0] >= 104));
        assert_eq!(ram.pop_outbound().map(|key| key.id.0[0]), Some(0));
        assert!(ram.has_inbound(KeyId([103; 16])) && !ram.has_inbound(KeyId([104; 16])));
        assert_eq!(ram.zeroised(), 8);
    }

    #[test]
    fn a_first_announce_takes_a_key_that_the_peer_was_not_told_of() {
        let mut ram = KeyRam::new(16);
        (0..4).for_each(|octet| {
            ram.push_outbound(named(octet));
        });
        assert_eq!(ram.ahead(0, 2).len(), 2);
        assert_eq!(ram.pop_untold().map(|key| key.id.0[0]), Some(2));
        ram.drop_told();
        assert_eq!(ram.pop_outbound().map(|key| key.id.0[0]), Some(3));
        assert!(ram.pop_outbound().is_none());
    }

    #[test]
    fn only_a_forgotten_key_gives_way() {
        let mut ram = KeyRam::new(8);
        for octet in 0..4 {
            ram.push_inbound(named(octet), Origin::Peer, false, 0);
        }
        assert!(ram.evict(limits::FORGOTTEN_NS).is_none());
        assert!(ram.mention_inbound(KeyId([0; 16]), limits::FORGOTTEN_NS));
        assert_eq!(ram.evict(limits::FORGOTTEN_NS + 1), Some(KeyId([1; 16])));
        assert!(ram.has_inbound(KeyId([0; 16])));
    }

    #[test]
    fn a_spent_name_is_known_until_many_others_came() {
        let mut spent = Spent::default();
        assert!(spent.insert(KeyId([1; 16])) && !spent.insert(KeyId([1; 16])));
        for n in 0..limits::SPENT_MAX as u128 {
            spent.insert(KeyId((n + 1000).to_be_bytes()));
        }
        assert!(!spent.contains(KeyId([1; 16])));
        assert!(spent.contains(KeyId(1000_u128.to_be_bytes())));
    }
}
