//! Whatever is set and whenever it is looked at, each frame stands in exactly one counter.

use super::*;
use proptest::prelude::*;

prop_compose! {
    fn any_faults()(
        loss in prop_oneof![
            Just(Loss::None),
            (0.0..=1.0).prop_map(|probability| Loss::Independent { probability }),
            (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0).prop_map(|(to_bad, to_good, lost_in_good, lost_in_bad)| {
                Loss::Spells(GilbertElliott { to_bad, to_good, lost_in_good, lost_in_bad })
            }),
        ],
        duplicate in 0.0..=1.0,
        radio in prop::option::of((-30.0..=25.0, 2_usize..=255, any::<prop::sample::Index>()).prop_map(|(eb_n0_db, word_octets, k)| {
            Radio { eb_n0_db, word_octets, data_octets: 1 + k.index(word_octets - 1) }
        })),
        bit_error_ratio in prop_oneof![Just(0.0), Just(1e-300), 0.0..=1.0],
        rate_bps in prop::option::of(1_000_000_u64..=10_000_000_000),
        (fixed_ns, jitter_ns) in (0_u64..=5000, 0_u64..=5000),
        (probability, frames, hold_ns_max) in (0.0..=1.0, 1_usize..=7, 0_u64..=5000),
        waiting_frames_max in 8_usize..=100,
    ) -> Faults {
        Faults {
            loss,
            duplicate,
            radio,
            bit_error_ratio,
            rate_bps,
            delay: Delay { fixed_ns, jitter_ns },
            reorder: Reorder { probability, frames, hold_ns_max },
            waiting_frames_max,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_frame_is_in_one_counter_whatever_is_set(
        seed: u64,
        ways in (any_faults(), any_faults()),
        sends in prop::collection::vec((0_usize..20, 14_usize..400, 0_u64..3000), 1..40),
    ) {
        let impairment = Impairment { seed, receive: ways.0, transmit: ways.1 };
        let hand = Hand::default();
        let [mut a, mut b] = wire(&impairment, 64, &hand);
        let (mut now, mut sent, mut came, mut gone) = (0, 0, 0, 0);
        for (frames, octets, pause_ns) in sends {
            now += pause_ns;
            hand.move_to(now);
            for (port, count) in [(&mut a, &mut gone), (&mut b, &mut sent)] {
                let mut out = Batch::with_sizes(20, SIZES);
                (0..frames).for_each(|n| assert!(out.push(&frame(n as u32, octets))));
                *count += port.transmit(&mut out).unwrap() as u64;
            }
            came += drain(&mut *a, 7).len() as u64;
            drain(&mut *b, 64);
            let done = a.impairments().unwrap();
            assert_conserved(done.receive);
            assert_conserved(done.transmit);
        }
        // A day later nothing waits any more.
        hand.move_to(now + 86_400_000_000_000);
        for _ in 0..20 {
            came += drain(&mut *a, 64).len() as u64;
            drain(&mut *b, 64);
        }
        let done = a.impairments().unwrap();
        assert_conserved(done.receive);
        assert_conserved(done.transmit);
        prop_assert_eq!((done.receive.waiting, done.transmit.waiting), (0, 0));
        if !impairment.receive.are_none() {
            prop_assert_eq!((done.receive.taken, done.receive.passed), (sent, came));
        }
        if !impairment.transmit.are_none() {
            prop_assert_eq!(done.transmit.taken, gone);
            prop_assert_eq!(done.transmit.passed, a.counters().transmitted_frames);
        }
    }
}
