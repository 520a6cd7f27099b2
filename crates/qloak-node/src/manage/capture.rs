//! `POST /v1/capture`: frames of one side as pcapng, while they pass.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{State, rejection::JsonRejection},
    http::header,
    response::{IntoResponse, Response},
};
use qloak_api::{CAPTURE_MEDIA_TYPE, CaptureOrder, Problem, Side};
use qloak_door::Caller;

use super::{Manage, may_change, refusal, understood};

pub(super) async fn capture(
    State(manage): State<Arc<Manage>>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<CaptureOrder>, JsonRejection>,
) -> Response {
    let begun = async {
        may_change(&caller)?;
        let order = understood(body)?;
        order.check().map_err(Problem::bad_request)?;
        let captures = manage.captures.as_ref().ok_or_else(|| {
            Problem::conflict(
                "the kernel carries this node's frames (dataplane = \"kernel-macsec\"): record them on its interfaces there, with tcpdump -i",
            )
        })?;
        let side = match order.side {
            Side::Client => "client",
            Side::Line => "line",
        };
        tracing::info!(caller = %caller.name, side, seconds = order.seconds, frames = order.frames, "capture");
        captures.begin(order).await
    };
    match begun.await {
        Ok(queue) => {
            let kind = [(header::CONTENT_TYPE, CAPTURE_MEDIA_TYPE)];
            (kind, qloak_door::flowing(queue)).into_response()
        }
        Err(problem) => {
            tracing::warn!(caller = %caller.name, %problem, "capture refused");
            refusal(problem)
        }
    }
}
