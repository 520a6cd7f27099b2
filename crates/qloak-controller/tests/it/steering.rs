//! Intents: told to both ends, kept over every restart, undone when an end refuses.

use std::time::Duration;

use qloak_api::control::AuditRecord;
use serde_json::{Value, json};

use crate::lab::{Lab, detail, until};

const INTENT: &str = "/v1/links/metro/channels/1/intent";

#[tokio::test]
async fn an_intent_is_told_to_both_ends() {
    let lab = Lab::start().await;
    assert_eq!(lab.ask("GET", INTENT, None).await.0, 404);
    let body = json!({"suite": "camellia-256-gcm", "limits": {"seconds": 60}});
    let (status, view) = lab.ask("PUT", INTENT, Some(body.clone())).await;
    assert_eq!(status, 200, "{view}");
    // Told before the answer was given, not at some later poll.
    for node in [&lab.a, &lab.b] {
        assert_eq!(
            node.inside().commands,
            ["suite 1 camellia-256-gcm", "limits 1 60"],
            "{}",
            node.name
        );
    }
    lab.until_converged("camellia-256-gcm").await;
    let channel = lab.channel().await;
    assert_eq!(channel.trouble, None);
    assert!(channel.converged_after_ms.is_some_and(|ms| ms > 0.0));
    let (_, intent) = lab.ask("GET", INTENT, None).await;
    assert_eq!(intent["limits"]["seconds"], 60);

    // The same once more changes nothing at the nodes, once they have been seen to have taken it.
    until("a repeated intent needs no push", || async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        lab.a.inside().commands.clear();
        assert_eq!(lab.ask("PUT", INTENT, Some(body.clone())).await.0, 200);
        lab.a.inside().commands.is_empty()
    })
    .await;
}

#[tokio::test]
async fn two_refusals_in_a_row_end_where_it_began() {
    let lab = Lab::start().await;
    let refuses = ["serpent-256-ocb", "camellia-256-gcm"].map(str::to_owned);
    lab.b.inside().refuses.extend(refuses);
    for suite in ["serpent-256-ocb", "camellia-256-gcm", "serpent-256-ocb"] {
        let (status, problem) = lab.set(suite).await;
        assert!(
            status == 409 && detail(&problem).contains("put back to aes-256-gcm"),
            "{problem}"
        );
    }
    assert_eq!(lab.a.suite(), "aes-256-gcm");
}

#[tokio::test]
async fn told_is_not_met_until_the_frames_are_under_the_new_suite() {
    let lab = Lab::start().await;
    lab.b.inside().lazy = true;
    assert_eq!(lab.set("serpent-256-ocb").await.0, 200);
    lab.until("both ends were told", |overview| {
        overview.channels[0]
            .observed
            .iter()
            .all(|end| end.suite_intended == "serpent-256-ocb")
    })
    .await;
    let channel = lab.channel().await;
    assert!(!channel.converged && channel.converged_after_ms.is_none());
    let sa = lab.a.inside().state.channels[0].outbound.encoding.clone();
    lab.b.inside().state.channels[0].outbound.encoding = sa;
    lab.until_converged("serpent-256-ocb").await;
}

#[tokio::test]
async fn a_node_that_was_away_is_told_when_it_comes_back() {
    let lab = Lab::start().await;
    lab.b.down().await;
    lab.until("node-b is missed", |overview| !overview.nodes[1].reachable)
        .await;
    let (status, view) = lab.set("camellia-256-gcm").await;
    assert_eq!(status, 202, "{view}");
    assert!(
        view["trouble"]
            .as_str()
            .is_some_and(|why| why.contains("node-b")),
        "{view}"
    );
    assert_eq!(lab.a.suite(), "camellia-256-gcm");
    lab.b.up().await;
    lab.until_converged("camellia-256-gcm").await;
    assert_eq!(lab.b.suite(), "camellia-256-gcm");
    assert_eq!(lab.channel().await.trouble, None);
}

#[tokio::test]
async fn a_node_that_restarts_with_its_own_mind_is_told_again() {
    let lab = Lab::start().await;
    assert_eq!(lab.set("camellia-256-gcm").await.0, 200);
    lab.until_converged("camellia-256-gcm").await;
    {
        let mut inside = lab.a.inside();
        inside.state.uptime_s = 1;
        inside.state.channels[0].suite_intended = "aes-256-gcm".to_owned();
        inside.state.channels[0].limits.seconds = 7;
    }
    until("node-a is told again", || async {
        lab.a.suite() == "camellia-256-gcm" && lab.a.told("limits 1 3600") == 1
    })
    .await;
}

#[tokio::test]
async fn a_refusal_at_one_end_undoes_the_other() {
    let lab = Lab::start().await;
    lab.b.inside().refuses.push("serpent-256-ocb".to_owned());
    let (status, problem) = lab.set("serpent-256-ocb").await;
    assert_eq!(status, 409, "{problem}");
    for words in [
        "node-b refused",
        "not to be had here today",
        "node-a was put back to aes-256-gcm",
    ] {
        assert!(detail(&problem).contains(words), "{problem}");
    }
    assert_eq!(lab.a.suite(), "aes-256-gcm");
    assert_eq!(
        lab.ask("GET", INTENT, None).await.0,
        404,
        "no intent stood before"
    );

    // With an intent that stood, that one stands again.
    assert_eq!(lab.set("camellia-256-gcm").await.0, 200);
    lab.until_converged("camellia-256-gcm").await;
    let (status, problem) = lab.set("serpent-256-ocb").await;
    assert!(
        status == 409 && detail(&problem).contains("put back to camellia-256-gcm"),
        "{problem}"
    );
    assert_eq!(
        (lab.a.suite(), lab.b.suite()),
        ("camellia-256-gcm".to_owned(), "camellia-256-gcm".to_owned())
    );
    let (_, intent) = lab.ask("GET", INTENT, None).await;
    assert_eq!(intent["suite"], "camellia-256-gcm");
    lab.until_converged("camellia-256-gcm").await;
}

