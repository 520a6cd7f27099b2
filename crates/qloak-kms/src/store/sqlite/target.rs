//! Keys at the target's KME: hold, then take, or destroy on the initiator's word.

use qloak_api::{KeyId, SaeId};
use qloak_keys::{Key, NamedKey, limits::KEY_OCTETS};
use rusqlite::{OptionalExtension, Transaction, params};
use zeroize::Zeroizing;

use super::{integer, owner_number, state};
use crate::{
    limits,
    store::{LedgerError, Owner, Recipe},
    wrap::{Kek, Kind},
};

/// What is common to the keys of one message.
pub(super) struct Held<'a> {
    pub(super) link: &'a str,
    pub(super) owner: Owner,
    pub(super) initiator: &'a SaeId,
    pub(super) targets: &'a [SaeId],
    pub(super) now_s: u64,
}

pub(super) fn hold(
    transaction: &Transaction<'_>,
    kek: &Kek,
    held: &Held<'_>,
    recipes: &[Recipe],
) -> Result<(), LedgerError> {
    let already: i64 = transaction.query_row(
        "SELECT count(*) FROM key WHERE link = ?1 AND wrap IS NOT NULL",
        [held.link],
        |row| row.get(0),
    )?;
    if already.unsigned_abs() + recipes.len() as u64 > limits::HELD_KEYS_MAX {
        return Err(LedgerError::Full);
    }
    for recipe in recipes {
        let known: Option<i64> = transaction
            .query_row(
                "SELECT number FROM key WHERE id = ?1",
                [recipe.key_id.0],
                |row| row.get(0),
            )
            .optional()?;
        if known.is_some() {
            return Err(LedgerError::KnownKey);
        }
        let key = make(transaction, kek, held, recipe)?;
        let wrapped = kek.wrap(Kind::Key, recipe.key_id, key.as_slice())?;
        transaction
            .prepare_cached(
                "INSERT INTO key (id, link, initiator, state, octets, made_s, wrap) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                recipe.key_id.0,
                held.link,
                held.initiator.as_str(),
                state::RESERVED,
                recipe.octets as i64,
                integer(held.now_s),
                wrapped
            ])?;
        for target in held.targets {
            transaction
                .prepare_cached("INSERT INTO target (key_id, consumer) VALUES (?1, ?2)")?
                .execute(params![recipe.key_id.0, target.as_str()])?;
        }
    }
    Ok(())
}

/// Puts the blocks together and gives them up. They may still wait for their batch to be confirmed:
/// the peer that names them has them, and that is what confirmation would say.
fn make(
    transaction: &Transaction<'_>,
    kek: &Kek,
    held: &Held<'_>,
    recipe: &Recipe,
) -> Result<Key, LedgerError> {
    if recipe.block_ids.len() > limits::BLOCKS_PER_KEY_MAX || !KEY_OCTETS.contains(&recipe.octets) {
        return Err(LedgerError::NoSuchBlock);
    }
    let mut octets = Zeroizing::new(Vec::with_capacity(
        recipe.block_ids.len() * KEY_OCTETS.end(),
    ));
    for id in &recipe.block_ids {
        let wrapped: Vec<u8> = transaction
            .prepare_cached(
                "DELETE FROM block WHERE id = ?1 AND link = ?2 AND owner = ?3 AND key_id IS NULL RETURNING wrap",
            )?
            .query_row(params![id.0, held.link, owner_number(held.owner)], |row| row.get(0))
            .optional()?
            .ok_or(LedgerError::NoSuchBlock)?;
        octets.extend_from_slice(&kek.unwrap(Kind::Block, *id, &wrapped)?);
    }
    let key = octets
        .get(..recipe.octets)
        .ok_or(LedgerError::NoSuchBlock)?;
    Key::from_slice(key).map_err(|_| LedgerError::NoSuchBlock)
}

pub(super) fn take(
    transaction: &Transaction<'_>,
    kek: &Kek,
    consumer: &SaeId,
    initiator: &SaeId,
    keys: &[KeyId],
) -> Result<Vec<NamedKey>, LedgerError> {
    keys.iter()
        .map(|id| take_one(transaction, kek, consumer, initiator, *id))
        .collect()
}

fn take_one(
    transaction: &Transaction<'_>,
    kek: &Kek,
    consumer: &SaeId,
    initiator: &SaeId,
    id: KeyId,
) -> Result<NamedKey, LedgerError> {
    let (wrapped, link): (Vec<u8>, String) = transaction
        .prepare_cached(
            "SELECT wrap, link FROM key WHERE id = ?1 AND initiator = ?2 AND wrap IS NOT NULL
             AND EXISTS (SELECT 1 FROM target WHERE key_id = ?1 AND consumer = ?3)",
        )?
        .query_row(
            params![id.0, initiator.as_str(), consumer.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?
        .ok_or(LedgerError::NotFound)?;
    // The primary key of this table is what makes a second delivery impossible.
    let first = transaction
        .prepare_cached(
            "INSERT INTO delivery (key_id, consumer) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        )?
        .execute(params![id.0, consumer.as_str()])?;
    if first != 1 {
        return Err(LedgerError::NotFound);
    }
    let waiting: i64 = transaction
        .prepare_cached(
            "SELECT count(*) FROM target WHERE key_id = ?1
             AND consumer NOT IN (SELECT consumer FROM delivery WHERE key_id = ?1)",
        )?
        .query_row([id.0], |row| row.get(0))?;
    let key = kek.unwrap_key(Kind::Key, id, &wrapped)?;
    if waiting == 0 {
        destroy(transaction, id, "delivered")?;
    } else {
        transaction
            .prepare_cached("UPDATE key SET state = ?2 WHERE id = ?1")?
            .execute(params![id.0, state::DELIVERED_SLAVE])?;
    }
    transaction
        .prepare_cached("UPDATE link SET delivered = delivered + 1 WHERE name = ?1")?
        .execute([link])?;
    Ok(NamedKey { id, key })
}

pub(super) fn voided(
    transaction: &Transaction<'_>,
    link: &str,
    owner: Owner,
    voids: &[Recipe],
) -> Result<(), LedgerError> {
    for void in voids {
        for id in &void.block_ids {
            transaction.execute(
                "DELETE FROM block WHERE id = ?1 AND link = ?2 AND owner = ?3 AND key_id IS NULL",
                params![id.0, link, owner_number(owner)],
            )?;
        }
        let held: Option<i64> = transaction
            .query_row(
                "SELECT number FROM key WHERE id = ?1 AND link = ?2 AND wrap IS NOT NULL",
                params![void.key_id.0, link],
                |row| row.get(0),
            )
            .optional()?;
        if held.is_some() {
            destroy(transaction, void.key_id, "voided by the peer")?;
            transaction.execute(
                "UPDATE link SET voided = voided + 1 WHERE name = ?1",
                [link],
            )?;
        } else {
            // A tombstone: an order for this key that is still on its way will find the name taken.
            transaction.execute(
                "INSERT INTO key (id, link, initiator, state, octets, made_s, reason)
                 VALUES (?1, ?2, '', ?3, ?4, 0, 'voided by the peer') ON CONFLICT DO NOTHING",
                params![void.key_id.0, link, state::DESTROYED, void.octets as i64],
            )?;
        }
    }
    Ok(())
}

pub(super) fn destroy(
    transaction: &Transaction<'_>,
    id: KeyId,
    reason: &str,
) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("UPDATE key SET state = ?2, wrap = NULL, reason = ?3 WHERE id = ?1")?
        .execute(params![id.0, state::DESTROYED, reason])?;
    Ok(())
}
