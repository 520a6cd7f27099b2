//! Two ledgers, messages between them that are lost at will, programs that end at will: whatever
//! happens, no octets are given under two names and no consumer is given a key twice.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

/// What may become of one request for keys, as messages are lost and programs end.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered,
    NeverArrived,
    RequestInDoubt,
    AnswerLost,
    InitiatorCrashes,
    InitiatorCrashesBeforeTelling,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Generate {
        blocks: usize,
        arrives: bool,
        confirmed: bool,
    },
    Deliver {
        by: Owner,
        number: u32,
        octets: usize,
        fate: Fate,
    },
    Fetch {
        at: Owner,
        consumer: bool,
        which: usize,
    },
    Voids {
        by: Owner,
        confirmed: bool,
    },
    Crash {
        end: Owner,
    },
}

fn owner() -> impl Strategy<Value = Owner> {
    prop_oneof![Just(Owner::Alice), Just(Owner::Bob)]
}

fn act() -> impl Strategy<Value = Act> {
    let fate = prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::NeverArrived),
        1 => Just(Fate::RequestInDoubt),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::InitiatorCrashes),
        1 => Just(Fate::InitiatorCrashesBeforeTelling),
    ];
    prop_oneof![
        4 => (1usize..6, any::<bool>(), any::<bool>())
            .prop_map(|(blocks, arrives, confirmed)| Act::Generate { blocks, arrives, confirmed }),
        6 => (owner(), 1u32..3, prop_oneof![Just(16usize), Just(32), Just(48), Just(80)], fate)
            .prop_map(|(by, number, octets, fate)| Act::Deliver { by, number, octets, fate }),
        4 => (owner(), any::<bool>(), 0usize..100).prop_map(|(at, consumer, which)| Act::Fetch { at, consumer, which }),
        2 => (owner(), any::<bool>()).prop_map(|(by, confirmed)| Act::Voids { by, confirmed }),
        1 => owner().prop_map(|end| Act::Crash { end }),
    ]
}

/// Two ledgers and what has left them.
struct World {
    alice: Site,
    bob: Site,
    /// What masters were given.
    given: HashMap<KeyId, Vec<u8>>,
    /// What slaves were given.
    fetched: HashSet<(KeyId, &'static str)>,
    /// Every name ever made, so that fetches try those too that nobody was told.
    names: Vec<KeyId>,
}

impl World {
    fn site(&mut self, owner: Owner) -> &mut Site {
        match owner {
            Owner::Alice => &mut self.alice,
            Owner::Bob => &mut self.bob,
        }
    }

    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        match act {
            Act::Generate {
                blocks: count,
                arrives,
                confirmed,
            } => {
                if self.alice.store().pending_batch(LINK).unwrap().is_none() {
                    let owners: Vec<_> = (0..count)
                        .map(|i| if i % 2 == 0 { Owner::Alice } else { Owner::Bob })
                        .collect();
                    self.alice.store().add_batch(LINK, blocks(&owners)).unwrap();
                }
                let batch = self.alice.store().pending_batch(LINK).unwrap();
                if let Some(batch) = batch.filter(|_| arrives) {
                    let number = batch.number;
                    self.bob.store().accept_batch(LINK, batch, 1 << 20).unwrap();
                    if confirmed {
                        self.alice.store().confirm_batch(LINK, number).unwrap();
                    }
                }
            }
            Act::Deliver {
                by,
                number,
                octets,
                fate,
            } => self.deliver(by, number, octets, fate)?,
            Act::Fetch {
                at,
                consumer,
                which,
            } => {
                let consumer = if consumer { "node-b" } else { "node-c" };
                let Some(id) = self.names.get(which % self.names.len().max(1)).copied() else {
                    return Ok(());
                };
                if let Ok(NamedKey { key, .. }) = take(self.site(at), consumer, id) {
                    prop_assert!(
                        self.fetched.insert((id, consumer)),
                        "given twice to one consumer"
                    );
                    if let Some(given) = self.given.get(&id) {
                        prop_assert_eq!(given.as_slice(), key.as_slice());
                    }
                }
            }
            Act::Voids { by, confirmed } => {
                let voids = self.site(by).store().untold_voids(LINK).unwrap();
                self.site(by.other())
                    .store()
                    .voided(LINK, by, &voids)
                    .unwrap();
                if confirmed {
                    let ids: Vec<_> = voids.iter().map(|void| void.key_id).collect();
                    self.site(by).store().told_voids(&ids).unwrap();
                }
            }
            Act::Crash { end } => self.site(end).restart(),
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        by: Owner,
        number: u32,
        octets: usize,
        fate: Fate,
    ) -> Result<(), TestCaseError> {
        let Ok(reserved) = reserve(self.site(by), number, octets) else {
            return Ok(());
        };
        let ids = ids(&reserved);
        self.names.extend(&ids);
        let arrives = !matches!(
            fate,
            Fate::NeverArrived | Fate::RequestInDoubt | Fate::InitiatorCrashesBeforeTelling
        );
        let held = arrives && hold(self.site(by.other()), &recipes(&reserved)).is_ok();
        let site = self.site(by);
        match fate {
            Fate::NeverArrived => site.store().release(&ids).unwrap(),
            Fate::Answered if held => {
                site.store()
                    .confirm(&reserved, &sae("node-a"), &[])
                    .unwrap();
                for key in reserved {
                    self.given
                        .insert(key.recipe.key_id, key.key.as_slice().to_vec());
                }
            }
            Fate::Answered | Fate::RequestInDoubt | Fate::AnswerLost => {
                site.store().void(&ids, "in doubt").unwrap()
            }
            Fate::InitiatorCrashes | Fate::InitiatorCrashesBeforeTelling => site.restart(),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_no_octets_are_given_under_two_names(acts in prop::collection::vec(act(), 1..60)) {
        let (alice, bob) = pair(4, 4);
        let mut world = World { alice, bob, given: HashMap::new(), fetched: HashSet::new(), names: Vec::new() };
        for act in acts {
            world.act(act)?;
        }
        // Blocks are 32 random octets, so equal pieces of 16 mean one block in two keys.
        let mut pieces = HashSet::new();
        for piece in world.given.values().flat_map(|octets| octets.chunks_exact(16)) {
            prop_assert!(pieces.insert(piece), "octets given under two names");
        }
        // Every key that a master has can be fetched, once by each target.
        let given: Vec<_> = world.given.iter().map(|(id, octets)| (*id, octets.clone())).collect();
        for (id, octets) in given {
            let found = [Owner::Alice, Owner::Bob].map(|at| take(world.site(at), "node-b", id).ok());
            let fetched = world.fetched.contains(&(id, "node-b"));
            let found: Vec<_> = found.into_iter().flatten().collect();
            prop_assert_eq!(found.len(), usize::from(!fetched));
            prop_assert!(found.iter().all(|key| key.key.as_slice() == octets));
        }
        // The ends agree on what is left once all messages have gone through.
        for by in [Owner::Alice, Owner::Bob] {
            world.act(Act::Voids { by, confirmed: true })?;
        }
        world.act(Act::Generate { blocks: 1, arrives: true, confirmed: true })?;
        let left = |site: &Site| [Owner::Alice, Owner::Bob].map(|owner| site.stock(owner));
        prop_assert_eq!(left(&world.alice), left(&world.bob));
    }
}
