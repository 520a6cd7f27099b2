//! What a stranger or a broken peer can send: random octets, mutated and truncated frames, records
//! that lie. Each is a verdict or a counter, never a panic and never a frame that nobody sent.

mod common;

use std::collections::HashSet;

use common::*;
use proptest::prelude::*;
use qloak_api::{Carriage, manage::StrayCounters};
use qloak_secy::{ChannelConfig, Valid, Verdict};

/// xorshift64*: the same octets in every run.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }
}

fn total(counters: StrayCounters, link: &Link) -> u64 {
    let channel = link.inbound.counters(number(1)).unwrap();
    counters.no_tag
        + counters.bad_tag
        + counters.unknown_sci
        + channel.ok
        + channel.late
        + channel.replayed
        + channel.not_valid
        + channel.no_sa
}

/// Twenty thousand mutations of valid frames: bits, octets, lengths, headers swapped between frames.
/// Nothing is delivered that was not sent, and every frame stands in exactly one counter.
#[test]
fn mutated_frames_are_never_delivered_changed() {
    let mut dice = Dice(0x51_4c_0a_4b);
    for carriage in [Carriage::Transparent, Carriage::Aggregated] {
        for xpn in [true, false] {
            let config = ChannelConfig {
                xpn,
                replay_window: 4096,
                ..channel(carriage)
            };
            let mut link = Link::keyed(&config, 1514, suite("aes-128-gcm"));
            let mut frames = HashSet::new();
            let mut sent: Vec<Stored> = Vec::new();
            let rounds = 5000;
            let mut agreements = 0;
            for round in 0..rounds {
                // Fresh frames, so that few are replays.
                let one = (client(1), frame(14 + dice.throw(500), round));
                sent.extend(link.send(std::slice::from_ref(&one)));
                frames.insert(one.1);
                let mut octets = sent[sent.len() - 1].octets().to_vec();
                for _ in 0..=dice.throw(3) {
                    let at = dice.throw(octets.len());
                    match dice.throw(6) {
                        0 => octets[at] ^= 1 << dice.throw(8),
                        1 => octets[at] = dice.throw(256) as u8,
                        2 => octets.truncate(at.max(1)),
                        3 => octets.extend((0..dice.throw(40)).map(|_| 0)),
                        // Most of what parsing decides is in the first 28 octets.
                        4 => {
                            let at = at % 28;
                            if let Some(octet) = octets.get_mut(at) {
                                *octet ^= 1 << dice.throw(8);
                            }
                        }
                        _ => {
                            let other = sent[dice.throw(sent.len())].octets();
                            let head = octets.len().min(28);
                            octets[..head].copy_from_slice(&other[..head]);
                        }
                    }
                }
                let (verdicts, left) = link.validate(&[Stored::of(&octets)]);
                agreements += u64::from(verdicts[0] == Verdict::Agreement);
                if let Verdict::Valid(valid) = verdicts[0] {
                    link.inbound.demux(valid, left[0].octets(), |port, frame| {
                        assert!(port == client(1) && frames.contains(frame));
                    });
                } else if verdicts[0] != Verdict::Agreement {
                    assert!(left[0].range.is_empty());
                }
            }
            assert_eq!(total(link.inbound.strays(), &link), rounds - agreements);
            let counters = link.inbound.counters(number(1)).unwrap();
            let strays = link.inbound.strays();
            assert!(
                counters.not_valid > 500 && strays.bad_tag > 500,
                "{counters:?} {strays:?}"
            );
            assert!(
                counters.ok <= sent.len() as u64,
                "each was accepted once at most"
            );
            assert_eq!(counters.mux_errors, 0);
        }
    }
}

/// Truncating or lengthening a frame at every place.
#[test]
fn truncation_at_every_octet_is_seen() {
    let mut link = Link::keyed(&channel(Carriage::Transparent), 1514, suite("aes-256-ocb"));
    for octets in [14, 40, 59, 60, 200] {
        let sent = link.send(&[(client(1), frame(octets, 1))]);
        let line = sent[0].octets();
        for cut in 0..line.len() {
            let (verdicts, _) = link.validate(&[Stored::of(&line[..cut])]);
            assert!(
                matches!(verdicts[0], Verdict::BadTag | Verdict::NotValid),
                "{cut} of {} octets: {:?}",
                line.len(),
                verdicts[0]
            );
        }
        assert!(matches!(link.validate(&sent).0[0], Verdict::Valid(_)));
    }
}

