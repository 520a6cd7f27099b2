//! The dashboard: one page, no outside assets, nothing that its policy does not allow.

use std::sync::LazyLock;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use uuid::Uuid;

/// The page in one piece, but for the nonce.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let script = concat!(
        include_str!("../dashboard/model.js"),
        include_str!("../dashboard/picture.js"),
        include_str!("../dashboard/panels.js"),
    );
    include_str!("../dashboard/index.html")
        .replace("{{style}}", include_str!("../dashboard/style.css"))
        .replace("{{script}}", script)
});

/// The dashboard.
#[utoipa::path(get, path = "/", tag = "dashboard", responses((status = 200, body = String, content_type = "text/html")))]
pub(super) async fn page() -> Response {
    // Only the script and style that carry this answer's nonce run; a text that slips into the page does not.
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, PAGE.replace("{{nonce}}", &nonce)).into_response()
}
