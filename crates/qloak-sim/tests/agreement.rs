//! Key agreement from a seed: what must hold on a good line, a bad line and a hostile one.
//! A failure names its seed; `SEED=n cargo test -p qloak-sim` runs that seed alone.

use qloak_api::{
    Limits,
    manage::{AlarmKind, ChannelStatus},
};
use qloak_cipher::suite::Suite;
use qloak_node::key_handler::{Command, Note, Refusal};
use qloak_sim::{MS, Plan, Side, World};

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => vec![seed],
        None => (1..=count).collect(),
    }
}

fn suite(name: &str) -> &'static Suite {
    Suite::by_name(name).unwrap_or_else(|| panic!("no suite {name}"))
}

fn alarms(world: &World, side: Side) -> Vec<AlarmKind> {
    let state = world.node(side).state(world.now_ns());
    state.alarms.iter().map(|alarm| alarm.kind).collect()
}

fn status(world: &World, side: Side) -> ChannelStatus {
    world.node(side).state(world.now_ns()).channels[0].status
}

fn rekeys(world: &World, side: Side) -> u64 {
    world.node(side).state(world.now_ns()).channels[0].rekeys
}

#[test]
fn two_nodes_agree_within_a_tenth_of_a_second() {
    for seed in seeds(20) {
        let mut plan = Plan::new(seed);
        plan.channels = 8;
        let mut world = World::new(plan);
        world.run_until(150, "both ends open", World::open);
        world.run_ms(3000);
        for side in Side::BOTH {
            let state = world.node(side).state(world.now_ns());
            assert_eq!(state.alarms, [], "seed {seed}");
            assert_eq!(state.malformed, 0, "seed {seed}");
            let handler = state.key_handler;
            assert_eq!((handler.forged, handler.replayed), (0, 0), "seed {seed}");
            assert!(handler.peer_alive && handler.kme_reachable, "seed {seed}");
            // Keys wait at both ends before they are needed.
            assert_eq!(
                (handler.outbound_keys, handler.inbound_keys),
                (16, 16),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn a_thousand_rekeys_lose_no_frame() {
    let mut plan = Plan::new(seeds(1)[0]);
    plan.frames_per_ms = 1;
    // A frame limit of 200 and a share of 30 percent: a rekey each 60 ms, in both directions.
    plan.timings.drain_ns = 20 * MS;
    plan.limits = Limits {
        frames: 200,
        rekey_at_percent: 10,
        ..Limits::default()
    };
    let seed = plan.seed;
    let mut world = World::new(plan);
    world.run_until(200, "both ends open", World::open);
    world.run_ms(5);
    let before = world.book.discarded;
    world.run_until(60_000, "a thousand rekeys", |world| {
        Side::BOTH.iter().all(|side| rekeys(world, *side) >= 1000)
    });
    world.frames_per_ms = 0;
    world.run_ms(10);
    for side in Side::BOTH {
        assert_eq!(world.book.lost(side), 0, "seed {seed}");
        assert!(world.book.arrived(side) > 20_000, "seed {seed}");
    }
    assert_eq!(
        world.book.discarded, before,
        "seed {seed}: a channel closed"
    );
    assert_eq!(world.book.doubled, 0, "seed {seed}");
}

#[test]
fn frames_that_overtake_one_another_survive_a_rekey() {
    for seed in seeds(10) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 2;
        plan.limits = Limits {
            frames: 1000,
            rekey_at_percent: 20,
            ..Limits::default()
        };
        let mut world = World::new(plan);
        for wire in &mut world.wires {
            wire.jitter_ns = 30 * MS;
        }
        world.run_until(500, "both ends open", World::open);
        let discarded = world.book.discarded;
        world.run_ms(3000);
        world.frames_per_ms = 0;
        world.run_ms(100);
        for side in Side::BOTH {
            assert!(rekeys(&world, side) >= 10, "seed {seed}");
            assert_eq!(world.book.lost(side), 0, "seed {seed}");
        }
        assert_eq!(world.book.discarded, discarded, "seed {seed}");
    }
}

#[test]
fn a_change_of_suite_loses_no_frame_and_takes_milliseconds() {
    let names = [
        "camellia-256-gcm",
        "serpent-256-ocb",
        "aes-128-ocb",
        "chacha20-poly1305",
        "aes-192-gcm",
        "serpent-128-gcm",
    ];
    for seed in seeds(5) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 2;
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        world.run_ms(50);
        let before = world.book.discarded;
        for name in names {
            for side in Side::BOTH {
                let channel = World::channel(1);
                let command = Command::SetSuite {
                    channel,
                    suite: suite(name),
                };
                assert_eq!(world.command(side, command), Ok(()));
            }
            world.run_until(50, name, |world| {
                let there = |side: &Side| {
                    let state = world.node(*side).state(world.now_ns());
                    state.channels[0]
                        .encoding
                        .is_some_and(|sa| sa.suite.name == name)
                };
                Side::BOTH.iter().all(there)
            });
            world.run_ms(120);
            for side in Side::BOTH {
                let channel = &world.node(side).state(world.now_ns()).channels[0];
                let took_ms = channel.last_suite_change_ms.unwrap_or(f64::MAX);
                assert!(took_ms < 20.0, "seed {seed}: {name} took {took_ms} ms");
                assert_eq!(channel.accepted.len(), 1, "seed {seed}: the old SA is gone");
            }
        }
        world.frames_per_ms = 0;
        world.run_ms(10);
        assert_eq!(
            world.book.lost(Side::A) + world.book.lost(Side::B),
            0,
            "seed {seed}"
        );
        assert_eq!(world.book.discarded, before, "seed {seed}");
    }
}

#[test]
fn a_restarted_node_recovers_alone() {
    for seed in seeds(30) {
        let mut plan = Plan::new(seed);
        plan.channels = 3;
        plan.frames_per_ms = 1;
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        for round in 0..3 {
            let settle_ms = 1500 + world.random().below(2000);
            world.run_ms(settle_ms);
            let side = Side::BOTH[(seed as usize + round) % 2];
            world.stop(side);
            let down_ms = [0, 40, 1, 500, 3000][world.random().below(5) as usize];
            world.run_ms(down_ms);
            world.start(side);
            world.run_until(1000, "open again after a restart", |world| {
                world.open()
                    && alarms(world, Side::A).is_empty()
                    && alarms(world, Side::B).is_empty()
            });
            let arrived = Side::BOTH.map(|side| world.book.arrived(side));
            world.run_ms(100);
            for side in Side::BOTH {
                let more = world.book.arrived(side) - arrived[side.index()];
                assert!(
                    more >= 290,
                    "seed {seed}: {side:?} is not heard after a restart"
                );
            }
        }
    }
}

#[test]
fn both_nodes_may_restart_at_once_and_on_a_bad_line() {
    for seed in seeds(60) {
        let mut plan = Plan::new(seed);
        plan.channels = 2;
        let mut world = World::new(plan);
        for wire in &mut world.wires {
            wire.loss = 0.2;
            wire.duplication = 0.1;
            wire.jitter_ns = 3 * MS;
        }
        world.run_until(3000, "both ends open", World::open);
        for _ in 0..3 {
            let settle_ms = world.random().below(3000);
            world.run_ms(settle_ms);
            for side in Side::BOTH {
                if world.random().chance(0.7) {
                    world.stop(side);
                    let down_ms = world.random().below(300);
                    world.run_ms(down_ms);
                    world.start(side);
                }
            }
            world.run_until(6000, "open again", World::open);
        }
    }
}

#[test]
fn a_bad_line_is_survived() {
    for seed in seeds(40) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        plan.limits = Limits {
            frames: 2000,
            rekey_at_percent: 20,
            ..Limits::default()
        };
        let mut world = World::new(plan);
        for wire in &mut world.wires {
            wire.loss = 0.3;
            wire.duplication = 0.1;
            wire.jitter_ns = 2 * MS;
        }
        world.run_until(5000, "both ends open", World::open);
        let (before, discarded) = (rekeys(&world, Side::A), world.book.discarded);
        world.run_ms(6000);
        assert!(rekeys(&world, Side::A) - before >= 8, "seed {seed}");
        assert_eq!(
            world.book.discarded, discarded,
            "seed {seed}: a channel closed"
        );
        assert_eq!(
            world.book.doubled, 0,
            "seed {seed}: a frame was delivered twice"
        );
        // About 30 percent are lost by the line; a rekey on it costs nothing more that would show.
        let (sent, lost) = (world.book.sent[0] as f64, world.book.lost(Side::A) as f64);
        assert!(lost / sent < 0.35, "seed {seed}: {lost} of {sent} lost");
    }
}

#[test]
fn a_forger_costs_no_request_while_the_link_is_alive() {
    for seed in seeds(30) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        world.run_ms(1500);
        let before = Side::BOTH.map(|side| world.node(side).state(world.now_ns()));
        let (fetches, discarded) = (world.kme.fetches, world.book.discarded);
        let recorded = world.recorded.clone();
        for _ in 0..300 {
            world.run_ms(1);
            let at = world.random().below(recorded.len() as u64) as usize;
            let (from, mut frame) = recorded[at].clone();
            match world.random().below(4) {
                // As it was.
                0 => {}
                // One octet changed.
                1 => {
                    let at = 14 + world.random().below(frame.len() as u64 - 14) as usize;
                    frame[at] ^= 1 + world.random().below(255) as u8;
                }
                // A hello with a key ID of the forger's own.
                2 => {
                    frame.resize(98, 0);
                    frame[14..18].copy_from_slice(&[1, 1, 0, 84]);
                    world.random().fill(&mut frame[18..]);
                }
                // Cut short, or any octets at all.
                _ => {
                    let length = 17 + world.random().below(100) as usize;
                    frame.resize(length, 0);
                    world.random().fill(&mut frame[16..]);
                }
            }
            world.inject(from.other(), frame);
        }
        world.run_ms(300);
        assert_eq!(
            world.kme.fetches, fetches,
            "seed {seed}: a forgery cost a request"
        );
        assert!(world.open(), "seed {seed}");
        assert_eq!(world.book.discarded, discarded, "seed {seed}");
        let mut noticed = [0; 2];
        for side in Side::BOTH {
            let state = world.node(side).state(world.now_ns());
            let old = &before[side.index()];
            assert_eq!(
                state.channels,
                {
                    let mut channels = old.channels.clone();
                    for (channel, now) in channels.iter_mut().zip(&state.channels) {
                        // Only the ages have changed.
                        if let (Some(sa), Some(now)) = (&mut channel.encoding, &now.encoding) {
                            sa.age_s = now.age_s;
                        }
                        for (sa, now) in channel.accepted.iter_mut().zip(&now.accepted) {
                            sa.age_s = now.age_s;
                        }
                    }
                    channels
                },
                "seed {seed}: a forgery changed an SA"
            );
            noticed[0] += state.key_handler.forged - old.key_handler.forged;
            noticed[1] += state.key_handler.replayed - old.key_handler.replayed;
        }
        assert!(
            noticed[0] > 50 && noticed[1] > 20,
            "seed {seed}: {noticed:?}"
        );
    }
}

