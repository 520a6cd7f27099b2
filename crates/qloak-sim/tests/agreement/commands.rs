//! Commands at any time, refused ones, and the operations of the key RAM.

use qloak_api::{Carriage, manage::AlarmKind};
use qloak_node::key_handler::{Command, Note, Refusal};
use qloak_sim::{MS, Plan, Side, World};

use super::{alarms, rekeys, seeds, suite};

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
    // Until the keys that the start has used are taken anew.
    world.run_ms(100);
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
fn two_carriages_are_refused_in_words_and_carry_nothing() {
    let mut plan = Plan::new(seeds(1)[0]);
    plan.carriage[1] = Carriage::Aggregated;
    plan.frames_per_ms = 1;
    let mut world = World::new(plan);
    world.run_ms(2500);
    assert_eq!(world.book.sent, [0; 2], "no SA, so nothing leaves");
    for (side, words) in [
        (
            Side::A,
            "its channel is aggregated, this one is transparent",
        ),
        (
            Side::B,
            "its channel is transparent, this one is aggregated",
        ),
    ] {
        let alarms = world.node(side).state(world.now_ns()).alarms;
        assert_eq!(alarms.len(), 1, "{alarms:?}");
        assert_eq!(alarms[0].kind, AlarmKind::Mismatch);
        assert!(alarms[0].text.contains(words), "{}", alarms[0].text);
        assert!(!alarms[0].text.contains("old SA"), "{}", alarms[0].text);
    }
    // One end is mended.
    world.stop(Side::B);
    world.reconfigure(|plan| plan.carriage[1] = Carriage::Transparent);
    world.start(Side::B);
    world.run_until(2000, "open, and no alarm", |world| {
        world.open() && Side::BOTH.iter().all(|s| alarms(world, *s).is_empty())
    });
}

#[test]
fn who_takes_a_refused_suite_back_ends_the_alarm_at_both_ends() {
    for seed in seeds(10) {
        let mut plan = Plan::new(seed);
        plan.offered[1].retain(|suite| suite.name != "serpent-256-ocb");
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        for (name, alarmed) in [("serpent-256-ocb", true), ("aes-256-gcm", false)] {
            let channel = World::channel(1);
            let suite = suite(name);
            let set = Command::SetSuite { channel, suite };
            assert_eq!(world.command(Side::A, set), Ok(()));
            world.run_until(2500, name, |world| {
                let stands = |s: &Side| alarms(world, *s).contains(&AlarmKind::Mismatch);
                Side::BOTH.iter().all(|side| stands(side) == alarmed)
            });
        }
        assert!(world.open(), "seed {seed}");
    }
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
