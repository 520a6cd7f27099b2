//! Answers: JSON, or a problem document. Whatever a handler answers also says what the audit log shall say.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use qloak_api::{ChannelNumber, Problem};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

/// What the audit log says of a request; travels with the response to `access`.
#[derive(Debug, Clone)]
pub(super) struct Note(pub(super) String);

/// An error as it leaves the door.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) Problem);

impl<T: Into<Problem>> From<T> for Refusal {
    fn from(problem: T) -> Self {
        Self(problem.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let note = Note(format!(
            "refused with {}: {}",
            status.as_u16(),
            self.0.detail
        ));
        let mut response = (status, Json(self.0)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(note);
        response
    }
}

/// What a change answers when there is nothing else to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// What was done, in words.
    pub done: String,
}

/// A successful change: status, body, and the words for the audit log.
pub(super) struct Noted<T>(pub(super) StatusCode, pub(super) T, pub(super) String);

impl Noted<Done> {
    pub(super) fn done(text: String) -> Self {
        Self(StatusCode::OK, Done { done: text.clone() }, text)
    }
}

impl<T: Serialize> IntoResponse for Noted<T> {
    fn into_response(self) -> Response {
        let mut response = (self.0, Json(self.1)).into_response();
        response.extensions_mut().insert(Note(self.2));
        response
    }
}

/// A JSON body; what is wrong with one is said in a problem document.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => {
                let status = rejection.status();
                // A body that is JSON but not the one wanted is the same fault as one that is no JSON.
                let status = if status == StatusCode::UNPROCESSABLE_ENTITY {
                    StatusCode::BAD_REQUEST
                } else {
                    status
                };
                let problem = Problem::bad_request(rejection.body_text());
                Err(Refusal(Problem {
                    status: status.as_u16(),
                    ..problem
                }))
            }
        }
    }
}

/// Parameters of the query.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Refusal(Problem::bad_request(rejection.body_text()))),
        }
    }
}

/// A name in the path.
pub(super) struct Name<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Name<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(Refusal(Problem::bad_request(rejection.body_text()))),
        }
    }
}

/// A link and a channel in the path.
pub(super) type ChannelPath = Name<(String, ChannelNumber)>;

pub(super) async fn no_such_path() -> Refusal {
    Refusal(Problem::not_found(
        "no such path; GET /openapi.json lists them all",
    ))
}

pub(super) async fn no_such_method() -> Refusal {
    Refusal(Problem::new(
        405,
        "this path has no such method",
        "GET /openapi.json lists what each path takes; the loopback door only reads",
    ))
}
