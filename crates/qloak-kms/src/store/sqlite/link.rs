//! Blocks as they come from the link.

use qloak_api::KeyId;
use qloak_qkd::Block;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{integer, owner_number, random_id};
use crate::{
    store::{Batch, LedgerError, Owner},
    wrap::{Kek, Kind},
};

/// The ledger's own until the link is emptied for the first time.
pub(super) fn epoch(transaction: &Transaction<'_>, link: &str) -> Result<KeyId, LedgerError> {
    let epoch = transaction.query_row(
        "SELECT value FROM meta WHERE name IN ('epoch', ?1) ORDER BY name = 'epoch' LIMIT 1",
        [epoch_of(link)],
        |row| row.get(0),
    )?;
    Ok(KeyId(epoch))
}

fn epoch_of(link: &str) -> String {
    format!("epoch of {link}")
}

pub(super) fn meet(
    transaction: &Transaction<'_>,
    link: &str,
    own: Owner,
    peer_epoch: KeyId,
) -> Result<bool, LedgerError> {
    let known: Option<[u8; 16]> = transaction.query_row(
        "SELECT peer_epoch FROM link WHERE name = ?1",
        [link],
        |row| row.get(0),
    )?;
    if known == Some(peer_epoch.0) {
        return Ok(false);
    }
    if known.is_some() {
        empty(transaction, link, own)?;
    }
    // Alice's new epoch empties bob, whose epoch is then another one than this: it waits for that,
    // or the two would empty each other for ever.
    if known.is_none() || own == Owner::Bob {
        transaction.execute(
            "UPDATE link SET peer_epoch = ?2 WHERE name = ?1",
            params![link, peer_epoch.0],
        )?;
    }
    Ok(known.is_some())
}

pub(super) fn empty(
    transaction: &Transaction<'_>,
    link: &str,
    own: Owner,
) -> Result<(), LedgerError> {
    // Blocks that are reserved stay: the key that they belong to is confirmed or voided by its own way.
    transaction.execute(
        "DELETE FROM block WHERE link = ?1 AND key_id IS NULL",
        [link],
    )?;
    // Batches are numbered anew: a new alice begins at 1, and a new bob knows none.
    transaction.execute("UPDATE link SET batch = 0 WHERE name = ?1", [link])?;
    if own == Owner::Alice {
        transaction.execute("UPDATE link SET peer_epoch = NULL WHERE name = ?1", [link])?;
    }
    transaction.execute(
        "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
        params![epoch_of(link), random_id()?.0],
    )?;
    Ok(())
}

pub(super) fn add(
    transaction: &Transaction<'_>,
    kek: &Kek,
    link: &str,
    blocks: &[(Block, Owner)],
) -> Result<(), LedgerError> {
    transaction.execute("UPDATE link SET batch = batch + 1 WHERE name = ?1", [link])?;
    let number = last_batch(transaction, link)?;
    insert(transaction, kek, link, number, blocks, false)
}

pub(super) fn pending(
    transaction: &Transaction<'_>,
    kek: &Kek,
    link: &str,
) -> Result<Option<Batch>, LedgerError> {
    let number: Option<i64> = transaction
        .query_row(
            "SELECT min(batch) FROM block WHERE link = ?1 AND confirmed = 0",
            [link],
            |row| row.get(0),
        )
        .optional()?
        .flatten();
    let Some(number) = number else {
        return Ok(None);
    };
    let mut statement = transaction.prepare_cached(
        "SELECT id, owner, wrap FROM block WHERE link = ?1 AND batch = ?2 AND confirmed = 0 ORDER BY number",
    )?;
    let mut rows = statement.query(params![link, number])?;
    let mut blocks = Vec::new();
    while let Some(row) = rows.next()? {
        let id = KeyId(row.get(0)?);
        let owner = if row.get::<_, i64>(1)? == owner_number(Owner::Alice) {
            Owner::Alice
        } else {
            Owner::Bob
        };
        let wrapped: Vec<u8> = row.get(2)?;
        blocks.push((
            Block {
                id,
                key: kek.unwrap_key(Kind::Block, id, &wrapped)?,
            },
            owner,
        ));
    }
    Ok(Some(Batch {
        number: number.unsigned_abs(),
        blocks,
    }))
}

pub(super) fn confirm(
    transaction: &Transaction<'_>,
    link: &str,
    number: u64,
) -> Result<(), LedgerError> {
    transaction.execute(
        "UPDATE block SET confirmed = 1 WHERE link = ?1 AND batch = ?2 AND confirmed = 0",
        params![link, integer(number)],
    )?;
    Ok(())
}

pub(super) fn accept(
    transaction: &Transaction<'_>,
    kek: &Kek,
    link: &str,
    batch: &Batch,
    octets_max: u64,
) -> Result<(), LedgerError> {
    if integer(batch.number) <= last_batch(transaction, link)? {
        // Known: the answer to it was lost. Some of its blocks may be used already and must not come back.
        return Ok(());
    }
    for owner in [Owner::Alice, Owner::Bob] {
        let own = |(block, of): &(Block, Owner)| {
            if *of == owner {
                block.key.octets() as u64
            } else {
                0
            }
        };
        if stock(transaction, link, owner)? + batch.blocks.iter().map(own).sum::<u64>() > octets_max
        {
            return Err(LedgerError::Full);
        }
    }
    transaction.execute(
        "UPDATE link SET batch = ?2 WHERE name = ?1",
        params![link, integer(batch.number)],
    )?;
    insert(
        transaction,
        kek,
        link,
        integer(batch.number),
        &batch.blocks,
        true,
    )
}

/// Octets in blocks that `owner` may give out now.
pub(super) fn stock(
    transaction: &Transaction<'_>,
    link: &str,
    owner: Owner,
) -> Result<u64, LedgerError> {
    let octets: i64 = transaction
        .prepare_cached(
            "SELECT coalesce(sum(octets), 0) FROM block
             WHERE link = ?1 AND owner = ?2 AND confirmed = 1 AND key_id IS NULL",
        )?
        .query_row(params![link, owner_number(owner)], |row| row.get(0))?;
    Ok(octets.unsigned_abs())
}

fn last_batch(transaction: &Transaction<'_>, link: &str) -> Result<i64, LedgerError> {
    Ok(
        transaction.query_row("SELECT batch FROM link WHERE name = ?1", [link], |row| {
            row.get(0)
        })?,
    )
}

fn insert(
    transaction: &Transaction<'_>,
    kek: &Kek,
    link: &str,
    batch: i64,
    blocks: &[(Block, Owner)],
    confirmed: bool,
) -> Result<(), LedgerError> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO block (id, link, owner, batch, confirmed, octets, wrap) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (block, owner) in blocks {
        let wrapped = kek.wrap(Kind::Block, block.id, block.key.as_slice())?;
        let octets = block.key.octets() as i64;
        statement.execute(params![
            block.id.0,
            link,
            owner_number(*owner),
            batch,
            confirmed,
            octets,
            wrapped
        ])?;
    }
    Ok(())
}
