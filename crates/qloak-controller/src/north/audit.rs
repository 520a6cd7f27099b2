//! Reading the audit log.

use axum::{Json, extract::State};
use qloak_api::{Problem, control::AuditRecord};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    Shared,
    reply::{Params, Refusal},
};
use crate::limits;

/// Which lines of the log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Only lines above this number, oldest first. Left out: the newest ones.
    after: Option<u64>,
    /// How many lines at most: 1 to 1000, 100 if left out.
    limit: Option<u32>,
}

/// The audit log, oldest line of the page first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "overview", params(Page),
    responses((status = 200, body = [AuditRecord]), (status = 400, body = Problem))
)]
pub(super) async fn audit(
    State(controller): State<Shared>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<AuditRecord>>, Refusal> {
    let count = page.limit.unwrap_or(limits::AUDIT_PAGE_DEFAULT);
    if !(1..=limits::AUDIT_PAGE_MAX).contains(&count) {
        return Err(Problem::bad_request(format!(
            "limit is {count}, 1 to {} is allowed",
            limits::AUDIT_PAGE_MAX
        ))
        .into());
    }
    Ok(Json(
        controller
            .store(move |store| store.audit_page(page.after, count))
            .await?,
    ))
}
