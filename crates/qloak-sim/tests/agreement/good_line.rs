//! On a good line nothing is lost, at any rekey and any change of suite.

use qloak_api::Limits;
use qloak_node::key_handler::Command;
use qloak_sim::{MS, Plan, Side, World};

use super::{rekeys, seeds, suite};

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
fn rekeys_faster_than_the_line_drains_wait_for_it() {
    for seed in seeds(5) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 2;
        let mut world = World::new(plan);
        for wire in &mut world.wires {
            wire.jitter_ns = 60 * MS;
        }
        world.run_until(500, "both ends open", World::open);
        let discarded = world.book.discarded;
        for _ in 0..500 {
            world.run_ms(4);
            for side in Side::BOTH {
                let rekey = Command::Rekey {
                    channel: World::channel(1),
                };
                assert_eq!(world.command(side, rekey), Ok(()));
            }
        }
        world.frames_per_ms = 0;
        world.run_ms(100);
        for side in Side::BOTH {
            assert!(rekeys(&world, side) >= 8, "seed {seed}");
            assert_eq!(world.book.lost(side), 0, "seed {seed}");
        }
        assert_eq!(world.book.discarded, discarded, "seed {seed}");
    }
}

#[test]
fn a_rekey_each_millisecond_loses_nothing() {
    for seed in seeds(3) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 5;
        plan.timings.drain_ns = MS;
        plan.limits.rekey_every_us = Some(500);
        let mut world = World::new(plan);
        world.run_until(500, "both ends open", World::open);
        let discarded = world.book.discarded;
        world.run_ms(1000);
        world.frames_per_ms = 0;
        world.run_ms(20);
        for side in Side::BOTH {
            let rekeys = rekeys(&world, side);
            // The threads of these nodes go round once in a millisecond, so some take two.
            assert!(rekeys >= 800, "seed {seed}: {rekeys}");
            assert_eq!(world.book.lost(side), 0, "seed {seed}");
        }
        assert_eq!(world.book.discarded, discarded, "seed {seed}");
    }
}

#[test]
fn a_slow_pipeline_is_waited_for() {
    for seed in seeds(5) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        // Ten times the time in which the line drains.
        plan.pipeline_ns = 200 * MS;
        plan.timings.drain_ns = 20 * MS;
        let mut world = World::new(plan);
        world.run_until(1000, "both ends open", World::open);
        world.run_ms(500);
        let discarded = world.book.discarded;
        for _ in 0..10 {
            for side in Side::BOTH {
                let rekey = Command::Rekey {
                    channel: World::channel(1),
                };
                assert_eq!(world.command(side, rekey), Ok(()));
            }
            world.run_ms(400);
        }
        world.frames_per_ms = 0;
        world.run_ms(10);
        for side in Side::BOTH {
            assert!(rekeys(&world, side) >= 10, "seed {seed}");
            assert_eq!(world.book.lost(side), 0, "seed {seed}");
        }
        assert_eq!(world.book.discarded, discarded, "seed {seed}");
    }
}
