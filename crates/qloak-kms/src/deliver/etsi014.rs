//! The SAE's door: ETSI GS QKD 014 V1.1.1 (2019-02).
//!
//! ```text
//! GET       /api/v1/keys/{slave_SAE_ID}/status      5.1
//! GET POST  /api/v1/keys/{slave_SAE_ID}/enc_keys    5.2   GET with number and size only
//! GET POST  /api/v1/keys/{master_SAE_ID}/dec_keys   5.3   GET with one key_ID; the path as in table 2
//! 200 document | 400 Error | 401 nothing | 503 Error
//! ```
//!
//! Who asks is what the certificate's common name says (clause 5.1 asks the KME to confirm the SAE ID);
//! an SAE that this KME does not serve gets 401 before anything is read. SAE IDs in paths are any text,
//! percent-encoded. A key leaves the store with its delivery, so a second request for it finds none.
//! No extension is supported: mandatory ones are refused, optional ones are ignored (clause 6.2).

use std::{collections::HashSet, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{
        Path, Query, State,
        rejection::{BytesRejection, PathRejection, QueryRejection},
    },
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use qloak_api::{KeyId, SaeId};
use qloak_door::Caller;
use qloak_keys::{
    Key,
    etsi014::{self, ErrorBody, Extension, KeyRequest, Status},
};
use zeroize::Zeroizing;

use super::{NoKeys, Request, deliver};
use crate::{
    kms::{Kms, Link},
    store::{LedgerError, Order},
};

/// Texts that the standard fixes (clauses 5.2, 5.3 and 6.5).
mod text {
    pub(super) const SIZE: &str = "size shall be a multiple of 8";
    pub(super) const MANDATORY: &str = "not all extension_mandatory parameters are supported";
    pub(super) const NOT_FOUND: &str = "one or more keys specified are not found on KME";
}

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;
type Segment = Result<Path<String>, PathRejection>;
type Whole = Result<Bytes, BytesRejection>;

/// Everything but 200.
enum Refusal {
    /// 400: the request is at fault.
    Request(String),
    /// 401: this is no SAE of ours.
    Stranger,
    /// 503: no keys now.
    NoKeys(String),
}

/// The routes of this door.
pub(crate) fn router() -> Router<Arc<Kms>> {
    Router::new()
        .route("/api/v1/keys/{sae}/status", get(status))
        .route(
            "/api/v1/keys/{sae}/enc_keys",
            get(enc_keys_get).post(enc_keys_post),
        )
        .route(
            "/api/v1/keys/{sae}/dec_keys",
            get(dec_keys_get).post(dec_keys_post),
        )
}

async fn status(State(kms): State<Arc<Kms>>, caller: Caller, slave: Segment) -> Response {
    let document = async {
        let master = sae(&kms, &caller)?;
        let slave = segment(slave)?;
        let link = link_to(&kms, &master, std::slice::from_ref(&slave))?.0;
        status_of(&kms, master, slave, &link).await
    };
    let document = document
        .await
        .map(|document| serde_json::to_vec(&document).unwrap_or_default());
    kms.metrics
        .asked("status", respond(document.map(Zeroizing::new)))
}

async fn enc_keys_get(
    State(kms): State<Arc<Kms>>,
    caller: Caller,
    slave: Segment,
    query: Pairs,
) -> Response {
    let document = async {
        let master = sae(&kms, &caller)?;
        let request = key_request(query)?;
        enc_keys(&kms, master, segment(slave)?, request).await
    };
    kms.metrics.asked("enc_keys", respond(document.await))
}

async fn enc_keys_post(
    State(kms): State<Arc<Kms>>,
    caller: Caller,
    slave: Segment,
    headers: HeaderMap,
    body: Whole,
) -> Response {
    let document = async {
        let master = sae(&kms, &caller)?;
        let body = json_body(&headers, body)?;
        let request = etsi014::parse_key_request(&body)
            .map_err(|error| Refusal::Request(error.to_string()))?;
        enc_keys(&kms, master, segment(slave)?, request).await
    };
    kms.metrics.asked("enc_keys", respond(document.await))
}

async fn dec_keys_get(
    State(kms): State<Arc<Kms>>,
    caller: Caller,
    master: Segment,
    query: Pairs,
) -> Response {
    let document = async {
        let slave = sae(&kms, &caller)?;
        let mut pairs = pairs(query, &["key_ID"])?;
        let Some((_, id)) = pairs.pop() else {
            return Err(Refusal::Request(
                "key_ID is missing; several key IDs take a POST".to_owned(),
            ));
        };
        let id: KeyId = id
            .parse()
            .map_err(|error: qloak_api::IdError| Refusal::Request(error.to_string()))?;
        dec_keys(&kms, slave, segment(master)?, vec![id]).await
    };
    kms.metrics.asked("dec_keys", respond(document.await))
}

async fn dec_keys_post(
    State(kms): State<Arc<Kms>>,
    caller: Caller,
    master: Segment,
    headers: HeaderMap,
    body: Whole,
) -> Response {
    let document = async {
        let slave = sae(&kms, &caller)?;
        let body = json_body(&headers, body)?;
        let ids =
            etsi014::parse_key_ids(&body).map_err(|error| Refusal::Request(error.to_string()))?;
        dec_keys(&kms, slave, segment(master)?, ids.names().collect()).await
    };
    kms.metrics.asked("dec_keys", respond(document.await))
}

async fn status_of(kms: &Kms, master: SaeId, slave: SaeId, link: &Link) -> Result<Status, Refusal> {
    let name = link.config.name.clone();
    let counts = kms
        .ledger(move |store| store.counts(&name))
        .await
        .map_err(ledger_failed)?;
    let keys = &kms.config.keys;
    let mut extension = Extension::new();
    extension.insert("qloak_source".to_owned(), link.view().source.clone().into());
    extension.insert("qloak_emulated".to_owned(), true.into());
    Ok(Status {
        source_kme_id: kms.config.kme_id.clone(),
        target_kme_id: link.config.peer.clone(),
        master_sae_id: master.to_string(),
        slave_sae_id: slave.to_string(),
        key_size: keys.size_bits,
        stored_key_count: kms.keys_in(counts.octets(link.own())),
        max_key_count: keys.store_max,
        max_key_per_request: keys.per_request_max,
        max_key_size: keys.size_bits_max,
        min_key_size: keys.size_bits_min,
        max_sae_id_count: keys.additional_saes_max,
        status_extension: Some(extension),
    })
}

async fn enc_keys(
    kms: &Arc<Kms>,
    master: SaeId,
    slave: SaeId,
    request: KeyRequest,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let keys = &kms.config.keys;
    let refuse = |what: String| Err(Refusal::Request(what));
    if request
        .extension_mandatory
        .iter()
        .any(|extension| !extension.is_empty())
    {
        return refuse(text::MANDATORY.to_owned());
    }
    let number = request.number.unwrap_or(1);
    if !(1..=keys.per_request_max).contains(&number) {
        return refuse(format!(
            "number is {number}; 1 to {} are allowed",
            keys.per_request_max
        ));
    }
    let size = request.size.unwrap_or(keys.size_bits);
    if !size.is_multiple_of(8) {
        return refuse(text::SIZE.to_owned());
    }
    if !(keys.size_bits_min..=keys.size_bits_max).contains(&size) {
        return refuse(format!(
            "size is {size}; {} to {} bits are allowed",
            keys.size_bits_min, keys.size_bits_max
        ));
    }
    let additional = request.additional_slave_sae_ids;
    if additional.len() > keys.additional_saes_max as usize {
        let (given, allowed) = (additional.len(), keys.additional_saes_max);
        return refuse(format!(
            "{given} additional_slave_SAE_IDs are given; at most {allowed} are allowed"
        ));
    }
    let all: Vec<SaeId> = std::iter::once(slave).chain(additional).collect();
    let (link, local_targets) = link_to(kms, &master, &all)?;
    let targets = all
        .into_iter()
        .filter(|sae| !local_targets.contains(sae))
        .collect();
    let order = Order {
        initiator: master,
        number,
        octets: size as usize / 8,
    };
    let reserved = deliver(
        kms.clone(),
        Request {
            order,
            link,
            targets,
            local_targets,
        },
    )
    .await
    .map_err(|NoKeys(why)| Refusal::NoKeys(why))?;
    kms.metrics.delivered("initiator", reserved.len() as u64);
    Ok(etsi014::write_container(
        reserved.iter().map(|key| (&key.recipe.key_id, &key.key)),
    ))
}

async fn dec_keys(
    kms: &Kms,
    slave: SaeId,
    master: SaeId,
    ids: Vec<KeyId>,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    if ids.is_empty() {
        return Err(Refusal::Request(
            "key_IDs is empty; at least one is needed".to_owned(),
        ));
    }
    let taken = kms
        .ledger(move |store| store.take(&slave, &master, &ids))
        .await;
    let keys = taken.map_err(|error| match error {
        LedgerError::NotFound => Refusal::Request(text::NOT_FOUND.to_owned()),
        other => ledger_failed(other),
    })?;
    kms.metrics.delivered("target", keys.len() as u64);
    Ok(etsi014::write_container(keys.iter().map(
        |named| -> (&KeyId, &Key) { (&named.id, &named.key) },
    )))
}

fn sae(kms: &Kms, caller: &Caller) -> Result<SaeId, Refusal> {
    kms.sae(caller).ok_or(Refusal::Stranger)
}

/// The link to the KME of these SAEs, and those of them that this KME serves itself. All others must be
/// at one KME: keys for several would need relay.
fn link_to(
    kms: &Kms,
    master: &SaeId,
    slaves: &[SaeId],
) -> Result<(Arc<Link>, Vec<SaeId>), Refusal> {
    let refuse = |what: String| Err(Refusal::Request(what));
    let mut seen = HashSet::new();
    let mut local = Vec::new();
    let mut found: Option<&Arc<Link>> = None;
    for slave in slaves {
        if slave == master {
            return refuse(format!("SAE {slave} asks for keys with itself"));
        }
        if !seen.insert(slave) {
            return refuse(format!("SAE {slave} is named twice"));
        }
        if kms.config.saes.contains(slave) {
            local.push(slave.clone());
            continue;
        }
        let Some(link) = kms
            .links
            .iter()
            .find(|link| link.config.peer_saes.contains(slave))
        else {
            return refuse(format!("SAE {slave} is not known to this KME"));
        };
        match found {
            Some(other) if !Arc::ptr_eq(other, link) => {
                return refuse(format!(
                    "SAE {slave} is at KME {}, others are at KME {}; ask for keys with each apart",
                    link.config.peer, other.config.peer
                ));
            }
            _ => found = Some(link),
        }
    }
    match found {
        Some(link) => Ok((link.clone(), local)),
        None => refuse(
            "this KME serves both SAEs itself; QKD keys need an SAE at another KME".to_owned(),
        ),
    }
}

fn segment(segment: Segment) -> Result<SaeId, Refusal> {
    let Path(text) = segment.map_err(|error| {
        Refusal::Request(format!("the SAE ID in the path: {}", error.body_text()))
    })?;
    text.parse()
        .map_err(|error: qloak_api::IdError| Refusal::Request(error.to_string()))
}

/// The query's pairs, each name among the allowed ones and given once.
fn pairs(query: Pairs, allowed: &[&str]) -> Result<Vec<(String, String)>, Refusal> {
    let Query(pairs) = query.map_err(|error| Refusal::Request(error.body_text()))?;
    let mut seen = HashSet::new();
    for (name, _) in &pairs {
        if !allowed.contains(&name.as_str()) {
            let name: String = name.chars().take(64).collect();
            return Err(Refusal::Request(format!(
                "{name:?} cannot be given with GET; allowed: {}",
                allowed.join(", ")
            )));
        }
        if !seen.insert(name) {
            return Err(Refusal::Request(format!("{name} is given twice")));
        }
    }
    Ok(pairs)
}

fn key_request(query: Pairs) -> Result<KeyRequest, Refusal> {
    let mut request = KeyRequest::default();
    for (name, value) in pairs(query, &["number", "size"])? {
        let digits = !value.is_empty() && value.bytes().all(|octet| octet.is_ascii_digit());
        let Some(value) = digits.then(|| value.parse().ok()).flatten() else {
            return Err(Refusal::Request(format!(
                "{name} is not a number that can be served"
            )));
        };
        match name.as_str() {
            "number" => request.number = Some(value),
            _ => request.size = Some(value),
        }
    }
    Ok(request)
}

/// The body, if it is said to be JSON or nothing is said.
fn json_body(headers: &HeaderMap, body: Whole) -> Result<Bytes, Refusal> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .map(|kind| kind.to_str().unwrap_or_default());
    let essence = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    if essence.is_some_and(|essence| !essence.eq_ignore_ascii_case("application/json")) {
        return Err(Refusal::Request(
            "the Content-Type must be application/json".to_owned(),
        ));
    }
    body.map_err(|error| Refusal::Request(error.body_text()))
}

fn ledger_failed(_: LedgerError) -> Refusal {
    Refusal::NoKeys("the KME's ledger failed; no key was given out".to_owned())
}

/// What is said in words is JSON; what may hold keys wipes itself once it is sent, and is kept nowhere.
fn respond(document: Result<Zeroizing<Vec<u8>>, Refusal>) -> Response {
    let (status, body) = match document {
        Ok(document) => (StatusCode::OK, document),
        Err(Refusal::Stranger) => return StatusCode::UNAUTHORIZED.into_response(),
        Err(Refusal::Request(message)) => (StatusCode::BAD_REQUEST, error_body(message)),
        Err(Refusal::NoKeys(message)) => (StatusCode::SERVICE_UNAVAILABLE, error_body(message)),
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, Body::from(Bytes::from_owner(body))).into_response()
}

fn error_body(message: String) -> Zeroizing<Vec<u8>> {
    let document = ErrorBody {
        message,
        details: None,
    };
    Zeroizing::new(serde_json::to_vec(&document).unwrap_or_default())
}
