//! The link, the inter-KMS door and the operator's door.

mod lab;

use std::collections::HashSet;

use lab::{A, B, Lab, json, keys, ledger_octets, until};
use serde_json::json;

const ENC: &str = "/api/v1/keys/node-b/enc_keys";

#[tokio::test]
async fn a_full_store_stops_the_source() {
    let lab = Lab::start_with("unfetched_s_max = 60").await;
    lab.wait_for_keys(A, 256).await;
    lab.wait_for_keys(B, 256).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    for end in [A, B] {
        let state = lab.state(end).await;
        assert_eq!(
            (
                state.links[0].stored_key_count,
                state.links[0].max_key_count
            ),
            (256, 256)
        );
        assert!(
            state.links[0].up && state.alarms.is_empty(),
            "{:?}",
            state.alarms
        );
    }
    // What is used is made again.
    keys(
        lab.ask(A, "node-a", &format!("{ENC}?number=32"), None)
            .await,
    );
    lab.wait_for_keys(A, 256).await;
}

#[tokio::test]
async fn the_state_says_what_the_link_is() {
    let lab = Lab::start().await;
    lab.wait_for_keys(B, 1).await;
    for (end, name, peer) in [(A, "kms-a", "kms-b"), (B, "kms-b", "kms-a")] {
        let state = lab.state(end).await;
        assert_eq!(
            (state.kme_id.as_str(), state.links[0].peer_kme_id.as_str()),
            (name, peer)
        );
        let link = &state.links[0];
        assert!(link.emulated && link.up && link.source.starts_with("emulated"));
        assert!(
            link.source.contains("rate times 500 (not physics)"),
            "{}",
            link.source
        );
        assert!(
            (link.skr_bps / 500.0 - 1694.6).abs() < 1.0 && (link.qber_ratio - 0.01306).abs() < 1e-4
        );
    }
}

#[tokio::test]
async fn either_end_can_cut_the_source_and_let_it_flow_again() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 1).await;
    for end in [A, B] {
        lab.set_source(end, false).await;
        for other in [A, B] {
            until("both ends say so", async || {
                let state = lab.state(other).await;
                !state.links[0].up
                    && state.links[0].skr_bps == 0.0
                    && state
                        .alarms
                        .iter()
                        .any(|alarm| alarm.contains("cut by an operator"))
            })
            .await;
        }
        lab.set_source(end, true).await;
        for other in [A, B] {
            until("all is well again", async || {
                let state = lab.state(other).await;
                state.links[0].up && state.alarms.is_empty()
            })
            .await;
        }
    }
}

