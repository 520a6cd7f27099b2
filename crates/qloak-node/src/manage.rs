//! The management door: where a command enters the node and its state leaves it.
//!
//! A command goes manage -> key handler -> one message to the pipeline between two batches; nothing
//! here touches a frame or a key. State comes back the other way by telemetry only: a reader sees
//! the last published [`NodeState`] and never stops the data path.
//!
//! A capture alone takes frames out: their copies, of the side that the node's own configuration allows.
//!
//! Access: any certificate of the CA may read; roles `operator` and `controller` may change.

mod capture;
mod metrics;

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::{
    Extension, Json, Router,
    extract::{Path, State, rejection::JsonRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use qloak_api::{
    ChannelNumber, Limits, Problem, SuiteEntry,
    manage::{KeyOperation, NodeState, SetSuite},
};
use qloak_door::Caller;

use crate::{
    capture::recorder::Captures,
    key_handler::drive::{Desk, Order},
};

/// Roles whose certificates may change something.
const WRITERS: [&str; 2] = ["operator", "controller"];

/// What the management door works on.
pub(crate) struct Manage {
    /// The last published state.
    pub(crate) published: Arc<ArcSwap<NodeState>>,
    /// The suites, tested at start.
    pub(crate) library: Vec<SuiteEntry>,
    /// Where commands are handed in.
    pub(crate) desk: Desk,
    /// Where frames are recorded; none where the kernel carries them.
    pub(crate) captures: Option<Captures>,
}

/// The management door's routes.
pub(crate) fn router(manage: Arc<Manage>) -> Router {
    Router::new()
        .route("/v1/state", get(state))
        .route("/v1/suites", get(suites))
        .route("/v1/channels/{number}/suite", put(set_suite))
        .route("/v1/channels/{number}/limits", put(set_limits))
        .route("/v1/channels/{number}/rekey", post(rekey))
        .route("/v1/keys", post(keys))
        .route("/v1/capture", post(capture::capture))
        .route("/metrics", get(metrics_page))
        .fallback(async || refusal(Problem::not_found("this door has /v1/state, /v1/suites, /v1/channels/N/{suite,limits,rekey}, /v1/keys, /v1/capture, /metrics")))
        .with_state(manage)
}

async fn state(State(manage): State<Arc<Manage>>) -> Json<NodeState> {
    Json(NodeState::clone(&manage.published.load()))
}

async fn suites(State(manage): State<Arc<Manage>>) -> Json<Vec<SuiteEntry>> {
    Json(manage.library.clone())
}

async fn metrics_page(State(manage): State<Arc<Manage>>) -> Response {
    let text = metrics::page(&manage.published.load());
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

async fn set_suite(
    State(manage): State<Arc<Manage>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u16>,
    body: Result<Json<SetSuite>, JsonRejection>,
) -> Response {
    let wanted = async {
        may_change(&caller)?;
        let channel = manage.channel(number)?;
        let SetSuite { suite } = understood(body)?;
        let suite = manage.offered(&suite)?;
        Ok(Order::SetSuite { channel, suite })
    };
    manage.carry_out(&caller, wanted.await).await
}

async fn set_limits(
    State(manage): State<Arc<Manage>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u16>,
    body: Result<Json<Limits>, JsonRejection>,
) -> Response {
    let wanted = async {
        may_change(&caller)?;
        let channel = manage.channel(number)?;
        let limits = understood(body)?;
        qloak_secy::channel::check_limits(channel, &limits)
            .map_err(|error| Problem::bad_request(error.to_string()))?;
        Ok(Order::SetLimits { channel, limits })
    };
    manage.carry_out(&caller, wanted.await).await
}

async fn rekey(
    State(manage): State<Arc<Manage>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u16>,
) -> Response {
    let wanted = may_change(&caller).and_then(|()| {
        Ok(Order::Rekey {
            channel: manage.channel(number)?,
        })
    });
    manage.carry_out(&caller, wanted).await
}

async fn keys(
    State(manage): State<Arc<Manage>>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<KeyOperation>, JsonRejection>,
) -> Response {
    let wanted = may_change(&caller)
        .and_then(|()| understood(body))
        .and_then(|operation| {
            let slots = crate::limits::KEY_RAM_SLOTS;
            match &operation {
                KeyOperation::Resize { slots: asked } if !slots.contains(asked) => {
                    Err(Problem::bad_request(format!(
                        "{asked} slots are asked for, {} to {} are allowed",
                        slots.start(),
                        slots.end()
                    )))
                }
                _ => Ok(Order::Keys(operation)),
            }
        });
    manage.carry_out(&caller, wanted).await
}

impl Manage {
    fn channel(&self, number: u16) -> Result<ChannelNumber, Problem> {
        let state = self.published.load();
        state
            .channels
            .iter()
            .map(|channel| channel.number)
            .find(|channel| channel.number() == number)
            .ok_or_else(|| {
                let known: Vec<_> = state
                    .channels
                    .iter()
                    .map(|channel| channel.number.to_string())
                    .collect();
                Problem::not_found(format!(
                    "there is no channel {number}; this node has {}",
                    known.join(", ")
                ))
            })
    }

    fn offered(&self, name: &str) -> Result<&'static qloak_cipher::suite::Suite, Problem> {
        let offered = || {
            let names: Vec<_> = self
                .library
                .iter()
                .filter(|entry| entry.offered)
                .map(|entry| entry.name.as_str())
                .collect();
            names.join(", ")
        };
        let entry = self
            .library
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| {
                Problem::bad_request(format!(
                    "there is no suite {name:?}; this node offers {}",
                    offered()
                ))
            })?;
        if !entry.self_test_passed {
            return Err(Problem::conflict(format!(
                "{name} failed its known answers on this node and is not offered"
            )));
        }
        if !entry.offered {
            return Err(Problem::conflict(format!(
                "{name} does not authenticate; the node's own configuration must name it in policy.hazmat"
            )));
        }
        qloak_cipher::suite::Suite::by_name(name).ok_or_else(|| {
            Problem::internal("the library names a suite that the cipher table lacks")
        })
    }

    async fn carry_out(&self, caller: &Caller, order: Result<Order, Problem>) -> Response {
        let outcome = match order {
            Ok(order) => {
                tracing::info!(caller = %caller.name, order = %order, "command");
                self.desk.hand_in(order).await
            }
            Err(problem) => Err(problem),
        };
        match outcome {
            Ok(()) => StatusCode::NO_CONTENT.into_response(),
            Err(problem) => {
                tracing::warn!(caller = %caller.name, %problem, "command refused");
                refusal(problem)
            }
        }
    }
}

fn may_change(caller: &Caller) -> Result<(), Problem> {
    let role = caller.role.as_deref().unwrap_or("none");
    if WRITERS.contains(&role) {
        Ok(())
    } else {
        Err(Problem::forbidden(format!(
            "{} has role {role}; changing needs one of {}",
            caller.name,
            WRITERS.join(", ")
        )))
    }
}

fn understood<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Problem> {
    body.map(|Json(value)| value)
        .map_err(|rejection| Problem::bad_request(rejection.body_text()))
}

fn refusal(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        Json(problem),
    )
        .into_response()
}
