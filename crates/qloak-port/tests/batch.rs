//! Batches: frames keep their order and their octets, and nothing grows.

use proptest::prelude::*;
use qloak_port::{Batch, Sizes};

const SIZES: Sizes = Sizes {
    headroom: 8,
    octets_max: 100,
    tailroom: 4,
};

fn filled(count: u8) -> Batch {
    let mut batch = Batch::with_sizes(8, SIZES);
    for number in 0..count {
        assert!(batch.push(&[number; 20]));
    }
    batch
}

fn numbers(batch: &Batch) -> Vec<u8> {
    batch
        .frames()
        .iter()
        .map(|frame| frame.octets()[0])
        .collect()
}

#[test]
fn a_full_batch_and_a_frame_too_long_take_nothing() {
    let mut batch = filled(8);
    assert!(batch.is_full() && !batch.push(&[1; 20]) && batch.extend().is_none());
    assert!(batch.spare_octets().is_none());
    batch.commit(5);
    assert_eq!(batch.len(), 8);
    batch.clear();
    assert!(!batch.push(&[1; 101]) && batch.push(&[1; 100]));
    assert_eq!(batch.frames()[0].range, 8..108);
    assert_eq!(batch.spare_octets().unwrap().len(), 104);
}

#[test]
fn a_given_frame_changes_storage_and_not_octets() {
    let (mut from, mut to) = (filled(3), filled(2));
    let place = from.frames()[1].storage.as_ptr();
    assert!(from.give(1, &mut to));
    assert_eq!(numbers(&to), [0, 1, 1]);
    assert_eq!(to.frames()[2].storage.as_ptr(), place);
    assert!(from.frames()[1].is_empty());
    assert!(!from.give(3, &mut to));
    assert!(!from.give(0, &mut filled(8)));
}

proptest! {
    #[test]
    fn what_is_left_keeps_its_order(count in 0_u8..=8, front in 0_usize..10, keep: u8) {
        let mut batch = filled(count);
        batch.drop_front(front);
        let left: Vec<u8> = (0..count).skip(front).collect();
        prop_assert_eq!(&numbers(&batch), &left);
        batch.retain(|frame| keep >> (frame.octets()[0] & 7) & 1 == 1);
        let kept: Vec<u8> = left.into_iter().filter(|number| keep >> (number & 7) & 1 == 1).collect();
        prop_assert_eq!(&numbers(&batch), &kept);
        // Every frame is still there to be filled.
        while !batch.is_full() {
            prop_assert!(batch.push(&[9; 100]));
        }
    }
}
