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
pub(crate) const DELTAS: usize = 1 << DELTAS_LOG2;
const DELTAS_LOG2: usize = 7;

/// The most blocks whose masks are asked for at once: eight of the widest registers.
const AT_ONCE: usize = 32;

/// What depends on the key alone. Zeroised on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Offsets {
    pub(crate) l_star: u128,
    pub(crate) l_dollar: u128,
    l: [Block; L_VALUES],
    deltas: Deltas,
}

/// The table, where no load of a register crosses a line of the cache.
#[derive(Zeroize)]
#[repr(align(64))]
struct Deltas([Block; DELTAS + AT_ONCE]);

/// The masks of one frame's registers, in order.
pub(crate) struct Run<'k, V> {
    offsets: &'k Offsets,
    base: V,
    /// Blocks done.
    done: usize,
}

impl Offsets {
    /// `enciphered_zero`: the block of zeros, enciphered. It is L_*.
    pub(crate) fn new(enciphered_zero: &Block) -> Self {
        let l_star = u128::from_ne_bytes(*enciphered_zero);
        let l_dollar = double(l_star);
        let mut l = [[0; 16]; L_VALUES];
        let mut value = l_dollar;
        for l in &mut l {
            value = double(value);
            *l = value.to_ne_bytes();
        }
        let mut offsets = Self {
            l_star,
            l_dollar,
            l,
            deltas: Deltas([[0; 16]; DELTAS + AT_ONCE]),
        };
        for block in 1..=DELTAS {
            offsets.deltas.0[block - 1] = offsets.after(0, block).to_ne_bytes();
        }
        offsets
    }

    /// The offset of block number `blocks`, counted from 1, on top of the frame's first one.
    #[inline(always)]
    pub(crate) fn after(&self, start: u128, blocks: usize) -> u128 {
        let mut gray = blocks ^ (blocks >> 1);
        let mut offset = start;
        while gray != 0 {
            offset ^= u128::from_ne_bytes(self.l[gray.trailing_zeros() as usize]);
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
            base: V::splat(&base.to_ne_bytes()),
            done,
        }
    }
}

impl<V: Blocks> Run<'_, V> {
    /// The masks of the next `N` registers. `N` registers hold a number of blocks that divides 128,
    /// or they are the frame's last ones.
    #[inline(always)]
    pub(crate) fn next<const N: usize>(&mut self) -> Masks<'_, V, N> {
        let (base, mut last) = (self.base, self.base);
        let deltas = first(&self.offsets.deltas.0[self.done % DELTAS..]);
        self.done += N * V::COUNT;
        if self.done.is_multiple_of(DELTAS) {
            let l = &self.offsets.l;
            let zeros = self.done.trailing_zeros() as usize;
            // The table has the value of block 128 in the last place; this block's number may have
            // more trailing zeros.
            last = last.xor(V::last(&l[zeros])).xor(V::last(&l[DELTAS_LOG2]));
            // The Gray codes of two multiples of 128 in a row differ in two bits.
            self.base = base
                .xor(V::splat(&l[zeros]))
                .xor(V::splat(&l[DELTAS_LOG2 - 1]));
        }
        Masks { deltas, base, last }
    }
}

/// The masks of `N` registers: what differs between them is read from the table where it is used.
#[derive(Clone, Copy)]
pub(crate) struct Masks<'k, V, const N: usize> {
    deltas: &'k [Block; AT_ONCE],
    base: V,
    /// The base of the last register.
    last: V,
}

impl<V: Blocks, const N: usize> Masks<'_, V, N> {
    /// The same, each with `key`.
    #[inline(always)]
    pub(crate) fn with(self, key: V) -> Self {
        Self {
            base: self.base.xor(key),
            last: self.last.xor(key),
            ..self
        }
    }

    /// The same, to be read once more: the compiler must not keep what it has read until then, for
    /// the registers are needed for other things.
    #[inline(always)]
    pub(crate) fn afresh(self) -> Self {
        Self {
            deltas: std::hint::black_box(self.deltas),
            ..self
        }
    }

    /// The mask of register `i`.
    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> V {
        let base = if i == N - 1 { self.last } else { self.base };
        base.xor(V::load(self.deltas[i * V::COUNT..].as_flattened()))
    }
}

/// The first blocks of many.
#[inline(always)]
fn first(blocks: &[Block]) -> &[Block; AT_ONCE] {
    blocks
        .first_chunk()
        .expect("there is room behind the table")
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
            offset ^= u128::from_ne_bytes(offsets.l[block.trailing_zeros() as usize]);
            expected.push(offset.to_ne_bytes());
            assert_eq!(offsets.after(start, block), offset);
        }
        for done in [0, 4, 124, 128, 252, 256, 512, 1020] {
            let mut run = offsets.run::<Portable>(start, done);
            for register in done / 4..300 {
                let mut octets = [0; 64];
                run.next::<1>().get(0).store(&mut octets);
                assert_eq!(octets, expected[register * 4..][..4].as_flattened());
            }
        }
        let mut run = offsets.run::<Portable>(start, 0);
        for stripe in 0..37 {
            let masks = run.next::<8>();
            for i in 0..8 {
                let mut octets = [0; 64];
                masks.get(i).store(&mut octets);
                assert_eq!(octets, expected[stripe * 32 + i * 4..][..4].as_flattened());
            }
        }
    }
}
