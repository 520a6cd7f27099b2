//! Expiry, forgetting, figures.

use qloak_api::KeyId;
use rusqlite::{Transaction, params};

use super::{integer, link::stock, state, target::destroy};
use crate::{
    limits,
    store::{Counts, LedgerError, Owner},
};

pub(super) fn expire(
    transaction: &Transaction<'_>,
    made_before_s: u64,
) -> Result<u64, LedgerError> {
    let mut statement = transaction.prepare_cached(
        "SELECT id, link FROM key WHERE wrap IS NOT NULL AND state != ?2 AND made_s < ?1",
    )?;
    let old: Vec<([u8; 16], String)> = statement
        .query_map(params![integer(made_before_s), state::DESTROYED], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    for (id, link) in &old {
        destroy(transaction, KeyId(*id), "not fetched in time")?;
        transaction.execute(
            "UPDATE link SET expired = expired + 1 WHERE name = ?1",
            [link],
        )?;
    }
    forget(transaction, limits::HISTORY_ROWS_MAX)?;
    Ok(old.len() as u64)
}

/// The newest rows stay; of the older ones, those whose key is destroyed go.
pub(super) fn forget(transaction: &Transaction<'_>, rows_max: u64) -> Result<(), LedgerError> {
    let newest: i64 =
        transaction.query_row("SELECT coalesce(max(number), 0) FROM key", [], |row| {
            row.get(0)
        })?;
    let until = newest - integer(rows_max);
    if until <= 0 {
        return Ok(());
    }
    for table in ["target", "delivery"] {
        let sql = format!(
            "DELETE FROM {table} WHERE key_id IN (SELECT id FROM key WHERE state = ?1 AND number <= ?2)"
        );
        transaction.execute(&sql, params![state::DESTROYED, until])?;
    }
    transaction.execute(
        "DELETE FROM key WHERE state = ?1 AND number <= ?2",
        params![state::DESTROYED, until],
    )?;
    Ok(())
}

pub(super) fn counts(transaction: &Transaction<'_>, link: &str) -> Result<Counts, LedgerError> {
    let held: i64 = transaction.query_row(
        "SELECT count(*) FROM key WHERE link = ?1 AND wrap IS NOT NULL",
        [link],
        |row| row.get(0),
    )?;
    let (delivered, voided, expired): (i64, i64, i64) = transaction.query_row(
        "SELECT delivered, voided, expired FROM link WHERE name = ?1",
        [link],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(Counts {
        alice_octets: stock(transaction, link, Owner::Alice)?,
        bob_octets: stock(transaction, link, Owner::Bob)?,
        held: held.unsigned_abs(),
        delivered: delivered.unsigned_abs(),
        voided: voided.unsigned_abs(),
        expired: expired.unsigned_abs(),
    })
}
