//! The ledger alone: what each call leaves behind, over restarts and lost messages.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::PathBuf,
};

use proptest::prelude::*;
use qloak_keys::Key;
use tempfile::TempDir;

use super::*;

const LINK: &str = "metro";

/// One KMS's ledger in a folder of its own.
struct Site {
    folder: TempDir,
    own: Owner,
    store: Option<SqliteStore>,
}

impl Site {
    fn new(own: Owner) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut site = Self {
            folder,
            own,
            store: None,
        };
        site.restart();
        site
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    fn open(&self) -> Result<SqliteStore, LedgerError> {
        let kek = Kek::read_or_make(&self.folder.path().join("kek"), &self.path()).unwrap();
        SqliteStore::open(&self.path(), kek, &[LINK.to_owned()])
    }

    /// As after a crash: nothing is closed in an orderly way by us.
    fn restart(&mut self) {
        self.store = None;
        self.store = Some(self.open().unwrap());
    }

    fn store(&self) -> &SqliteStore {
        self.store.as_ref().unwrap()
    }

    fn stock(&self, owner: Owner) -> u64 {
        self.store().counts(LINK).unwrap().octets(owner) / 32
    }

    fn octets(&self) -> Vec<u8> {
        ["ledger", "ledger-wal"]
            .iter()
            .flat_map(|name| fs::read(self.folder.path().join(name)).unwrap_or_default())
            .collect()
    }
}

fn sae(name: &str) -> SaeId {
    name.parse().unwrap()
}

fn order(number: u32, octets: usize) -> Order {
    Order {
        initiator: sae("node-a"),
        number,
        octets,
    }
}

fn blocks(owners: &[Owner]) -> Vec<(Block, Owner)> {
    let block = |owner: &Owner| {
        let mut octets = [0; 32];
        SystemRandom::new().fill(&mut octets).unwrap();
        (
            Block {
                id: random_id().unwrap(),
                key: Key::from_slice(&octets).unwrap(),
            },
            *owner,
        )
    };
    owners.iter().map(block).collect()
}

/// Alice with blocks that bob has too.
fn pair(alices: usize, bobs: usize) -> (Site, Site) {
    let (alice, bob) = (Site::new(Owner::Alice), Site::new(Owner::Bob));
    let owners: Vec<Owner> = std::iter::repeat_n(Owner::Alice, alices)
        .chain(std::iter::repeat_n(Owner::Bob, bobs))
        .collect();
    if !owners.is_empty() {
        alice.store().add_batch(LINK, blocks(&owners)).unwrap();
        carry(&alice, &bob);
    }
    (alice, bob)
}

/// Carries the pending batch and its confirmation.
fn carry(alice: &Site, bob: &Site) {
    let Some(batch) = alice.store().pending_batch(LINK).unwrap() else {
        return;
    };
    let number = batch.number;
    bob.store().accept_batch(LINK, batch, 1 << 20).unwrap();
    alice.store().confirm_batch(LINK, number).unwrap();
}

fn reserve(site: &Site, number: u32, octets: usize) -> Result<Vec<Reserved>, LedgerError> {
    site.store()
        .reserve(LINK, site.own, &order(number, octets), 1000)
}

fn recipes(reserved: &[Reserved]) -> Vec<Recipe> {
    reserved.iter().map(|key| key.recipe.clone()).collect()
}

fn ids(reserved: &[Reserved]) -> Vec<KeyId> {
    reserved.iter().map(|key| key.recipe.key_id).collect()
}

fn hold(site: &Site, recipes: &[Recipe]) -> Result<(), LedgerError> {
    site.store().hold(
        LINK,
        site.own.other(),
        &sae("node-a"),
        &[sae("node-b"), sae("node-c")],
        recipes,
        1000,
    )
}

fn take(site: &Site, consumer: &str, key: KeyId) -> Result<NamedKey, LedgerError> {
    site.store()
        .take(&sae(consumer), &sae("node-a"), &[key])
        .map(|mut keys| keys.remove(0))
}

fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_key_goes_its_way_and_leaves_nothing_readable() {
    let (alice, bob) = pair(3, 0);
    let reserved = reserve(&alice, 1, 48).unwrap();
    assert_eq!(
        (
            reserved[0].recipe.block_ids.len(),
            alice.stock(Owner::Alice)
        ),
        (2, 1)
    );
    hold(&bob, &recipes(&reserved)).unwrap();
    alice
        .store()
        .confirm(&reserved, &sae("node-a"), &[])
        .unwrap();
    let id = reserved[0].recipe.key_id;
    let first = take(&bob, "node-b", id).unwrap();
    assert!(first.key.same_as(&reserved[0].key) && first.key.octets() == 48);
    assert!(matches!(
        take(&bob, "node-b", id),
        Err(LedgerError::NotFound)
    ));
    assert!(
        take(&bob, "node-c", id)
            .unwrap()
            .key
            .same_as(&reserved[0].key)
    );
    for site in [&alice, &bob] {
        assert!(!contains(&site.octets(), &reserved[0].key.as_slice()[..16]));
        let counts = site.store().counts(LINK).unwrap();
        assert_eq!(
            (counts.held, counts.alice_octets, counts.voided),
            (0, 32, 0)
        );
    }
}

#[test]
fn what_is_destroyed_leaves_the_file() {
    let (alice, bob) = pair(1, 0);
    let reserved = reserve(&alice, 1, 32).unwrap();
    hold(&bob, &recipes(&reserved)).unwrap();
    let wrapped: Vec<u8> = bob
        .store()
        .transact(|t| Ok(t.query_row("SELECT wrap FROM key", [], |row| row.get(0))?))
        .unwrap();
    assert!(contains(&bob.octets(), &wrapped));
    for consumer in ["node-b", "node-c"] {
        take(&bob, consumer, reserved[0].recipe.key_id).unwrap();
    }
    bob.store().upkeep(0).unwrap();
    assert!(!contains(&bob.octets(), &wrapped));
}

#[test]
fn what_was_reserved_at_the_end_is_void_at_the_start_and_the_peer_is_told() {
    let (mut alice, bob) = pair(2, 0);
    let reserved = reserve(&alice, 1, 32).unwrap();
    hold(&bob, &recipes(&reserved)).unwrap();
    alice.restart();
    assert!(matches!(
        alice.store().confirm(&reserved, &sae("node-a"), &[]),
        Err(LedgerError::WrongState)
    ));
    assert_eq!(alice.stock(Owner::Alice), 1);
    let voids = alice.store().untold_voids(LINK).unwrap();
    assert_eq!(voids, recipes(&reserved));
    bob.store().voided(LINK, Owner::Alice, &voids).unwrap();
    alice.store().told_voids(&ids(&reserved)).unwrap();
    assert!(alice.store().untold_voids(LINK).unwrap().is_empty());
    assert!(matches!(
        take(&bob, "node-b", reserved[0].recipe.key_id),
        Err(LedgerError::NotFound)
    ));
    let next = reserve(&alice, 1, 32).unwrap();
    assert!(!next[0].key.same_as(&reserved[0].key));
}

#[test]
fn released_blocks_are_used_again_and_voided_ones_never() {
    let (alice, bob) = pair(2, 0);
    let reserved = reserve(&alice, 1, 32).unwrap();
    alice.store().release(&ids(&reserved)).unwrap();
    assert_eq!(alice.stock(Owner::Alice), 2);
    let again = reserve(&alice, 1, 32).unwrap();
    assert!(
        again[0].key.same_as(&reserved[0].key)
            && again[0].recipe.key_id != reserved[0].recipe.key_id
    );
    alice.store().void(&ids(&again), "in doubt").unwrap();
    // Neither can be undone afterwards.
    alice.store().release(&ids(&again)).unwrap();
    assert!(alice.store().confirm(&again, &sae("node-a"), &[]).is_err());
    assert_eq!(
        (
            alice.stock(Owner::Alice),
            alice.store().counts(LINK).unwrap().voided
        ),
        (1, 1)
    );
    // An order that comes after its void finds the name taken, and its blocks gone.
    bob.store()
        .voided(LINK, Owner::Alice, &recipes(&again))
        .unwrap();
    assert!(matches!(
        hold(&bob, &recipes(&again)),
        Err(LedgerError::KnownKey)
    ));
    assert!(matches!(
        hold(&bob, &recipes(&reserved)),
        Err(LedgerError::NoSuchBlock)
    ));
    assert_eq!(bob.stock(Owner::Alice), 1);
}

