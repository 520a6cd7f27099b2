//! The north door: roles, audit, records, the library, problems.

use qloak_api::control::{AuditRecord, Overview};
use serde_json::{Value, json};

use crate::lab::{Lab, ask, detail, suite};

const INTENT: &str = "/v1/links/metro/channels/1/intent";

#[tokio::test]
async fn only_operators_change_and_all_changes_are_written_down() {
    let lab = Lab::start().await;
    let reader = lab.as_caller("node-a");
    assert_eq!(ask(&reader, "GET", "/v1/overview", None).await.0, 200);
    let me = ask(&reader, "GET", "/v1/caller", None).await.1;
    assert_eq!(
        me,
        json!({"name": "node-a", "role": "node", "may_change": false})
    );
    let body = Some(json!({"suite": "camellia-256-gcm"}));
    for (method, path, body) in [
        ("PUT", INTENT, body.clone()),
        ("DELETE", "/v1/links/metro", None),
        (
            "POST",
            "/v1/nodes/node-a/keys",
            Some(json!({"operation": "hard-reset"})),
        ),
        ("POST", "/v1/no/such/path", None),
    ] {
        let (status, problem) = ask(&reader, method, path, body).await;
        assert!(
            status == 403 && detail(&problem).contains("operator"),
            "{problem}"
        );
    }
    assert!(lab.a.inside().commands.is_empty());
    assert_eq!(lab.ask("PUT", INTENT, body).await.0, 200);
    assert_eq!(lab.set("rot13").await.0, 400);

    let log: Vec<AuditRecord> = lab
        .as_caller("alice")
        .get_json("/v1/audit")
        .await
        .expect("the log");
    let numbers: Vec<u64> = log.iter().map(|line| line.number).collect();
    assert_eq!(
        numbers,
        (1..=7).collect::<Vec<_>>(),
        "start, four refusals, one change, one refusal"
    );
    let last = |back: usize| &log[log.len() - back];
    assert_eq!(
        (last(6).caller.as_str(), last(6).action.as_str()),
        ("node-a", &*format!("PUT {INTENT}"))
    );
    assert!(
        last(6).outcome.starts_with("refused with 403"),
        "{:?}",
        last(6)
    );
    assert_eq!(last(2).caller, "alice");
    assert_eq!(last(2).outcome, "camellia-256-gcm told to both ends");
    assert!(
        last(1).outcome.starts_with("refused with 400"),
        "{:?}",
        last(1)
    );
    assert!(last(1).time.ends_with('Z'), "{:?}", last(1));

    let page: Vec<AuditRecord> = lab
        .as_caller("alice")
        .get_json("/v1/audit?after=2&limit=2")
        .await
        .expect("a page");
    assert_eq!(page, log[2..4]);
    for query in ["limit=0", "limit=1001", "after=-1", "who=alice"] {
        assert_eq!(
            lab.ask("GET", &format!("/v1/audit?{query}"), None).await.0,
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn an_unknown_suite_is_refused_with_what_is_allowed() {
    let lab = Lab::start().await;
    let (status, problem) = lab.set("aes-256-gmc").await;
    assert_eq!(status, 400);
    assert!(
        detail(&problem).ends_with("allowed are: aes-256-gcm, camellia-256-gcm, serpent-256-ocb"),
        "{problem}"
    );
    let (status, problem) = lab.set("plain").await;
    assert!(
        status == 409 && detail(&problem).contains("hazmat"),
        "{problem}"
    );
    let (status, problem) = lab
        .ask(
            "PUT",
            INTENT,
            Some(json!({"suite": "aes-256-gcm", "limits": {"frames": 1}})),
        )
        .await;
    assert!(
        status == 400 && detail(&problem).contains("limits.frames"),
        "{problem}"
    );
    assert!(lab.a.inside().commands.is_empty() && lab.b.inside().commands.is_empty());
}

#[tokio::test]
async fn the_library_is_what_reachable_nodes_offer() {
    let lab = Lab::without_controller().await;
    {
        let mut inside = lab.b.inside();
        inside
            .suites
            .retain(|suite| suite.name != "serpent-256-ocb");
        inside.suites.push(suite("chacha20-poly1305", true));
        for suite in &mut inside.suites {
            suite.seal_gbps = 3.25;
        }
    }
    lab.start_controller().await;
    lab.until("both nodes are seen", |overview| {
        overview.nodes.iter().all(|node| node.reachable)
    })
    .await;
    let (_, library) = lab.ask("GET", "/v1/suites", None).await;
    let entry = |name: &str| -> Value {
        let entries = library.as_array().expect("a list");
        entries
            .iter()
            .find(|entry| entry["name"] == name)
            .cloned()
            .expect("there")
    };
    assert_eq!(entry("aes-256-gcm")["links"], json!(["metro"]));
    assert_eq!(
        entry("aes-256-gcm")["seal_gbps"],
        3.25,
        "the slower end counts"
    );
    assert_eq!(
        entry("aes-256-gcm")["nodes"].as_array().map(Vec::len),
        Some(2)
    );
    for one_end_only in ["serpent-256-ocb", "chacha20-poly1305"] {
        assert_eq!(entry(one_end_only)["links"], json!([]));
    }
    assert_eq!(entry("plain")["hazmat"], true);
    let (status, problem) = lab.set("serpent-256-ocb").await;
    assert!(
        status == 409 && detail(&problem).contains("node-b does not know it"),
        "{problem}"
    );
}

#[tokio::test]
async fn records_come_and_go_by_rest() {
    let lab = Lab::start().await;
    let node = json!({"name": "node-c", "url": "https://127.0.0.1:1"});
    assert_eq!(
        lab.ask("POST", "/v1/nodes", Some(node.clone())).await.0,
        201
    );
    assert_eq!(lab.ask("POST", "/v1/nodes", Some(node)).await.0, 409);
    lab.until("node-c is shown as unreachable", |overview| {
        let node = overview
            .nodes
            .iter()
            .find(|node| node.record.name.as_str() == "node-c");
        node.is_some_and(|node| {
            node.error
                .as_ref()
                .is_some_and(|error| error.contains("unreachable"))
        })
    })
    .await;
    for (path, body, status) in [
        (
            "/v1/nodes",
            json!({"name": "node-d", "url": "http://127.0.0.1:1"}),
            400,
        ),
        (
            "/v1/nodes",
            json!({"name": "node-d", "url": "https://127.0.0.1:1", "key": "x"}),
            400,
        ),
        (
            "/v1/links",
            json!({"name": "ring", "a": "node-b", "b": "node-a"}),
            409,
        ),
        (
            "/v1/links",
            json!({"name": "ring", "a": "node-c", "b": "node-c"}),
            400,
        ),
        (
            "/v1/kms",
            json!({"kme_id": "", "url": "https://127.0.0.1:1"}),
            400,
        ),
    ] {
        let (got, problem) = lab.ask("POST", path, Some(body)).await;
        assert_eq!(got, status, "{problem}");
        assert_eq!(problem["status"], status);
    }
    assert_eq!(
        lab.ask("DELETE", "/v1/nodes/node-a", None).await.0,
        409,
        "the link needs it"
    );
    assert_eq!(lab.ask("DELETE", "/v1/nodes/node-c", None).await.0, 200);
    assert_eq!(lab.ask("DELETE", "/v1/nodes/node-c", None).await.0, 404);

    let kms = json!({"kme_id": "kms-b", "url": "https://127.0.0.1:1"});
    assert_eq!(lab.ask("POST", "/v1/kms", Some(kms)).await.0, 201);
    lab.until("kms-a answers and kms-b does not", |overview: &Overview| {
        overview.kms.len() == 2 && overview.kms[0].reachable && !overview.kms[1].reachable
    })
    .await;
    assert_eq!(lab.ask("DELETE", "/v1/kms/kms-b", None).await.0, 200);

    assert_eq!(lab.set("camellia-256-gcm").await.0, 200);
    assert_eq!(lab.ask("DELETE", "/v1/links/metro", None).await.0, 200);
    assert_eq!(lab.ask("GET", INTENT, None).await.0, 404);
    assert_eq!(lab.ask("GET", "/v1/links", None).await.1, json!([]));
    assert_eq!(
        lab.a.suite(),
        "camellia-256-gcm",
        "the node goes on as it is"
    );
}

#[tokio::test]
async fn problems_are_problem_documents() {
    let lab = Lab::start().await;
    for (method, path, body, status) in [
        ("GET", "/v1/nothing", None, 404),
        ("PATCH", "/v1/nodes", None, 405),
        ("GET", "/v1/links/nowhere/channels", None, 404),
        ("GET", "/v1/links/metro/channels/9/intent", None, 404),
        ("GET", "/v1/links/metro/channels/0/intent", None, 400),
        (
            "PUT",
            "/v1/links/metro/channels/x/intent",
            Some(json!({"suite": "aes-256-gcm"})),
            400,
        ),
        ("PUT", INTENT, Some(json!({"suit": "aes-256-gcm"})), 400),
        (
            "PUT",
            INTENT,
            Some(json!({"suite": "x".repeat(300_000)})),
            413,
        ),
        ("DELETE", "/v1/nodes/%00", None, 400),
    ] {
        let (got, problem) = lab.ask(method, path, body).await;
        assert_eq!(
            (got, &problem["status"]),
            (status, &json!(status)),
            "{method} {path}: {problem}"
        );
        assert!(!detail(&problem).is_empty());
    }
}
