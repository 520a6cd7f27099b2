//! Prometheus metrics.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use super::Shared;

/// Metrics of the controller, in OpenMetrics text.
#[utoipa::path(
    get, path = "/metrics", tag = "overview",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(controller): State<Shared>) -> Response {
    let text = controller.metrics.text(&controller.picture());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
