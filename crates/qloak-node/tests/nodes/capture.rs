//! Captures of a running node: what is in them, what is not, who refuses.

use std::{
    io::Cursor,
    time::{Duration, Instant},
};

use qloak_api::{CaptureOrder, Side};
use qloak_door::{Client, DoorError, Flow};
use qloak_port::capture::{Blocks, Reader, Statistics, Way};

use crate::{
    collect,
    lab::{Lab, Mood, frame},
};

const AGREEMENT: [u8; 2] = [0x88, 0xb5];
const MACSEC: [u8; 2] = [0x88, 0xe5];

fn order(side: Side) -> CaptureOrder {
    CaptureOrder {
        side,
        port: None,
        seconds: 60,
        frames: 100_000,
        snap_octets: 65_535,
    }
}

/// Begins a capture. When this returns, the node records.
async fn begin(client: &Client, order: &CaptureOrder) -> Result<Flow, DoorError> {
    client
        .post_flow("/v1/capture", order, Duration::from_secs(60))
        .await
}

/// Reads until there is enough, or the node ends the capture.
async fn read(flow: &mut Flow, enough: impl Fn(&Capture) -> bool) -> Capture {
    let mut blocks = Blocks::default();
    let mut file = Vec::new();
    loop {
        let piece = tokio::time::timeout(Duration::from_secs(20), flow.next()).await;
        match piece.expect("frames in time").expect("the capture goes on") {
            Some(piece) => file.extend(blocks.push(&piece).expect("pcapng")),
            None => return opened(&file),
        }
        let capture = opened(&file);
        if enough(&capture) {
            return capture;
        }
    }
}

/// A frame of a capture: interface, way, octets, length on the wire.
type Seen = (usize, Option<Way>, Vec<u8>, usize);

struct Capture {
    frames: Vec<Seen>,
    interfaces: Vec<(String, Option<Statistics>)>,
    stamps: Vec<u64>,
}

fn opened(file: &[u8]) -> Capture {
    let mut reader = Reader::new(Cursor::new(file)).expect("a capture");
    let (mut frames, mut stamps) = (Vec::new(), Vec::new());
    while reader.advance().expect("sound") {
        let (seen, origin) = (reader.frame(), reader.origin());
        stamps.push(seen.stamp_ns);
        frames.push((
            origin.interface,
            origin.way,
            seen.octets.to_vec(),
            seen.wire_octets,
        ));
    }
    let interfaces = reader
        .interfaces_seen()
        .map(|(name, statistics)| (name.to_owned(), statistics));
    Capture {
        frames,
        interfaces: interfaces.collect(),
        stamps,
    }
}

