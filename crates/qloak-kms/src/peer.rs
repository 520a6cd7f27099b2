//! The inter-KMS door: what the KME at the other end of a link may ask, and how it is asked.
//!
//! ```text
//! POST /peer/v1/links/{link}/blocks  BatchDoc -> BatchAck   alice to bob: key blocks, or only "I am here"
//! POST /peer/v1/links/{link}/keys    KeysDoc  -> {}         hold these keys for your SAEs
//! POST /peer/v1/links/{link}/void    VoidsDoc -> {}         these keys and blocks are void
//! ```
//!
//! `blocks` stands for the quantum channel of an emulated link: it is the only message that carries key
//! octets, and there would be none with a real one. What always holds: only the peer of the link, by
//! name and role, is heard; an answer is given after the ledger has it on disk; 409, 410 and 507 say
//! that nothing was kept, any other fault leaves that open. 410 says moreover that the two ends do not
//! store the same blocks: the end that hears it empties the link.

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use qloak_api::{KeyId, Problem, SaeId};
use qloak_door::{Caller, DoorError};
use qloak_keys::{Key, limits::KEY_OCTETS};
use qloak_qkd::Block;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    kms::{Kms, Link, now_s},
    limits,
    operate::problem,
    store::{Batch, LedgerError, Owner, Recipe},
};

/// What alice's source is and does, for bob's operator.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SourceDoc {
    words: String,
    skr_bps: f64,
    qber_ratio: f64,
    enabled: bool,
}

#[derive(Serialize, Deserialize)]
struct BlockDoc<'a> {
    id: KeyId,
    owner: Owner,
    key: &'a str,
}

#[derive(Serialize, Deserialize)]
struct BatchDoc<'a> {
    /// The ledger that it comes from.
    epoch: KeyId,
    /// The ledger that it is meant for; none before the first answer, and then there are no blocks.
    to_epoch: Option<KeyId>,
    source: SourceDoc,
    number: u64,
    #[serde(borrow)]
    blocks: Vec<BlockDoc<'a>>,
}

