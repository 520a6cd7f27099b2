//! Replay, loss and reordering on the line; SAs that come, encode, reach their limits and go.

mod common;

use common::*;
use qloak_api::{Carriage, Limits};
use qloak_secy::{ChannelConfig, InstallError, Muxed, Verdict};

const SECOND: u64 = 1_000_000_000;

fn link(window: u64) -> Link {
    let config = ChannelConfig {
        replay_window: window,
        ..channel(Carriage::Transparent)
    };
    Link::keyed(&config, 1514, suite("aes-128-gcm"))
}

fn frames(count: u64) -> Vec<(qloak_api::ClientPort, Vec<u8>)> {
    (0..count).map(|n| (client(1), frame(100, n))).collect()
}

fn is_valid(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Valid(_))
}

//= IEEE 802.1AE-2018 10.6.2, 10.6.4
#[test]
fn a_frame_is_valid_once() {
    let mut link = link(64);
    let sent = link.send(&frames(10));
    let (verdicts, _) = link.validate(&sent);
    assert!(verdicts.iter().all(is_valid));
    let (verdicts, frames) = link.validate(&sent);
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Replayed));
    assert!(frames.iter().all(|frame| frame.range.is_empty()));
    // Twice in one batch: both open, one is accepted.
    let mut twice = link.send(&self::frames(1));
    twice.push(twice[0].clone());
    let (verdicts, _) = link.validate(&twice);
    assert!(is_valid(&verdicts[0]));
    assert_eq!(verdicts[1], Verdict::Replayed);
    let counters = link.inbound.counters(number(1)).unwrap();
    assert_eq!((counters.ok, counters.replayed, counters.late), (11, 11, 0));
}

#[test]
fn reordering_inside_the_window_loses_nothing() {
    let mut link = link(64);
    let sent = frames(64);
    let mut line = link.send(&sent);
    line.reverse();
    let mut delivered = link.receive(&line);
    delivered.reverse();
    assert_eq!(delivered, sent);
}

#[test]
fn below_the_window_is_late() {
    let mut link = link(8);
    let line = link.send(&frames(20));
    let (verdicts, _) = link.validate(&line[19..]);
    assert!(is_valid(&verdicts[0]));
    let (verdicts, _) = link.validate(&line[..19]);
    for (index, verdict) in verdicts.iter().enumerate() {
        // PN 20 was accepted, so 13 to 19 are in a window of eight.
        assert_eq!(is_valid(verdict), index + 1 >= 13, "PN {}", index + 1);
        assert!(is_valid(verdict) || *verdict == Verdict::Late);
    }
    assert_eq!(link.inbound.counters(number(1)).unwrap().late, 12);
}

//= IEEE 802.1AE-2018 10.6.4
#[test]
fn a_forged_pn_does_not_move_the_window() {
    let mut link = link(8);
    let line = link.send(&frames(5));
    let mut forged = line[0].clone();
    let pn = forged.range.start + 16;
    forged.storage[pn..pn + 4].copy_from_slice(&0x7fff_0000_u32.to_be_bytes());
    let (verdicts, frames) = link.validate(&[forged]);
    assert_eq!(verdicts, [Verdict::NotValid]);
    assert!(frames[0].range.is_empty());
    let (verdicts, _) = link.validate(&line);
    assert!(verdicts.iter().all(is_valid));
}

//= IEEE 802.1AE-2018 10.6.2
#[test]
fn the_pn_rolls_over_32_bits() {
    for carriage in [Carriage::Transparent, Carriage::Aggregated] {
        for window in [0, 64] {
            let config = ChannelConfig {
                replay_window: window,
                ..channel(carriage)
            };
            let mut link = Link::new(&config, 1514);
            let start = (1 << 32) - 150;
            let suite = suite("aes-256-gcm");
            link.inbound
                .install(number(1), an(0), sa(suite, 1).starting_at(start))
                .unwrap();
            link.outbound
                .install(number(1), an(0), sa(suite, 1).starting_at(start))
                .unwrap();
            assert!(link.outbound.encode(number(1), an(0), 0));
            let mut low_zero = false;
            for batch in frames(300).chunks(7) {
                let line = link.send(batch);
                low_zero |= line.iter().any(|frame| frame.octets()[16..20] == [0; 4]);
                assert_eq!(link.receive(&line), batch);
            }
            let usage = link.outbound.usage(number(1)).unwrap();
            if carriage == Carriage::Transparent {
                assert_eq!(usage.next_pn, (1 << 32) + 150);
                assert!(low_zero, "a low PN of 0 crosses the line");
            }
        }
    }
}