#[test]
fn a_forger_on_a_silent_line_costs_little() {
    for seed in seeds(10) {
        let mut world = World::new(Plan::new(seed));
        world.run_until(200, "both ends open", World::open);
        world.run_ms(1000);
        world.stop(Side::B);
        world.run_ms(1000);
        let fetches = world.kme.fetches[0];
        let recorded: Vec<Vec<u8>> = {
            let own = world.recorded.iter().filter(|(from, _)| *from == Side::B);
            own.map(|(_, frame)| frame.clone()).collect()
        };
        for round in 0..5000 {
            world.run_ms(1);
            let mut hello = vec![0; 98];
            hello[..14].copy_from_slice(&recorded[0][..14]);
            hello[14..18].copy_from_slice(&[1, 1, 0, 84]);
            world.random().fill(&mut hello[34..]);
            world.inject(Side::A, hello);
            world.inject(Side::A, recorded[round % recorded.len()].clone());
        }
        // Three at once and one each second; a key that is unknown is not asked for again.
        let cost = world.kme.fetches[0] - fetches;
        assert!(cost <= 9, "seed {seed}: {cost} requests");
        let handler = world.node(Side::A).state(world.now_ns()).key_handler;
        assert!(handler.replayed > 4000, "seed {seed}: {}", handler.replayed);
        world.start(Side::B);
        world.run_until(4000, "open again when the forger has gone", World::open);
    }
}