/// Bob's answer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct BatchAck {
    /// Bob's ledger.
    pub(crate) epoch: KeyId,
    /// The blocks are on disk.
    pub(crate) stored: bool,
    /// There was no room for them.
    pub(crate) full: bool,
    /// Bob's operator wants keys.
    pub(crate) enabled: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysDoc {
    initiator_sae_id: SaeId,
    target_sae_ids: Vec<SaeId>,
    keys: Vec<Recipe>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VoidsDoc {
    voids: Vec<Recipe>,
}

/// What became of an order to hold keys.
#[derive(Debug)]
pub(crate) enum Hold {
    /// They are held, durably.
    Held,
    /// They are certainly not held, and the blocks are as they were.
    Untouched(String),
    /// They are not held, and some of their blocks are not at the other end.
    Gone(String),
    /// They may be held, or their blocks may be gone.
    Doubtful(String),
}

/// Sends a batch, or with none only says that alice is there.
pub(crate) async fn send_batch(
    link: &Link,
    epoch: KeyId,
    batch: Option<&Batch>,
) -> Result<BatchAck, DoorError> {
    let body = {
        let view = link.view();
        let source = SourceDoc {
            words: view.source.clone(),
            skr_bps: view.skr_bps,
            qber_ratio: view.qber_ratio,
            enabled: view.enabled,
        };
        write_batch(epoch, view.peer_epoch, source, batch)
    };
    let path = link.path("blocks");
    let reply = link.client.exchange("POST", &path, Some(body)).await?;
    read_answer(link, &path, reply.status, &reply.body)
}

/// Asks the peer to hold keys for its SAEs.
pub(crate) async fn order_keys(
    link: &Link,
    initiator: &SaeId,
    targets: &[SaeId],
    keys: &[Recipe],
) -> Hold {
    let order = KeysDoc {
        initiator_sae_id: initiator.clone(),
        target_sae_ids: targets.to_vec(),
        keys: keys.to_vec(),
    };
    match link
        .client
        .post_json::<_, serde_json::Value>(&link.path("keys"), &order)
        .await
    {
        Ok(_) => Hold::Held,
        Err(DoorError::Status {
            status: 507, body, ..
        }) => Hold::Untouched(body),
        Err(DoorError::Status {
            status: 410, body, ..
        }) => Hold::Gone(body),
        Err(error) if error.never_arrived() => Hold::Untouched(error.to_string()),
        Err(error) => Hold::Doubtful(error.to_string()),
    }
}

/// Tells the peer what is void.
pub(crate) async fn tell_voids(link: &Link, voids: Vec<Recipe>) -> Result<(), DoorError> {
    let done: Result<serde_json::Value, _> = link
        .client
        .post_json(&link.path("void"), &VoidsDoc { voids })
        .await;
    done.map(drop)
}

/// The routes of this door.
pub(crate) fn router() -> Router<Arc<Kms>> {
    Router::new()
        .route("/peer/v1/links/{link}/blocks", post(blocks))
        .route("/peer/v1/links/{link}/keys", post(keys))
        .route("/peer/v1/links/{link}/void", post(void))
}

async fn blocks(
    State(kms): State<Arc<Kms>>,
    Path(name): Path<String>,
    caller: Caller,
    body: Bytes,
) -> Response {
    // One buffer of ours, wiped when this is over, whatever the transport does with its own.
    let body = Zeroizing::new(Vec::from(body));
    let taken = async {
        let link = peer_link(&kms, &name, &caller)?;
        take_batch(&kms, link, &body).await
    };
    answer(taken.await)
}

async fn keys(
    State(kms): State<Arc<Kms>>,
    Path(name): Path<String>,
    caller: Caller,
    body: Bytes,
) -> Response {
    let held = async {
        let link = peer_link(&kms, &name, &caller)?;
        let order: KeysDoc = parse(&body)?;
        hold_keys(&kms, link, order).await
    };
    answer(held.await)
}

async fn void(
    State(kms): State<Arc<Kms>>,
    Path(name): Path<String>,
    caller: Caller,
    body: Bytes,
) -> Response {
    let voided = async {
        let link = peer_link(&kms, &name, &caller)?;
        let VoidsDoc { voids } = parse(&body)?;
        if voids.len() > limits::VOIDS_PER_MESSAGE_MAX {
            return Err(Problem::bad_request(
                "more voids than one message may carry",
            ));
        }
        let owner = link.own().other();
        let done = kms
            .ledger(move |store| store.voided(&name, owner, &voids))
            .await;
        done.map(|()| serde_json::json!({})).map_err(ledger_problem)
    };
    answer(voided.await)
}

async fn take_batch(kms: &Kms, link: &Arc<Link>, body: &[u8]) -> Result<BatchAck, Problem> {
    if link.own() == Owner::Alice {
        return Err(Problem::conflict(
            "both ends of this link are alice; change the role of one",
        ));
    }
    let document: BatchDoc<'_> = serde_json::from_slice(body)
        // serde's own words may quote a key.
        .map_err(|error| {
            Problem::bad_request(format!(
                "no batch at line {}, column {}",
                error.line(),
                error.column()
            ))
        })?;
    let batch = read_batch(&document)
        .ok_or_else(|| Problem::bad_request("the batch holds something that is no block"))?;
    let from = document.epoch;
    let sent = !batch.blocks.is_empty();
    let (name, octets_max, to_epoch) = (
        link.config.name.clone(),
        kms.octets_max(),
        document.to_epoch,
    );
    let (epoch, stored, reset) = kms
        .ledger(move |store| {
            let reset = store.meet(&name, Owner::Bob, from)?;
            let epoch = store.epoch(&name)?;
            let meant_for_us = to_epoch == Some(epoch);
            let stored = match meant_for_us && sent {
                false => Ok(false),
                true => store.accept_batch(&name, batch, octets_max).map(|()| true),
            };
            Ok((epoch, stored, reset))
        })
        .await
        .map_err(ledger_problem)?;
    if reset {
        link.emptied("the peer's store is another one than before");
    }
    let full = matches!(stored, Err(LedgerError::Full));
    let stored = match stored {
        Err(LedgerError::Full) => false,
        other => other.map_err(ledger_problem)?,
    };
    let mut view = link.view();
    view.heard = Some(Instant::now());
    view.error = None;
    view.peer_epoch = Some(from);
    view.peer_enabled = document.source.enabled;
    view.source = document.source.words;
    view.skr_bps = document.source.skr_bps;
    view.qber_ratio = document.source.qber_ratio;
    Ok(BatchAck {
        epoch,
        stored,
        full,
        enabled: view.enabled,
    })
}

async fn hold_keys(
    kms: &Kms,
    link: &Arc<Link>,
    order: KeysDoc,
) -> Result<serde_json::Value, Problem> {
    let KeysDoc {
        initiator_sae_id: initiator,
        target_sae_ids: targets,
        keys,
    } = order;
    if !link.config.peer_saes.contains(&initiator) {
        return Err(Problem::conflict(format!(
            "{initiator} is no SAE of {} as far as is known here",
            link.config.peer
        )));
    }
    if let Some(stranger) = targets
        .iter()
        .find(|target| !kms.config.saes.contains(*target))
    {
        return Err(Problem::conflict(format!(
            "{stranger} is no SAE of {}",
            kms.config.kme_id
        )));
    }
    let targets_max = *limits::ADDITIONAL_SAES.end() as usize + 1;
    let sound = (1..=targets_max).contains(&targets.len())
        && (1..=*limits::KEYS_PER_REQUEST.end() as usize).contains(&keys.len());
    if !sound {
        return Err(Problem::bad_request(
            "1 to 1024 keys for 1 to 65 SAEs may be ordered at once",
        ));
    }
    let (name, owner) = (link.config.name.clone(), link.own().other());
    kms.ledger(move |store| store.hold(&name, owner, &initiator, &targets, &keys, now_s()))
        .await
        .map(|()| serde_json::json!({}))
        .map_err(ledger_problem)
}

fn peer_link<'a>(kms: &'a Kms, name: &str, caller: &Caller) -> Result<&'a Arc<Link>, Problem> {
    // A stranger learns nothing of which links there are.
    kms.link(name)
        .filter(|link| link.is_peer(caller))
        .ok_or_else(|| {
            Problem::forbidden(format!(
                "{:?} is not the peer of a link {name:?} here",
                caller.name
            ))
        })
}

