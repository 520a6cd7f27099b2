//! More than two nodes on one line, and many channels on one client port: who gets which frame.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::lab::{Customer, Lab, Mood, address, client, line};
use qloak_api::manage::SetSuite;
use qloak_port::{Batch, End, MemoryConfig, Port, PortConfig, Sizes};

/// A segment that all line ports share: what one sends comes to all others.
struct Segment {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Segment {
    fn between(names: &str, wires: &str) -> Self {
        let sizes = Sizes {
            headroom: 0,
            octets_max: 2000,
            tailroom: 0,
        };
        let open = |name| {
            let config = MemoryConfig::new(format!("{wires}-line-{name}"), End::B);
            qloak_port::open(&PortConfig::Memory(config), &sizes).expect("a wire")
        };
        let mut ports: Vec<Box<dyn Port>> = names.chars().map(open).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut came = Batch::with_sizes(64, sizes);
            let mut goes = Batch::with_sizes(64, sizes);
            while !stopped.load(Ordering::Relaxed) {
                let mut idle = true;
                for from in 0..ports.len() {
                    came.clear();
                    idle &= ports[from].receive(&mut came).expect("a wire") == 0;
                    for to in (0..ports.len()).filter(|to| *to != from) {
                        let all = came.frames().iter();
                        all.for_each(|frame| assert!(goes.push(frame.octets())));
                        while !goes.is_empty() && !stopped.load(Ordering::Relaxed) {
                            if ports[to].transmit(&mut goes).expect("a wire") == 0 {
                                std::thread::sleep(Duration::from_micros(50));
                            }
                        }
                    }
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the segment carried all");
        }
    }
}

fn channel(number: u16, peer: char, client: u8, vlan: Option<u16>, suite: &str) -> String {
    let vlans = vlan.map_or(String::new(), |vlan| format!("vlans = [{vlan}]\n"));
    format!(
        "[[channel]]\nnumber = {number}\npeer = \"node-{peer}\"\ncarriage = \"aggregated\"\nclients = [{client}]\n{vlans}suite = \"{suite}\"\n"
    )
}

/// The file of one of three nodes. Client port 1 is a mesh of all; VLAN 10 of client port 2 leads from a to b, VLAN 20
/// from a to c.
fn three(own: char, wires: &str) -> String {
    let others: Vec<char> = "abc".chars().filter(|name| *name != own).collect();
    let mut text = format!(
        "[line]\nport = {{ kind = \"memory\", wire = \"{wires}-line-{own}\", end = \"a\" }}\n{}[[peer]]\nname = \"node-{}\"\naddress = \"{}\"\n",
        line(own, others[0]),
        others[1],
        address(others[1]),
    );
    text += &(1..=2)
        .map(|number| client(own, number, wires))
        .collect::<String>();
    for (number, ends, port, vlan, suite) in [
        (1, "ab", 1, None, "aes-256-gcm"),
        (2, "ac", 1, None, "serpent-256-ocb"),
        (3, "bc", 1, None, "camellia-256-gcm"),
        (4, "ab", 2, Some(10), "aes-256-ocb"),
        (5, "ac", 2, Some(20), "aes-128-gcm"),
        // So that client port 2 of each node has a channel for the VLAN of the other too.
        (6, "bc", 2, Some(30), "aes-128-gcm"),
    ] {
        if ends.contains(own) {
            let far = ends.chars().find(|name| *name != own).expect("two ends");
            text += &channel(number, far, port, vlan, suite);
        }
    }
    text
}

fn station(name: char) -> [u8; 6] {
    [2, 0, 0, 0, 1, name as u8]
}

/// A client frame with a word in it.
fn frame(to: [u8; 6], from: [u8; 6], vlan: Option<u16>, word: u32) -> Vec<u8> {
    let mut frame = [to, from].concat();
    if let Some(vlan) = vlan {
        frame.extend([0x81, 0x00]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend([0x08, 0x00]);
    frame.extend(word.to_be_bytes());
    frame.resize(80, 0);
    frame
}

/// What comes until nothing does any more; frames in `wanted` are waited for.
fn arrived(customer: &mut Customer, wanted: usize) -> Vec<Vec<u8>> {
    let (begun, mut came) = (Instant::now(), Vec::new());
    while came.len() < wanted && begun.elapsed() < Duration::from_secs(10) {
        came.extend(customer.take());
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(100));
    came.extend(customer.take());
    came
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_nodes_on_one_line_are_a_mesh_and_tenants_stay_apart() {
    let mut lab = Lab::start_nodes(Mood::Good, "abc", three).await;
    let _segment = Segment::between("abc", &lab.wires);
    lab.until_open().await;
    let mut mesh = ["a", "b", "c"].map(|name| lab.customer(name, 1));

    // To all: once to each. To a station that nobody heard of: the same.
    let all = frame([0xFF; 6], station('a'), None, 1);
    mesh[0].send(&all);
    for far in &mut mesh[1..] {
        assert_eq!(arrived(far, 1), std::slice::from_ref(&all));
    }
    let unknown = frame(station('b'), station('a'), None, 2);
    mesh[0].send(&unknown);
    for far in &mut mesh[1..] {
        assert_eq!(arrived(far, 1), std::slice::from_ref(&unknown));
    }
    assert_eq!(arrived(&mut mesh[0], 0).len(), 0, "nothing comes back");

    // The station answers; from now on it gets its frames alone.
    let answer = frame(station('a'), station('b'), None, 3);
    mesh[1].send(&answer);
    assert_eq!(arrived(&mut mesh[0], 1), [answer]);
    assert_eq!(arrived(&mut mesh[2], 0).len(), 0, "a is known to b already");
    let known = frame(station('b'), station('a'), None, 4);
    mesh[0].send(&known);
    assert_eq!(arrived(&mut mesh[1], 1), [known]);
    assert_eq!(arrived(&mut mesh[2], 0).len(), 0);

    // It moves to node c.
    let moved = frame(station('a'), station('b'), None, 5);
    mesh[2].send(&moved);
    assert_eq!(arrived(&mut mesh[0], 1).len(), 1);
    let there = frame(station('b'), station('a'), None, 6);
    mesh[0].send(&there);
    assert_eq!(arrived(&mut mesh[2], 1), [there]);

    // Two tenants at one client port, by VLAN, and one that nobody carries.
    let mut tenants = ["a", "b", "c"].map(|name| lab.customer(name, 2));
    for (vlan, far) in [(10, Some(1)), (20, Some(2)), (30, None), (4000, None)] {
        let sent = frame([0xFF; 6], station('a'), Some(vlan), 7);
        tenants[0].send(&sent);
        for (name, tenant) in tenants.iter_mut().enumerate().skip(1) {
            let wanted = usize::from(far == Some(name));
            assert_eq!(arrived(tenant, wanted).len(), wanted, "VLAN {vlan}");
        }
    }
    let untagged = frame(station('b'), station('a'), None, 8);
    tenants[0].send(&untagged);
    let state = lab
        .until(0, "three of no VLAN here", |state| {
            state.clients[1].discarded_vlan == 3
        })
        .await;

    // Each pair for itself: names, keys, suites; what is not for a node, it does not even open.
    let peers: Vec<_> = state.channels.iter().map(|one| one.peer.as_str()).collect();
    assert_eq!(peers, ["node-b", "node-c", "node-b", "node-c"]);
    let keys = state
        .channels
        .iter()
        .filter_map(|one| one.outbound.encoding.as_ref());
    let mut keys: Vec<_> = keys.map(|sa| sa.key_id).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4);
    let stranger = lab.state(2).await.expect("node c answers");
    assert!(stranger.strays.unknown_sci > 0, "{:?}", stranger.strays);
    let counters = stranger.channels.iter().map(|one| one.inbound.counters);
    assert!(
        counters
            .map(|one| one.not_valid + one.mux_errors)
            .all(|wrong| wrong == 0)
    );
    for state in [&state, &stranger] {
        assert_eq!(state.alarms, []);
        assert!(state.key_handler.peer_alive && state.key_handler.kme_reachable);
        assert_eq!(state.key_handler.forged, 0);
    }

    // An order about a channel reaches the right far node.
    let order = SetSuite {
        suite: "camellia-256-ocb".into(),
    };
    lab.manage(0, "admin")
        .put_json::<_, ()>("/v1/channels/2/suite", &order)
        .await
        .expect("taken");
    lab.until(2, "the new suite from a", |state| {
        let accepted = &state.channels[0].inbound.accepted;
        accepted.iter().any(|sa| sa.suite == "camellia-256-ocb")
    })
    .await;
    lab.stop().await;
}

/// VLANs of one client port, a channel and a suite for each.
const CHANNELS: u16 = 256;

const SUITES: [&str; 4] = [
    "aes-256-gcm",
    "camellia-256-gcm",
    "serpent-256-ocb",
    "aes-128-ocb",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hundreds_of_channels_with_different_suites_share_a_line() {
    let mut lab = Lab::start_nodes(Mood::Good, "ab", |own, wires| {
        let peer = if own == 'a' { 'b' } else { 'a' };
        let mut text = format!(
            "[line]\nport = {{ kind = \"memory\", wire = \"{wires}-line\", end = \"{own}\" }}\n{}{}",
            line(own, peer),
            client(own, 1, wires),
        );
        for number in 1..=CHANNELS {
            let suite = SUITES[usize::from(number) % SUITES.len()];
            text += &channel(number, peer, 1, Some(number), suite);
        }
        text
    })
    .await;
    lab.until_open().await;
    let (mut near, mut far) = (lab.customer("a", 1), lab.customer("b", 1));
    let mut sent = Vec::new();
    for round in 0..4 {
        for vlan in 1..=CHANNELS {
            let one = frame([0xFF; 6], station('a'), Some(vlan), round);
            near.send(&one);
            sent.push(one);
        }
    }
    let mut came = arrived(&mut far, sent.len());
    came.sort();
    sent.sort();
    assert!(came == sent, "{} of {} came", came.len(), sent.len());
    let state = lab.state(1).await.expect("node b answers");
    for (channel, number) in state.channels.iter().zip(1u16..) {
        let suite = SUITES[usize::from(number) % SUITES.len()];
        let sas = &channel.inbound.accepted;
        assert!(sas.iter().all(|sa| sa.suite == suite), "{sas:?}");
        assert_eq!(
            channel.inbound.counters.client_frames, 4,
            "channel {number}"
        );
    }
    lab.stop().await;
}
