//! Where keys come from: the client of a KME (ETSI GS QKD 014), ours or another maker's.
//!
//! The key handler asks (`Take`: new keys to share with the peer; `Fetch`: keys that the peer named) and
//! goes on at once; the answer comes back as a letter. Requests run side by side, a few at a time, so
//! that a slow one does not hold up the others. The data path never knows of any of this.
//!
//! The KME states how many keys it gives at once and of which sizes; that is asked before the first
//! request and obeyed. Every answer is checked: a key that nobody asked for or of another size is refused.

use std::{collections::BTreeSet, sync::Arc};

use qloak_api::{KeyId, SaeId};
use qloak_door::{Client, DoorError};
use qloak_keys::{NamedKey, etsi014};
use tokio::sync::{Mutex, Semaphore, mpsc};
use zeroize::Zeroizing;

use super::{SourceFailure, drive::Desk};
use crate::config::Kme;

/// Bits of a key of the key RAM (the seed's 384-bit slot: key ID of 128 bits and key of 256).
const KEY_BITS: u32 = 256;

/// Requests to the KME at once.
const REQUESTS_AT_ONCE: usize = 4;

/// What the key handler asks of the KME.
pub(crate) enum Asked {
    /// So many new keys to share with the peer.
    Take { request: u64, count: u32 },
    /// The keys of these names, which the peer took.
    Fetch { request: u64, key_ids: Vec<KeyId> },
}

/// What became of it.
pub(crate) enum Answer {
    Taken {
        request: u64,
        result: Result<Vec<NamedKey>, SourceFailure>,
    },
    Fetched {
        request: u64,
        result: Result<Vec<NamedKey>, SourceFailure>,
    },
}

/// Answers the requests for keys with a peer until the node stops.
pub(crate) async fn run(source: Source, peer: usize, mut asked: mpsc::Receiver<Asked>, desk: Desk) {
    let source = Arc::new(source);
    let places = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
    while let Some(asked) = asked.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let (source, desk) = (Arc::clone(&source), desk.clone());
        tokio::spawn(async move {
            let answer = source.answer(asked).await;
            // The desk may have to wait for a place in the inbox.
            let _ = tokio::task::spawn_blocking(move || desk.answer(peer, answer)).await;
            drop(place);
        });
    }
}

/// The client of one KME for one peer.
pub(crate) struct Source {
    client: Client,
    peer: SaeId,
    terms: Mutex<Option<u32>>,
}

impl Source {
    pub(crate) fn new(kme: &Kme, peer: SaeId) -> Result<Self, DoorError> {
        let client = match &kme.identity {
            Some(name) => Client::expecting(&kme.url, name, &kme.tls)?,
            None => Client::new(&kme.url, &kme.tls)?,
        };
        Ok(Self {
            client,
            peer,
            terms: Mutex::new(None),
        })
    }

    async fn answer(&self, asked: Asked) -> Answer {
        match asked {
            Asked::Take { request, count } => Answer::Taken {
                request,
                result: self.take(count).await,
            },
            Asked::Fetch { request, key_ids } => Answer::Fetched {
                request,
                result: self.fetch(&key_ids).await,
            },
        }
    }

    /// ETSI GS QKD 014, 5.2 and 6.2: Get key. The peer is the slave SAE. More than the KME gives at once is
    /// asked for in several requests; what came before one of them failed is kept.
    async fn take(&self, count: u32) -> Result<Vec<NamedKey>, SourceFailure> {
        let most = self.terms().await?;
        let mut keys = Vec::new();
        let mut left = count;
        while left > 0 {
            let number = left.min(most);
            match self.take_some(number).await {
                Ok(more) => keys.extend(more),
                Err(failure) if keys.is_empty() => {
                    // A KME that has restarted may have other terms.
                    self.terms.lock().await.take();
                    return Err(failure);
                }
                Err(failure) => {
                    tracing::debug!(%failure, came = keys.len(), "the KME gave fewer keys than were asked for");
                    break;
                }
            }
            left -= number;
        }
        Ok(keys)
    }

