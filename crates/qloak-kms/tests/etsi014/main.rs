//! Conformance with ETSI GS QKD 014 V1.1.1, rule by rule, over mutual TLS on real sockets.

mod faults;
#[path = "../lab/mod.rs"]
mod lab;

use faults::{Case, DEC, ENC, FAULTS, NOT_FOUND, UNKNOWN};
use lab::{A, B, Lab, json, key_ids, keys, message};
use qloak_api::KeyId;
use qloak_door::Client;
use qloak_keys::etsi014;

#[tokio::test]
async fn a_request_at_fault_is_a_400_that_says_why_and_costs_no_key() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    for Case {
        rule,
        path,
        body,
        says,
    } in FAULTS
    {
        let reply = lab.ask(A, "node-a", path, *body).await;
        assert_eq!(
            reply.status,
            400,
            "{rule}: {}",
            String::from_utf8_lossy(&reply.body)
        );
        let error = etsi014::parse_error(&reply.body).expect(rule);
        assert!(error.message.contains(says), "{rule}: {error}");
        assert!(
            json(&reply)
                .as_object()
                .is_some_and(|error| error.keys().all(|key| key == "message" || key == "details"))
        );
    }
    assert_eq!(lab.state(A).await.links[0].delivered_key_count, 0);
    assert_eq!(lab.state(B).await.links[0].delivered_key_count, 0);
}

#[tokio::test]
async fn who_is_no_sae_here_gets_401_without_a_body() {
    let lab = Lab::start().await;
    let paths = [
        "/api/v1/keys/node-b/status",
        "/api/v1/keys/node-b/enc_keys",
        "/api/v1/keys/node-b/dec_keys?key_ID=x",
    ];
    // A node of the other KME, an unknown one, an operator, the peer KME.
    for name in ["node-b", "stranger", "alice", "kms-b"] {
        for path in paths {
            let reply = lab.ask(A, name, path, None).await;
            assert_eq!((reply.status, reply.body.len()), (401, 0), "{name} {path}");
        }
        for path in [ENC, DEC] {
            let reply = lab.ask(A, name, path, Some("no JSON")).await;
            assert_eq!((reply.status, reply.body.len()), (401, 0), "{name} {path}");
        }
    }
}

#[tokio::test]
async fn status_has_every_member_of_the_standard() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    let reply = lab
        .ask(A, "node-a", "/api/v1/keys/node-b/status", None)
        .await;
    assert_eq!(reply.status, 200);
    let status = etsi014::parse_status(&reply.body).unwrap();
    assert_eq!(
        (status.source_kme_id.as_str(), status.target_kme_id.as_str()),
        ("kms-a", "kms-b")
    );
    assert_eq!(
        (status.master_sae_id.as_str(), status.slave_sae_id.as_str()),
        ("node-a", "node-b")
    );
    assert_eq!(
        (status.key_size, status.min_key_size, status.max_key_size),
        (256, 64, 1024)
    );
    assert_eq!(
        (
            status.max_key_count,
            status.max_key_per_request,
            status.max_sae_id_count
        ),
        (256, 32, 2)
    );
    assert!((8..=256).contains(&status.stored_key_count));
    let extension = status.status_extension.unwrap();
    assert_eq!(extension["qloak_emulated"], true);
    assert!(
        extension["qloak_source"]
            .as_str()
            .unwrap()
            .contains("not physics")
    );
    let members = json(&reply);
    for member in [
        "source_KME_ID",
        "target_KME_ID",
        "master_SAE_ID",
        "slave_SAE_ID",
        "max_SAE_ID_count",
    ] {
        assert!(members.get(member).is_some(), "{member}");
    }
}