fn detail(refused: Result<Flow, DoorError>) -> (u16, String) {
    match refused {
        Err(DoorError::Status { status, body, .. }) => (status, body),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_capture_of_the_client_side_holds_exactly_the_frames_sent_in_order() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let mut one = order(Side::Client);
    one.frames = 300;
    let mut flow = begin(&lab.manage(0, "admin"), &one)
        .await
        .expect("allowed at node a");
    let sent: Vec<_> = (0..100)
        .map(|number| frame(number, 60 + number as usize * 14))
        .collect();
    // Client port 1 (aggregated) and 3 (transparent) out, and 2 in from the far node.
    let (mut out, mut lease) = (lab.customer("a", 1), lab.customer("a", 3));
    let (mut far, mut near) = (lab.customer("b", 2), lab.customer("a", 2));
    for frame in &sent {
        out.send(frame);
        lease.send(frame);
        far.send(frame);
    }
    let mut delivered = Vec::new();
    collect(&mut near, &mut delivered, 100);
    assert_eq!(delivered, sent);
    let seen = read(&mut flow, |_| false).await;
    for (client, way) in [
        (1, Way::Received),
        (3, Way::Received),
        (2, Way::Transmitted),
    ] {
        let name = format!("client {client} ");
        let interface = seen
            .interfaces
            .iter()
            .position(|(own, _)| own.starts_with(&name));
        let of_port = seen.frames.iter().filter(|seen| Some(seen.0) == interface);
        let of_port: Vec<_> = of_port.collect();
        assert!(
            of_port.iter().all(|seen| seen.1 == Some(way)),
            "client port {client}"
        );
        let octets: Vec<_> = of_port.iter().map(|seen| seen.2.clone()).collect();
        assert!(
            octets == sent,
            "client port {client}: {} frames",
            octets.len()
        );
    }
    assert!(seen.stamps.is_sorted(), "in the order of time");
    let (passed, dropped) = seen.interfaces.iter().fold((0, 0), |sum, (_, statistics)| {
        let statistics = statistics.expect("a complete capture says what passed");
        (sum.0 + statistics.passed, sum.1 + statistics.dropped)
    });
    assert_eq!((passed, dropped), (300, 0));
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_capture_of_the_line_side_holds_what_is_on_the_line_and_no_client_frame() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let admin = [lab.manage(0, "admin"), lab.manage(1, "admin")];
    let mut both = Vec::new();
    for client in &admin {
        both.push(
            begin(client, &order(Side::Line))
                .await
                .expect("allowed by default"),
        );
    }
    let (mut near, mut far) = (lab.customer("a", 3), lab.customer("b", 3));
    let secret = frame(0x5eed_5eed, 800);
    for _ in 0..20 {
        near.send(&secret);
    }
    let mut delivered = Vec::new();
    collect(&mut far, &mut delivered, 20);
    assert_eq!(delivered.len(), 20);
    let of_kind = |side: &[Seen], kind: [u8; 2], way| -> Vec<Vec<u8>> {
        let wanted = |seen: &&Seen| seen.1 == Some(way) && seen.2[12..14] == kind;
        side.iter()
            .filter(wanted)
            .map(|seen| seen.2.clone())
            .collect()
    };
    let mut sides = Vec::new();
    for (flow, way) in both.iter_mut().zip([Way::Transmitted, Way::Received]) {
        // Agreement frames go to and fro all the time, so there is an end to this.
        let enough = |seen: &Capture| {
            let agreement = |way| !of_kind(&seen.frames, AGREEMENT, way).is_empty();
            let all = of_kind(&seen.frames, MACSEC, way).len() >= 20;
            all && agreement(Way::Transmitted) && agreement(Way::Received)
        };
        sides.push(read(flow, enough).await.frames);
    }
    let protected = |side: &[Seen], way| of_kind(side, MACSEC, way);
    let left = protected(&sides[0], Way::Transmitted);
    assert_eq!(
        left,
        protected(&sides[1], Way::Received),
        "what leaves one node comes to the other"
    );
    assert_eq!(left.len(), 20);
    let clear = &secret[14..64];
    assert!(
        left.iter()
            .all(|frame| !frame.windows(clear.len()).any(|part| part == clear))
    );
    drop(both);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn frames_are_cut_where_the_order_says_and_one_port_alone_is_recorded() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let mut cut = order(Side::Client);
    cut.port = Some(1.try_into().expect("a client port"));
    (cut.snap_octets, cut.frames) = (20, 5);
    let mut flow = begin(&lab.manage(0, "controller"), &cut)
        .await
        .expect("a controller may too");
    let (mut one, mut two) = (lab.customer("a", 1), lab.customer("a", 2));
    for number in 0..9 {
        two.send(&frame(number, 100));
        one.send(&frame(number, 400));
    }
    let seen = read(&mut flow, |_| false).await;
    let wanted: Vec<_> = (0..5)
        .map(|number| {
            (
                0,
                Some(Way::Received),
                frame(number, 400)[..20].to_vec(),
                400,
            )
        })
        .collect();
    assert_eq!(seen.frames, wanted);
    assert_eq!(seen.interfaces.len(), 1);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_may_not_be_recorded_is_refused_with_words() {
    let mut lab = Lab::start(Mood::Good).await;
    lab.until_open().await;
    let (admin, other) = (lab.manage(1, "admin"), lab.manage(1, "node-a"));
    let (status, why) = detail(begin(&admin, &order(Side::Client)).await);
    assert_eq!(status, 403);
    for word in [
        "capture = \\\"both\\\"",
        "[manage]",
        "b.toml",
        "no request can change that",
    ] {
        assert!(why.contains(word), "{word} is missing in {why}");
    }
    let (status, why) = detail(begin(&other, &order(Side::Line)).await);
    assert!(status == 403 && why.contains("role node"), "{why}");
    let mut unknown = order(Side::Client);
    unknown.port = Some(9.try_into().expect("a client port"));
    let (status, why) = detail(begin(&lab.manage(0, "admin"), &unknown).await);
    assert!(
        status == 404 && why.contains("this node has 1, 2, 3"),
        "{why}"
    );
    let mut long = order(Side::Line);
    long.seconds = 3601;
    let (status, why) = detail(begin(&admin, &long).await);
    assert!(status == 400 && why.contains("1 to 3600"), "{why}");
    let running = begin(&admin, &order(Side::Line)).await.expect("allowed");
    let (status, why) = detail(begin(&admin, &order(Side::Line)).await);
    assert!(status == 409 && why.contains("another capture"), "{why}");
    // Whoever hangs up makes room for the next.
    drop(running);
    let begun = Instant::now();
    while let Err(error) = begin(&admin, &order(Side::Line)).await {
        assert!(begun.elapsed() < Duration::from_secs(20), "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    lab.stop().await;
}