/// Rooms whose ranges are nonsense.
#[test]
fn a_room_that_is_none_is_a_bad_tag() {
    let mut link = Link::keyed(&channel(Carriage::Transparent), 1514, suite("aes-128-gcm"));
    let nonsense = [
        Stored {
            storage: vec![0; 64],
            range: 16..100,
        },
        Stored {
            storage: vec![0; 64],
            range: std::ops::Range { start: 40, end: 20 },
        },
        Stored {
            storage: vec![],
            range: 0..0,
        },
    ];
    assert_eq!(link.validate(&nonsense).0, [Verdict::BadTag; 3]);
    // Fewer verdicts than frames: the rest is left as it is.
    let mut frames = [Stored::of(&frame(60, 1)), Stored::of(&frame(60, 1))];
    let mut verdicts = [Verdict::BadTag; 1];
    assert_eq!(link.inbound.validate(rooms(&mut frames), &mut verdicts), 1);
    assert_eq!(verdicts, [Verdict::NoTag]);
    assert!(!frames[1].range.is_empty());
}

#[test]
fn key_agreement_passes_untouched_and_uncounted() {
    let mut link = Link::keyed(&channel(Carriage::Transparent), 1514, suite("aes-128-gcm"));
    let mut agreement = frame(80, 1);
    agreement[12..14].copy_from_slice(&[0x88, 0xb5]);
    let (verdicts, left) = link.validate(&[Stored::of(&agreement)]);
    assert_eq!(verdicts, [Verdict::Agreement]);
    assert_eq!(left[0].octets(), agreement);
    assert_eq!(total(link.inbound.strays(), &link), 0);
}

/// A frame for demux as a valid but malicious peer could make it.
fn muxed(records: &[&[u8]]) -> Vec<u8> {
    let mut frame = [&A.0[..], &B.0[..], &[0x88, 0xb6]].concat();
    records
        .iter()
        .for_each(|record| frame.extend_from_slice(record));
    frame
}

fn whole(port: u8, frame: &[u8]) -> Vec<u8> {
    let [a, b] = (frame.len() as u16).to_be_bytes();
    [&[0xc0, port, a, b], frame].concat()
}

fn piece(flags: u8, port: u8, sequence: u32, octets: &[u8]) -> Vec<u8> {
    let [a, b] = (octets.len() as u16).to_be_bytes();
    [&[flags, port, a, b], &sequence.to_be_bytes()[..], octets].concat()
}

/// An aggregated link and the proof that its SA is in use, which is what demux asks for.
fn aggregated() -> (Link, Valid) {
    let mut link = Link::keyed(&channel(Carriage::Aggregated), 9000, suite("aes-128-gcm"));
    let valid = prove(&mut link);
    (link, valid)
}

fn prove(link: &mut Link) -> Valid {
    let sent = link.send(&[(client(1), frame(14, 1))]);
    match link.validate(&sent).0[0] {
        Verdict::Valid(valid) => valid,
        other => panic!("{other:?}"),
    }
}

fn demux(link: &mut Link, valid: Valid, records: &[&[u8]]) -> Delivered {
    let mut delivered = Vec::new();
    link.inbound.demux(valid, &muxed(records), |client, frame| {
        delivered.push((client, frame.to_vec()));
    });
    delivered
}

