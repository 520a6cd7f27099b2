//! When line frames leave: an open one waits for its time and no longer, and no piece ever waits.

mod common;

use common::*;
use qloak_api::{Carriage, ClientPort};
use qloak_cipher::Suite;
use qloak_secy::{Muxed, limits};

const LINE_OCTETS: usize = 1514;
const WAIT_NS: u64 = 20_000;

struct Waiting {
    link: Link,
    client: ClientPort,
    sent: Delivered,
    received: Delivered,
}

impl Waiting {
    fn new(wait_ns: u64) -> Self {
        let config = channel(Carriage::Aggregated);
        let suite = Suite::by_name("aes-256-gcm").unwrap();
        let mut link = Link::keyed(&config, LINE_OCTETS, suite);
        assert!(link.outbound.set_wait(config.number, wait_ns));
        let mut waiting = Self {
            link,
            client: config.clients[0],
            sent: Vec::new(),
            received: Vec::new(),
        };
        // The first frame comes alone and waits for nobody; from then on they flow.
        waiting.mux(64, 0);
        assert_eq!(waiting.shape(0), 1);
        waiting
    }

    /// A client frame comes in.
    fn mux(&mut self, octets: usize, now_ns: u64) {
        let frame = vec![self.sent.len() as u8; octets];
        let Link {
            outbound,
            channel,
            line,
            ..
        } = &mut self.link;
        let muxed = outbound.mux(*channel, self.client, &frame, line, now_ns);
        assert_eq!(muxed, Muxed::Taken);
        self.sent.push((self.client, frame));
    }

    /// What is due leaves and is received; says how many line frames it was.
    fn shape(&mut self, now_ns: u64) -> usize {
        let link = &mut self.link;
        let leaving = link
            .outbound
            .shape(link.channel, link.line.frames.len(), now_ns);
        let mut frames: Vec<_> = link.line.frames.drain(..leaving).collect();
        let protected = link.outbound.protect(link.channel, rooms(&mut frames), 0);
        assert_eq!(protected.frames, leaving);
        let delivered = link.receive(&frames);
        self.received.extend(delivered);
        leaving
    }
}

#[test]
fn a_line_frame_waits_for_its_time_and_takes_more() {
    let mut waiting = Waiting::new(WAIT_NS);
    waiting.mux(100, 1_000);
    assert_eq!(waiting.shape(1_000), 0);
    assert_eq!(
        waiting.link.outbound.leaves_at(waiting.link.channel),
        Some(1_000 + WAIT_NS)
    );
    waiting.mux(200, 15_000);
    assert_eq!(waiting.shape(WAIT_NS), 0, "its first frame came at 1 us");
    assert_eq!(waiting.shape(1_000 + WAIT_NS), 1);
    assert_eq!(waiting.received, waiting.sent);
    assert_eq!(waiting.link.outbound.leaves_at(waiting.link.channel), None);

    waiting.mux(100, 90_000);
    assert_eq!(
        waiting.shape(90_000),
        1,
        "one that comes alone does not wait"
    );
    waiting.mux(100, 95_000);
    assert_eq!(
        waiting.shape(95_001),
        0,
        "the next one has a time of its own"
    );
    assert_eq!(waiting.shape(u64::MAX), 1, "told to leave, it leaves");
    assert_eq!(waiting.received, waiting.sent);
}

#[test]
fn without_a_wait_nothing_stays() {
    let mut waiting = Waiting::new(0);
    for now_ns in 0..5 {
        waiting.mux(64, now_ns);
        assert_eq!(waiting.shape(now_ns), 1);
    }
    assert_eq!(waiting.received, waiting.sent);
}

#[test]
fn full_line_frames_do_not_wait_and_neither_do_pieces() {
    let mut waiting = Waiting::new(WAIT_NS);
    // The second does not fit behind the first: its first piece fills the line frame, and the other begins
    // the next one.
    waiting.mux(1000, 0);
    waiting.mux(1000, 1);
    assert_eq!(waiting.shape(2), 2);
    assert_eq!(waiting.received, waiting.sent);
    // One that leaves no room for another record.
    let records = LINE_OCTETS - limits::HEADROOM - limits::TAILROOM - 14;
    waiting.mux(records - 4, 3);
    assert_eq!(waiting.shape(4), 1);
    assert_eq!(waiting.received, waiting.sent);
}

#[test]
fn a_wait_has_a_bound_and_needs_a_channel() {
    let mut waiting = Waiting::new(u64::MAX);
    waiting.mux(64, 5);
    assert_eq!(
        waiting.link.outbound.leaves_at(waiting.link.channel),
        Some(5 + limits::WAIT_NS_MAX)
    );
    let other = number(77);
    assert!(!waiting.link.outbound.set_wait(other, 1));
}

/// Whatever comes when: every frame arrives once, in order, and none stays longer than its time, an SA's
/// change in the middle included.
#[test]
fn nothing_is_lost_or_late_over_changes_of_the_sa() {
    let mut waiting = Waiting::new(WAIT_NS);
    let suite = Suite::by_name("aes-256-gcm").unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (mut now_ns, mut rekeys) = (0, 0);
    for step in 0..20_000 {
        now_ns += random(15_000);
        if random(3) > 0 {
            waiting.mux(14 + random(3_000) as usize, now_ns);
        }
        if step % 100 == 99 {
            rekeys += 1;
            waiting
                .link
                .rekey((rekeys % 4) as u8, suite, 1 + rekeys as u8);
        }
        waiting.shape(now_ns);
        if let Some(leaves_at) = waiting.link.outbound.leaves_at(waiting.link.channel) {
            assert!(leaves_at > now_ns && leaves_at <= now_ns + WAIT_NS);
            assert_eq!(waiting.link.line.frames.len(), 1);
        } else {
            assert!(waiting.link.line.frames.is_empty());
            assert_eq!(waiting.received.len(), waiting.sent.len());
        }
    }
    waiting.shape(u64::MAX);
    assert!(waiting.received == waiting.sent);
}
