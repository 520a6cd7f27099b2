//! The ledger: what state each key is in, and the one place where its octets rest.
//!
//! ```text
//!   block (of a link)                     key (made of blocks)
//!                                                               at the initiator's KME
//!   GENERATED --reserve--> RESERVED  ==>  RESERVED --confirm--> DELIVERED_MASTER --> DESTROYED
//!       ^                     |              |  the peer holds it too
//!       +------release--------+--------------+------void------------------------->  DESTROYED
//!           the peer never heard of it           anything else went wrong
//!                                                               at the target's KME
//!   GENERATED --------------hold---------->  RESERVED --take--> DELIVERED_SLAVE  --> DESTROYED
//!                                               |    by one target     by the last target
//!                                               +---void, expire---------------->  DESTROYED
//! ```
//!
//! What always holds, whatever stores it:
//! - each call is one transaction: it happens as a whole and durably, or not at all;
//! - a block belongs to one end of its link, which alone may reserve it; the other end gives it up on
//!   that end's word only (`hold`, `voided`);
//! - (key, consumer) is unique among deliveries, so no consumer is given a key twice;
//! - a key in state DESTROYED has no octets in the store; the octets of a key are never used for another;
//! - an end that is emptied has a new epoch, and an end that meets a new epoch is emptied, so that both
//!   ends store the same blocks again;
//! - what was reserved but not confirmed when the program ended is void at the next start.
//!
//! States of both ends meet in messages only. The store does no network, and is told the time.

use qloak_api::{KeyId, SaeId};
use qloak_keys::{Key, NamedKey};
use qloak_qkd::Block;

use crate::wrap::WrapError;

mod sqlite;

pub use sqlite::SqliteStore;

/// Which end of a link may give a block out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The end that generates.
    Alice,
    /// The end that is sent to.
    Bob,
}

impl Owner {
    /// The other end.
    pub fn other(self) -> Self {
        match self {
            Self::Alice => Self::Bob,
            Self::Bob => Self::Alice,
        }
    }
}

/// Why the ledger did not do what was asked. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database failed.
    #[error("the ledger's database failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// The file is another program's or another version's.
    #[error("the ledger {0}")]
    Foreign(String),
    /// A wrapped key does not open.
    #[error("the ledger is damaged, or the KEK is another one's: {0}")]
    Wrap(#[from] WrapError),
    /// Another process works on the ledger.
    #[error("the ledger is in use by another process; one KMS works on one ledger")]
    InUse,
    /// Too few blocks.
    #[error("{asked} keys are asked for, {stored} are stored; wait for the link to give more")]
    NotEnough {
        /// Keys asked for.
        asked: u64,
        /// Keys of that size that there are blocks for.
        stored: u64,
    },
    /// The bound of the store is reached.
    #[error("the store is full")]
    Full,
    /// A block is not there, is in use, or belongs to the other end.
    #[error("a block is not there to be given up")]
    NoSuchBlock,
    /// The key is known already.
    #[error("a key of this name is known already")]
    KnownKey,
    /// One or more keys are not there for this consumer.
    #[error("one or more keys are not there for this consumer")]
    NotFound,
    /// The key is not in the state that the step starts from.
    #[error("the key is no longer reserved")]
    WrongState,
}

/// How a key is made: these blocks in this order, cut to this length. Both ends do the same.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The key's name.
    pub key_id: KeyId,
    /// Its length, octets.
    pub octets: usize,
    /// Names of its blocks, in order.
    pub block_ids: Vec<KeyId>,
}

/// A reserved key with its octets.
pub struct Reserved {
    /// How it was made.
    pub recipe: Recipe,
    /// What it is.
    pub key: Key,
}

/// What is asked of `reserve`.
#[derive(Debug, Clone)]
pub struct Order {
    /// The SAE that asked.
    pub initiator: SaeId,
    /// How many keys.
    pub number: u32,
    /// Octets of each.
    pub octets: usize,
}

/// Blocks as they travel from alice to bob.
pub struct Batch {
    /// Its number on the link, larger than every one before.
    pub number: u64,
    /// The blocks, each with the end that may give it out.
    pub blocks: Vec<(Block, Owner)>,
}

/// Figures of one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Octets in blocks that alice may give out.
    pub alice_octets: u64,
    /// Octets in blocks that bob may give out.
    pub bob_octets: u64,
    /// Keys held for SAEs to fetch.
    pub held: u64,
    /// Keys delivered to SAEs since the ledger began.
    pub delivered: u64,
    /// Keys voided since the ledger began.
    pub voided: u64,
    /// Keys that expired unfetched since the ledger began.
    pub expired: u64,
}

