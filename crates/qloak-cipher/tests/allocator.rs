//! What the allocator sees: sealing and opening allocate nothing, and a dropped key gives back
//! memory in which nothing of the key is left.
//!
//! A watching allocator stands in for the system's in this test program alone. It sees what this
//! thread asks of Rust's allocator; AWS-LC's C code has its own, which it does not see.

#![allow(unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{everything, key_of};
use qloak_cipher::{Open, Seal};

struct Watching;

thread_local! {
    // Const and without destructors, so that reading them allocates nothing itself.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static FREED_OCTETS: Cell<usize> = const { Cell::new(0) };
    static FREED_NON_ZERO: Cell<usize> = const { Cell::new(0) };
}

fn add<T: Copy + std::ops::Add<Output = T>>(cell: &'static std::thread::LocalKey<Cell<T>>, by: T) {
    cell.with(|cell| cell.set(cell.get() + by));
}

// SAFETY: each call is handed to the system's allocator with its arguments unchanged; what is
// counted beside it lies in a thread's own cells.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(&ALLOCATIONS, 1);
        // SAFETY: the caller's promise on `layout` is passed on. Zeroed, so that a block that
        // comes back has no octet that was never written.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(&FREED_OCTETS, layout.size());
        for at in 0..layout.size() {
            // SAFETY: the block is `layout.size()` octets long, was zeroed when it was given out
            // and is still ours until the call below.
            let octet = unsafe { pointer.add(at).read_volatile() };
            add(&FREED_NON_ZERO, usize::from(octet != 0));
        }
        // SAFETY: the caller's promise on `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static WATCHING: Watching = Watching;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// Octets that `dropped` gives back, and how many of them are not zero.
fn left_by<T>(dropped: T) -> (usize, usize) {
    let now = || (FREED_OCTETS.with(Cell::get), FREED_NON_ZERO.with(Cell::get));
    let before = now();
    drop(std::hint::black_box(dropped));
    let after = now();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn neither_seal_nor_open_allocates() {
    // The counter counts, or this test would prove nothing.
    let before = allocations();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(allocations(), before + 1);

    for (suite, level) in everything() {
        let key = key_of(suite, level);
        for octets in [0, 1, 64, 700] {
            let (mut first, mut second) = (vec![5; octets], vec![6; octets]);
            let (mut tag, mut forged) = (vec![0; key.tag_octets()], vec![0; key.tag_octets()]);
            let aad = [7; 28];
            let before = allocations();
            let sealed = key.seal(&mut [
                Seal {
                    nonce: [0; 12],
                    aad: &aad,
                    data: &mut first,
                    tag: &mut tag,
                },
                Seal {
                    nonce: [1; 12],
                    aad: &aad,
                    data: &mut second,
                    tag: &mut forged,
                },
            ]);
            if let Some(octet) = forged.first_mut() {
                *octet ^= 1;
            }
            let mut batch = [
                Open {
                    nonce: [0; 12],
                    aad: &aad,
                    data: &mut first,
                    tag: &tag,
                    valid: false,
                },
                Open {
                    nonce: [1; 12],
                    aad: &aad,
                    data: &mut second,
                    tag: &forged,
                    valid: true,
                },
            ];
            let opened = key.open(&mut batch);
            let valid = batch.map(|one| one.valid);
            let made = allocations() - before;

            assert_eq!(made, 0, "{} on {}", suite.name, key.backend());
            assert_eq!((sealed, opened), (Ok(()), Ok(())));
            assert_eq!(valid, [true, suite.hazmat], "{}", suite.name);
        }
    }
}

#[test]
fn a_dropped_key_leaves_nothing_of_itself() {
    // The watcher sees octets that were left, or this test would prove nothing.
    assert_eq!(left_by(Box::new([0xffu8; 240])), (240, 240));

    for (suite, level) in everything() {
        let key = key_of(suite, level);
        if key.backend() == "aws-lc" {
            // Its key lies where this allocator does not look.
            continue;
        }
        let (octets, non_zero) = left_by(key);
        let what = format!("{} at {level}", suite.name);
        // Beside the key there lie flags and lengths, and nothing else that is not zero.
        assert!(
            non_zero <= 4,
            "{what}: {non_zero} of {octets} octets are left"
        );
        assert!(
            suite.name == "plain" || octets >= 32,
            "{what}: {octets} octets"
        );
    }
}