#[tokio::test]
async fn each_door_is_for_its_own_callers() {
    let lab = Lab::start().await;
    let peer_paths = ["blocks", "keys", "void"].map(|what| format!("/peer/v1/links/metro/{what}"));
    for path in &peer_paths {
        for name in ["node-a", "alice", "control", "kms-a", "kms-c"] {
            assert_eq!(
                lab.ask(A, name, path, Some("{}")).await.status,
                403,
                "{name} {path}"
            );
        }
        assert_eq!(
            lab.ask(A, "kms-b", path, Some("no JSON")).await.status,
            if path.ends_with("blocks") { 409 } else { 400 }
        );
    }
    assert_eq!(
        lab.ask(A, "kms-b", "/peer/v1/links/other/keys", Some("{}"))
            .await
            .status,
        403
    );
    for name in ["node-a", "kms-b", "stranger"] {
        for path in ["/v1/state", "/metrics"] {
            let reply = lab.ask(A, name, path, None).await;
            assert_eq!(reply.status, 403, "{name} {path}");
            assert!(
                json(&reply)["detail"]
                    .as_str()
                    .unwrap()
                    .contains("neither an operator nor a controller")
            );
        }
        let reply = lab
            .ask(
                A,
                name,
                "/v1/links/metro/source",
                Some(r#"{"enabled":false}"#),
            )
            .await;
        assert_eq!(reply.status, 403, "{name}");
    }
    for name in ["alice", "control"] {
        assert_eq!(lab.ask(A, name, "/v1/state", None).await.status, 200);
    }
    for (path, body, status) in [
        ("/v1/links/other/source", r#"{"enabled":false}"#, 404),
        ("/v1/links/metro/source", r#"{"on":false}"#, 400),
        ("/v1/links/metro/source", "no JSON", 400),
    ] {
        assert_eq!(
            lab.ask(A, "alice", path, Some(body)).await.status,
            status,
            "{path} {body}"
        );
    }
    assert!(
        lab.state(A).await.links[0].up
            || lab
                .state(A)
                .await
                .alarms
                .iter()
                .all(|alarm| !alarm.contains("cut"))
    );
}

/// What a peer gone wrong could send. None of it may leave a trace.
#[tokio::test]
async fn a_peer_that_sends_nonsense_is_refused() {
    let lab = Lab::start().await;
    lab.wait_for_keys(B, 4).await;
    let epoch = "bc490419-7d60-487f-adc1-4ddcc177c139";
    let source = json!({ "words": "x", "skr_bps": 1.0, "qber_ratio": 0.0, "enabled": true });
    let block = |id: &str, key: &str| json!({ "id": id, "owner": "alice", "key": key });
    let batch = |blocks: serde_json::Value| json!({ "epoch": epoch, "to_epoch": epoch, "source": source, "number": 1, "blocks": blocks });
    let many: Vec<_> = (0..1025).map(|_| block(epoch, "AAAAAAAAAAAA")).collect();
    for bad in [
        json!({}),
        json!([]),
        batch(json!([block("x", "AAAAAAAAAAAA")])),
        batch(json!([block(epoch, "not base64!")])),
        batch(json!([block(epoch, "AAAA")])),
        batch(json!([block(epoch, &"A".repeat(400))])),
        batch(json!(many)),
        json!({ "epoch": epoch, "to_epoch": null, "source": source, "number": -1, "blocks": [] }),
    ] {
        let reply = lab
            .ask(
                B,
                "kms-a",
                "/peer/v1/links/metro/blocks",
                Some(&bad.to_string()),
            )
            .await;
        assert_eq!(reply.status, 400, "{bad}");
    }
    let recipe = json!({ "key_id": epoch, "octets": 32, "block_ids": [epoch] });
    let order = |initiator: &str, targets: serde_json::Value, keys: serde_json::Value| json!({ "initiator_sae_id": initiator, "target_sae_ids": targets, "keys": keys });
    for (bad, status) in [
        (order("node-b", json!(["node-b"]), json!([recipe])), 409),
        (order("node-a", json!(["node-x"]), json!([recipe])), 409),
        (order("node-a", json!(["node-b"]), json!([recipe])), 410),
        (order("node-a", json!([]), json!([recipe])), 400),
        (order("node-a", json!(["node-b"]), json!([])), 400),
        (order("", json!(["node-b"]), json!([recipe])), 400),
        (json!({ "voids": [] }), 400),
    ] {
        let reply = lab
            .ask(
                B,
                "kms-a",
                "/peer/v1/links/metro/keys",
                Some(&bad.to_string()),
            )
            .await;
        assert_eq!(reply.status, status, "{bad}");
    }
    let reply = lab
        .ask(
            B,
            "kms-a",
            "/peer/v1/links/metro/void",
            Some(r#"{"voids":[{"key_id":1}]}"#),
        )
        .await;
    assert_eq!(reply.status, 400);
    let sent = keys(lab.ask(A, "node-a", ENC, None).await);
    assert_eq!(sent.len(), 1, "the link works on");
}

#[tokio::test]
async fn metrics_are_prometheus_text_without_keys() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 4).await;
    keys(lab.ask(A, "node-a", &format!("{ENC}?number=2"), None).await);
    lab.ask(A, "node-a", "/api/v1/keys/x/status", None).await;
    let reply = lab.ask(A, "alice", "/metrics", None).await;
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    for line in [
        "qloak_kms_etsi014_requests_total{endpoint=\"enc_keys\",status=\"200\"} 1",
        "qloak_kms_etsi014_requests_total{endpoint=\"status\",status=\"400\"} 1",
        "qloak_kms_keys_delivered_total{side=\"initiator\"} 2",
        "qloak_kms_link_up{link=\"metro\",source=\"emulated\"} 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[tokio::test]
async fn the_ledger_holds_no_key_in_the_clear() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    let sent = keys(lab.ask(A, "node-a", &format!("{ENC}?number=8"), None).await);
    for name in ["kms-a", "kms-b"] {
        let octets = ledger_octets(lab.folder.path(), name);
        for key in &sent {
            assert!(
                !octets
                    .windows(16)
                    .any(|window| window == &key.key.as_slice()[..16]),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn a_ledger_that_is_lost_empties_the_link_and_it_fills_again() {
    let mut lab = Lab::start().await;
    for lost in [B, A] {
        lab.wait_for_keys(A, 64).await;
        lab.stop(lost).await;
        let name = lab::NAMES[lost];
        for end in ["sqlite", "sqlite-wal", "kek"] {
            let _ = std::fs::remove_file(lab.folder.path().join(format!("{name}.{end}")));
        }
        lab.run(lost).await;
        // Every key that is given out after that is known at both ends.
        until("keys are agreed again", async || {
            lab.ask(A, "node-a", ENC, None).await.status == 200
        })
        .await;
        for _ in 0..8 {
            let reply = lab.ask(A, "node-a", ENC, None).await;
            if reply.status != 200 {
                continue;
            }
            let sent = keys(reply);
            let path = format!("/api/v1/keys/node-a/dec_keys?key_ID={}", sent[0].id);
            let fetched = keys(lab.ask(B, "node-b", &path, None).await);
            assert!(fetched[0].key.same_as(&sent[0].key));
        }
    }
}

#[tokio::test]
async fn a_certificate_of_another_name_is_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    lab::certificates(folder.path());
    let text = lab::config_text(A, [0, 1], "").replace("kme_id = \"kms-a\"", "kme_id = \"kms-x\"");
    let config = qloak_kms::Config::parse(&text, folder.path()).unwrap();
    let told = qloak_kms::serve(config, std::future::ready(())).await;
    let told = told.expect_err("refused").to_string();
    for part in ["\"kms-x\"", "\"kms-a\"", "kms-a.pem"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(
        !folder.path().join("kms-a.sqlite").exists(),
        "nothing is made"
    );
}

/// Both ends ask for keys until some are agreed, which the other end has too and nobody had before.
async fn agree(lab: &Lab, given: &mut HashSet<Vec<u8>>) {
    for _ in 0..8 {
        for (from, path) in [(A, ENC), (B, "/api/v1/keys/node-a/enc_keys")] {
            let (own, other) = [("node-a", "node-b"), ("node-b", "node-a")][from];
            let mut sent = Vec::new();
            until("keys are agreed", async || {
                let reply = lab.ask(from, own, path, None).await;
                let agreed = reply.status == 200;
                if agreed {
                    sent = keys(reply);
                }
                agreed
            })
            .await;
            let path = format!("/api/v1/keys/{own}/dec_keys?key_ID={}", sent[0].id);
            let fetched = keys(lab.ask(1 - from, other, &path, None).await);
            assert!(fetched[0].key.same_as(&sent[0].key));
            let octets = sent[0].key.as_slice().to_vec();
            assert!(given.insert(octets), "delivered twice");
        }
    }
}

/// One end runs on another ledger for a while, by mistake or for a repair, and then on its own again.
#[tokio::test]
async fn a_ledger_that_comes_back_heals_alone_and_no_key_is_delivered_twice() {
    for end in [A, B] {
        let mut lab = Lab::start().await;
        let folder = lab.folder.path().to_owned();
        let name = lab::NAMES[end];
        let swap = |from: &str, to: &str| {
            for file in ["sqlite", "sqlite-wal", "kek"] {
                let of = |suffix: &str| folder.join(format!("{name}.{file}{suffix}"));
                let _ = std::fs::rename(of(from), of(to));
            }
        };
        let mut given = HashSet::new();
        for stop in [Some(("", ".first")), Some((".first", "")), None] {
            agree(&lab, &mut given).await;
            let Some((from, to)) = stop else { continue };
            lab.stop(end).await;
            if from == ".first" {
                swap("", ".second");
            }
            swap(from, to);
            lab.run(end).await;
        }
        for end in [A, B] {
            let alarms = lab.state(end).await.alarms;
            assert!(
                alarms.iter().any(|alarm| alarm.contains("emptied")),
                "{alarms:?}"
            );
        }
    }
}

/// The name of the ledger does not tell it; that blocks are not there does.
#[tokio::test]
async fn a_ledger_that_is_rolled_back_heals_alone_and_no_key_is_delivered_twice() {
    for end in [A, B] {
        let mut lab = Lab::start().await;
        let (ledger, backup) = ["sqlite", "backup"]
            .map(|suffix| {
                lab.folder
                    .path()
                    .join(format!("{}.{suffix}", lab::NAMES[end]))
            })
            .into();
        let mut given = HashSet::new();
        agree(&lab, &mut given).await;
        lab.stop(end).await;
        std::fs::copy(&ledger, &backup).unwrap();
        lab.run(end).await;
        agree(&lab, &mut given).await;
        lab.stop(end).await;
        std::fs::copy(&backup, &ledger).unwrap();
        let _ = std::fs::remove_file(ledger.with_extension("sqlite-wal"));
        lab.run(end).await;
        agree(&lab, &mut given).await;
        for end in [A, B] {
            let alarms = lab.state(end).await.alarms;
            assert!(
                alarms.iter().any(|alarm| alarm.contains("emptied")),
                "{alarms:?}"
            );
        }
    }
}