#[test]
fn without_keys_the_channel_closes_at_its_limit_and_opens_again_alone() {
    for seed in seeds(10) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        plan.ram_slots = [8; 2];
        plan.limits = Limits {
            seconds: 2,
            ..Limits::default()
        };
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        world.kme.outage = [true; 2];
        // Four keys wait; then the last SA runs to its end.
        world.run_until(20_000, "closed at both ends", |world| {
            Side::BOTH
                .iter()
                .all(|side| status(world, *side) == ChannelStatus::Closed)
        });
        world.run_ms(5);
        for side in Side::BOTH {
            let kinds = alarms(&world, side);
            assert!(
                kinds.contains(&AlarmKind::KeySupply),
                "seed {seed}: {kinds:?}"
            );
            assert!(
                kinds.contains(&AlarmKind::ChannelClosed),
                "seed {seed}: {kinds:?}"
            );
        }
        let sent = world.book.sent;
        world.run_ms(1000);
        assert_eq!(world.book.sent, sent, "seed {seed}: a closed channel sends");
        world.kme.outage = [false; 2];
        world.run_until(6000, "open again", World::open);
        world.run_until(6000, "no alarm left", |world| {
            Side::BOTH
                .iter()
                .all(|side| alarms(world, *side).is_empty())
        });
        world.run_ms(1500);
        assert!(world.book.sent[0] > sent[0] + 1000, "seed {seed}");
        assert_eq!(
            world.book.lost(Side::A),
            world.book.sent[0] - world.book.arrived(Side::A)
        );
    }
}

