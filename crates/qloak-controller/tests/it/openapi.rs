//! `openapi/controller.json` says what the code says. After a change of the API:
//! `UPDATE_OPENAPI=1 cargo test -p qloak-controller openapi`, and read the difference.

use std::path::Path;

use qloak_controller::north::openapi_document;

#[test]
fn openapi_document_has_not_drifted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi/controller.json");
    let mut now = openapi_document().to_pretty_json().expect("JSON");
    now.push('\n');
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &now).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == now,
        "openapi/controller.json differs from the code; if the change is meant, run \
         UPDATE_OPENAPI=1 cargo test -p qloak-controller openapi"
    );
}

#[test]
fn openapi_lists_every_way_in() {
    let document = serde_json::to_value(openapi_document()).expect("JSON");
    for (path, methods) in [
        ("/", &["get"][..]),
        ("/metrics", &["get"]),
        ("/openapi.json", &["get"]),
        ("/v1/audit", &["get"]),
        ("/v1/caller", &["get"]),
        ("/v1/events", &["get"]),
        ("/v1/kms", &["get", "post"]),
        ("/v1/kms/{kme_id}", &["delete"]),
        ("/v1/links", &["get", "post"]),
        ("/v1/links/{link}", &["delete"]),
        ("/v1/links/{link}/channels", &["get"]),
        ("/v1/links/{link}/channels/{number}/intent", &["get", "put"]),
        ("/v1/links/{link}/channels/{number}/rekey", &["post"]),
        ("/v1/nodes", &["get", "post"]),
        ("/v1/nodes/{name}", &["delete"]),
        ("/v1/nodes/{name}/capture", &["post"]),
        ("/v1/nodes/{name}/keys", &["post"]),
        ("/v1/overview", &["get"]),
        ("/v1/suites", &["get"]),
    ] {
        for method in methods {
            assert!(
                document["paths"][path][method].is_object(),
                "{method} {path}"
            );
        }
    }
    assert_eq!(
        document["paths"].as_object().map(serde_json::Map::len),
        Some(19)
    );
    assert!(document["components"]["schemas"]["Overview"].is_object());
}
