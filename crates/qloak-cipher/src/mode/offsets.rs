//! The offsets of OCB3 (RFC 7253, 4.1 and 4.2), for registers of many blocks.
//!
//! The offset of block i is the frame's first offset and the L values that the Gray code of i
//! selects. What is added is the same for every frame of a key, so it stands in a table for the
//! first 128 blocks, and a register of blocks meets a register of the table in one load:
//!
//! ```text
//!   block    1     2        3       4          ...  128 | 129 ...
//!   delta   L_0  L_0+L_1   L_1   L_1+L_2   ...          | the same again, on the offset of block 128
//! ```
//!
//! The last block of each 128 is the one exception, which [`Run`] mends.
//! Numbers are `u128` in the machine's own order: only doubling needs the octets as a number.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::backend::Block;
use crate::lanes::Blocks;
use crate::limits::{AAD_OCTETS_MAX, DATA_OCTETS_MAX};

/// L values that the longest data need: trailing zeros of a block's number, 0 to 16.
const L_VALUES: usize = 17;
const _: () = assert!(DATA_OCTETS_MAX / 16 <= 1 << (L_VALUES - 1));
const _: () = assert!(AAD_OCTETS_MAX / 16 <= 1 << (L_VALUES - 1));

/// Blocks that the table covers.
pub(crate) const DELTAS: usize = 128;

/// Room behind the table: the widest register loads three blocks beyond the last.
const ROOM: usize = 3;

/// What depends on the key alone. Zeroised on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Offsets {
    pub(crate) l_star: u128,
    pub(crate) l_dollar: u128,
    l: [u128; L_VALUES],
    deltas: [Block; DELTAS + ROOM],
}

/// The masks of one frame's registers, in order.
pub(crate) struct Run<'k, V> {
    offsets: &'k Offsets,
    start: u128,
    base: V,
    /// Blocks done.
    done: usize,
}

impl Offsets {
    /// `enciphered_zero`: the block of zeros, enciphered. It is L_*.
    pub(crate) fn new(enciphered_zero: &Block) -> Self {
        let l_star = u128::from_ne_bytes(*enciphered_zero);
        let l_dollar = double(l_star);
        let mut l = [double(l_dollar); L_VALUES];
        for i in 1..L_VALUES {
            l[i] = double(l[i - 1]);
        }
        let mut offsets = Self {
            l_star,
            l_dollar,
            l,
            deltas: [[0; 16]; DELTAS + ROOM],
        };
        for block in 1..=DELTAS {
            offsets.deltas[block - 1] = offsets.after(0, block).to_ne_bytes();
        }
        offsets
    }

    /// The offset of block number `blocks`, counted from 1, on top of the frame's first one.
    #[inline(always)]
    pub(crate) fn after(&self, start: u128, blocks: usize) -> u128 {
        let mut gray = blocks ^ (blocks >> 1);
        let mut offset = start;
        while gray != 0 {
            offset ^= self.l[gray.trailing_zeros() as usize];
            gray &= gray - 1;
        }
        offset
    }

    /// The masks from the register after `done` blocks on, a multiple of a register's blocks.
    #[inline(always)]
    pub(crate) fn run<V: Blocks>(&self, start: u128, done: usize) -> Run<'_, V> {
        let base = self.after(start, done & !(DELTAS - 1));
        Run {
            offsets: self,
            start,
            base: V::splat(&base.to_ne_bytes()),
            done,
        }
    }
}

impl<V: Blocks> Run<'_, V> {
    /// The masks of the next `N` registers. `N` registers hold a number of blocks that divides 128,
    /// or they are the frame's last ones.
    #[inline(always)]
    pub(crate) fn next<const N: usize>(&mut self) -> [V; N] {
        let at = self.done % DELTAS;
        if at == 0 && self.done > 0 {
            let base = self.offsets.after(self.start, self.done);
            self.base = V::splat(&base.to_ne_bytes());
        }
        self.done += N * V::COUNT;
        let deltas = self.offsets.deltas[at..].as_flattened();
        let mut masks = [self.base; N];
        for (i, mask) in masks.iter_mut().enumerate() {
            *mask = mask.xor(V::load(&deltas[i * V::OCTETS..]));
        }
        if self.done.is_multiple_of(2 * DELTAS) {
            // The table has the value of block 128 in this place; this block's number has more
            // trailing zeros.
            let l = &self.offsets.l;
            let change =
                l[self.done.trailing_zeros() as usize] ^ l[DELTAS.trailing_zeros() as usize];
            masks[N - 1] = masks[N - 1].xor(V::last(&change.to_ne_bytes()));
        }
        masks
    }
}

/// RFC 7253, 2: multiplication by x in GF(2^128), without a branch on the value.
fn double(value: u128) -> u128 {
    let number = u128::from_be_bytes(value.to_ne_bytes());
    let doubled = (number << 1) ^ ((number >> 127) * 0x87);
    u128::from_ne_bytes(doubled.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::portable::Portable;

    /// The recurrence of RFC 7253, 4.2: offset_i = offset_(i-1) xor L[trailing zeros of i].
    #[test]
    fn a_run_is_the_recurrence_block_by_block() {
        let offsets = Offsets::new(&[0x5a; 16]);
        let start = 0x0123_4567_89ab_cdef;
        let (mut offset, mut expected) = (start, Vec::new());
        for block in 1..=1200_usize {
            offset ^= offsets.l[block.trailing_zeros() as usize];
            expected.push(offset.to_ne_bytes());
            assert_eq!(offsets.after(start, block), offset);
        }
        for done in [0, 4, 124, 128, 252, 256, 512, 1020] {
            let mut run = offsets.run::<Portable>(start, done);
            for register in done / 4..300 {
                let mut octets = [0; 64];
                run.next::<1>()[0].store(&mut octets);
                assert_eq!(octets, expected[register * 4..][..4].as_flattened());
            }
        }
        let mut run = offsets.run::<Portable>(start, 0);
        for stripe in 0..37 {
            for (i, mask) in run.next::<8>().into_iter().enumerate() {
                let mut octets = [0; 64];
                mask.store(&mut octets);
                assert_eq!(octets, expected[stripe * 32 + i * 4..][..4].as_flattened());
            }
        }
    }
}
