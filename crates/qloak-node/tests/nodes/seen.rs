//! What a node shows of the frames that pass it: their times, and what an impaired port does to them.

use qloak_api::manage::FaultCounters;

use crate::{
    collect,
    lab::{Lab, Mood, frame},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_client_frame_has_a_time_in_both_nodes() {
    let rate = "constant_rate_bps = 100000000\n";
    for (trunk, client) in [("", 1), (rate, 1), ("", 3)] {
        let mut lab = Lab::start_with(Mood::Good, 1, trunk).await;
        lab.until_open().await;
        let (mut near, mut far) = (lab.customer("a", client), lab.customer("b", client));
        for number in 0..500 {
            near.send(&frame(number, 60 + number as usize * 2));
        }
        let mut delivered = Vec::new();
        collect(&mut far, &mut delivered, 500);
        assert_eq!(delivered.len(), 500);
        let out = lab.until(0, "500 times outbound", |state| {
            state
                .latency
                .as_ref()
                .is_some_and(|times| times.outbound.frames == 500)
        });
        let times = out.await.latency.expect("its own pipeline").outbound;
        assert!(times.p50_ns > 0 && times.p50_ns <= times.p99_ns && times.p99_ns <= times.max_ns);
        lab.until(1, "500 times inbound", |state| {
            state
                .latency
                .as_ref()
                .is_some_and(|times| times.inbound.frames == 500)
        })
        .await;
        lab.stop().await;
    }
}

async fn metrics(lab: &Lab) -> String {
    let page = lab
        .manage(0, "admin")
        .exchange("GET", "/metrics", None)
        .await;
    String::from_utf8(page.expect("a page").body.to_vec()).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn times_are_a_histogram_for_prometheus() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let mut near = lab.customer("a", 3);
    (0..10).for_each(|number| near.send(&frame(number, 100)));
    lab.until(0, "10 times", |state| {
        state
            .latency
            .as_ref()
            .is_some_and(|times| times.outbound.frames == 10)
    })
    .await;
    let page = metrics(&lab).await;
    for line in [
        "# TYPE qloak_node_latency_seconds histogram",
        "qloak_node_latency_seconds_count{direction=\"outbound\"} 10",
        "qloak_node_latency_seconds_bucket{le=\"+Inf\",direction=\"outbound\"} 10",
        "qloak_node_latency_seconds_count{direction=\"inbound\"} 0",
    ] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
    assert!(!page.contains("impaired"), "{page}");
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_impaired_port_is_seen_as_such() {
    let faults = "[line.impairment.transmit]\nduplicate = 1\n";
    for lanes in [1, 2] {
        let mut lab = Lab::start_with(Mood::Good, lanes, faults).await;
        let state = lab.until(0, "doubled agreement frames", |state| {
            let done = state.line.impairments;
            done.is_some_and(|done| done.transmit.duplicated > 0 && done.transmit.taken > 0)
        });
        let done = state.await.line.impairments.expect("impaired");
        assert_eq!(
            done.receive,
            FaultCounters::default(),
            "that way is left alone"
        );
        assert_eq!((done.transmit.lost, done.transmit.damaged), (0, 0));
        let page = metrics(&lab).await;
        assert!(page.contains("fault=\"duplicated\""), "{page}");
        lab.stop().await;
    }
}
