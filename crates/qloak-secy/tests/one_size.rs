//! A channel of one size: nobody who sees the line frames can tell what they carry, and the far end can.

mod common;

use common::*;
use qloak_api::{Carriage, ClientPort};
use qloak_cipher::Suite;
use qloak_secy::{Muxed, limits};

const LINE_OCTETS: usize = 1514;

fn one_size(suite: &str) -> (Link, ClientPort) {
    let config = channel(Carriage::Aggregated);
    let mut link = Link::keyed(&config, LINE_OCTETS, Suite::by_name(suite).unwrap());
    assert!(link.outbound.set_one_size(config.number, true));
    (link, config.clients[0])
}

fn mux(link: &mut Link, client: ClientPort, frame: &[u8]) -> Muxed {
    let Link {
        outbound,
        channel,
        line,
        ..
    } = link;
    outbound.mux(*channel, client, frame, line, 0)
}

/// Everything begun and `empty` more, as the line sees them.
fn leave(link: &mut Link, empty: usize) -> Vec<Stored> {
    let Link {
        outbound,
        channel,
        line,
        ..
    } = link;
    outbound.fill(*channel, line, empty, 0);
    outbound.protect(*channel, rooms(&mut line.frames), 0);
    std::mem::take(&mut line.frames)
}

#[test]
fn every_line_frame_has_the_same_length_and_carries_what_it_was_given() {
    let (mut link, client) = one_size("aes-256-gcm");
    let mut sent = Vec::new();
    let mut received = Vec::new();
    for round in 0..500_usize {
        for octets in [14 + round * 3, 64, 1514, 9000, 15 + round]
            .into_iter()
            .take(round % 6)
        {
            let frame = vec![round as u8 | 1; octets];
            assert_eq!(mux(&mut link, client, &frame), Muxed::Taken);
            sent.push((client, frame));
        }
        let frames = leave(&mut link, round % 3);
        let sizes: Vec<_> = frames.iter().map(|frame| frame.octets().len()).collect();
        assert!(sizes.iter().all(|size| *size == LINE_OCTETS), "{sizes:?}");
        received.extend(link.receive(&frames));
    }
    assert!(received == sent);
    let counters = link.outbound.counters(link.channel.number).unwrap();
    assert_eq!(counters.fill_frames, 500 / 3 * 3 + 1);
    assert_eq!(counters.client_frames, sent.len() as u64);
}

/// What was in the storage before does not become part of the fill.
#[test]
fn a_line_frame_that_carries_nothing_is_zeros_inside() {
    for suite in ["aes-256-gcm", "plain"] {
        let (mut link, _) = one_size(suite);
        let frames = leave(&mut link, 5);
        assert_eq!(frames.len(), 5);
        let (verdicts, opened) = link.validate(&frames);
        for (verdict, frame) in verdicts.iter().zip(&opened) {
            assert!(matches!(verdict, qloak_secy::Verdict::Valid(_)));
            let octets = frame.octets();
            assert_eq!(
                octets.len(),
                LINE_OCTETS - limits::HEADROOM - limits::TAILROOM
            );
            assert!(octets[14..].iter().all(|octet| *octet == 0));
        }
    }
}

#[test]
fn without_an_sa_nothing_is_made_up() {
    let (mut link, client) = one_size("aes-256-gcm");
    assert_eq!(mux(&mut link, client, &[1; 100]), Muxed::Taken);
    let number = link.channel.number;
    link.outbound.close(number);
    let frames = leave(&mut link, 5);
    assert_eq!(frames.len(), 1);
    assert!(
        frames[0].octets().is_empty(),
        "and what was begun is discarded"
    );
    assert_eq!(link.outbound.refused(client), 1);
    let counters = link.outbound.counters(number).unwrap();
    assert_eq!((counters.fill_frames, counters.no_sa), (0, 1));
    assert!(!link.outbound.set_one_size(self::number(77), true));
}

/// Zeros end the records; what stands behind them is the far node's fault and is counted.
#[test]
fn fill_that_is_not_zeros_is_refused() {
    let (mut link, _) = one_size("aes-256-gcm");
    for at in [14, 18, 19, 700] {
        let Link {
            outbound,
            channel,
            line,
            ..
        } = &mut link;
        outbound.fill(*channel, line, 1, 0);
        let frame = &mut line.frames[0];
        let start = frame.range.start;
        frame.storage[start + at] = 1;
        outbound.protect(*channel, rooms(&mut line.frames), 0);
        let frames = std::mem::take(&mut line.frames);
        let before = link
            .inbound
            .counters(link.channel.number)
            .unwrap()
            .mux_errors;
        assert!(link.receive(&frames).is_empty());
        let counters = link.inbound.counters(link.channel.number).unwrap();
        assert_eq!(counters.mux_errors, before + 1, "octet {at}");
    }
}
