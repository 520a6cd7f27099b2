//! Everything in one answer.

use axum::{Json, extract::State};
use qloak_api::control::Overview;

use super::Shared;

/// Nodes, KMSs, links and channels: what is wanted and what is seen.
#[utoipa::path(get, path = "/v1/overview", tag = "overview", responses((status = 200, body = Overview)))]
pub(super) async fn overview(State(controller): State<Shared>) -> Json<Overview> {
    Json(controller.picture().overview())
}