#[test]
fn a_cut_line_raises_alarms_closes_and_heals() {
    for seed in seeds(10) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        plan.limits.seconds = 4;
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        // One direction only: announces arrive, readies do not.
        world.wires[Side::B.index()].cut = true;
        world.run_ms(1500);
        assert!(
            alarms(&world, Side::A).contains(&AlarmKind::PeerSilent),
            "seed {seed}"
        );
        world.run_until(3000, "closed", |world| {
            status(world, Side::A) == ChannelStatus::Closed
        });
        let kinds = alarms(&world, Side::A);
        assert!(
            kinds.contains(&AlarmKind::NoReady),
            "seed {seed}: {kinds:?}"
        );
        world.wires[Side::B.index()].cut = false;
        world.run_until(1000, "open again, no alarm", |world| {
            world.open()
                && Side::BOTH
                    .iter()
                    .all(|side| alarms(world, *side).is_empty())
        });
    }
}

#[test]
fn a_kme_that_is_behind_or_loses_replies_delays_only() {
    for seed in seeds(20) {
        let mut plan = Plan::new(seed);
        plan.channels = 2;
        plan.limits.seconds = 3;
        let mut world = World::new(plan);
        world.kme.behind_ns = 60 * MS;
        world.kme.lost_replies = 0.1;
        world.run_until(12_000, "both ends open", World::open);
        let discarded = world.book.discarded;
        world.run_ms(10_000);
        assert!(world.open(), "seed {seed}");
        assert!(rekeys(&world, Side::A) >= 3, "seed {seed}");
        assert_eq!(world.book.discarded, discarded);
    }
}

#[test]
fn a_suite_that_the_peer_does_not_offer_is_refused_in_words() {
    let seed = seeds(1)[0];
    let mut plan = Plan::new(seed);
    plan.frames_per_ms = 1;
    plan.offered[1].retain(|suite| suite.name != "serpent-256-ocb");
    let mut world = World::new(plan);
    world.run_until(200, "both ends open", World::open);
    world.run_ms(20);
    let set = |name| Command::SetSuite {
        channel: World::channel(1),
        suite: suite(name),
    };
    let refused = world.command(Side::B, set("serpent-256-ocb"));
    assert_eq!(refused, Err(Refusal::NotOffered("serpent-256-ocb")));
    assert_eq!(world.command(Side::A, set("serpent-256-ocb")), Ok(()));
    let fetches = world.kme.fetches;
    world.run_ms(2500);
    for (side, words) in [
        (
            Side::A,
            "node-b refuses serpent-256-ocb: it does not offer the suite; the old SA goes on",
        ),
        (
            Side::B,
            "node-a announces serpent-256-ocb: this node does not offer it",
        ),
    ] {
        let alarms = world.node(side).state(world.now_ns()).alarms;
        assert_eq!(alarms.len(), 1, "{alarms:?}");
        assert_eq!(
            (alarms[0].kind, alarms[0].text.as_str()),
            (AlarmKind::Mismatch, words)
        );
    }
    // The old SA goes on, no key is lost by trying, and another suite ends it.
    // One key was taken for the first attempt; it came back, and serves them all.
    assert!(world.open() && world.kme.fetches[1] - fetches[1] <= 1);
    assert_eq!(world.command(Side::A, set("camellia-128-gcm")), Ok(()));
    world.run_until(200, "the alarm is over", |world| {
        Side::BOTH
            .iter()
            .all(|side| alarms(world, *side).is_empty())
    });
    world.frames_per_ms = 0;
    world.run_ms(10);
    assert_eq!(world.book.lost(Side::A), 0);
}