#[tokio::test]
async fn both_saes_get_the_same_keys_by_get_and_by_post() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 32).await;
    // enc_keys: form, body, keys expected, octets expected.
    let forms: &[(&str, Option<&str>, usize, usize)] = &[
        ("", None, 1, 32),
        ("?number=3", None, 3, 32),
        ("?size=128", None, 1, 16),
        ("?size=64&number=2", None, 2, 8),
        ("?number=1&size=1024", None, 1, 128),
        ("", Some("{}"), 1, 32),
        ("", Some(r#"{"number":2,"size":264}"#), 2, 33),
        (
            "",
            Some(
                r#"{"additional_slave_SAE_IDs":[],"extension_mandatory":[],"extension_optional":[]}"#,
            ),
            1,
            32,
        ),
        (
            "",
            Some(r#"{"extension_optional":[{"vendor_quality":"high"}]}"#),
            1,
            32,
        ),
        ("", Some(r#"{"vendor_member":1}"#), 1, 32),
    ];
    let mut seen = std::collections::HashSet::new();
    for (form, body, number, octets) in forms {
        let sent = keys(lab.ask(A, "node-a", &format!("{ENC}{form}"), *body).await);
        assert_eq!(sent.len(), *number, "{form} {body:?}");
        let ids: Vec<KeyId> = sent.iter().map(|key| key.id).collect();
        let fetched = if let [id] = ids.as_slice() {
            keys(
                lab.ask(
                    B,
                    "node-b",
                    &format!("/api/v1/keys/node-a/dec_keys?key_ID={id}"),
                    None,
                )
                .await,
            )
        } else {
            keys(
                lab.ask(
                    B,
                    "node-b",
                    "/api/v1/keys/node-a/dec_keys",
                    Some(&key_ids(&ids)),
                )
                .await,
            )
        };
        for (one, other) in sent.iter().zip(&fetched) {
            assert!(one.id == other.id && one.key.same_as(&other.key));
            assert_eq!(one.key.octets(), *octets);
            assert!(
                seen.insert(one.key.as_slice().to_vec()),
                "octets given twice"
            );
            assert_eq!(one.id.0[6] >> 4, 4, "a random UUID");
        }
    }
}

#[tokio::test]
async fn both_sides_may_be_master_at_once() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 64).await;
    lab.wait_for_keys(B, 64).await;
    let ask = async |end, name, slave: &str| {
        let mut all = Vec::new();
        for _ in 0..8 {
            all.extend(keys(
                lab.ask(
                    end,
                    name,
                    &format!("/api/v1/keys/{slave}/enc_keys?number=4"),
                    None,
                )
                .await,
            ));
        }
        all
    };
    let (from_a, from_b) = tokio::join!(ask(A, "node-a", "node-b"), ask(B, "node-b", "node-a"));
    let mut octets: Vec<_> = from_a
        .iter()
        .chain(&from_b)
        .map(|key| key.key.as_slice().to_vec())
        .collect();
    octets.sort();
    octets.dedup();
    assert_eq!(octets.len(), 64);
    let ids: Vec<_> = from_b.iter().map(|key| key.id).collect();
    let fetched = keys(
        lab.ask(
            A,
            "node-a",
            "/api/v1/keys/node-b/dec_keys",
            Some(&key_ids(&ids)),
        )
        .await,
    );
    assert!(
        fetched
            .iter()
            .zip(&from_b)
            .all(|(one, other)| one.key.same_as(&other.key))
    );
}

#[tokio::test]
async fn a_key_is_delivered_once_and_only_to_whom_it_is_for() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    let sent = keys(
        lab.ask(A, "node-a", "/api/v1/keys/node-b/enc_keys?number=3", None)
            .await,
    );
    let ids: Vec<_> = sent.iter().map(|key| key.id).collect();
    let from_a = "/api/v1/keys/node-a/dec_keys";
    let refused = async |end, name, path, body: &str| {
        let reply = lab.ask(end, name, path, Some(body)).await;
        assert_eq!(
            (reply.status, message(&reply).as_str()),
            (400, NOT_FOUND),
            "{name} {path}"
        );
    };
    // Not its key; wrong master in the path; the slave's own ID in the path (as the example of 6.4 has it).
    refused(B, "node-b2", from_a, &key_ids(&ids)).await;
    refused(B, "node-b", "/api/v1/keys/node-a2/dec_keys", &key_ids(&ids)).await;
    refused(B, "node-b", "/api/v1/keys/node-b/dec_keys", &key_ids(&ids)).await;
    // The master does not get it again, by either way.
    refused(A, "node-a", from_a, &key_ids(&ids)).await;
    refused(A, "node-a", DEC, &key_ids(&ids)).await;
    // One unknown or repeated name spoils the request, and no key of it is used up.
    let unknown: KeyId = UNKNOWN.parse().unwrap();
    refused(B, "node-b", from_a, &key_ids(&[ids[0], unknown])).await;
    refused(B, "node-b", from_a, &key_ids(&[ids[0], ids[0]])).await;

    assert_eq!(
        keys(
            lab.ask(B, "node-b", from_a, Some(&key_ids(&ids[..1])))
                .await
        )
        .len(),
        1
    );
    refused(B, "node-b", from_a, &key_ids(&ids)).await;
    assert_eq!(
        keys(
            lab.ask(B, "node-b", from_a, Some(&key_ids(&ids[1..])))
                .await
        )
        .len(),
        2
    );
    refused(B, "node-b", from_a, &key_ids(&ids[1..2])).await;
    assert_eq!(lab.state(A).await.links[0].delivered_key_count, 3);
    assert_eq!(lab.state(B).await.links[0].delivered_key_count, 3);
}

#[tokio::test]
async fn additional_saes_get_the_key_once_each() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    // One at the other KME, one at the same KME as the master.
    let body = r#"{"additional_slave_SAE_IDs":["node-b2","node-a2"]}"#;
    let sent = keys(lab.ask(A, "node-a", ENC, Some(body)).await);
    let id = key_ids(&[sent[0].id]);
    for (end, name) in [(B, "node-b"), (A, "node-a2"), (B, "node-b2")] {
        let fetched = keys(
            lab.ask(end, name, "/api/v1/keys/node-a/dec_keys", Some(&id))
                .await,
        );
        assert!(fetched[0].key.same_as(&sent[0].key), "{name}");
        let again = lab
            .ask(end, name, "/api/v1/keys/node-a/dec_keys", Some(&id))
            .await;
        assert_eq!(
            (again.status, message(&again).as_str()),
            (400, NOT_FOUND),
            "{name}"
        );
    }
}

