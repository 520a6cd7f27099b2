//! What goes in at one end comes out at the other: every suite, both carriages, both forms of PN,
//! every length.

mod common;

use common::*;
use proptest::prelude::*;
use qloak_api::Carriage;
use qloak_cipher::suite::SUITES;
use qloak_secy::{ChannelConfig, Muxed, Verdict};

const CARRIAGES: [Carriage; 2] = [Carriage::Transparent, Carriage::Aggregated];

/// Every suite, AEAD and hazmat, over lengths around each edge of the format.
#[test]
fn every_suite_carries_every_kind_of_length() {
    let lengths = [14, 15, 59, 60, 61, 64, 75, 76, 128, 576, 1500, 1600, 9000];
    for carriage in CARRIAGES {
        for xpn in [true, false] {
            for suite in &SUITES {
                let config = ChannelConfig {
                    xpn,
                    ..channel(carriage)
                };
                let mut link = Link::keyed(&config, 9600, suite);
                let frames: Vec<_> = lengths
                    .iter()
                    .map(|&octets| (client(1), frame(octets, octets as u64)))
                    .collect();
                let sent = link.send(&frames);
                assert_eq!(
                    link.receive(&sent),
                    frames,
                    "{} {carriage:?} xpn {xpn}",
                    suite.name
                );
            }
        }
    }
}

/// Every length from 14 to 1600, both carriages, both forms of PN, one suite.
#[test]
fn every_length_comes_through() {
    for carriage in CARRIAGES {
        for xpn in [true, false] {
            let config = ChannelConfig {
                xpn,
                ..channel(carriage)
            };
            let mut link = Link::keyed(&config, 1632, suite("aes-128-gcm"));
            for octets in (14..=1600).chain(
                [9000]
                    .into_iter()
                    .filter(|_| carriage == Carriage::Aggregated),
            ) {
                let frames = [(client(1), frame(octets, 7))];
                let sent = link.send(&frames);
                assert_eq!(link.receive(&sent), frames, "{octets} octets, {carriage:?}");
            }
            let (out, inn) = (
                link.outbound.counters(config.number).unwrap(),
                link.inbound.counters(config.number).unwrap(),
            );
            assert_eq!(out.client_frames, inn.client_frames);
            assert_eq!(out.client_octets, inn.client_octets);
            assert_eq!(
                (out.protected_frames, out.protected_octets),
                (inn.ok, inn.octets)
            );
            assert_eq!((inn.mux_errors, inn.fragments_lost), (0, 0));
        }
    }
}

/// A sealed frame differs from the client's in its secure data, and keeps the addresses.
#[test]
fn a_transparent_frame_keeps_its_addresses_and_hides_the_rest() {
    for suite in aead() {
        let mut link = Link::keyed(&channel(Carriage::Transparent), 1600, suite);
        let plain = frame(300, 3);
        let sent = link.send(&[(client(1), plain.clone())]);
        let line = sent[0].octets();
        assert_eq!(line.len(), 300 + 32, "{}", suite.name);
        assert_eq!(line[..12], plain[..12]);
        assert_eq!(line[12..14], [0x88, 0xe5]);
        let hidden = line
            .windows(8)
            .all(|window| !plain[12..].windows(8).any(|p| p == window));
        assert!(hidden, "{}: plaintext on the line", suite.name);
    }
}

/// Aggregated: the addresses of the clients are not on the line, and all line frames but the last are
/// full.
#[test]
fn an_aggregated_line_hides_clients_and_fills_its_frames() {
    let mut link = Link::keyed(&channel(Carriage::Aggregated), 1514, suite("aes-256-gcm"));
    let frames: Vec<_> = (0..60)
        .map(|n| (client(n % 10 + 1), frame(200 + usize::from(n), n.into())))
        .collect();
    let sent = link.send(&frames);
    let (last, full) = sent.split_last().unwrap();
    assert!(full.iter().all(|line| line.octets().len() > 1514 - 8 - 64));
    assert!(last.octets().len() <= 1514);
    for line in &sent {
        assert_eq!(line.octets()[..6], B.0);
        assert_eq!(line.octets()[6..12], A.0);
    }
    assert!(
        full.len() < 12,
        "{} line frames for 60 client frames",
        sent.len()
    );
    assert_eq!(link.receive(&sent), frames);
}

/// A batch larger than one call of the cipher, in place, without mux.
#[test]
fn a_large_batch_is_protected_in_place() {
    let mut link = Link::keyed(&channel(Carriage::Transparent), 1600, suite("aes-128-ocb"));
    let plain: Vec<_> = (0..100).map(|n| frame(64 + n, n as u64)).collect();
    let mut batch: Vec<_> = plain.iter().map(|frame| Stored::of(frame)).collect();
    let protected = link.outbound.protect(link.channel, rooms(&mut batch), 0);
    assert_eq!(
        (
            protected.frames,
            protected.no_sa,
            protected.too_long,
            protected.runts
        ),
        (100, 0, 0, 0)
    );
    let (verdicts, frames) = link.validate(&batch);
    assert!(
        verdicts
            .iter()
            .all(|verdict| matches!(verdict, Verdict::Valid(_)))
    );
    for (frame, plain) in frames.iter().zip(&plain) {
        assert_eq!(frame.octets(), plain);
    }
}

