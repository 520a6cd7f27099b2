//! Keys at most once: many askers at once, a peer that fails in every way, a process that is killed.

mod lab;

use std::{
    collections::HashSet,
    fs,
    net::Ipv4Addr,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use lab::{A, B, Lab, key_ids, keys, message, until};
use qloak_api::KeyId;
use qloak_door::{Client, TlsFiles, server_config};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const ENC: &str = "/api/v1/keys/node-b/enc_keys";
const DEC: &str = "/api/v1/keys/node-a/dec_keys";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixteen_that_ask_at_once_one_gets_the_key() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 4).await;
    for _ in 0..4 {
        let sent = keys(lab.ask(A, "node-a", ENC, None).await);
        let mut askers = JoinSet::new();
        for _ in 0..16 {
            // A connection each, so that nothing but the ledger puts them in order.
            let client = lab.client(B, "node-b");
            let path = format!("{DEC}?key_ID={}", sent[0].id);
            askers.spawn(async move {
                client
                    .exchange("GET", &path, None)
                    .await
                    .expect("an answer")
            });
        }
        let replies = askers.join_all().await;
        let (given, refused): (Vec<_>, Vec<_>) =
            replies.into_iter().partition(|reply| reply.status == 200);
        assert_eq!((given.len(), refused.len()), (1, 15));
        assert!(
            refused
                .iter()
                .all(|reply| reply.status == 400 && message(reply).contains("not found on KME"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_that_ask_at_once_get_different_keys() {
    let lab = Lab::start().await;
    lab.wait_for_keys(A, 100).await;
    let mut askers = JoinSet::new();
    for _ in 0..16 {
        let client = lab.client(A, "node-a");
        askers.spawn(async move {
            client
                .exchange("GET", &format!("{ENC}?number=4"), None)
                .await
                .expect("an answer")
        });
    }
    let given: Vec<_> = askers.join_all().await.into_iter().flat_map(keys).collect();
    let octets: HashSet<_> = given
        .iter()
        .map(|key| key.key.as_slice().to_vec())
        .collect();
    assert_eq!(octets.len(), 64);
}

#[tokio::test]
async fn a_peer_that_is_away_costs_no_key_and_the_sae_is_told() {
    let mut lab = Lab::start().await;
    lab.wait_for_keys(A, 16).await;
    lab.stop(B).await;
    let stored = lab.stored(A).await;
    let reply = lab.ask(A, "node-a", &format!("{ENC}?number=8"), None).await;
    assert_eq!(reply.status, 503);
    assert!(
        message(&reply).contains("kms-b") && message(&reply).contains("ask again later"),
        "{}",
        message(&reply)
    );
    assert_eq!(lab.stored(A).await, stored);
    until("the alarm rises", async || {
        lab.state(A)
            .await
            .alarms
            .iter()
            .any(|alarm| alarm.contains("kms-b does not answer"))
    })
    .await;
    assert!(!lab.state(A).await.links[0].up);
    // Back again, the link heals alone.
    lab.run(B).await;
    until("the link is up", async || lab.state(A).await.links[0].up).await;
    let sent = keys(lab.ask(A, "node-a", &format!("{ENC}?number=8"), None).await);
    let ids: Vec<_> = sent.iter().map(|key| key.id).collect();
    assert_eq!(
        keys(lab.ask(B, "node-b", DEC, Some(&key_ids(&ids))).await).len(),
        8
    );
}

#[tokio::test]
async fn keys_survive_an_orderly_restart_and_are_still_given_once() {
    let mut lab = Lab::start().await;
    lab.wait_for_keys(A, 8).await;
    let sent = keys(lab.ask(A, "node-a", &format!("{ENC}?number=2"), None).await);
    let [one, two] = [sent[0].id, sent[1].id];
    keys(lab.ask(B, "node-b", DEC, Some(&key_ids(&[one]))).await);
    for end in [A, B] {
        lab.stop(end).await;
        lab.run(end).await;
    }
    assert_eq!(
        lab.ask(B, "node-b", DEC, Some(&key_ids(&[one])))
            .await
            .status,
        400
    );
    let fetched = keys(lab.ask(B, "node-b", DEC, Some(&key_ids(&[two]))).await);
    assert!(fetched[0].key.same_as(&sent[1].key));
}

/// A KME at the other end that takes blocks and then does as it is told with orders for keys.
struct FakePeer {
    answer: Arc<AtomicUsize>,
    voided: Arc<AtomicUsize>,
}

const ANSWERS: usize = 5;

async fn fake_peer(lab: &Lab) -> FakePeer {
    let answer = Arc::new(AtomicUsize::new(0));
    let voided = Arc::new(AtomicUsize::new(0));
    let (chosen, counted) = (answer.clone(), voided.clone());
    let epoch: KeyId = "bc490419-7d60-487f-adc1-4ddcc177c139".parse().unwrap();
    let ack = json!({ "epoch": epoch, "stored": true, "full": false, "enabled": true });
    let keys = move || async move { order_answer(chosen.load(Ordering::Relaxed)).await };
    let void = move |Json(body): Json<Value>| async move {
        counted.fetch_add(
            body["voids"].as_array().map_or(0, Vec::len),
            Ordering::Relaxed,
        );
        Json(json!({}))
    };
    let router = Router::new()
        .route(
            "/peer/v1/links/metro/blocks",
            post(move || async move { Json(ack.clone()) }),
        )
        .route("/peer/v1/links/metro/keys", post(keys))
        .route("/peer/v1/links/metro/void", post(void));
    let tls = server_config(&TlsFiles::in_folder(lab.folder.path(), "kms-b")).unwrap();
    let listen = (Ipv4Addr::LOCALHOST, lab.ports[B]).into();
    tokio::spawn(async move {
        qloak_door::serve(listen, tls, router, std::future::pending())
            .await
            .unwrap()
    });
    FakePeer { answer, voided }
}

async fn order_answer(which: usize) -> Response {
    match which {
        0 => (StatusCode::CONFLICT, "a block is not there").into_response(),
        1 => (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response(),
        2 => "this is no JSON".into_response(),
        3 => StatusCode::NOT_FOUND.into_response(),
        _ => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            StatusCode::OK.into_response()
        }
    }
}

#[tokio::test]
async fn keys_in_doubt_are_void_and_the_peer_is_told() {
    let mut lab = Lab::start().await;
    lab.stop(B).await;
    let peer = fake_peer(&lab).await;
    lab.wait_for_keys(A, 2 * ANSWERS as u64).await;
    for which in 0..ANSWERS {
        peer.answer.store(which, Ordering::Relaxed);
        let reply = lab.ask(A, "node-a", &format!("{ENC}?number=2"), None).await;
        assert_eq!(reply.status, 503, "answer {which}");
        assert!(
            message(&reply).contains("they are void"),
            "answer {which}: {}",
            message(&reply)
        );
    }
    until("the peer is told of all", async || {
        peer.voided.load(Ordering::Relaxed) == 2 * ANSWERS
    })
    .await;
    assert_eq!(lab.state(A).await.links[0].delivered_key_count, 0);
}

#[tokio::test]
async fn an_sae_that_hangs_up_leaves_nothing_half_way() {
    let mut lab = Lab::start().await;
    lab.stop(B).await;
    let peer = fake_peer(&lab).await;
    peer.answer.store(ANSWERS - 1, Ordering::Relaxed);
    lab.wait_for_keys(A, 4).await;
    let hasty = lab
        .client(A, "node-a")
        .with_patience(Duration::from_millis(100));
    assert!(hasty.exchange("GET", ENC, None).await.is_err());
    // The KME waits for the peer as long as it must, then voids the key and says so.
    until("the void is told", async || {
        peer.voided.load(Ordering::Relaxed) == 1
    })
    .await;
}

/// The process that is killed: this very test program, run as a KMS.
#[test]
#[ignore = "run by the test below"]
fn as_kms() {
    let Some(path) = std::env::var_os("QLOAK_TEST_KMS") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime
        .block_on(qloak_kms::run(path.as_ref(), std::future::pending()))
        .unwrap();
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL: no destructor of the KMS runs.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn_kms(config: &std::path::Path) -> Killed {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "as_kms"])
        .env("QLOAK_TEST_KMS", config)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Killed(child)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kms_killed_in_the_midst_gives_no_key_twice() {
    let mut lab = Lab::start().await;
    lab.stop(A).await;
    let config = lab.folder.path().join("kms-a.toml");
    fs::write(&config, lab::config_text(A, lab.ports, "")).unwrap();
    let mut given = Vec::new();
    for round in 0..5u64 {
        let kms = spawn_kms(&config);
        until("the KMS is up again", async || {
            lab.client(A, "alice")
                .get_json::<Value>("/v1/state")
                .await
                .is_ok_and(|state| state["links"][0]["up"] == true)
        })
        .await;
        lab.wait_for_keys(A, 16).await;
        let mut askers = JoinSet::new();
        for _ in 0..4 {
            let client: Client = lab.client(A, "node-a");
            askers.spawn(async move {
                let mut given = Vec::new();
                while let Ok(reply) = client
                    .exchange("GET", &format!("{ENC}?number=2"), None)
                    .await
                {
                    if reply.status == 200 {
                        given.extend(keys(reply));
                    }
                }
                given
            });
        }
        tokio::time::sleep(Duration::from_millis(60 + 40 * round)).await;
        drop(kms);
        given.extend(askers.join_all().await.into_iter().flatten());
    }
    println!("{} keys were given between the kills", given.len());
    assert!(!given.is_empty());
    let octets: HashSet<_> = given
        .iter()
        .map(|key| key.key.as_slice().to_vec())
        .collect();
    assert_eq!(octets.len(), given.len(), "octets given twice");
    // Whatever a master was given, the slave gets too.
    for some in given.chunks(256) {
        let ids: Vec<_> = some.iter().map(|key| key.id).collect();
        let fetched = keys(lab.ask(B, "node-b", DEC, Some(&key_ids(&ids))).await);
        assert!(
            fetched
                .iter()
                .zip(some)
                .all(|(one, other)| one.key.same_as(&other.key))
        );
    }
}
