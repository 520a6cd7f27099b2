//! The ledger in SQLite: one file, one connection, one transaction for each call.
//!
//! WAL with `synchronous = FULL`: a call that has returned survives a power cut. `secure_delete`
//! overwrites what is deleted; what lingers in the write-ahead log until its next truncation is wrapped.
//! The file is locked for as long as the process lives, so a second KMS on it is refused, and a
//! killed one leaves no lock behind.

use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use qloak_api::{KeyId, SaeId};
use qloak_keys::NamedKey;
use qloak_qkd::Block;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};

use super::{Batch, Counts, LedgerError, Order, Owner, Recipe, Reserved, Store};
use crate::wrap::{Kek, Kind, WrapError};

mod initiator;
mod link;
mod target;
#[cfg(test)]
mod tests;
mod upkeep;

/// The version of `schema.sql`, in SQLite's `user_version`.
const SCHEMA: i64 = 1;

/// States of a key, as the schema numbers them.
mod state {
    pub(super) const RESERVED: i64 = 1;
    pub(super) const DELIVERED_MASTER: i64 = 2;
    pub(super) const DELIVERED_SLAVE: i64 = 3;
    pub(super) const DESTROYED: i64 = 4;
}

/// A ledger in a file.
pub struct SqliteStore {
    connection: Mutex<Connection>,
    kek: Kek,
}

impl SqliteStore {
    /// Opens the ledger, or makes it; keys that were reserved and not confirmed are void afterwards.
    /// `links` are the names of all links of the configuration.
    ///
    /// # Errors
    /// [`LedgerError::InUse`], [`LedgerError::Foreign`], [`LedgerError::Wrap`] for the KEK of another ledger.
    pub(crate) fn open(path: &Path, kek: Kek, links: &[String]) -> Result<Self, LedgerError> {
        let mut connection = Connection::open(path).map_err(in_use)?;
        private(path);
        prepare(&connection).map_err(in_use)?;
        let transaction = begin(&mut connection).map_err(in_use)?;
        match transaction.query_row("PRAGMA user_version", [], |row| row.get(0))? {
            0 => create(&transaction, &kek)?,
            SCHEMA => recognise(&transaction, &kek)?,
            other => {
                return Err(LedgerError::Foreign(format!(
                    "has version {other}; this program writes {SCHEMA}"
                )));
            }
        }
        for link in links {
            transaction.execute(
                "INSERT INTO link (name) VALUES (?1) ON CONFLICT DO NOTHING",
                [link],
            )?;
        }
        let voided = initiator::void_unconfirmed(&transaction)?;
        transaction.commit()?;
        if voided > 0 {
            tracing::warn!(
                voided,
                "keys that were reserved when the KMS last ended are void"
            );
        }
        Ok(Self {
            connection: Mutex::new(connection),
            kek,
        })
    }

    fn transact<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        // A thread that panicked in a transaction has rolled it back: the connection is sound.
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let transaction = begin(&mut connection)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

impl Store for SqliteStore {
    fn epoch(&self, link: &str) -> Result<KeyId, LedgerError> {
        self.transact(|transaction| link::epoch(transaction, link))
    }

    fn meet(&self, link: &str, own: Owner, peer_epoch: KeyId) -> Result<bool, LedgerError> {
        self.transact(|transaction| link::meet(transaction, link, own, peer_epoch))
    }

    fn empty(&self, link: &str, own: Owner, epoch: KeyId) -> Result<bool, LedgerError> {
        self.transact(|transaction| {
            if link::epoch(transaction, link)? != epoch {
                return Ok(false);
            }
            link::empty(transaction, link, own)?;
            Ok(true)
        })
    }

    fn add_batch(&self, link: &str, blocks: Vec<(Block, Owner)>) -> Result<(), LedgerError> {
        self.transact(|transaction| link::add(transaction, &self.kek, link, &blocks))
    }

    fn pending_batch(&self, link: &str) -> Result<Option<Batch>, LedgerError> {
        self.transact(|transaction| link::pending(transaction, &self.kek, link))
    }

    fn confirm_batch(&self, link: &str, number: u64) -> Result<(), LedgerError> {
        self.transact(|transaction| link::confirm(transaction, link, number))
    }

    fn accept_batch(&self, link: &str, batch: Batch, octets_max: u64) -> Result<(), LedgerError> {
        self.transact(|transaction| link::accept(transaction, &self.kek, link, &batch, octets_max))
    }

    fn reserve(
        &self,
        link: &str,
        owner: Owner,
        order: &Order,
        now_s: u64,
    ) -> Result<Vec<Reserved>, LedgerError> {
        self.transact(|transaction| {
            initiator::reserve(transaction, &self.kek, link, owner, order, now_s)
        })
    }