#[tokio::test]
async fn sae_ids_are_any_text_percent_encoded() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    let slave = "node b/3?%ü";
    let path = format!("/api/v1/keys/{}", Client::segment(slave));
    let reply = lab.ask(A, "node-a", &format!("{path}/status"), None).await;
    assert_eq!(
        etsi014::parse_status(&reply.body).unwrap().slave_sae_id,
        slave
    );
    assert_eq!(
        keys(
            lab.ask(A, "node-a", &format!("{path}/enc_keys"), None)
                .await
        )
        .len(),
        1
    );
    // Encoding what needs none changes nothing.
    assert_eq!(
        lab.ask(A, "node-a", "/api/v1/keys/%6Eode-b/status", None)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn without_keys_there_is_a_503_that_says_so() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    lab.set_source(A, false).await;
    // What was under way when the source was cut may still arrive.
    let mut stored = lab.stored(A).await;
    lab::until("the store stands still", async || {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        let before = std::mem::replace(&mut stored, lab.stored(A).await);
        before == stored
    })
    .await;
    while stored >= 32 {
        keys(
            lab.ask(A, "node-a", "/api/v1/keys/node-b/enc_keys?number=32", None)
                .await,
        );
        stored -= 32;
    }
    let reply = lab
        .ask(A, "node-a", "/api/v1/keys/node-b/enc_keys?number=32", None)
        .await;
    assert_eq!(reply.status, 503);
    let said = message(&reply);
    assert!(
        said.contains("32 keys are asked for") && said.contains(&format!("{stored} are stored")),
        "{said}"
    );
    // All or nothing: what there is was not touched.
    assert_eq!(lab.stored(A).await, stored);
}

#[tokio::test]
async fn other_methods_and_paths_are_no_part_of_it() {
    let lab = Lab::start().await;
    let client = lab.client(A, "node-a");
    for (method, path, status) in [
        ("PUT", ENC, 405),
        ("DELETE", DEC, 405),
        ("POST", "/api/v1/keys/node-b/status", 405),
        ("GET", "/api/v1/keys/node-b", 404),
        ("GET", "/api/v2/keys/node-b/status", 404),
    ] {
        assert_eq!(
            client.exchange(method, path, None).await.unwrap().status,
            status,
            "{method} {path}"
        );
    }
}
