//! The bulk of the work: the blocks of a batch's data through a cipher, in place.
//!
//! A mode says what happens to a frame; how its blocks reach the registers is said here, in one of
//! two ways, according to the cipher:
//!
//! ```text
//!   stream   AES: a block is enciphered where it lies in its register. One frame after another,
//!            eight registers at a time; the CPU itself runs into the next frame while the last
//!            results of this one are under way.
//!   gather   Serpent, Camellia and portable AES: many blocks are enciphered at once or not at all.
//!            Registers are filled across frames, sixteen at a time.
//! ```

use crate::aead::Job;
use crate::backend::{Backend, Block, Ghash};
use crate::lanes::Blocks;
use crate::limits::NONCE_OCTETS;
use crate::mode::Offsets;

pub(crate) mod gather;
pub(crate) mod stream;

/// A cipher's key on backend `B`, with its way of reaching the blocks of a batch. A batch has at
/// most [`FRAMES_AT_ONCE`](crate::limits::FRAMES_AT_ONCE) frames. Zeroised on drop.
pub(crate) trait Cipher<B: Backend>: Send + Sync + 'static {
    /// Enciphers each block alone, any number of them.
    fn encrypt(&self, backend: B, blocks: &mut [Block]);

    /// Deciphers each block alone.
    fn decrypt(&self, backend: B, blocks: &mut [Block]);

    /// XORs the key stream of counter mode over each frame's data, the first block's counter being
    /// `first`.
    fn counter<J: Job>(&self, backend: B, first: u32, batch: &mut [&mut J]);

    /// The same from counter 2 on, and GHASH of AAD, ciphertext and lengths XORed into each frame's
    /// tag.
    #[inline(always)]
    fn counter_and_hash<J: Job, const SEAL: bool>(
        &self,
        backend: B,
        ghash: &B::Ghash,
        batch: &mut [&mut J],
        tags: &mut [Block],
    ) {
        if SEAL {
            self.counter(backend, 2, batch);
        }
        for (job, tag) in batch.iter().zip(tags) {
            *tag = ghash.tag(job.aad(), job.data(), tag);
        }
        if !SEAL {
            self.counter(backend, 2, batch);
        }
    }

    /// The whole blocks of OCB3: each between two applications of its offset. `sums` holds each
    /// frame's first offset before, and the exclusive or of its plaintext blocks after.
    fn offset<J: Job, const SEAL: bool>(
        &self,
        backend: B,
        offsets: &Offsets,
        batch: &mut [&mut J],
        sums: &mut [u128],
    );
}

/// The counter block of `nonce` and `counter`: SP 800-38D, 7.1; RFC 3686, 4; RFC 5528, 2.1.
///
/// ```text
///   octet  0                        11 12          15
///         +---------------------------+-------------+
///         |          nonce            |   counter   |   big-endian, + 1 per block
///         +---------------------------+-------------+
/// ```
#[inline(always)]
pub(crate) fn counter_block(nonce: &[u8; NONCE_OCTETS], counter: u32) -> Block {
    let mut block = [0; 16];
    block[..NONCE_OCTETS].copy_from_slice(nonce);
    block[NONCE_OCTETS..].copy_from_slice(&counter.to_be_bytes());
    block
}

/// Counters that stand ready in a table.
const COUNTERS: usize = 1024;

/// The most blocks that are asked for at once: eight of the widest registers.
const COUNTERS_AT_ONCE: usize = 32;

/// Counter blocks of nonce zero, from counter 0 on: what changes from block to block in any frame.
static COUNTER_BLOCKS: [Block; COUNTERS + COUNTERS_AT_ONCE] = {
    let mut blocks = [[0; 16]; COUNTERS + COUNTERS_AT_ONCE];
    let mut counter = 0;
    while counter < blocks.len() {
        blocks[counter][14] = (counter >> 8) as u8;
        blocks[counter][15] = counter as u8;
        counter += 1;
    }
    blocks
};

/// `N` registers of counter blocks from `counter` on, modulo 2^32, XORed into `base`, which holds the
/// nonce. One load each, for the upper bits of the counter are the same for all of them; a carry into
/// an upper bit that is clear stands in the table.
#[inline(always)]
pub(crate) fn counters<V: Blocks, const N: usize>(base: V, counter: u32) -> [V; N] {
    let low = counter as usize % COUNTERS;
    let upper = counter - low as u32;
    let far;
    let (blocks, upper) = if low <= COUNTERS - COUNTERS_AT_ONCE || upper & COUNTERS as u32 == 0 {
        (&COUNTER_BLOCKS[low..][..COUNTERS_AT_ONCE], upper)
    } else {
        far = across(counter);
        (&far[..], 0)
    };
    let upper = u128::from(upper.swap_bytes()) << 96;
    let base = base.xor(V::splat(&upper.to_le_bytes()));
    let octets = blocks.as_flattened();
    let mut registers = [base; N];
    for (register, octets) in registers.iter_mut().zip(octets.chunks_exact(V::OCTETS)) {
        *register = register.xor(V::load(octets));
    }
    registers
}

/// The same where the upper bits change on the way.
#[cold]
#[inline(never)]
fn across(counter: u32) -> [Block; COUNTERS_AT_ONCE] {
    let low = counter as usize % COUNTERS;
    let upper = counter - low as u32;
    let uppers = [upper, upper.wrapping_add(COUNTERS as u32)]
        .map(|upper| u128::from(upper.swap_bytes()) << 96);
    let mut blocks = [[0; 16]; COUNTERS_AT_ONCE];
    for (block, number) in blocks.iter_mut().zip(low..) {
        let upper = uppers[number / COUNTERS];
        let lower = u128::from_le_bytes(COUNTER_BLOCKS[number % COUNTERS]);
        *block = (upper ^ lower).to_le_bytes();
    }
    blocks
}

/// A register, full or not.
#[inline(always)]
fn load<V: Blocks>(part: &[u8]) -> V {
    if part.len() == V::OCTETS {
        V::load(part)
    } else {
        V::load_part(part)
    }
}

/// The same back.
#[inline(always)]
fn store<V: Blocks>(register: V, part: &mut [u8]) {
    if part.len() == V::OCTETS {
        register.store(part);
    } else {
        register.store_part(part);
    }
}
