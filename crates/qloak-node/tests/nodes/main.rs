//! The whole node from outside: frames in at client ports, management by HTTPS, keys from a KME.

mod capture;
mod lab;
mod pipeline;
mod seen;
mod shared_line;

use std::time::{Duration, Instant};

use lab::{Customer, Lab, Mood, frame};
use qloak_api::{
    Limits, Problem,
    manage::{Alarm, AlarmKind, ChannelStatus, KeyOperation, NodeState, SetSuite},
};
use qloak_door::DoorError;

/// Takes what arrives at the far side until `count` frames are there or nothing comes for 5 s.
fn collect(customer: &mut Customer, frames: &mut Vec<Vec<u8>>, count: usize) {
    let mut since = Instant::now();
    while frames.len() < count && since.elapsed() < Duration::from_secs(5) {
        let more = customer.take();
        if more.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            since = Instant::now();
            frames.extend(more);
        }
    }
}

async fn set_suite(lab: &Lab, node: usize, channel: u16, suite: &str) -> Result<(), DoorError> {
    let order = SetSuite {
        suite: suite.into(),
    };
    lab.manage(node, "admin")
        .put_json::<_, ()>(&format!("/v1/channels/{channel}/suite"), &order)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_frame_is_lost_while_the_suite_changes() {
    let state = change_suites(Lab::start(Mood::Good).await, 0).await;
    assert_eq!(state.channels[0].outbound.counters.fill_frames, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_a_constant_rate_no_frame_is_lost_either_and_the_line_is_never_silent() {
    let rate = "constant_rate_bps = 100000000\n";
    let lab = Lab::start_with(Mood::Good, 1, rate).await;
    // Node b sends no client frame: all its line frames of channel 1 are made up.
    let state = change_suites(lab, 0).await;
    let counters = state.channels[0].outbound.counters;
    assert!(counters.fill_frames > 100);
    assert_eq!(counters.fill_frames, counters.protected_frames);
    assert_eq!(state.channels[0].inbound.counters.mux_errors, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_four_lanes_the_order_stays() {
    // A loaded machine may hold the sending thread up between two lanes for longer than any lane may be late:
    // rare, and then the order is spoilt. In virtual time qloak-port wants every frame in its place.
    let state = change_suites(Lab::start_with(Mood::Good, 4, "").await, 30).await;
    assert_eq!(state.line.kind, "lanes");
}

/// Both channels through all kinds of suite under load; what node b says at the end.
/// Up to `astray` of 3000 frames may be lost or at another place.
async fn change_suites(mut lab: Lab, astray: usize) -> NodeState {
    lab.until_open().await;
    for (client, channel) in [(1u8, 1u16), (3, 2)] {
        let (mut near, mut far) = (lab.customer("a", client), lab.customer("b", client));
        let sender = std::thread::spawn(move || {
            let mut sent = Vec::new();
            for number in 0..3000 {
                let octets = 60 + (number as usize * 37) % 1400;
                let frame = frame(number, octets);
                near.send(&frame);
                sent.push(frame);
                if number % 50 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            sent
        });
        let receiver = std::thread::spawn(move || {
            let mut got = Vec::new();
            collect(&mut far, &mut got, 3000);
            got
        });
        for suite in [
            "camellia-256-gcm",
            "serpent-256-ocb",
            "aes-128-ocb",
            "chacha20-poly1305",
            "aes-256-gcm",
        ] {
            set_suite(&lab, 0, channel, suite).await.expect("taken");
            let reached = format!("channel {channel} encodes with {suite}");
            lab.until(0, &reached, |state| {
                let channel = state.channels.iter().find(|c| c.number.number() == channel);
                channel
                    .and_then(|c| c.outbound.encoding.as_ref())
                    .is_some_and(|sa| sa.suite == suite)
            })
            .await;
        }
        let sent = sender.join().expect("sent");
        let got = receiver.join().expect("received");
        let place = |frame: &Vec<u8>| {
            let place = sent.iter().position(|other| other == frame);
            place.unwrap_or_else(|| panic!("client port {client}: a frame changed"))
        };
        let places: Vec<_> = got.iter().map(place).collect();
        let back = places.windows(2).filter(|two| two[0] >= two[1]).count();
        let lost = sent.len() - got.len().min(sent.len());
        assert!(
            lost + back <= astray,
            "client port {client}: {lost} frames lost, {back} out of order"
        );
    }
    let state = lab
        .until(1, "all frames counted", |state| {
            state.channels[0].inbound.counters.client_frames >= 3000
        })
        .await;
    let inbound = state.channels[0].inbound.counters;
    assert_eq!(
        (
            inbound.no_sa,
            inbound.not_valid,
            inbound.late,
            inbound.replayed
        ),
        (0, 0, 0, 0)
    );
    lab.stop().await;
    state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn frames_of_every_length_pass_the_line_even_in_pieces() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let (mut near, mut far) = (lab.customer("b", 2), lab.customer("a", 2));
    let sent: Vec<_> = [14, 15, 60, 64, 1400, 1484, 1514, 1518, 3000, 9000, 15_900]
        .into_iter()
        .zip(0..)
        .map(|(octets, number)| frame(number, octets))
        .collect();
    for frame in &sent {
        near.send(frame);
    }
    let mut got = Vec::new();
    collect(&mut far, &mut got, sent.len());
    let lengths: Vec<_> = got.iter().map(Vec::len).collect();
    assert_eq!(lengths, sent.iter().map(Vec::len).collect::<Vec<_>>());
    assert!(got == sent);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_nodes_restart_and_find_each_other_again() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    lab.restart().await;
    lab.until_open().await;
    let (mut near, mut far) = (lab.customer("a", 3), lab.customer("b", 3));
    near.send(&frame(7, 100));
    let mut got = Vec::new();
    collect(&mut far, &mut got, 1);
    assert_eq!(got, [frame(7, 100)]);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_kme_that_answers_nonsense_raises_an_alarm_that_says_so() {
    for (mood, word) in [
        (Mood::Html, "014"),
        (Mood::ShortKeys, "256"),
        (Mood::Empty, "no keys"),
    ] {
        let mut lab = Lab::start(mood).await;
        let state = lab
            .until(0, "alarm for the key supply", |state| {
                state
                    .alarms
                    .iter()
                    .any(|alarm| alarm.kind == AlarmKind::KeySupply)
            })
            .await;
        let text = &state
            .alarms
            .iter()
            .find(|alarm| alarm.kind == AlarmKind::KeySupply)
            .expect("is there")
            .text;
        assert!(text.contains(word), "{text}");
        lab.kme.set(Mood::Good);
        lab.until_open().await;
        lab.until(0, "the alarm is over", |state| {
            !state
                .alarms
                .iter()
                .any(|alarm| alarm.kind == AlarmKind::KeySupply)
        })
        .await;
        lab.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_management_door_refuses_in_words() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let problem = |error: DoorError| match error {
        DoorError::Status { status, body, .. } => (
            status,
            serde_json::from_str::<Problem>(&body)
                .expect("a problem")
                .detail,
        ),
        other => panic!("{other}"),
    };
    let (status, detail) = problem(
        set_suite(&lab, 0, 1, "aes-512-gcm")
            .await
            .expect_err("no such suite"),
    );
    assert!(
        status == 400 && detail.contains("aes-256-gcm"),
        "{status} {detail}"
    );
    let (status, detail) = problem(set_suite(&lab, 0, 1, "plain").await.expect_err("hazmat"));
    assert!(
        status == 409 && detail.contains("policy.hazmat"),
        "{status} {detail}"
    );
    let (status, detail) = problem(
        set_suite(&lab, 0, 9, "aes-256-gcm")
            .await
            .expect_err("no such channel"),
    );
    assert!(
        status == 404 && detail.contains("no channel 9"),
        "{status} {detail}"
    );
    let order = SetSuite {
        suite: "aes-128-gcm".into(),
    };
    let node_b = lab.manage(0, "node-b");
    let (status, detail) = problem(
        node_b
            .put_json::<_, ()>("/v1/channels/1/suite", &order)
            .await
            .expect_err("a node is no operator"),
    );
    assert!(
        status == 403 && detail.contains("role node"),
        "{status} {detail}"
    );
    set_suite(&lab, 0, 1, "xor")
        .await
        .expect("xor is allowed by the configuration");
    lab.until(0, "hazmat alarm", |state| {
        state
            .alarms
            .iter()
            .any(|alarm| alarm.kind == AlarmKind::Hazmat)
    })
    .await;
    let page = lab
        .manage(0, "admin")
        .exchange("GET", "/metrics", None)
        .await
        .expect("a page");
    let text = String::from_utf8(page.body.to_vec()).expect("text");
    assert!(
        text.contains("qloak_node_rekeys_total{channel=\"1\"}"),
        "{text}"
    );
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cut_key_supply_closes_the_channel_at_its_limit_and_comes_back_alone() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    lab.kme.set(Mood::Empty);
    let admin = lab.manage(0, "admin");
    admin
        .post_json::<_, ()>("/v1/keys", &KeyOperation::SoftReset)
        .await
        .expect("taken");
    let limits = Limits {
        seconds: 1,
        ..Limits::default()
    };
    admin
        .put_json::<_, ()>("/v1/channels/1/limits", &limits)
        .await
        .expect("taken");
    let state = lab
        .until(0, "channel 1 closed", |state| {
            state.channels[0].status == ChannelStatus::Closed
        })
        .await;
    for kind in [AlarmKind::KeySupply, AlarmKind::ChannelClosed] {
        assert!(
            state.alarms.iter().any(|alarm| alarm.kind == kind),
            "{kind:?}"
        );
    }
    // The other channel has its old key and goes on.
    assert_eq!(state.channels[1].status, ChannelStatus::Open);

    let (mut near, mut far) = (lab.customer("a", 1), lab.customer("b", 1));
    near.send(&frame(1, 100));
    lab.until(0, "the frame discarded at the entrance", |state| {
        state.clients[0].discarded_closed == 1
    })
    .await;

    lab.kme.set(Mood::Good);
    lab.until(0, "channel 1 open again, no alarm", |state| {
        state.channels[0].status == ChannelStatus::Open && state.alarms.is_empty()
    })
    .await;
    near.send(&frame(2, 100));
    let mut got = Vec::new();
    collect(&mut far, &mut got, 1);
    assert_eq!(
        got,
        [frame(2, 100)],
        "what was sent while closed is gone, the rest comes"
    );
    lab.stop().await;
}

/// Stops the nodes and starts node-a alone with a changed configuration; returns what it says.
async fn refused_at_start(lab: &mut Lab, from: &str, to: &str) -> String {
    lab.stop().await;
    let config = lab.folder.path().join("changed.toml");
    let text = std::fs::read_to_string(lab.folder.path().join("a.toml")).expect("a configuration");
    assert!(text.contains(from), "the configuration has no {from:?}");
    std::fs::write(&config, text.replace(from, to)).expect("written");
    let configs = [config];
    let run = qloak_node::run_until(&configs, std::future::pending());
    run.await.expect_err("refused").to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_cannot_be_used_are_refused_at_start() {
    let mut lab = Lab::start(Mood::Good).await;
    let other = refused_at_start(&mut lab, "pki/node-a.", "pki/admin.").await;
    assert!(
        other.contains("admin.pem") && other.contains("\"admin\"") && other.contains("node-a"),
        "{other}"
    );
    let missing = refused_at_start(&mut lab, "pki/node-a.pem", "pki/lost.pem").await;
    assert!(missing.contains("lost.pem"), "{missing}");
    let no_pem = refused_at_start(&mut lab, "pki/node-a.pem", "a.toml").await;
    assert!(
        no_pem.contains("a.toml") && no_pem.contains("PEM"),
        "{no_pem}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_kme_that_does_not_answer_raises_an_alarm_that_names_it() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.stop().await;
    let config = lab.folder.path().join("a.toml");
    let text = std::fs::read_to_string(&config).expect("a configuration");
    let url = text
        .lines()
        .find(|line| line.starts_with("url = "))
        .expect("a URL");
    std::fs::write(&config, text.replace(url, "url = \"https://127.0.0.1:1\"")).expect("written");
    lab.restart().await;
    let state = lab
        .until(0, "alarm for the key supply", |state| {
            let supply = |alarm: &Alarm| alarm.kind == AlarmKind::KeySupply;
            state.alarms.iter().any(supply)
        })
        .await;
    let words: Vec<_> = state
        .alarms
        .iter()
        .map(|alarm| alarm.text.as_str())
        .collect();
    let words = words.join(" | ");
    assert!(
        words.contains("does not answer") && words.contains("127.0.0.1:1"),
        "{words}"
    );
    assert!(!state.key_handler.kme_reachable);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_frame_that_does_not_fit_a_transparent_line_is_counted_at_the_entrance() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let (mut near, mut far) = (lab.customer("a", 3), lab.customer("b", 3));
    near.send(&frame(1, 1483));
    near.send(&frame(2, 1482));
    let mut got = Vec::new();
    collect(&mut far, &mut got, 1);
    assert_eq!(
        got,
        [frame(2, 1482)],
        "32 octets of SecTAG and ICV must fit too"
    );
    lab.until(0, "one frame too long", |state| {
        state.clients[2].discarded_oversize == 1
    })
    .await;
    lab.stop().await;
}