//= IEEE 802.1AE-2018 9.8, 10.5.2
#[test]
fn a_32_bit_pn_ends_the_sa() {
    let config = ChannelConfig {
        xpn: false,
        ..channel(Carriage::Transparent)
    };
    let mut link = Link::new(&config, 1514);
    let suite = suite("aes-128-gcm");
    let start = u64::from(u32::MAX) - 4;
    link.inbound
        .install(number(1), an(0), sa(suite, 1).starting_at(start))
        .unwrap();
    link.outbound
        .install(number(1), an(0), sa(suite, 1).starting_at(start))
        .unwrap();
    assert!(link.outbound.encode(number(1), an(0), 0));
    let mut batch: Vec<_> = frames(8)
        .iter()
        .map(|(_, frame)| Stored::of(frame))
        .collect();
    let protected = link.outbound.protect(link.channel, rooms(&mut batch), 0);
    assert_eq!((protected.frames, protected.no_sa), (5, 3));
    assert!(!link.outbound.is_open(number(1), 0));
    assert!(
        !link.outbound.encode(number(1), an(0), 0),
        "an exhausted SA never encodes again"
    );
    let (verdicts, _) = link.validate(&batch[..5]);
    assert!(verdicts.iter().all(is_valid));
    // And a PN of 0 is never right without XPN.
    let mut zero = batch[0].clone();
    let pn = zero.range.start + 16;
    zero.storage[pn..pn + 4].fill(0);
    assert_eq!(link.validate(&[zero]).0, [Verdict::BadTag]);
}

