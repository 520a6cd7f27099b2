//! The picture drawn on terminals of several sizes.

use std::time::{Duration, Instant};

use qloak_api::control::Overview;
use ratatui::{Terminal, backend::TestBackend};

use super::*;

/// Two nodes and a channel, as a controller tells it; `octets` client octets so far each way.
fn overview(octets: u64) -> Overview {
    let node = |name: &str, address: &str, peer: &str| {
        let sa = serde_json::json!({
            "an": 1, "suite": "camellia-256-gcm", "key_id": "bc490419-7d60-487f-adc1-4ddcc177c139", "pn": 5, "age_s": 75,
        });
        serde_json::json!({
            "record": { "name": name, "url": "https://192.0.2.1:7443" },
            "reachable": true, "error": null, "age_ms": 0,
            "state": {
                "node": name, "version": "0.1.0", "uptime_s": 61,
                "line": {
                    "name": "line", "kind": "memory", "counters": qloak_api::manage::PortCounters::default(),
                    "impairments": qloak_api::manage::PortImpairments {
                        transmit: qloak_api::manage::FaultCounters { taken: 70, lost: 3, delayed: 5, ..Default::default() },
                        ..Default::default()
                    },
                },
                "clients": [],
                "channels": [{
                    "number": 1, "name": "trunk", "peer": if name == "node-a" { "node-b" } else { "node-a" },
                    "carriage": "aggregated", "status": "open",
                    "suite_intended": "camellia-256-gcm", "limits": qloak_api::Limits::default(),
                    "outbound": { "sci": format!("{address}/1"), "encoding": sa, "counters": qloak_api::manage::OutboundCounters {
                        client_octets: octets, client_frames: octets / 1000, ..Default::default()
                    } },
                    "inbound": { "sci": format!("{peer}/1"), "accepted": [], "counters": qloak_api::manage::InboundCounters {
                        replayed: 3, ..Default::default()
                    } },
                    "rekeys": 12, "last_suite_change_ms": null,
                }],
                "strays": qloak_api::manage::StrayCounters::default(),
                "latency": {
                    "outbound": times(&[(2_000, 5), (9_000, octets / 1000)]), "inbound": times(&[(500, octets / 1000)]),
                },
                "key_handler": {
                    "ram_slots": 512, "outbound_keys": 7, "inbound_keys": 9, "kme_reachable": false, "peer_alive": true,
                    "kme_requests": 1, "kme_failures": 0, "forged": 0, "replayed": 0, "zeroised": 0,
                },
                "alarms": [{ "kind": "key-supply", "channel": null, "text": "no keys come from kms-a", "age_s": 4 }],
                "hazmat_allowed": ["xor"],
            },
        })
    };
    let end = |name: &str| {
        serde_json::json!({
            "node": name, "encoding_suite": "camellia-256-gcm", "suite_intended": "camellia-256-gcm",
            "limits": qloak_api::Limits::default(), "status": "open",
        })
    };
    serde_json::from_value(serde_json::json!({
        "nodes": [
            node("node-a", "02:00:00:00:00:0a", "02:00:00:00:00:0b"),
            node("node-b", "02:00:00:00:00:0b", "02:00:00:00:00:0a"),
        ],
        "kms": [],
        "links": [{ "name": "metro", "a": "node-a", "b": "node-b" }],
        "channels": [{
            "link": "metro", "channel": 1, "name": "trunk", "intent": null,
            "observed": [end("node-a"), end("node-b")], "converged": true,
        }],
    }))
    .unwrap()
}

fn times(buckets: &[(u64, u64)]) -> qloak_api::Latency {
    let bucket =
        |&(at_most_ns, frames): &(u64, u64)| qloak_api::LatencyBucket { at_most_ns, frames };
    let longest = buckets.iter().map(|bucket| bucket.0).max();
    qloak_api::Latency::new(
        0,
        longest.unwrap_or(0),
        buckets.iter().map(bucket).collect(),
    )
}

fn drawn(wide: u16, high: u16, sample: &Sample, trouble: Option<&str>) -> String {
    let mut terminal = Terminal::new(TestBackend::new(wide, high)).unwrap();
    terminal
        .draw(|frame| draw(frame, "the controller", sample, trouble))
        .unwrap();
    terminal.backend().to_string()
}

#[test]
fn rates_come_from_two_pictures_and_their_times() {
    let begin = Instant::now();
    let mut sample = Sample::new_at(overview(1_000_000), begin);
    sample.update_at(overview(3_500_000), begin + Duration::from_secs(2));
    let text = drawn(140, 40, &sample, None);
    for word in [
        "metro",
        "1 trunk",
        "camellia-256-gcm",
        "open",
        "1 min 15 s",
        "10 Mb/s",
        "20 Mb/s",
        "7/9",
        // Of the last interval alone: the five faster ones came before it.
        "9.0us 9.0us 9.0us",
        "500ns 500ns 500ns",
        "IMPAIRED  port line of node-b harms frames on purpose: of 70 frames transmitted 3 lost, 5 delayed",
    ] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
    assert!(text.contains("no keys come from kms-a (4 s ago)"), "{text}");
    assert!(
        text.contains("HAZMAT  node-a allows suites that do not authenticate: xor"),
        "{text}"
    );
    // Counters that went back: the node was started anew.
    sample.update_at(overview(10), begin + Duration::from_secs(4));
    assert!(drawn(140, 40, &sample, None).contains("both ways: 0 b/s"));
}

#[test]
fn a_narrow_terminal_shows_whole_columns_or_none() {
    let begin = Instant::now();
    let mut sample = Sample::new_at(overview(1_000_000), begin);
    sample.update_at(overview(2_000_000), begin + Duration::from_secs(1));
    let text = drawn(60, 30, &sample, None);
    assert!(
        text.contains("camellia-256-gcm") && text.contains("8 Mb/s"),
        "{text}"
    );
    assert!(
        !text.contains("key age") && !text.contains("frames/s"),
        "{text}"
    );
    for (wide, high) in [(1, 1), (10, 3), (30, 8), (79, 24), (500, 200)] {
        drawn(wide, high, &sample, Some("not reachable"));
    }
}

#[test]
fn an_old_picture_says_so() {
    let sample = Sample::new_at(overview(0), Instant::now());
    let text = drawn(100, 40, &sample, Some("the controller is\nunreachable"));
    assert!(
        text.contains("this picture is old  the controller is unreachable"),
        "{text}"
    );
}