    fn confirm(
        &self,
        reserved: &[Reserved],
        initiator: &SaeId,
        local_targets: &[SaeId],
    ) -> Result<(), LedgerError> {
        self.transact(|transaction| {
            initiator::confirm(transaction, &self.kek, reserved, initiator, local_targets)
        })
    }

    fn release(&self, keys: &[KeyId]) -> Result<(), LedgerError> {
        self.transact(|transaction| initiator::release(transaction, keys))
    }

    fn void(&self, keys: &[KeyId], reason: &str) -> Result<(), LedgerError> {
        self.transact(|transaction| {
            keys.iter()
                .try_for_each(|key| initiator::void(transaction, *key, reason))
        })
    }

    fn hold(
        &self,
        link: &str,
        owner: Owner,
        initiator: &SaeId,
        targets: &[SaeId],
        recipes: &[Recipe],
        now_s: u64,
    ) -> Result<(), LedgerError> {
        let held = target::Held {
            link,
            owner,
            initiator,
            targets,
            now_s,
        };
        self.transact(|transaction| target::hold(transaction, &self.kek, &held, recipes))
    }

    fn take(
        &self,
        consumer: &SaeId,
        initiator: &SaeId,
        keys: &[KeyId],
    ) -> Result<Vec<NamedKey>, LedgerError> {
        self.transact(|transaction| target::take(transaction, &self.kek, consumer, initiator, keys))
    }

    fn voided(&self, link: &str, owner: Owner, voids: &[Recipe]) -> Result<(), LedgerError> {
        self.transact(|transaction| target::voided(transaction, link, owner, voids))
    }

    fn untold_voids(&self, link: &str) -> Result<Vec<Recipe>, LedgerError> {
        self.transact(|transaction| initiator::untold(transaction, link))
    }

    fn told_voids(&self, keys: &[KeyId]) -> Result<(), LedgerError> {
        self.transact(|transaction| initiator::told(transaction, keys))
    }

    fn upkeep(&self, made_before_s: u64) -> Result<u64, LedgerError> {
        let expired = self.transact(|transaction| upkeep::expire(transaction, made_before_s))?;
        let connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Wrapped octets of keys that are gone leave the write-ahead log with it.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(expired)
    }

    fn counts(&self, link: &str) -> Result<Counts, LedgerError> {
        self.transact(|transaction| upkeep::counts(transaction, link))
    }
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// `locking_mode` comes before `journal_mode`, or SQLite would still share memory with others.
fn prepare(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(std::time::Duration::from_millis(200))?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "foreign_keys", "ON")
}

fn create(transaction: &Transaction<'_>, kek: &Kek) -> Result<(), LedgerError> {
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        return Err(LedgerError::Foreign(
            "is a database of another program".to_owned(),
        ));
    }
    transaction.execute_batch(include_str!("sqlite/schema.sql"))?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    let epoch = random_id()?;
    let check = kek.wrap(Kind::Check, epoch, &epoch.0)?;
    transaction.execute(
        "INSERT INTO meta VALUES ('epoch', ?1), ('check', ?2)",
        params![epoch.0, check],
    )?;
    Ok(())
}

/// A ledger opened with another ledger's KEK would look damaged key by key; it is told at once.
fn recognise(transaction: &Transaction<'_>, kek: &Kek) -> Result<(), LedgerError> {
    let value = |name: &str| -> Result<Vec<u8>, LedgerError> {
        transaction
            .query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| {
                row.get(0)
            })
            .optional()?
            .ok_or_else(|| LedgerError::Foreign(format!("has lost its {name}")))
    };
    let epoch = <[u8; 16]>::try_from(value("epoch")?);
    let epoch = epoch.map_err(|_| LedgerError::Foreign("has an epoch that is none".to_owned()))?;
    kek.unwrap(Kind::Check, KeyId(epoch), &value("check")?)?;
    Ok(())
}

/// A random UUID (RFC 9562, version 4).
fn random_id() -> Result<KeyId, WrapError> {
    let mut octets = [0; 16];
    SystemRandom::new()
        .fill(&mut octets)
        .map_err(|_| WrapError)?;
    Ok(KeyId(
        *uuid::Builder::from_random_bytes(octets)
            .into_uuid()
            .as_bytes(),
    ))
}

fn in_use(error: rusqlite::Error) -> LedgerError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LedgerError::InUse,
        Some(ErrorCode::NotADatabase) => LedgerError::Foreign("is no SQLite file".to_owned()),
        _ => LedgerError::Database(error),
    }
}

/// Others need not know how many keys there are, wrapped or not.
fn private(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
            tracing::warn!(?path, %error, "the ledger's mode could not be set to 0600");
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Numbers of ours are far below 2^63; SQLite has no larger ones.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn owner_number(owner: Owner) -> i64 {
    match owner {
        Owner::Alice => 0,
        Owner::Bob => 1,
    }
}
