//! Who may do what, and the audit log of it.
//!
//! | role in the certificate (OU)              | may    |
//! |-------------------------------------------|--------|
//! | `operator`                                | change |
//! | `controller`, `auditor`, any other, none  | read   |
//! | no certificate: the loopback door         | read   |
//!
//! Every request that would change something is written down, also the one that is refused. It is
//! written down before it is carried out, and carried out to its end even if the caller hangs up.

use axum::{
    Json,
    extract::{Request, State},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use qloak_api::Problem;
use qloak_door::{Caller, role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Shared,
    reply::{Note, Refusal},
};

/// Marks a request that came in by the loopback door.
#[derive(Debug, Clone, Copy)]
struct ByLoopback;

/// `GET /v1/caller`: how the controller sees the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallerView {
    /// The name in the certificate; empty at the loopback door.
    pub name: String,
    /// The role in the certificate.
    pub role: Option<String>,
    /// Whether the caller may change anything.
    pub may_change: bool,
}

/// Who the caller is, and whether it may change anything.
#[utoipa::path(get, path = "/v1/caller", tag = "overview", responses((status = 200, body = CallerView)))]
pub(super) async fn caller(request: Request) -> Json<CallerView> {
    let caller = request.extensions().get::<Caller>();
    Json(CallerView {
        name: caller.map(|caller| caller.name.clone()).unwrap_or_default(),
        role: caller.and_then(|caller| caller.role.clone()),
        may_change: caller.is_some_and(may_change),
    })
}

fn may_change(caller: &Caller) -> bool {
    caller.has_role(&[role::OPERATOR]) && !caller.name.is_empty()
}

/// Lets a request pass, or refuses it; writes down whatever would change something.
pub(super) async fn guard(
    State(controller): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if request.extensions().get::<ByLoopback>().is_some() {
        return next.run(request).await;
    }
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        let problem = Problem::new(
            401,
            "the caller is not known",
            "come with a client certificate of the lab's CA",
        );
        return Refusal(problem).into_response();
    };
    if reads {
        return next.run(request).await;
    }
    // A caller that hangs up drops this future, but not the task: what was begun is finished and noted.
    let task = tokio::spawn(async move { written_down(controller, caller, request, next).await });
    match task.await {
        Ok(response) => response,
        Err(_) => Refusal(Problem::internal(
            "the command was cut short; see the log of the controller",
        ))
        .into_response(),
    }
}

async fn written_down(
    controller: Shared,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    let action = format!("{} {}", request.method(), request.uri().path());
    let who = if caller.name.is_empty() {
        "(no name)".to_owned()
    } else {
        caller.name.clone()
    };
    let begun = controller
        .store(move |store| store.audit_begin(&who, &action))
        .await;
    let entry = match begun {
        Ok(entry) => entry,
        Err(problem) => return Refusal(problem).into_response(),
    };
    let response = match permit(&caller, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => Refusal(problem).into_response(),
    };
    if response.status().is_client_error() {
        controller.metrics.refused();
    }
    let outcome = match response.extensions().get::<Note>() {
        Some(note) => note.0.clone(),
        None => response.status().to_string(),
    };
    match controller
        .store(move |store| store.audit_end(entry, &outcome))
        .await
    {
        Ok(_) => response,
        Err(problem) => {
            let detail = format!(
                "{}; the command was carried out all the same",
                problem.detail
            );
            Refusal(Problem { detail, ..problem }).into_response()
        }
    }
}

fn permit(caller: &Caller, request: &Request) -> Result<(), Problem> {
    if !may_change(caller) {
        let role = caller.role.as_deref().unwrap_or("none");
        return Err(Problem::forbidden(format!(
            "{:?} has role {role:?}; only role \"operator\" may change anything",
            caller.name
        )));
    }
    // A browser says where a request comes from. Another site must not use an operator's certificate.
    let site = request
        .headers()
        .get("sec-fetch-site")
        .map(|site| site.as_bytes());
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err(Problem::forbidden(
            "this request was made by the page of another site",
        ));
    }
    Ok(())
}

/// The loopback door: nobody is known there, so only reading is mounted behind it. A request must name
/// the loopback interface as its host, so that a foreign site cannot read by a name that it points here.
pub(super) async fn loopback(mut request: Request, next: Next) -> Response {
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.host().to_owned());
    let header = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = authority
        .or_else(|| header.map(without_port))
        .unwrap_or_default();
    if !matches!(host.as_str(), "127.0.0.1" | "[::1]" | "localhost") {
        let detail = "this door answers only to the hosts localhost, 127.0.0.1 and [::1]";
        return Refusal(Problem::new(421, "this is not that host", detail)).into_response();
    }
    request.extensions_mut().insert(ByLoopback);
    next.run(request).await
}

fn without_port(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|octet| octet.is_ascii_digit()) => name.to_owned(),
        _ => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_their_port_only() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
            ("evil.example:8080", "evil.example"),
            ("", ""),
        ] {
            assert_eq!(without_port(host), name);
        }
    }

    #[test]
    fn another_sites_page_cannot_use_an_operators_certificate() {
        let alice = Caller {
            name: "alice".to_owned(),
            role: Some(role::OPERATOR.to_owned()),
        };
        let from = |site: Option<&str>| {
            let mut request = Request::new(axum::body::Body::empty());
            if let Some(site) = site {
                let site = site.parse().expect("a header");
                request.headers_mut().insert("sec-fetch-site", site);
            }
            permit(&alice, &request).is_ok()
        };
        assert!(from(None) && from(Some("same-origin")) && from(Some("none")));
        assert!(!from(Some("cross-site")) && !from(Some("same-site")) && !from(Some("")));
    }

    #[test]
    fn only_a_named_operator_may_change() {
        let caller = |name: &str, role: Option<&str>| Caller {
            name: name.to_owned(),
            role: role.map(str::to_owned),
        };
        assert!(may_change(&caller("alice", Some("operator"))));
        for (name, role) in [
            ("alice", None),
            ("", Some("operator")),
            ("node-a", Some("node")),
            ("eve", Some("Operator")),
        ] {
            assert!(!may_change(&caller(name, role)), "{name} {role:?}");
        }
    }
}
