//! The ledger alone: what each call leaves behind, over restarts and lost messages.

use std::{fs, path::PathBuf};

use qloak_keys::Key;
use tempfile::TempDir;

use super::*;

mod emptied;
mod world;

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

    /// Hears of the other end's epoch.
    fn meet(&self, other: &Site) -> bool {
        let epoch = other.store().epoch(LINK).unwrap();
        self.store().meet(LINK, self.own, epoch).unwrap()
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
