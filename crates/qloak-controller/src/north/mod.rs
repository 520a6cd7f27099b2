//! The north door: what operators, scripts and the dashboard see of the controller.
//!
//! Every way in is listed here, those that read and those that change. The north door has both, over
//! mutual TLS, behind `access` (who may, and the audit log). The loopback door for a browser without
//! a certificate has only those that read: what is not mounted cannot be called.
//! `openapi/controller.json` is generated from the same lists.

mod access;
mod audit;
mod capture;
mod channels;
mod events;
mod library;
mod loopback;
mod metrics;
mod overview;
mod page;
mod records;
mod reply;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{HeaderValue, header},
    middleware,
    response::Response,
};
use utoipa::{OpenApi, openapi};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{controller::Controller, limits};

pub use access::CallerView;
pub use library::{LibraryEntry, NodeOffer};
pub use loopback::Loopback;
pub use reply::Done;

/// What handlers share.
pub(crate) type Shared = Arc<Controller>;

#[derive(OpenApi)]
#[openapi(info(
    title = "Qloak controller",
    description = "Nodes, links, channels, the encryption library and an intent per channel. HTTPS with \
                   mutual TLS: the caller is the common name of the client certificate, its role the \
                   organisational unit. Role operator may change, every other role may read. Errors are \
                   problem documents (RFC 9457)."
))]
struct Document;

fn reading() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(overview::overview))
        .routes(routes!(records::nodes))
        .routes(routes!(records::kms))
        .routes(routes!(records::links))
        .routes(routes!(library::suites))
        .routes(routes!(channels::channels))
        .routes(routes!(channels::intent))
        .routes(routes!(audit::audit))
        .routes(routes!(access::caller))
        .routes(routes!(events::events))
        .routes(routes!(metrics::metrics))
        .routes(routes!(document))
        .routes(routes!(page::page))
}

fn changing() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(records::add_node))
        .routes(routes!(records::remove_node))
        .routes(routes!(records::add_kms))
        .routes(routes!(records::remove_kms))
        .routes(routes!(records::add_link))
        .routes(routes!(records::remove_link))
        .routes(routes!(records::keys))
        .routes(routes!(capture::capture))
        .routes(routes!(channels::set_intent))
        .routes(routes!(channels::rekey))
}

/// The whole API: for the door with mutual TLS.
pub fn north_router(controller: &Shared) -> Router {
    let (router, _) = reading().merge(changing()).split_for_parts();
    finish(router, controller)
}

/// What reads only: for the loopback door.
pub fn dashboard_router(controller: &Shared) -> Router {
    let (router, _) = reading().split_for_parts();
    finish(router, controller).layer(middleware::from_fn(access::loopback))
}

/// The OpenAPI document of the north door.
pub fn openapi_document() -> openapi::OpenApi {
    reading().merge(changing()).into_openapi()
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json")))]
async fn document() -> axum::Json<openapi::OpenApi> {
    axum::Json(openapi_document())
}

fn finish(router: Router<Shared>, controller: &Shared) -> Router {
    router
        .fallback(reply::no_such_path)
        .method_not_allowed_fallback(reply::no_such_method)
        .layer(middleware::from_fn_with_state(
            controller.clone(),
            access::guard,
        ))
        .layer(DefaultBodyLimit::max(limits::BODY_OCTETS_MAX))
        .layer(middleware::map_response(harden))
        .with_state(controller.clone())
}

/// What holds for every answer: it is now, and it is what it says.
async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}