/// What does not fit is refused, counted once, and does not stop the others.
#[test]
fn frames_that_do_not_fit_are_counted() {
    let mut link = Link::keyed(&channel(Carriage::Transparent), 1514, suite("aes-128-gcm"));
    let mut batch: Vec<_> = [1482, 1483, 13, 0, 14]
        .map(|octets| Stored::of(&frame(octets, 1)))
        .into();
    // No headroom; no tailroom; a range outside its storage.
    let mut cramped = Stored::of(&frame(100, 1));
    cramped.storage.drain(..16);
    cramped.range = 0..100;
    batch.push(cramped);
    let mut cramped = Stored::of(&frame(100, 1));
    cramped.storage.truncate(cramped.range.end + 15);
    batch.push(cramped);
    batch.push(Stored {
        storage: vec![0; 64],
        range: 16..200,
    });
    batch.push(Stored {
        storage: vec![0; 64],
        range: Range { start: 60, end: 20 },
    });
    let protected = link.outbound.protect(link.channel, rooms(&mut batch), 0);
    assert_eq!(
        (
            protected.frames,
            protected.too_long,
            protected.runts,
            protected.no_sa
        ),
        (2, 4, 3, 0)
    );
    assert_eq!(link.outbound.counters(number(1)).unwrap().too_long, 4);
    let left: Vec<_> = batch.iter().map(|frame| !frame.range.is_empty()).collect();
    assert_eq!(
        left,
        [true, false, false, false, true, false, false, false, false]
    );

    let mux = |link: &mut Link, octets| {
        let frame = frame(octets, 1);
        link.outbound
            .mux(link.channel, client(1), &frame, &mut link.line, 0)
    };
    assert_eq!(mux(&mut link, 1483), Muxed::TooLong);
    assert_eq!(mux(&mut link, 13), Muxed::Runt);
    let mut link = Link::keyed(&channel(Carriage::Aggregated), 256, suite("aes-128-gcm"));
    assert_eq!(mux(&mut link, 16_001), Muxed::TooLong);
    assert_eq!(
        mux(&mut link, 9000),
        Muxed::TooLong,
        "more pieces than a batch may have to hold"
    );
    assert_eq!(mux(&mut link, 6000), Muxed::Taken);
    assert_eq!(mux(&mut link, 13), Muxed::Runt);
}

use std::ops::Range;

/// A line batch that is full answers so and loses nothing; rooms that are too small are refused.
#[test]
fn a_full_line_batch_takes_nothing_in_part() {
    let mut link = Link::keyed(&channel(Carriage::Aggregated), 300, suite("aes-128-gcm"));
    link.line.capacity = 32;
    let frames: Vec<_> = (0..200).map(|n| (client(1), frame(600, n))).collect();
    let sent = link.send(&frames);
    assert_eq!(link.receive(&sent), frames);
    assert_eq!(link.inbound.counters(number(1)).unwrap().fragments_lost, 0);

    link.line.octets = 100;
    let muxed = link
        .outbound
        .mux(link.channel, client(1), &frames[0].1, &mut link.line, 0);
    assert_eq!(muxed, Muxed::TooLong);
}

/// The caller may throw its line batch away at any time; the mux notices.
#[test]
fn a_line_batch_cleared_without_a_word_does_no_harm() {
    let mut link = Link::keyed(&channel(Carriage::Aggregated), 1514, suite("aes-128-gcm"));
    let one = [(client(2), frame(100, 1))];
    let muxed = link
        .outbound
        .mux(link.channel, client(2), &one[0].1, &mut link.line, 0);
    assert_eq!(muxed, Muxed::Taken);
    link.line.frames.clear();
    let sent = link.send(&one);
    assert_eq!(link.receive(&sent), one);
}

/// The line may append padding to a short frame; SL says where the frame ends.
#[test]
fn padding_of_the_line_is_left_away() {
    for carriage in CARRIAGES {
        let mut link = Link::keyed(&channel(carriage), 1514, suite("aes-128-gcm"));
        let one = [(client(1), frame(20, 1))];
        let mut sent = link.send(&one);
        let mut padded = sent[0].octets().to_vec();
        padded.resize(padded.len() + 9, 0);
        sent[0] = Stored::of(&padded);
        assert_eq!(link.receive(&sent), one);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_mix_of_clients_and_lengths_comes_through(
        lengths in prop::collection::vec((1..=10_u8, prop_oneof![14..200_usize, 14..1600_usize, 8900..9001_usize]), 1..60),
        line_octets in prop_oneof![Just(600_usize), 1000..2000_usize, Just(9000), Just(16_000)],
        which in 0..19_usize,
        xpn: bool,
    ) {
        let config = ChannelConfig { xpn, ..channel(Carriage::Aggregated) };
        let mut link = Link::keyed(&config, line_octets, aead().nth(which).unwrap());
        let frames: Vec<_> = lengths.iter().enumerate()
            .map(|(n, &(port, octets))| (client(port), frame(octets, n as u64)))
            .collect();
        let sent = link.send(&frames);
        prop_assert!(sent.iter().all(|line| line.octets().len() <= line_octets));
        prop_assert_eq!(link.receive(&sent), frames);
    }
}
