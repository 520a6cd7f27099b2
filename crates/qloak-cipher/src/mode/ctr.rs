//! Counter mode's key stream (SP 800-38A, 6.5), for GCM and for the hazmat CTR suites.
//!
//! ```text
//!   octet  0                        11 12          15
//!         +---------------------------+-------------+
//!         |          nonce            |   counter   |   big-endian, + 1 per block
//!         +---------------------------+-------------+
//! ```
//!
//! This is the counter block of RFC 3686 and RFC 5528, their nonce and IV taken as one field.

use crate::backend::{Backend, Block, BlockCipher};
use crate::limits::{NONCE_OCTETS, WIDE};

/// The counter block of `nonce` and `counter`.
#[inline(always)]
pub(crate) fn counter_block(nonce: &[u8; NONCE_OCTETS], counter: u32) -> Block {
    let mut block = [0; 16];
    block[..NONCE_OCTETS].copy_from_slice(nonce);
    block[NONCE_OCTETS..].copy_from_slice(&counter.to_be_bytes());
    block
}

/// XORs the key stream over `data`, from the block of counter `first` on.
#[inline(always)]
pub(crate) fn apply<B: Backend, C: BlockCipher<B>>(
    backend: B,
    cipher: &C,
    nonce: &[u8; NONCE_OCTETS],
    first: u32,
    data: &mut [u8],
) {
    let mut counter = first;
    for part in data.chunks_mut(WIDE * 16) {
        let mut stream = [[0; 16]; WIDE];
        let stream = &mut stream[..part.len().div_ceil(16)];
        for block in stream.iter_mut() {
            *block = counter_block(nonce, counter);
            counter = counter.wrapping_add(1);
        }
        cipher.encrypt(backend, stream);
        for (octet, mask) in part.iter_mut().zip(stream.as_flattened()) {
            *octet ^= mask;
        }
    }
}