impl Counts {
    /// Octets that this end may give out.
    pub fn octets(&self, owner: Owner) -> u64 {
        match owner {
            Owner::Alice => self.alice_octets,
            Owner::Bob => self.bob_octets,
        }
    }
}

/// What stores a ledger. SQLite on one machine; PostgreSQL is to follow. Calls block.
pub trait Store: Send + Sync {
    /// The name of what is stored for the link here, another one each time that the link is emptied. A
    /// peer that meets another name than last time knows that the blocks are gone at the other end.
    ///
    /// # Errors
    /// [`LedgerError`], as every call.
    fn epoch(&self, link: &str) -> Result<KeyId, LedgerError>;

    /// Remembers the peer's epoch; if it has changed, this end of the link is emptied too. True then.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn meet(&self, link: &str, own: Owner, peer_epoch: KeyId) -> Result<bool, LedgerError>;

    /// The peer lacks blocks that are stored here: destroys all blocks of the link that no key is made
    /// of, and begins a new epoch, by which the peer learns of it. Nothing is done, and false said, if
    /// the epoch is another than `epoch`: the link has been emptied since.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn empty(&self, link: &str, own: Owner, epoch: KeyId) -> Result<bool, LedgerError>;

    /// Alice: keeps new blocks as one batch, not to be used before `confirm_batch`.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn add_batch(&self, link: &str, blocks: Vec<(Block, Owner)>) -> Result<(), LedgerError>;

    /// Alice: the oldest batch that bob has not confirmed, to be sent again.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn pending_batch(&self, link: &str) -> Result<Option<Batch>, LedgerError>;

    /// Alice: bob has the batch.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn confirm_batch(&self, link: &str, number: u64) -> Result<(), LedgerError>;

    /// Bob: keeps a batch. One whose number is not larger than the last is known and changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Full`] beyond `octets_max` for one end.
    fn accept_batch(&self, link: &str, batch: Batch, octets_max: u64) -> Result<(), LedgerError>;

    /// Binds blocks of `owner` to new keys, all of the order or none.
    ///
    /// # Errors
    /// [`LedgerError::NotEnough`].
    fn reserve(
        &self,
        link: &str,
        owner: Owner,
        order: &Order,
        now_s: u64,
    ) -> Result<Vec<Reserved>, LedgerError>;

    /// The peer holds the keys: they count as delivered to the initiator, and are kept only for
    /// `local_targets`, SAEs of this KME. The caller answers the initiator after this, or nobody does.
    ///
    /// # Errors
    /// [`LedgerError::WrongState`] if one of them is no longer reserved; none is delivered then.
    fn confirm(
        &self,
        reserved: &[Reserved],
        initiator: &SaeId,
        local_targets: &[SaeId],
    ) -> Result<(), LedgerError>;

    /// The peer certainly never heard of the keys: their blocks may be used again.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn release(&self, keys: &[KeyId]) -> Result<(), LedgerError>;

    /// The keys and their blocks are destroyed, and the peer will be told.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn void(&self, keys: &[KeyId], reason: &str) -> Result<(), LedgerError>;

    /// Makes the keys of the peer's recipes from blocks of `owner` (the peer) and holds them for `targets`.
    ///
    /// # Errors
    /// [`LedgerError::NoSuchBlock`], [`LedgerError::KnownKey`], [`LedgerError::Full`]; nothing is held then.
    fn hold(
        &self,
        link: &str,
        owner: Owner,
        initiator: &SaeId,
        targets: &[SaeId],
        recipes: &[Recipe],
        now_s: u64,
    ) -> Result<(), LedgerError>;

    /// Gives held keys to a target, all or none.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`] if one is unknown, destroyed, made by another initiator, not for this
    /// consumer, or taken by it already; the cases are not told apart.
    fn take(
        &self,
        consumer: &SaeId,
        initiator: &SaeId,
        keys: &[KeyId],
    ) -> Result<Vec<NamedKey>, LedgerError>;

    /// The peer has voided these keys and their blocks.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn voided(&self, link: &str, owner: Owner, voids: &[Recipe]) -> Result<(), LedgerError>;

    /// Voids that the peer has not been told, oldest first, some at a time.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn untold_voids(&self, link: &str) -> Result<Vec<Recipe>, LedgerError>;

    /// The peer has been told.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn told_voids(&self, keys: &[KeyId]) -> Result<(), LedgerError>;

    /// Destroys held keys that were made before `made_before_s`, forgets the oldest destroyed ones, and
    /// lets the database give up what it no longer needs. How many keys expired.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn upkeep(&self, made_before_s: u64) -> Result<u64, LedgerError>;

    /// Figures of a link.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn counts(&self, link: &str) -> Result<Counts, LedgerError>;
}
