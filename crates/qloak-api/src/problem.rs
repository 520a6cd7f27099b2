//! Errors as they cross a management door: RFC 9457 problem details, and whose fault it is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A problem document (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{title}: {detail}")]
pub struct Problem {
    /// The HTTP status once more.
    pub status: u16,
    /// What kind of problem, the same words each time.
    pub title: String,
    /// This case: what was given, what is allowed, what to do.
    pub detail: String,
}

impl Problem {
    /// A problem of any status.
    pub fn new(status: u16, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            status,
            title: title.into(),
            detail: detail.into(),
        }
    }

    /// 400: the request is at fault.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(400, "the request is not valid", detail)
    }

    /// 403: the caller may not do this.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(403, "the caller may not do this", detail)
    }

    /// 404: there is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(404, "there is no such thing", detail)
    }

    /// 409: the state of things forbids it now.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(409, "the present state forbids this", detail)
    }

    /// 502: a peer of the server is at fault.
    pub fn peer(detail: impl Into<String>) -> Self {
        Self::new(502, "a peer did not do its part", detail)
    }

    /// 500: the server is at fault.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(500, "the server failed", detail)
    }
}