#[tokio::test]
async fn a_refusal_that_comes_late_rolls_back_and_is_written_down() {
    let lab = Lab::start().await;
    lab.b.down().await;
    lab.until("node-b is missed", |overview| !overview.nodes[1].reachable)
        .await;
    assert_eq!(lab.set("serpent-256-ocb").await.0, 202);
    assert_eq!(lab.a.suite(), "serpent-256-ocb");
    lab.b.inside().refuses.push("serpent-256-ocb".to_owned());
    lab.b.up().await;
    until("node-a is put back", || async {
        lab.a.suite() == "aes-256-gcm"
    })
    .await;
    lab.until("the trouble is shown", |overview| {
        let channel = &overview.channels[0];
        channel.intent.is_none()
            && channel
                .trouble
                .as_ref()
                .is_some_and(|why| why.contains("rolled back"))
    })
    .await;
    until("the rollback is written down", || async {
        let log: Vec<AuditRecord> = lab
            .as_caller("alice")
            .get_json("/v1/audit")
            .await
            .expect("the log");
        log.iter()
            .any(|line| line.caller == "the controller" && line.outcome.contains("node-b refused"))
    })
    .await;
}

#[tokio::test]
async fn an_intent_once_met_is_not_given_up() {
    let lab = Lab::start().await;
    assert_eq!(lab.set("serpent-256-ocb").await.0, 200);
    lab.until_converged("serpent-256-ocb").await;
    {
        let mut inside = lab.b.inside();
        inside.refuses.push("serpent-256-ocb".to_owned());
        inside.state.channels[0].suite_intended = "aes-256-gcm".to_owned();
    }
    lab.until("the trouble is shown", |overview| {
        overview.channels[0]
            .trouble
            .as_ref()
            .is_some_and(|why| why.contains("node-b refused"))
    })
    .await;
    assert_eq!(
        lab.a.suite(),
        "serpent-256-ocb",
        "a link never falls back by itself"
    );
    assert_eq!(
        lab.ask("GET", INTENT, None).await.1["suite"],
        "serpent-256-ocb"
    );
    lab.b.inside().refuses.clear();
    lab.until_converged("serpent-256-ocb").await;
    lab.until("the trouble is over", |overview| {
        overview.channels[0].trouble.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_restart_of_the_controller_loses_nothing() {
    let lab = Lab::start().await;
    assert_eq!(lab.set("camellia-256-gcm").await.0, 200);
    lab.until_converged("camellia-256-gcm").await;
    let took = lab.channel().await.converged_after_ms;
    let before: Vec<AuditRecord> = lab
        .as_caller("alice")
        .get_json("/v1/audit")
        .await
        .expect("the log");
    lab.stop_controller().await;

    lab.a.inside().state.channels[0].suite_intended = "aes-256-gcm".to_owned();
    lab.b.down().await;
    lab.start_controller().await;
    until("node-a is told again", || async {
        lab.a.suite() == "camellia-256-gcm"
    })
    .await;
    assert_eq!(lab.channel().await.converged_after_ms, took);
    let after: Vec<AuditRecord> = lab
        .as_caller("alice")
        .get_json("/v1/audit")
        .await
        .expect("the log");
    assert_eq!(after.get(..before.len()), Some(before.as_slice()));

    // What node-b offers is known from before, though this controller has never seen it.
    let (status, answer) = lab.set("serpent-256-ocb").await;
    assert_eq!(status, 202, "{answer}");
    lab.b.up().await;
    lab.until_converged("serpent-256-ocb").await;
    assert_eq!(lab.b.suite(), "serpent-256-ocb");
}

#[tokio::test]
async fn a_rekey_and_key_operations_are_handed_through() {
    let lab = Lab::start().await;
    let (status, done) = lab
        .ask("POST", "/v1/links/metro/channels/1/rekey", None)
        .await;
    assert_eq!(status, 200, "{done}");
    assert_eq!((lab.a.told("rekey 1"), lab.b.told("rekey 1")), (1, 1));

    let keys = "/v1/nodes/node-a/keys";
    let resize = json!({"operation": "resize", "slots": 64});
    assert_eq!(lab.ask("POST", keys, Some(resize.clone())).await.0, 200);
    assert_eq!(lab.a.told(&format!("keys {resize}")), 1);
    for (path, body, status) in [
        (keys, json!({"operation": "resize", "slots": 1}), 400),
        (keys, json!({"operation": "load-outbound", "count": 0}), 400),
        (
            keys,
            json!({"operation": "load-inbound", "key_ids": []}),
            400,
        ),
        (keys, json!({"operation": "melt"}), 400),
        (
            "/v1/nodes/node-x/keys",
            json!({"operation": "soft-reset"}),
            404,
        ),
    ] {
        let (got, problem): (u16, Value) = lab.ask("POST", path, Some(body)).await;
        assert_eq!(got, status, "{problem}");
    }
    lab.b.down().await;
    let (status, problem) = lab
        .ask("POST", "/v1/links/metro/channels/1/rekey", None)
        .await;
    assert_eq!(status, 502, "{problem}");
    assert!(
        detail(&problem).contains("node-a rekeys; node-b does not"),
        "{problem}"
    );
}