#[test]
fn records_that_lie_are_mux_errors() {
    let sound = frame(20, 1);
    let before = whole(3, &sound);
    let bad: [(&str, Vec<u8>); 12] = [
        ("header cut", vec![0xc0, 3, 0]),
        ("fill that is none", vec![0, 0, 0, 0, 0, 9]),
        ("longer than the line frame", vec![0xc0, 3, 0, 30, 1, 2, 3]),
        ("no octets", vec![0xc0, 3, 0, 0]),
        ("unknown flag", [&[0xe0, 3, 0, 20], &sound[..]].concat()),
        ("client 0", whole(0, &sound)),
        ("client 65", whole(65, &sound)),
        ("a client of no channel here", whole(11, &sound)),
        ("no frame: 13 octets", whole(3, &sound[..13])),
        ("no frame: too long", whole(3, &frame(16_001, 1))),
        ("fragment header cut", vec![0x80, 3, 0, 1, 0, 0, 0]),
        ("fragment cut", vec![0x80, 3, 0, 2, 0, 0, 0, 0, 1]),
    ];
    for (what, record) in bad {
        let (mut link, valid) = aggregated();
        // Records before the bad one are delivered, those behind it are not.
        let delivered = demux(&mut link, valid, &[&before, &record, &before]);
        assert_eq!(delivered, [(client(3), sound.clone())], "{what}");
        assert_eq!(
            link.inbound.counters(number(1)).unwrap().mux_errors,
            1,
            "{what}"
        );
    }
    let (mut link, valid) = aggregated();
    for not_muxed in [&frame(60, 1)[..], &[], &A.0] {
        link.inbound
            .demux(valid, not_muxed, |_, _| panic!("nothing to deliver"));
    }
    assert_eq!(link.inbound.counters(number(1)).unwrap().mux_errors, 3);
    assert!(
        demux(&mut link, valid, &[]).is_empty(),
        "a line frame may be empty"
    );
    for fill in [&[0; 1][..], &[0; 4], &[0; 99]] {
        let delivered = demux(&mut link, valid, &[&before, fill]);
        assert_eq!(delivered, [(client(3), sound.clone())], "zeros are fill");
    }
    assert_eq!(link.inbound.counters(number(1)).unwrap().mux_errors, 3);
}

#[test]
fn pieces_join_only_in_sequence_of_one_client_under_one_sa() {
    let whole = frame(40, 1);
    let (a, b, c) = (&whole[..10], &whole[10..25], &whole[25..]);
    let run = |pieces: &[Vec<u8>]| {
        let (mut link, valid) = aggregated();
        let delivered: Vec<_> = pieces
            .iter()
            .flat_map(|piece| demux(&mut link, valid, &[piece]))
            .collect();
        let counters = link.inbound.counters(number(1)).unwrap();
        assert!(
            delivered.iter().all(|(_, frame)| *frame == whole),
            "wrong halves joined"
        );
        (
            delivered.len(),
            counters.fragments_lost,
            counters.mux_errors,
        )
    };
    let (first, middle, last) = (0x80, 0x00, 0x40);
    assert_eq!(
        run(&[
            piece(first, 2, 7, a),
            piece(middle, 2, 8, b),
            piece(last, 2, 9, c)
        ]),
        (1, 0, 0)
    );
    // The sequence wraps.
    let top = u32::MAX;
    assert_eq!(
        run(&[
            piece(first, 2, top - 1, a),
            piece(middle, 2, top, b),
            piece(last, 2, 0, c)
        ]),
        (1, 0, 0)
    );
    // The middle is lost: both what is held and what comes are given up, as one frame each.
    assert_eq!(
        run(&[piece(first, 2, 7, a), piece(last, 2, 9, c)]),
        (0, 2, 0)
    );
    // The beginning is lost: one frame, however many pieces follow.
    assert_eq!(
        run(&[
            piece(middle, 2, 8, b),
            piece(middle, 2, 9, b),
            piece(last, 2, 10, c)
        ]),
        (0, 1, 0)
    );
    // The end is lost: the next beginning gives it up.
    assert_eq!(
        run(&[
            piece(first, 2, 7, a),
            piece(first, 2, 9, a),
            piece(middle, 2, 10, b),
            piece(last, 2, 11, c)
        ]),
        (1, 1, 0)
    );
    // Another client in between.
    assert_eq!(
        run(&[piece(first, 2, 7, a), piece(last, 3, 8, c)]),
        (0, 2, 0)
    );
    // A piece that comes twice.
    assert_eq!(
        run(&[
            piece(first, 2, 7, a),
            piece(first, 2, 7, a),
            piece(middle, 2, 8, b),
            piece(last, 2, 9, c)
        ]),
        (1, 1, 0)
    );
}

#[test]
fn pieces_under_another_sa_do_not_join() {
    let whole = frame(40, 1);
    let (mut link, valid) = aggregated();
    assert!(demux(&mut link, valid, &[&piece(0x80, 2, 7, &whole[..20])]).is_empty());
    // The peer restarted: same AN, new key, and by chance a sequence that would fit.
    assert!(link.inbound.retire(number(1), an(0)).is_some());
    link.outbound.retire(number(1), an(0));
    link.rekey(0, suite("aes-128-gcm"), 77);
    let valid = prove(&mut link);
    assert!(demux(&mut link, valid, &[&piece(0x40, 2, 8, &whole[20..])]).is_empty());
    assert_eq!(link.inbound.counters(number(1)).unwrap().fragments_lost, 2);
}