#[test]
fn no_pn_is_used_twice_while_its_sa_lives() {
    let mut link = link(64);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..20_u8 {
        // Encoding goes to and fro between two SAs; each goes on where it was.
        if round == 1 {
            link.rekey(1, suite("aes-128-gcm"), 2);
        }
        let an = an(round % 2);
        assert!(link.outbound.encode(number(1), an, 0));
        for line in link.send(&frames(5)) {
            let octets = line.octets();
            assert!(seen.insert((octets[14] & 3, octets[16..20].to_vec())));
        }
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn a_key_that_comes_again_is_refused() {
    let mut link = link(64);
    let suite = suite("aes-128-gcm");
    let again = |result| assert!(matches!(result, Err(InstallError::KeyAgain { .. })));
    again(link.outbound.install(number(1), an(1), sa(suite, 1)));
    again(link.inbound.install(number(1), an(1), sa(suite, 1)));
    link.outbound.close(number(1));
    link.inbound.close(number(1));
    again(link.outbound.install(number(1), an(0), sa(suite, 1)));
    again(link.inbound.install(number(1), an(0), sa(suite, 1)));
    let none = link.outbound.install(number(9), an(0), sa(suite, 2));
    assert_eq!(none.unwrap_err().to_string(), "there is no channel 9");
}

#[test]
fn the_encoding_sa_is_not_replaced_in_place() {
    let mut link = link(64);
    let error = link
        .outbound
        .install(number(1), an(0), sa(suite("aes-128-gcm"), 2))
        .unwrap_err();
    assert!(error.to_string().contains("AN 0 is the encoding SA"));
    assert!(link.outbound.is_open(number(1), 0));
}

#[test]
fn another_key_opens_nothing() {
    for suite in aead() {
        let mut link = Link::new(&channel(Carriage::Transparent), 1514);
        link.outbound
            .install(number(1), an(0), sa(suite, 1))
            .unwrap();
        link.inbound
            .install(number(1), an(0), sa(suite, 2))
            .unwrap();
        assert!(link.outbound.encode(number(1), an(0), 0));
        let line = link.send(&frames(3));
        let (verdicts, frames) = link.validate(&line);
        assert_eq!(verdicts, [Verdict::NotValid; 3], "{}", suite.name);
        assert!(frames.iter().all(|frame| frame.range.is_empty()));
        assert_eq!(link.inbound.counters(number(1)).unwrap().not_valid, 3);
        assert_eq!(link.inbound.heard().count(), 0);
    }
}

//= IEEE 802.1AE-2018 10.6.1
#[test]
fn an_an_without_sa_and_a_foreign_sci_are_counted() {
    let mut link = link(64);
    link.outbound
        .install(number(1), an(3), sa(suite("aes-128-gcm"), 9))
        .unwrap();
    assert!(link.outbound.encode(number(1), an(3), 0));
    let line = link.send(&frames(2));
    assert_eq!(link.validate(&line).0, [Verdict::NoSa; 2]);
    let mut foreign = line[0].clone();
    foreign.storage[foreign.range.start + 25] ^= 1;
    let mut channel = line[0].clone();
    channel.storage[channel.range.start + 27] = 2;
    let mut cleared = line[0].clone();
    cleared.storage[cleared.range.start + 14] = 0x0c;
    assert_eq!(
        link.validate(&[foreign, channel, cleared]).0,
        [Verdict::UnknownSci; 3]
    );
    assert_eq!(link.inbound.counters(number(1)).unwrap().no_sa, 2);
    assert_eq!(link.inbound.strays().unknown_sci, 3);
}

/// A rekey, and a change of suite with it, while frames are in flight and arrive mixed.
#[test]
fn a_rekey_loses_no_frame() {
    for carriage in [Carriage::Transparent, Carriage::Aggregated] {
        let mut link = Link::keyed(&channel(carriage), 600, suite("aes-256-gcm"));
        let all = frames(200);
        let mut delivered = Vec::new();
        let mut in_flight: Vec<Stored> = Vec::new();
        let suites: Vec<_> = aead().collect();
        for (round, batch) in all.chunks(10).enumerate() {
            if round > 0 {
                let an_new = (round % 4) as u8;
                // The SA of two rounds ago has drained.
                let drained = link.inbound.retire(number(1), an(an_new));
                assert_eq!(drained.is_some(), round >= 4);
                link.outbound.retire(number(1), an(an_new));
                link.rekey(an_new, suites[round % suites.len()], round as u8 + 1);
            }
            let sent = link.send(batch);
            // What was sent under the old SA arrives after the new one is in use, in one batch with it.
            in_flight.extend(sent);
            let arrive = in_flight.len().saturating_sub(3);
            let arrived: Vec<_> = in_flight.drain(..arrive).collect();
            delivered.extend(link.receive(&arrived));
        }
        delivered.extend(link.receive(&in_flight));
        assert_eq!(delivered, all, "{carriage:?}");
        let counters = link.inbound.counters(number(1)).unwrap();
        assert_eq!(
            counters.no_sa + counters.late + counters.not_valid + counters.fragments_lost,
            0
        );
    }
}

#[test]
fn the_first_valid_frame_of_an_sa_is_heard_once() {
    let mut link = link(64);
    assert_eq!(link.inbound.heard().count(), 0);
    let line = link.send(&frames(2));
    link.validate(&line[..1]);
    assert_eq!(
        link.inbound.heard().collect::<Vec<_>>(),
        [(number(1), an(0))]
    );
    link.validate(&line[1..]);
    assert_eq!(link.inbound.heard().count(), 0);
    link.rekey(1, suite("serpent-256-ocb"), 2);
    assert_eq!(link.inbound.heard().count(), 0);
    let line = link.send(&frames(2));
    link.validate(&line);
    assert_eq!(
        link.inbound.heard().collect::<Vec<_>>(),
        [(number(1), an(1))]
    );
    let accepted = link.inbound.accepted(number(1), an(1)).unwrap();
    assert_eq!(
        (accepted.suite.name, accepted.frames, accepted.lowest_pn),
        ("serpent-256-ocb", 2, 1)
    );
    assert!(link.inbound.accepted(number(1), an(2)).is_none());
    // A retired SA is not reported.
    link.rekey(2, suite("aes-128-ocb"), 3);
    let line = link.send(&frames(1));
    link.validate(&line);
    assert!(link.inbound.retire(number(1), an(2)).is_some());
    assert_eq!(link.inbound.heard().count(), 0);
}

#[test]
fn a_hard_limit_refuses_the_next_frame() {
    let limited = |limits| {
        let config = ChannelConfig {
            limits,
            ..channel(Carriage::Transparent)
        };
        Link::keyed(&config, 1514, suite("aes-128-gcm"))
    };
    let protect = |link: &mut Link, now_ns| {
        let mut batch: Vec<_> = frames(10)
            .iter()
            .map(|(_, frame)| Stored::of(frame))
            .collect();
        let protected = link
            .outbound
            .protect(link.channel, rooms(&mut batch), now_ns);
        assert_eq!(
            batch.iter().filter(|frame| !frame.range.is_empty()).count(),
            protected.frames
        );
        (protected.frames, protected.no_sa)
    };
    let ample = Limits::default();

    let mut link = limited(Limits {
        frames: 13,
        ..ample
    });
    assert_eq!(protect(&mut link, 0), (10, 0));
    assert!(link.outbound.is_open(number(1), 0));
    assert_eq!(protect(&mut link, 0), (3, 7));
    assert!(!link.outbound.is_open(number(1), 0));
    assert_eq!(protect(&mut link, 0), (0, 10));
    assert_eq!(link.outbound.counters(number(1)).unwrap().no_sa, 17);

    // 100 octets of frame are 88 of secure data.
    let mut link = limited(Limits {
        octets: 88 * 12 + 87,
        ..ample
    });
    assert_eq!(protect(&mut link, 0), (10, 0));
    assert_eq!(protect(&mut link, 0), (2, 8));
    assert!(
        !link.outbound.is_open(number(1), 0),
        "87 are left, no frame fits"
    );

    let mut link = limited(Limits {
        seconds: 5,
        ..ample
    });
    assert_eq!(protect(&mut link, 5 * SECOND - 1), (10, 0));
    assert_eq!(protect(&mut link, 5 * SECOND), (0, 10));
    assert!(!link.outbound.is_open(number(1), 5 * SECOND));

    // A new SA opens the channel again.
    link.outbound
        .install(number(1), an(1), sa(suite("aes-128-gcm"), 2))
        .unwrap();
    assert!(link.outbound.encode(number(1), an(1), 6 * SECOND));
    assert_eq!(protect(&mut link, 7 * SECOND), (10, 0));
    assert_eq!(
        link.outbound.usage(number(1)).unwrap().encode_since_ns,
        6 * SECOND
    );
}

#[test]
fn a_closed_channel_sends_nothing() {
    for carriage in [Carriage::Transparent, Carriage::Aggregated] {
        let mut link = Link::new(&channel(carriage), 1514);
        let one = frame(100, 1);
        let mux = |link: &mut Link| {
            link.outbound
                .mux(link.channel, client(1), &one, &mut link.line, 0)
        };
        assert_eq!(mux(&mut link), Muxed::NoSa);
        link.outbound
            .install(number(1), an(0), sa(suite("aes-128-gcm"), 1))
            .unwrap();
        assert_eq!(mux(&mut link), Muxed::NoSa, "installed is not encoding");
        assert!(!link.outbound.encode(number(1), an(1), 0), "no such SA");
        assert!(link.outbound.encode(number(1), an(0), 0));
        assert_eq!(mux(&mut link), Muxed::Taken);
        assert!(link.outbound.retire(number(1), an(0)).is_some());
        assert!(link.outbound.usage(number(1)).is_none());
        let mut left = std::mem::take(&mut link.line.frames);
        let protected = link.outbound.protect(link.channel, rooms(&mut left), 0);
        assert_eq!((protected.frames, protected.no_sa), (0, 1));
        assert!(left.iter().all(|frame| frame.range.is_empty()));
        assert_eq!(link.outbound.counters(number(1)).unwrap().no_sa, 3);
    }
}

#[test]
fn limits_can_change_while_an_sa_encodes() {
    let mut link = link(64);
    let ample = Limits::default();
    let protect = |link: &mut Link| {
        let mut batch = [Stored::of(&frame(100, 1)), Stored::of(&frame(100, 2))];
        let protected = link.outbound.protect(link.channel, rooms(&mut batch), 0);
        protected.frames
    };
    assert!(
        link.outbound
            .set_limits(number(1), Limits { frames: 3, ..ample })
    );
    assert_eq!((protect(&mut link), protect(&mut link)), (2, 1));
    assert!(
        !link
            .outbound
            .set_limits(number(1), Limits { frames: 0, ..ample })
    );
    assert!(!link.outbound.set_limits(number(9), ample));
    assert!(!link.outbound.is_open(number(1), 0));
    assert!(link.outbound.set_limits(number(1), ample));
    assert_eq!(protect(&mut link), 2);
}

/// A limit that is reached between mux and protect takes whole line frames down; each client frame in
/// them is told of at its port, once, in pieces or not.
#[test]
fn client_frames_that_go_down_with_their_line_frame_are_counted() {
    let config = ChannelConfig {
        limits: Limits {
            seconds: 5,
            ..Limits::default()
        },
        ..channel(Carriage::Aggregated)
    };
    let mut link = Link::keyed(&config, 1514, suite("aes-128-gcm"));
    for (port, octets) in [(1, 100), (2, 1514), (1, 700), (2, 60), (2, 1400)] {
        let frame = frame(octets, u64::from(port));
        let line = &mut link.line;
        let muxed = link
            .outbound
            .mux(link.channel, client(port), &frame, line, 4 * SECOND);
        assert_eq!(muxed, Muxed::Taken);
    }
    let begun = link.line.frames.len();
    assert!(begun > 2, "some are in pieces");
    let protected = link
        .outbound
        .protect(link.channel, rooms(&mut link.line.frames), 5 * SECOND);
    assert_eq!((protected.frames, protected.no_sa), (0, begun));
    assert_eq!(link.outbound.refused(client(1)), 2);
    assert_eq!(link.outbound.refused(client(2)), 3);
    assert_eq!(link.outbound.refused(client(3)), 0);
}
