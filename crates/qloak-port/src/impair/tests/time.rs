//! Frames that wait: reordering, delay and rate, with a clock that the test moves.

use super::*;

#[test]
fn held_frames_go_behind_as_many_as_asked_and_the_others_keep_their_order() {
    let faults = Faults {
        reorder: Reorder {
            probability: 0.03,
            frames: 5,
            hold_ns_max: 1_000_000,
        },
        ..Faults::default()
    };
    let hand = Hand::default();
    let [mut a, mut b] = wire(&transmit(faults), 256, &hand);
    let frames = 20_000;
    let mut came = carry(&mut *a, &mut *b, frames, 60, 64);
    hand.move_to(1_000_000);
    a.receive(&mut Batch::with_sizes(1, SIZES)).unwrap();
    came.extend(drain(&mut *b, 64));
    let numbers: Vec<u32> = came.iter().map(|frame| number(frame)).collect();
    assert_eq!(numbers.len(), frames as usize);
    let (mut highest, mut late) = (None, 0);
    for (place, &number) in numbers.iter().enumerate() {
        if Some(number) < highest {
            late += 1;
            assert!(
                highest <= Some(number + 5),
                "{number} was overtaken by {highest:?}"
            );
            // It stands just where the fifth frame after it has passed.
            assert!(place as u32 >= number + 3, "{number} at {place}");
        }
        highest = highest.max(Some(number));
    }
    let counters = a.impairments().unwrap().transmit;
    assert_eq!((counters.reordered, counters.waiting), (late, 0));
    assert_ratio("reordered", late, u64::from(frames), 0.03);
}

#[test]
fn a_held_frame_that_nothing_follows_goes_on_when_its_hold_is_over() {
    let faults = Faults {
        reorder: Reorder {
            probability: 1.0,
            frames: 3,
            hold_ns_max: 500,
        },
        ..Faults::default()
    };
    let hand = Hand::default();
    let [mut a, mut b] = wire(&receive(faults), 8, &hand);
    assert_eq!(carry(&mut *b, &mut *a, 1, 60, 1), [[]; 0]);
    assert!(
        a.descriptor().is_none(),
        "a frame waits, so the port has to be asked"
    );
    hand.move_to(499);
    assert!(drain(&mut *a, 1).is_empty());
    hand.move_to(500);
    assert_eq!(drain(&mut *a, 1).len(), 1);
    assert_eq!(
        a.impairments().unwrap().receive.reordered,
        0,
        "nobody overtook it"
    );
    assert!(a.descriptor().is_some());
}

#[test]
fn delayed_frames_come_when_they_are_due_and_in_order() {
    let faults = Faults {
        delay: Delay {
            fixed_ns: 10_000,
            jitter_ns: 3000,
        },
        ..Faults::default()
    };
    let hand = Hand::default();
    let [mut a, mut b] = wire(&receive(faults), 64, &hand);
    let mut came = Vec::new();
    for step in 0..1000_u32 {
        hand.move_to(u64::from(step) * 500);
        let mut out = Batch::with_sizes(1, SIZES);
        assert!(out.push(&frame(step, 60)));
        b.transmit(&mut out).unwrap();
        for frame in drain(&mut *a, 64) {
            let waited = (step - number(&frame)) * 500;
            assert!((10_000..=13_500).contains(&waited), "{waited} ns");
            came.push(number(&frame));
        }
    }
    assert!(came.iter().copied().eq(0..came.len() as u32));
    let counters = a.impairments().unwrap().receive;
    assert_eq!(counters.waiting, 1000 - came.len() as u64);
    assert_eq!(counters.delayed, 1000);
}

#[test]
fn a_slow_line_queues_what_it_may_and_drops_the_rest() {
    let faults = Faults {
        rate_bps: Some(1_000_000_000),
        waiting_frames_max: 8,
        ..Faults::default()
    };
    let hand = Hand::default();
    let [mut a, mut b] = wire(&transmit(faults), 64, &hand);
    // 101 octets are 125 on the wire, a microsecond each.
    assert!(carry(&mut *a, &mut *b, 20, 101, 20).is_empty());
    let counters = a.impairments().unwrap().transmit;
    assert_eq!((counters.waiting, counters.overflowed), (8, 12));
    // Whoever receives on a twin sends on what is due.
    let mut twin = a.twin().unwrap();
    for sent in 1..=8_u32 {
        hand.move_to(u64::from(sent) * 1000 - 1);
        twin.receive(&mut Batch::with_sizes(1, SIZES)).unwrap();
        assert!(drain(&mut *b, 1).is_empty(), "frame {sent} came too early");
        hand.move_to(u64::from(sent) * 1000);
        twin.receive(&mut Batch::with_sizes(1, SIZES)).unwrap();
        assert_eq!(drain(&mut *b, 1), [frame(sent - 1, 101)]);
    }
    assert_conserved(twin.impairments().unwrap().transmit);
}
