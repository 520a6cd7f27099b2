//! When keys run out, come late or get lost.

use qloak_api::Limits;
use qloak_api::manage::{AlarmKind, ChannelStatus};
use qloak_node::key_handler::Command;
use qloak_sim::{MS, Plan, Side, World};

use super::{alarms, rekeys, seeds, status};

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
fn no_sa_passes_its_limit_of_frames() {
    for seed in seeds(10) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 3;
        plan.ram_slots = [8; 2];
        plan.limits = Limits {
            frames: 400,
            rekey_at_percent: 50,
            ..Limits::default()
        };
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        world.kme.outage = [true; 2];
        world.run_until(2000, "closed at both ends", |world| {
            let closed = |side: &Side| status(world, *side) == ChannelStatus::Closed;
            Side::BOTH.iter().all(closed)
        });
        world.run_ms(100);
        for side in Side::BOTH {
            let most = world.book.encoded[side.index()] * 400;
            let sent = world.book.sent[side.index()];
            assert!(sent <= most, "seed {seed}: {sent} frames, {most} allowed");
            assert!(
                sent + 300 > most / 2,
                "seed {seed}: {sent} of {most} frames"
            );
            assert_eq!(world.book.lost(side), 0, "seed {seed}");
        }
        world.kme.outage = [false; 2];
        world.run_until(6000, "open again", World::open);
    }
}

#[test]
fn keys_that_differ_at_the_two_ends_are_noticed_and_never_used() {
    for seed in seeds(5) {
        let mut plan = Plan::new(seed);
        plan.frames_per_ms = 1;
        plan.ram_slots = [8; 2];
        let mut world = World::new(plan);
        world.run_until(200, "both ends open", World::open);
        world.kme.differs = true;
        let discarded = world.book.discarded;
        // The four keys that wait are good; those that come after them are not.
        for _ in 0..8 {
            let rekey = Command::Rekey {
                channel: World::channel(1),
            };
            assert_eq!(world.command(Side::A, rekey), Ok(()));
            world.run_ms(300);
        }
        let kinds = alarms(&world, Side::A);
        assert!(
            kinds.contains(&AlarmKind::Mismatch),
            "seed {seed}: {kinds:?}"
        );
        assert!(
            world.open() && world.book.discarded == discarded,
            "seed {seed}"
        );
        world.kme.differs = false;
        world.run_ms(1000);
        for _ in 0..8 {
            let rekey = Command::Rekey {
                channel: World::channel(1),
            };
            assert_eq!(world.command(Side::A, rekey), Ok(()));
            world.run_ms(300);
        }
        assert_eq!(alarms(&world, Side::A), [], "seed {seed}");
        world.frames_per_ms = 0;
        world.run_ms(10);
        assert_eq!(world.book.lost(Side::A), 0, "seed {seed}");
    }
}