/// A peer cannot make the buffer of a channel grow.
#[test]
fn reassembly_is_bounded() {
    let (mut link, valid) = aggregated();
    let octets = frame(4000, 1);
    for sequence in 0..10 {
        let flags = if sequence == 0 { 0x80 } else { 0 };
        assert!(demux(&mut link, valid, &[&piece(flags, 1, sequence, &octets)]).is_empty());
    }
    let counters = link.inbound.counters(number(1)).unwrap();
    assert_eq!(
        (counters.mux_errors, counters.fragments_lost),
        (1, 1),
        "the fifth is too much, the rest has no beginning"
    );
    let sound = [(client(1), frame(9000, 2))];
    let sent = link.send(&sound);
    assert_eq!(link.receive(&sent), sound);
}

/// Any line frames lost, duplicated or in another order: what is delivered was sent, once, whole.
#[test]
fn lost_line_frames_never_join_wrong_halves() {
    let mut dice = Dice(7);
    for _ in 0..300 {
        let mut link = Link::keyed(&channel(Carriage::Aggregated), 400, suite("aes-128-gcm"));
        let frames: Vec<_> = (0..30)
            .map(|n| {
                (
                    client(dice.throw(3) as u8 + 1),
                    frame(14 + dice.throw(1200), n),
                )
            })
            .collect();
        let mut sent = link.send(&frames);
        for _ in 0..dice.throw(6) {
            let (from, to) = (dice.throw(sent.len()), dice.throw(sent.len()));
            match dice.throw(3) {
                0 => drop(sent.remove(from)),
                1 => sent.swap(from, to),
                _ => sent.insert(to, sent[from].clone()),
            }
        }
        let delivered = link.receive(&sent);
        let mut left = frames.clone();
        for one in delivered {
            let at = left
                .iter()
                .position(|sent| *sent == one)
                .expect("a frame that was sent, once");
            left.remove(at);
        }
        let counters = link.inbound.counters(number(1)).unwrap();
        assert_eq!(counters.mux_errors, 0);
        assert_eq!(counters.client_frames as usize, frames.len() - left.len());
    }
}

proptest! {
    #[test]
    fn random_octets_never_verify(
        mut octets in prop::collection::vec(any::<u8>(), 0..200),
        tagged: bool,
        known: bool,
        aggregated: bool,
    ) {
        let carriage = if aggregated { Carriage::Aggregated } else { Carriage::Transparent };
        let mut link = Link::keyed(&channel(carriage), 1514, suite("aes-256-gcm"));
        if tagged && octets.len() >= 16 {
            octets[12..14].copy_from_slice(&[0x88, 0xe5]);
        }
        if known && octets.len() >= 28 {
            octets[14] = 0x2c;
            octets[15] %= 48;
            octets[20..26].copy_from_slice(&A.0);
            octets[26..28].copy_from_slice(&[0, 1]);
        }
        let (verdicts, left) = link.validate(&[Stored::of(&octets)]);
        prop_assert!(!matches!(verdicts[0], Verdict::Valid(_)));
        prop_assert!(verdicts[0] == Verdict::Agreement || left[0].range.is_empty());
    }

    #[test]
    fn random_records_never_panic_nor_deliver_what_is_no_frame(
        lines in prop::collection::vec(
            prop::collection::vec(
                (prop_oneof![Just(0xc0_u8), Just(0x80), Just(0x40), Just(0), any::<u8>()], 0..14_u8, 0..40_u16,
                 0..6_u32, prop::collection::vec(any::<u8>(), 0..40), prop::bool::weighted(0.9)),
                0..5),
            1..6),
    ) {
        let (mut link, valid) = aggregated();
        for line in lines {
            let records: Vec<Vec<u8>> = line.into_iter().map(|(flags, port, octets, sequence, data, honest)| {
                let octets = if honest { data.len() as u16 } else { octets };
                let [a, b] = octets.to_be_bytes();
                let mut record = vec![flags, port, a, b];
                if flags & 0xc0 != 0xc0 {
                    record.extend(sequence.to_be_bytes());
                }
                record.extend(data);
                record
            }).collect();
            let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            for (port, frame) in demux(&mut link, valid, &records) {
                prop_assert!((1..=10).contains(&port.number()));
                prop_assert!((14..=16_000).contains(&frame.len()));
            }
        }
    }
}
