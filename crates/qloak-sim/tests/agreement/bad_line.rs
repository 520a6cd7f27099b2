//! Loss, duplication, reordering, cuts and restarts end well without an operator.

use qloak_api::Limits;
use qloak_api::manage::{AlarmKind, ChannelStatus};
use qloak_sim::{MS, Plan, Side, World};

use super::{alarms, rekeys, seeds, status};

#[test]
fn a_restarted_node_recovers_alone() {
    for seed in seeds(30) {
        let mut plan = Plan::new(seed);
        plan.channels = 3;
        plan.frames_per_ms = 1;
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        for round in 0..3 {
            let settle_ms = 400 + world.random().below(1500);
            world.frames_per_ms = 0;
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
            world.frames_per_ms = 1;
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
fn a_welcome_that_crosses_the_next_hello_is_mended() {
    for seed in seeds(100) {
        let mut plan = Plan::new(seed);
        // Hellos give their keys up so early that answers come for keys that are given up.
        plan.timings.hello_renew_ns = 30 * MS;
        plan.timings.hello_retry_ns = 10 * MS;
        plan.timings.hello_token_ns = MS;
        let mut world = World::new(plan);
        for wire in &mut world.wires {
            wire.jitter_ns = 150 * MS;
            wire.loss = 0.3;
        }
        world.run_until(15_000, "both ends open", World::open);
        // And it lasts.
        world.run_ms(1000);
        world.run_until(5000, "still open", World::open);
    }
}