fn ledger_problem(error: LedgerError) -> Problem {
    match error {
        LedgerError::Full => Problem::new(507, "no room", "too many keys wait to be fetched here"),
        LedgerError::NoSuchBlock => Problem::new(410, "gone", error.to_string()),
        LedgerError::KnownKey => Problem::conflict(error.to_string()),
        other => {
            tracing::error!(error = %other, "an order of the peer could not be carried out");
            Problem::internal("the ledger failed; see the log")
        }
    }
}

fn answer<T: Serialize>(result: Result<T, Problem>) -> Response {
    match result {
        Ok(document) => Json(document).into_response(),
        Err(fault) => problem(fault),
    }
}

fn parse<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::bad_request(error.to_string()))
}

fn read_answer(link: &Link, path: &str, status: u16, body: &[u8]) -> Result<BatchAck, DoorError> {
    let url = format!("{}{path}", link.client.base_url());
    if status != 200 {
        let body = String::from_utf8_lossy(body).into_owned();
        return Err(DoorError::Status { url, status, body });
    }
    serde_json::from_slice(body).map_err(|error| DoorError::NotJson {
        url,
        reason: error.to_string(),
    })
}

/// The body has its whole capacity at once, so that writing leaves no copy behind; the client wipes it.
fn write_batch(
    epoch: KeyId,
    to_epoch: Option<KeyId>,
    source: SourceDoc,
    batch: Option<&Batch>,
) -> Vec<u8> {
    let blocks = batch
        .map(|batch| batch.blocks.as_slice())
        .unwrap_or_default();
    let texts: Vec<Zeroizing<String>> = blocks
        .iter()
        .map(|(block, _)| Zeroizing::new(STANDARD.encode(block.key.as_slice())))
        .collect();
    let document = BatchDoc {
        epoch,
        to_epoch,
        source,
        number: batch.map_or(0, |batch| batch.number),
        blocks: blocks
            .iter()
            .zip(&texts)
            .map(|((block, owner), text)| BlockDoc {
                id: block.id,
                owner: *owner,
                key: text,
            })
            .collect(),
    };
    let mut body =
        Vec::with_capacity(1024 + blocks.len() * (96 + KEY_OCTETS.end().div_ceil(3) * 4));
    // Writing plain data into a Vec cannot fail; an empty body would be refused by bob.
    let _ = serde_json::to_writer(&mut body, &document);
    body
}

fn read_batch(document: &BatchDoc<'_>) -> Option<Batch> {
    if document.blocks.len() > limits::BLOCKS_PER_BATCH_MAX || !document.source.skr_bps.is_finite()
    {
        return None;
    }
    let mut octets = Zeroizing::new([0; *KEY_OCTETS.end() + 3]);
    let mut blocks = Vec::with_capacity(document.blocks.len());
    for BlockDoc { id, owner, key } in &document.blocks {
        let length = STANDARD.decode_slice(key, octets.as_mut_slice()).ok()?;
        let key = Key::from_slice(octets.get(..length)?).ok()?;
        blocks.push((Block { id: *id, key }, *owner));
    }
    Some(Batch {
        number: document.number,
        blocks,
    })
}
