//! Functions that tell their secret, on purpose: what each check must see before anybody believes it.

use std::hint::black_box;

/// One way of leaking: its name, and the function.
pub(crate) type Leaky = (&'static str, fn(&[u8]) -> u32);

/// A table looked up at a secret index: the address tells.
pub(crate) const BY_ADDRESS: Leaky = ("leaks by an address", by_address);
/// A branch on each secret bit: the time tells, and so does the branch predictor.
pub(crate) const BY_BRANCH: Leaky = ("leaks by a branch", by_branch);
/// A comparison that ends at the first difference: the time tells where.
pub(crate) const BY_EARLY_EXIT: Leaky = ("leaks by an early exit", by_early_exit);

#[inline(never)]
fn by_address(secret: &[u8]) -> u32 {
    let table: [u32; 256] = black_box([7; 256]);
    secret.iter().map(|octet| table[usize::from(*octet)]).sum()
}

#[inline(never)]
fn by_branch(secret: &[u8]) -> u32 {
    let mut sum = 0;
    for octet in secret {
        // What is inside is opaque, so that the compiler keeps the branch.
        if octet & 1 == 1 {
            sum = black_box(sum + 1);
        }
    }
    sum
}

#[inline(never)]
fn by_early_exit(secret: &[u8]) -> u32 {
    for (at, octet) in secret.iter().enumerate() {
        if black_box(*octet) != 0 {
            return at as u32;
        }
    }
    secret.len() as u32
}
