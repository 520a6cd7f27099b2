//! The operator's door: what the KMS does, and the one thing that a demonstration may do to it.
//!
//! ```text
//! GET  /v1/state                        -> KmsState (never a key)
//! GET  /metrics                         -> Prometheus text
//! POST /v1/links/{link}/source          {"enabled": false} cuts the key supply until enabled again or restart
//! ```
//!
//! Certificates of role operator or controller only.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State, rejection::JsonRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use qloak_api::{Problem, kms::KmsState};
use qloak_door::{Caller, role};
use serde::Deserialize;

use crate::{
    kms::{Kms, Link},
    store::Counts,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetSource {
    enabled: bool,
}

/// The routes of this door.
pub(crate) fn router() -> Router<Arc<Kms>> {
    Router::new()
        .route("/v1/state", get(state))
        .route("/metrics", get(metrics))
        .route("/v1/links/{link}/source", post(set_source))
}

async fn state(State(kms): State<Arc<Kms>>, caller: Caller) -> Response {
    let state = async {
        may_look(&caller)?;
        state_of(&kms).await
    };
    state
        .await
        .map_or_else(problem, |state| Json(state).into_response())
}

async fn metrics(State(kms): State<Arc<Kms>>, caller: Caller) -> Response {
    let text = async {
        may_look(&caller)?;
        let mut links = Vec::new();
        for link in &kms.links {
            links.push((link.clone(), counts(&kms, link).await?));
        }
        kms.metrics
            .text(&kms, &links)
            .map_err(|_| Problem::internal("the metrics could not be written"))
    };
    let kind = [(
        header::CONTENT_TYPE,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )];
    text.await
        .map_or_else(problem, |text| (kind, text).into_response())
}

async fn set_source(
    State(kms): State<Arc<Kms>>,
    Path(name): Path<String>,
    caller: Caller,
    body: Result<Json<SetSource>, JsonRejection>,
) -> Response {
    let done = async {
        may_look(&caller)?;
        let link = kms
            .link(&name)
            .ok_or_else(|| Problem::not_found(format!("no link is named {name:?}")))?;
        let Json(SetSource { enabled }) =
            body.map_err(|error| Problem::bad_request(error.body_text()))?;
        tracing::warn!(
            link = name,
            enabled,
            caller = caller.name,
            "the source is switched"
        );
        link.view().enabled = enabled;
        Ok(link.state(&kms, counts(&kms, link).await?))
    };
    done.await
        .map_or_else(problem, |link| Json(link).into_response())
}

async fn state_of(kms: &Kms) -> Result<KmsState, Problem> {
    let mut saes: Vec<_> = kms.config.saes.iter().cloned().collect();
    saes.sort();
    let (mut links, mut alarms) = (Vec::new(), Vec::new());
    for link in &kms.links {
        let shown = link.state(kms, counts(kms, link).await?);
        alarms.extend(link.alarms(shown.stored_key_count));
        links.push(shown);
    }
    Ok(KmsState {
        kme_id: kms.config.kme_id.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: kms.started.elapsed().as_secs(),
        saes,
        links,
        alarms,
    })
}

async fn counts(kms: &Kms, link: &Link) -> Result<Counts, Problem> {
    let name = link.config.name.clone();
    kms.ledger(move |store| store.counts(&name))
        .await
        .map_err(|_| Problem::internal("the ledger failed; see the log"))
}

fn may_look(caller: &Caller) -> Result<(), Problem> {
    if caller.has_role(&[role::OPERATOR, role::CONTROLLER]) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "{:?} is neither an operator nor a controller",
        caller.name
    )))
}

/// A problem document as RFC 9457 wants it.
pub(crate) fn problem(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        Json(problem),
    )
        .into_response()
}
