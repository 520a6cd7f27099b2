//! Records, intents and libraries: written through at each change, read once at the start.

use std::collections::BTreeMap;

use qloak_api::{
    ChannelNumber, SaeId, SuiteEntry,
    control::{KmsRecord, LinkRecord, NodeRecord},
};
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Serialize, de::DeserializeOwned};

use super::{Store, StoreError};
use crate::{
    intent::{ChannelKey, Standing},
    topology::Topology,
};

/// All that was kept.
#[derive(Debug, Default, PartialEq)]
pub struct Kept {
    /// Nodes, KMSs and links.
    pub topology: Topology,
    /// Intents.
    pub intents: BTreeMap<ChannelKey, Standing>,
    /// The library of each node as last seen.
    pub libraries: BTreeMap<SaeId, Vec<SuiteEntry>>,
}

impl Store {
    /// Reads everything.
    ///
    /// # Errors
    /// The database failed or its rows do not say what they should.
    pub fn load(&self) -> Result<Kept, StoreError> {
        self.transaction(|tx| {
            Ok(Kept {
                topology: load_topology(tx)?,
                intents: load_intents(tx)?,
                libraries: load_libraries(tx)?,
            })
        })
    }

    /// Makes the records those of `topology`, in one transaction. Intents of links that are gone and
    /// libraries of nodes that are gone go with them.
    ///
    /// # Errors
    /// The database failed; nothing changed.
    pub fn save_topology(&self, topology: &Topology) -> Result<(), StoreError> {
        self.transaction(|tx| {
            tx.execute_batch("DELETE FROM node; DELETE FROM kms; DELETE FROM link;")?;
            for node in topology.nodes.values() {
                tx.execute(
                    "INSERT INTO node VALUES (?1, ?2)",
                    params![node.name.as_str(), node.url],
                )?;
            }
            for kms in topology.kms.values() {
                tx.execute(
                    "INSERT INTO kms VALUES (?1, ?2)",
                    params![kms.kme_id, kms.url],
                )?;
            }
            for link in topology.links.values() {
                let row = params![link.name, link.a.as_str(), link.b.as_str()];
                tx.execute("INSERT INTO link VALUES (?1, ?2, ?3)", row)?;
            }
            tx.execute_batch(
                "DELETE FROM intent WHERE link NOT IN (SELECT name FROM link);
                 DELETE FROM library WHERE node NOT IN (SELECT name FROM node);",
            )?;
            Ok(())
        })
    }

    /// Writes how an intent stands; `None` removes it.
    ///
    /// # Errors
    /// The database failed; nothing changed.
    pub fn save_intent(
        &self,
        key: &ChannelKey,
        standing: Option<&Standing>,
    ) -> Result<(), StoreError> {
        let channel = key.channel.number();
        self.transaction(|tx| {
            let Some(standing) = standing else {
                tx.execute(
                    "DELETE FROM intent WHERE link = ?1 AND channel = ?2",
                    params![key.link, channel],
                )?;
                return Ok(());
            };
            let commanded = i64::try_from(standing.commanded_unix_ms).unwrap_or(i64::MAX);
            tx.execute(
                "INSERT OR REPLACE INTO intent VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    key.link,
                    channel,
                    to_json(&standing.intent)?,
                    standing.fallback.as_ref().map(to_json).transpose()?,
                    commanded,
                    standing.converged_after_ms,
                ],
            )?;
            Ok(())
        })
    }

    /// Keeps a node's library, if the node is known.
    ///
    /// # Errors
    /// The database failed.
    pub fn save_library(&self, node: &SaeId, library: &[SuiteEntry]) -> Result<(), StoreError> {
        let suites = to_json(&library)?;
        self.transaction(|tx| {
            let known = "SELECT 1 FROM node WHERE name = ?1";
            let known = tx
                .query_row(known, [node.as_str()], |_| Ok(()))
                .optional()?;
            if known.is_some() {
                tx.execute(
                    "INSERT OR REPLACE INTO library VALUES (?1, ?2)",
                    params![node.as_str(), suites],
                )?;
            }
            Ok(())
        })
    }
}

fn load_topology(tx: &Transaction<'_>) -> Result<Topology, StoreError> {
    let mut topology = Topology::default();
    let damaged = |fault: crate::topology::Fault| StoreError::Damaged(fault.to_string());
    for (name, url) in pairs(tx, "SELECT name, url FROM node")? {
        let name = sae_id(name)?;
        topology
            .add_node(NodeRecord { name, url })
            .map_err(damaged)?;
    }
    for (kme_id, url) in pairs(tx, "SELECT kme_id, url FROM kms")? {
        topology
            .add_kms(KmsRecord { kme_id, url })
            .map_err(damaged)?;
    }
    let mut statement = tx.prepare("SELECT name, a, b FROM link")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for row in rows {
        let (name, a, b): (String, String, String) = row?;
        let (a, b) = (sae_id(a)?, sae_id(b)?);
        topology
            .add_link(LinkRecord { name, a, b })
            .map_err(damaged)?;
    }
    Ok(topology)
}