#[test]
fn a_batch_that_comes_twice_is_kept_once() {
    let (alice, bob) = pair(0, 0);
    alice
        .store()
        .add_batch(LINK, blocks(&[Owner::Alice, Owner::Bob]))
        .unwrap();
    // Nobody may use alice's before bob has confirmed; bob may use his own at once.
    assert!(matches!(
        reserve(&alice, 1, 32),
        Err(LedgerError::NotEnough {
            asked: 1,
            stored: 0
        })
    ));
    let batch = |site: &Site| site.store().pending_batch(LINK).unwrap().unwrap();
    bob.store()
        .accept_batch(LINK, batch(&alice), 1 << 20)
        .unwrap();
    let used = reserve(&bob, 1, 32).unwrap();
    hold(&alice, &recipes(&used)).unwrap();
    bob.store().confirm(&used, &sae("node-a"), &[]).unwrap();
    // The answer was lost: the batch comes again, with what is left of it.
    let left = batch(&alice);
    assert_eq!((left.number, left.blocks.len()), (1, 1));
    bob.store().accept_batch(LINK, left, 1 << 20).unwrap();
    assert_eq!((bob.stock(Owner::Alice), bob.stock(Owner::Bob)), (1, 0));
    alice.store().confirm_batch(LINK, 1).unwrap();
    assert_eq!((alice.stock(Owner::Alice), alice.stock(Owner::Bob)), (1, 0));
}

#[test]
fn a_full_store_takes_no_batch() {
    let (alice, bob) = pair(1, 0);
    alice
        .store()
        .add_batch(LINK, blocks(&[Owner::Alice]))
        .unwrap();
    let batch = alice.store().pending_batch(LINK).unwrap().unwrap();
    assert!(matches!(
        bob.store().accept_batch(LINK, batch, 63),
        Err(LedgerError::Full)
    ));
    assert_eq!(bob.stock(Owner::Alice), 1);
    carry(&alice, &bob);
    assert_eq!(bob.stock(Owner::Alice), 2);
}

#[test]
fn a_new_ledger_at_the_other_end_empties_the_link() {
    let (alice, bob) = pair(2, 2);
    assert!(!alice.store().meet(LINK, bob.store().epoch()).unwrap());
    assert!(!bob.store().meet(LINK, alice.store().epoch()).unwrap());
    assert_eq!(alice.stock(Owner::Alice), 2);
    let fresh = Site::new(Owner::Bob);
    assert!(alice.store().meet(LINK, fresh.store().epoch()).unwrap());
    assert!(!alice.store().meet(LINK, fresh.store().epoch()).unwrap());
    assert_eq!((alice.stock(Owner::Alice), alice.stock(Owner::Bob)), (0, 0));
    // And its batches, numbered from 1 again, are taken.
    alice
        .store()
        .add_batch(LINK, blocks(&[Owner::Alice]))
        .unwrap();
    carry(&alice, &fresh);
    assert_eq!(
        (alice.stock(Owner::Alice), fresh.stock(Owner::Alice)),
        (1, 1)
    );
    let new_alice = Site::new(Owner::Alice);
    assert!(bob.store().meet(LINK, new_alice.store().epoch()).unwrap());
    new_alice
        .store()
        .add_batch(LINK, blocks(&[Owner::Bob]))
        .unwrap();
    carry(&new_alice, &bob);
    assert_eq!((bob.stock(Owner::Alice), bob.stock(Owner::Bob)), (0, 1));
}