#[test]
fn the_operations_of_the_key_ram() {
    for seed in seeds(10) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        world.run_ms(1000);
        let handler = |world: &World| world.node(Side::A).state(world.now_ns()).key_handler;
        let (discarded, zeroised) = (world.book.discarded, handler(&world).zeroised);
        assert_eq!(world.command(Side::A, Command::SoftReset), Ok(()));
        assert_eq!(handler(&world).inbound_keys, 0);
        assert!(handler(&world).zeroised >= zeroised + 32);
        world.run_ms(1000);
        assert_eq!(
            (handler(&world).outbound_keys, handler(&world).inbound_keys),
            (16, 16)
        );
        for side in Side::BOTH {
            let rekey = Command::Rekey {
                channel: World::channel(1),
            };
            assert_eq!(world.command(side, rekey), Ok(()));
        }
        world.run_until(500, "rekeyed after a soft reset", |world| {
            Side::BOTH.iter().all(|side| rekeys(world, *side) == 1)
        });
        assert_eq!(
            world.book.discarded, discarded,
            "seed {seed}: SAs in use go on"
        );
        assert_eq!(
            world.book.lost(Side::A) / 3 + world.book.lost(Side::B) / 3,
            0,
            "seed {seed}"
        );

        assert_eq!(
            world.command(Side::A, Command::Resize { slots: 7 }),
            Err(Refusal::Slots(7))
        );
        assert_eq!(world.command(Side::A, Command::Resize { slots: 8 }), Ok(()));
        assert_eq!(
            (handler(&world).outbound_keys, handler(&world).inbound_keys),
            (4, 4)
        );
        assert_eq!(
            world.command(Side::A, Command::Resize { slots: 512 }),
            Ok(())
        );
        world.run_ms(1000);
        assert_eq!(
            world.command(Side::A, Command::LoadOutbound { count: 5 }),
            Ok(())
        );
        world.run_ms(100);
        assert_eq!(handler(&world).outbound_keys, 21);
        assert!(
            world
                .command(Side::A, Command::LoadOutbound { count: 1000 })
                .is_err()
        );
        assert!(
            world
                .command(Side::A, Command::LoadInbound { key_ids: vec![] })
                .is_err()
        );

        assert_eq!(world.command(Side::A, Command::HardReset), Ok(()));
        assert_eq!(
            (handler(&world).outbound_keys, handler(&world).inbound_keys),
            (0, 0)
        );
        assert!(
            world.node(Side::A).state(world.now_ns()).channels[0]
                .accepted
                .is_empty()
        );
        world.run_until(1000, "open again after a hard reset", World::open);
        let restarted = |note: &Note| *note == Note::PeerRestarted;
        assert!(
            world.node(Side::B).notes.iter().any(restarted),
            "seed {seed}"
        );
    }
}

#[test]
fn commands_at_any_time_on_any_line_end_well() {
    let names = [
        "camellia-256-gcm",
        "serpent-256-ocb",
        "aes-128-ocb",
        "aes-256-gcm",
    ];
    for seed in seeds(60) {
        let mut plan = Plan::new(seed);
        plan.channels = 2;
        plan.frames_per_ms = 1;
        let mut world = World::new(plan);
        for wire in &mut world.wires {
            wire.loss = [0.0, 0.1, 0.3][(seed % 3) as usize];
            wire.jitter_ns = MS;
            wire.duplication = 0.05;
        }
        let mut last = [suite("aes-256-gcm"); 4];
        for _ in 0..60 {
            let pause_ms = world.random().below(60);
            world.run_ms(pause_ms);
            let side = Side::BOTH[world.random().below(2) as usize];
            let n = world.random().below(2);
            let channel = World::channel(n as u16 + 1);
            let command = match world.random().below(12) {
                0..6 => {
                    let suite = suite(names[world.random().below(4) as usize]);
                    last[side.index() * 2 + n as usize] = suite;
                    Command::SetSuite { channel, suite }
                }
                6..9 => Command::Rekey { channel },
                9 => Command::SoftReset,
                10 => Command::Resize {
                    slots: 8 + world.random().below(100) as u32,
                },
                _ if world.random().chance(0.3) => Command::HardReset,
                _ => Command::LoadOutbound { count: 1 },
            };
            // A full RAM refuses to load; everything else is taken at any time.
            let loads = matches!(command, Command::LoadOutbound { .. });
            assert!(world.command(side, command).is_ok() || loads, "seed {seed}");
        }
        world.run_until(8000, "the last suites everywhere", |world| {
            let wanted = |side: &Side| {
                let state = world.node(*side).state(world.now_ns());
                state.channels.iter().enumerate().all(|(n, channel)| {
                    let wanted = last[side.index() * 2 + n];
                    channel.encoding.is_some_and(|sa| sa.suite.id == wanted.id)
                })
            };
            world.open() && Side::BOTH.iter().all(wanted)
        });
        assert_eq!(world.book.doubled, 0, "seed {seed}");
    }
}
