//! Keys at the initiator's KME: reserve, then confirm, release or void.

use qloak_api::{KeyId, SaeId};
use qloak_keys::{Key, limits::KEY_OCTETS};
use rusqlite::{OptionalExtension, Transaction, params};
use zeroize::Zeroizing;

use super::{integer, owner_number, random_id, state};
use crate::{
    limits,
    store::{LedgerError, Order, Owner, Recipe, Reserved},
    wrap::{Kek, Kind, WrapError},
};

pub(super) fn reserve(
    transaction: &Transaction<'_>,
    kek: &Kek,
    link: &str,
    owner: Owner,
    order: &Order,
    now_s: u64,
) -> Result<Vec<Reserved>, LedgerError> {
    let mut free = transaction.prepare_cached(
        "SELECT number, id, octets, wrap FROM block
         WHERE link = ?1 AND owner = ?2 AND confirmed = 1 AND key_id IS NULL ORDER BY number",
    )?;
    let mut rows = free.query(params![link, owner_number(owner)])?;
    let mut taken: Vec<(i64, KeyId, i64)> = Vec::new();
    let mut reserved = Vec::new();
    while reserved.len() < order.number as usize {
        let key_id = random_id()?;
        let mut octets = Zeroizing::new(Vec::with_capacity(order.octets + KEY_OCTETS.end()));
        let mut block_ids = Vec::new();
        while octets.len() < order.octets {
            let Some(row) = rows.next()? else {
                let stored = reserved.len() as u64;
                return Err(LedgerError::NotEnough {
                    asked: order.number.into(),
                    stored,
                });
            };
            let id = KeyId(row.get(1)?);
            let wrapped: Vec<u8> = row.get(3)?;
            octets.extend_from_slice(&kek.unwrap(Kind::Block, id, &wrapped)?);
            taken.push((row.get(0)?, key_id, block_ids.len() as i64));
            block_ids.push(id);
        }
        let key = Key::from_slice(octets.get(..order.octets).unwrap_or_default())
            .map_err(|_| WrapError)?;
        reserved.push(Reserved {
            recipe: Recipe {
                key_id,
                octets: order.octets,
                block_ids,
            },
            key,
        });
    }
    for (number, key_id, position) in taken {
        transaction
            .prepare_cached("UPDATE block SET key_id = ?2, position = ?3 WHERE number = ?1")?
            .execute(params![number, key_id.0, position])?;
    }
    for key in &reserved {
        transaction
            .prepare_cached("INSERT INTO key (id, link, initiator, state, octets, made_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![
                key.recipe.key_id.0,
                link,
                order.initiator.as_str(),
                state::RESERVED,
                order.octets as i64,
                integer(now_s)
            ])?;
    }
    Ok(reserved)
}

pub(super) fn confirm(
    transaction: &Transaction<'_>,
    kek: &Kek,
    reserved: &[Reserved],
    initiator: &SaeId,
    local_targets: &[SaeId],
) -> Result<(), LedgerError> {
    for Reserved { recipe, key } in reserved {
        let id = recipe.key_id;
        // Kept only if an SAE of this KME has yet to fetch it.
        let wrapped = match local_targets {
            [] => None,
            _ => Some(kek.wrap(Kind::Key, id, key.as_slice())?),
        };
        let (next, reason) = match wrapped {
            None => (state::DESTROYED, Some("delivered")),
            Some(_) => (state::DELIVERED_MASTER, None),
        };
        let changed = transaction
            .prepare_cached(
                "UPDATE key SET state = ?2, wrap = ?3, reason = ?4 WHERE id = ?1 AND state = ?5",
            )?
            .execute(params![id.0, next, wrapped, reason, state::RESERVED])?;
        if changed != 1 {
            return Err(LedgerError::WrongState);
        }
        transaction
            .prepare_cached("DELETE FROM block WHERE key_id = ?1")?
            .execute([id.0])?;
        transaction
            .prepare_cached("INSERT INTO delivery (key_id, consumer) VALUES (?1, ?2)")?
            .execute(params![id.0, initiator.as_str()])?;
        for target in local_targets {
            transaction
                .prepare_cached("INSERT INTO target (key_id, consumer) VALUES (?1, ?2)")?
                .execute(params![id.0, target.as_str()])?;
        }
        transaction
            .prepare_cached("UPDATE link SET delivered = delivered + 1 WHERE name = (SELECT link FROM key WHERE id = ?1)")?
            .execute([id.0])?;
    }
    Ok(())
}