#[test]
fn an_order_is_kept_whole_or_not_at_all() {
    let (alice, bob) = pair(3, 1);
    let mut wanted = recipes(&reserve(&alice, 2, 32).unwrap());
    wanted[1].block_ids = vec![KeyId([9; 16])];
    assert!(matches!(hold(&bob, &wanted), Err(LedgerError::NoSuchBlock)));
    assert_eq!(
        (
            bob.stock(Owner::Alice),
            bob.store().counts(LINK).unwrap().held
        ),
        (3, 0)
    );
    // Blocks of bob's own, too few blocks for the length, too many blocks, a length that no key has.
    let bobs = reserve(&bob, 1, 32).unwrap().remove(0).recipe;
    let good = wanted.remove(0);
    let bent = [
        Recipe {
            block_ids: bobs.block_ids,
            ..good.clone()
        },
        Recipe {
            octets: 33,
            ..good.clone()
        },
        Recipe {
            block_ids: vec![good.block_ids[0]; 17],
            ..good.clone()
        },
        Recipe {
            block_ids: vec![good.block_ids[0]; 2],
            ..good.clone()
        },
        Recipe {
            octets: 7,
            ..good.clone()
        },
        Recipe {
            octets: usize::MAX,
            ..good.clone()
        },
    ];
    for recipe in bent {
        let told = hold(&bob, std::slice::from_ref(&recipe));
        assert!(
            matches!(told, Err(LedgerError::NoSuchBlock)),
            "{recipe:?}: {told:?}"
        );
    }
    hold(&bob, std::slice::from_ref(&good)).unwrap();
    assert!(matches!(hold(&bob, &[good]), Err(LedgerError::KnownKey)));
}

#[test]
fn what_nobody_fetches_expires_and_history_is_forgotten() {
    let (alice, bob) = pair(2, 0);
    let reserved = reserve(&alice, 2, 32).unwrap();
    hold(&bob, &recipes(&reserved)).unwrap();
    take(&bob, "node-b", reserved[0].recipe.key_id).unwrap();
    assert_eq!(bob.store().upkeep(1000).unwrap(), 0);
    assert_eq!(bob.store().upkeep(1001).unwrap(), 2);
    for key in &reserved {
        assert!(matches!(
            take(&bob, "node-c", key.recipe.key_id),
            Err(LedgerError::NotFound)
        ));
    }
    assert_eq!(bob.store().counts(LINK).unwrap().expired, 2);
    let rows = |table: &str| -> i64 {
        bob.store()
            .transact(|t| {
                Ok(
                    t.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                        row.get(0)
                    })?,
                )
            })
            .unwrap()
    };
    assert_eq!((rows("key"), rows("target"), rows("delivery")), (2, 4, 1));
    bob.store().transact(|t| upkeep::forget(t, 1)).unwrap();
    assert_eq!((rows("key"), rows("target"), rows("delivery")), (1, 2, 0));
}

#[test]
fn a_ledger_that_is_not_ours_is_told() {
    let site = Site::new(Owner::Alice);
    assert!(matches!(site.open(), Err(LedgerError::InUse)));

    let mut stranger = Site::new(Owner::Alice);
    stranger.store = None;
    fs::copy(
        site.folder.path().join("kek"),
        stranger.folder.path().join("kek"),
    )
    .unwrap();
    assert!(matches!(stranger.open(), Err(LedgerError::Wrap(_))));

    fs::write(stranger.path(), [b'x'; 4096]).unwrap();
    assert!(matches!(stranger.open(), Err(LedgerError::Foreign(_))));

    for (sql, says) in [
        ("CREATE TABLE notes (text)", "another program"),
        ("PRAGMA user_version = 9", "version 9"),
    ] {
        fs::remove_file(stranger.path()).unwrap();
        Connection::open(stranger.path())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let error = stranger.open().err().unwrap();
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn of_many_who_take_at_once_one_gets_the_key() {
    let (alice, bob) = pair(1, 0);
    let reserved = reserve(&alice, 1, 32).unwrap();
    hold(&bob, &recipes(&reserved)).unwrap();
    let store = bob.store();
    let id = reserved[0].recipe.key_id;
    let winners: usize = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| store.take(&sae("node-b"), &sae("node-a"), &[id]).is_ok()))
            .collect();
        tries
            .into_iter()
            .map(|handle| usize::from(handle.join().unwrap()))
            .sum()
    });
    assert_eq!(winners, 1);
}

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