    async fn take_some(&self, number: u32) -> Result<Vec<NamedKey>, SourceFailure> {
        let request = etsi014::KeyRequest {
            number: Some(number),
            size: Some(KEY_BITS),
            ..etsi014::KeyRequest::default()
        };
        let keys = self.container("enc_keys", &request).await?;
        if keys.len() > number as usize {
            return Err(SourceFailure::Nonsense(format!(
                "{} keys came, {number} were asked for",
                keys.len()
            )));
        }
        Ok(keys)
    }

    /// ETSI GS QKD 014, 5.3 and 6.4: Get key with key IDs. The peer is the master SAE (Table 2).
    async fn fetch(&self, key_ids: &[KeyId]) -> Result<Vec<NamedKey>, SourceFailure> {
        let wanted = etsi014::KeyIds::of(key_ids.iter().copied());
        let keys = self.container("dec_keys", &wanted).await?;
        let asked: BTreeSet<_> = key_ids.iter().collect();
        match keys.iter().find(|named| !asked.contains(&named.id)) {
            Some(stranger) => Err(SourceFailure::Nonsense(format!(
                "key {} came, which nobody asked for",
                stranger.id
            ))),
            None => Ok(keys),
        }
    }

    /// How many keys the KME gives at once; asked once, and again after a failure.
    async fn terms(&self) -> Result<u32, SourceFailure> {
        let mut terms = self.terms.lock().await;
        match *terms {
            Some(most) => Ok(most),
            None => Ok(*terms.insert(self.ask_terms().await?)),
        }
    }

    /// ETSI GS QKD 014, 6.1: what the KME can do. Returns how many keys it gives at once.
    async fn ask_terms(&self) -> Result<u32, SourceFailure> {
        let reply = self
            .client
            .exchange("GET", &self.path("status"), None)
            .await
            .map_err(failure)?;
        let body = good(reply.status, reply.body)?;
        let status = etsi014::parse_status(&body)
            .map_err(|error| SourceFailure::Nonsense(error.to_string()))?;
        if !(status.min_key_size..=status.max_key_size).contains(&KEY_BITS) {
            let sizes = format!("{} to {}", status.min_key_size, status.max_key_size);
            return Err(SourceFailure::Refused(format!(
                "the KME gives keys of {sizes} bits, a node needs {KEY_BITS}"
            )));
        }
        Ok(status.max_key_per_request.max(1))
    }

    async fn container(
        &self,
        call: &str,
        request: &impl serde::Serialize,
    ) -> Result<Vec<NamedKey>, SourceFailure> {
        let body = serde_json::to_vec(request)
            .map_err(|error| SourceFailure::Nonsense(error.to_string()))?;
        let reply = self
            .client
            .exchange("POST", &self.path(call), Some(body))
            .await
            .map_err(failure)?;
        let keys = etsi014::parse_container(good(reply.status, reply.body)?)
            .map_err(|error| SourceFailure::Nonsense(error.to_string()))?;
        match keys
            .iter()
            .find(|named| named.key.octets() * 8 != KEY_BITS as usize)
        {
            Some(odd) => Err(SourceFailure::Nonsense(format!(
                "key {} has {} bits, {KEY_BITS} were asked for",
                odd.id,
                odd.key.octets() * 8
            ))),
            None => Ok(keys),
        }
    }

    fn path(&self, call: &str) -> String {
        format!(
            "/api/v1/keys/{}/{call}",
            Client::segment(self.peer.as_str())
        )
    }
}

/// The body of a good answer; what the KME says in any other.
fn good(status: u16, body: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, SourceFailure> {
    if status == 200 {
        return Ok(body);
    }
    let said = etsi014::parse_error(&body).map_or_else(
        |_| "without the words that ETSI GS QKD 014 asks for".to_owned(),
        |error| error.message,
    );
    match status {
        400 => Err(SourceFailure::Refused(said)),
        401 => Err(SourceFailure::Refused(
            "the KME does not know this node: its certificate names no SAE of the KME".to_owned(),
        )),
        503 => Err(SourceFailure::Empty(said)),
        other => Err(SourceFailure::Nonsense(format!(
            "HTTP status {other} {said}"
        ))),
    }
}

fn failure(error: DoorError) -> SourceFailure {
    SourceFailure::Unreachable(error.to_string())
}