pub(super) fn release(transaction: &Transaction<'_>, keys: &[KeyId]) -> Result<(), LedgerError> {
    for id in keys {
        let forgotten = transaction.execute(
            "DELETE FROM key WHERE id = ?1 AND state = ?2",
            params![id.0, state::RESERVED],
        )?;
        if forgotten == 1 {
            transaction.execute(
                "UPDATE block SET key_id = NULL, position = NULL WHERE key_id = ?1",
                [id.0],
            )?;
        }
    }
    Ok(())
}

pub(super) fn void(
    transaction: &Transaction<'_>,
    id: KeyId,
    reason: &str,
) -> Result<(), LedgerError> {
    let found: Option<(String, i64)> = transaction
        .query_row(
            "SELECT link, octets FROM key WHERE id = ?1 AND state = ?2",
            params![id.0, state::RESERVED],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((link, octets)) = found else {
        return Ok(());
    };
    let mut block_ids = Vec::new();
    let mut statement =
        transaction.prepare_cached("SELECT id FROM block WHERE key_id = ?1 ORDER BY position")?;
    let mut rows = statement.query([id.0])?;
    while let Some(row) = rows.next()? {
        block_ids.extend_from_slice(&row.get::<_, [u8; 16]>(0)?);
    }
    transaction.execute("DELETE FROM block WHERE key_id = ?1", [id.0])?;
    transaction.execute(
        "UPDATE key SET state = ?2, reason = ?3 WHERE id = ?1",
        params![id.0, state::DESTROYED, reason],
    )?;
    transaction.execute(
        "INSERT INTO outbox (key_id, link, octets, block_ids) VALUES (?1, ?2, ?3, ?4)",
        params![id.0, link, octets, block_ids],
    )?;
    transaction.execute(
        "UPDATE link SET voided = voided + 1 WHERE name = ?1",
        [link],
    )?;
    Ok(())
}

/// What was under way when the program ended: whether the peer or the SAE got it cannot be known.
pub(super) fn void_unconfirmed(transaction: &Transaction<'_>) -> Result<usize, LedgerError> {
    let mut statement =
        transaction.prepare("SELECT id FROM key WHERE state = ?1 AND wrap IS NULL")?;
    let ids: Vec<[u8; 16]> = statement
        .query_map([state::RESERVED], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in &ids {
        void(transaction, KeyId(*id), "reserved when the KMS ended")?;
    }
    Ok(ids.len())
}

pub(super) fn untold(
    transaction: &Transaction<'_>,
    link: &str,
) -> Result<Vec<Recipe>, LedgerError> {
    let mut statement = transaction.prepare_cached(
        "SELECT key_id, octets, block_ids FROM outbox WHERE link = ?1 ORDER BY number LIMIT ?2",
    )?;
    let mut rows = statement.query(params![link, limits::VOIDS_PER_MESSAGE_MAX as i64])?;
    let mut voids = Vec::new();
    while let Some(row) = rows.next()? {
        let block_ids: Vec<u8> = row.get(2)?;
        let (block_ids, _) = block_ids.as_chunks::<16>();
        voids.push(Recipe {
            key_id: KeyId(row.get(0)?),
            octets: usize::try_from(row.get::<_, i64>(1)?).unwrap_or_default(),
            block_ids: block_ids.iter().map(|id| KeyId(*id)).collect(),
        });
    }
    Ok(voids)
}

pub(super) fn told(transaction: &Transaction<'_>, keys: &[KeyId]) -> Result<(), LedgerError> {
    for id in keys {
        transaction.execute("DELETE FROM outbox WHERE key_id = ?1", [id.0])?;
    }
    Ok(())
}
