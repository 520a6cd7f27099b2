//! Who writes on the line costs little and changes nothing.

use qloak_sim::{Plan, Side, World};

use super::seeds;

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
        // One and the same name is given up after a few attempts.
        let fetches = world.kme.fetches[0];
        let mut hello = recorded[0].clone();
        hello.resize(98, 0);
        hello[14..18].copy_from_slice(&[1, 1, 0, 84]);
        hello[34..].fill(7);
        for _ in 0..10_000 {
            world.run_ms(1);
            world.inject(Side::A, hello.clone());
        }
        let cost = world.kme.fetches[0] - fetches;
        assert!((1..=4).contains(&cost), "seed {seed}: {cost} requests");
        world.start(Side::B);
        world.run_until(4000, "open again when the forger has gone", World::open);
    }
}