fn load_intents(tx: &Transaction<'_>) -> Result<BTreeMap<ChannelKey, Standing>, StoreError> {
    type Row = (String, u16, String, Option<String>, i64, Option<f64>);
    let mut statement = tx.prepare(
        "SELECT link, channel, intent, fallback, commanded_unix_ms, converged_after_ms FROM intent",
    )?;
    let rows = statement.query_map([], |row| {
        Ok((
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
        ))
    })?;
    let mut intents = BTreeMap::new();
    for row in rows {
        let (link, channel, intent, fallback, commanded, converged_after_ms): Row = row?;
        let channel = ChannelNumber::try_from(channel)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        let standing = Standing {
            intent: from_json(&intent)?,
            fallback: fallback.as_deref().map(from_json).transpose()?,
            commanded_unix_ms: commanded.unsigned_abs(),
            converged_after_ms,
        };
        intents.insert(ChannelKey { link, channel }, standing);
    }
    Ok(intents)
}

fn load_libraries(tx: &Transaction<'_>) -> Result<BTreeMap<SaeId, Vec<SuiteEntry>>, StoreError> {
    pairs(tx, "SELECT node, suites FROM library")?
        .into_iter()
        .map(|(node, suites)| Ok((sae_id(node)?, from_json(&suites)?)))
        .collect()
}

fn pairs(tx: &Transaction<'_>, query: &str) -> Result<Vec<(String, String)>, StoreError> {
    let mut statement = tx.prepare(query)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn sae_id(text: String) -> Result<SaeId, StoreError> {
    text.parse()
        .map_err(|error: qloak_api::IdError| StoreError::Damaged(error.to_string()))
}

fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::Fallback;
    use qloak_api::{Limits, control::Intent};

    fn id(name: &str) -> SaeId {
        name.parse().expect("an SAE ID")
    }

    fn topology() -> Topology {
        let url = "https://127.0.0.1:7443".to_owned();
        let mut topology = Topology::default();
        for name in ["a", "b"] {
            let record = NodeRecord {
                name: id(name),
                url: url.clone(),
            };
            topology.add_node(record).expect("sound");
        }
        let kme_id = "k".to_owned();
        topology.add_kms(KmsRecord { kme_id, url }).expect("sound");
        let link = LinkRecord {
            name: "metro".to_owned(),
            a: id("a"),
            b: id("b"),
        };
        topology.add_link(link).expect("sound");
        topology
    }

    #[test]
    fn what_is_saved_is_loaded_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.sqlite");
        let intent = Intent {
            suite: "aes-256-gcm".to_owned(),
            limits: Limits {
                octets: u64::MAX,
                ..Limits::default()
            },
        };
        let standing = Standing {
            intent: intent.clone(),
            fallback: Some(Fallback {
                intent: None,
                ends: vec![(id("a"), intent)],
            }),
            commanded_unix_ms: 1_795_000_000_000,
            converged_after_ms: Some(12.5),
        };
        let key = ChannelKey {
            link: "metro".to_owned(),
            channel: 1.try_into().expect("a channel"),
        };
        let store = Store::open(&path).expect("opened");
        store.save_topology(&topology()).expect("saved");
        store.save_intent(&key, Some(&standing)).expect("saved");
        store.save_library(&id("a"), &[]).expect("saved");
        store.save_library(&id("stranger"), &[]).expect("ignored");
        drop(store);

        let store = Store::open(&path).expect("opened");
        let kept = store.load().expect("loaded");
        assert_eq!(kept.topology, topology());
        assert_eq!(kept.intents.get(&key), Some(&standing));
        assert_eq!(kept.libraries.keys().collect::<Vec<_>>(), [&id("a")]);

        let mut smaller = topology();
        smaller.remove_link("metro").expect("there");
        store.save_topology(&smaller).expect("saved");
        assert!(store.load().expect("loaded").intents.is_empty());
    }

    #[test]
    fn a_damaged_row_is_an_error_and_no_panic() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.sqlite");
        let store = Store::open(&path).expect("opened");
        let direct = rusqlite::Connection::open(&path).expect("opened");
        direct
            .execute(
                "INSERT INTO intent VALUES ('metro', 70000, '{', NULL, 0, NULL)",
                [],
            )
            .expect("written");
        assert!(store.load().is_err());
        direct
            .execute("UPDATE intent SET channel = 7", [])
            .expect("written");
        assert!(matches!(store.load(), Err(StoreError::Damaged(_))));
    }
}
