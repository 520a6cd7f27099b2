//! A register of four blocks in plain Rust, which the compiler spreads over whatever the target has.

use super::Block;
use crate::lanes::Blocks;

/// Four blocks as sixteen little-endian words.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Portable(pub(crate) [u32; 16]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, word: impl Fn(u32, u32) -> u32) -> Self {
        Self(std::array::from_fn(|at| word(self.0[at], other.0[at])))
    }

    #[inline(always)]
    fn octets(self) -> [u8; 64] {
        let mut octets = [0; 64];
        for (four, word) in octets.as_chunks_mut().0.iter_mut().zip(self.0) {
            *four = word.to_le_bytes();
        }
        octets
    }
}

impl Blocks for Portable {
    const COUNT: usize = 4;

    #[inline(always)]
    fn zero() -> Self {
        Self([0; 16])
    }

    #[inline(always)]
    fn splat(block: &Block) -> Self {
        let words = Self::first(block).0;
        Self(std::array::from_fn(|at| words[at % 4]))
    }

    #[inline(always)]
    fn first(block: &Block) -> Self {
        Self::load_part(block)
    }

    #[inline(always)]
    fn last(block: &Block) -> Self {
        let words = Self::first(block).0;
        Self(std::array::from_fn(|at| {
            if at < 12 { 0 } else { words[at - 12] }
        }))
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        let (fours, _) = from[..Self::OCTETS].as_chunks();
        Self(std::array::from_fn(|at| u32::from_le_bytes(fours[at])))
    }

    #[inline(always)]
    fn load_part(from: &[u8]) -> Self {
        let mut octets = [0; 64];
        octets[..from.len()].copy_from_slice(from);
        Self::load(&octets)
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        to[..Self::OCTETS].copy_from_slice(&self.octets());
    }

    #[inline(always)]
    fn store_part(self, to: &mut [u8]) {
        let count = to.len();
        to.copy_from_slice(&self.octets()[..count]);
    }

    #[inline(always)]
    fn keep(self, octets: usize) -> Self {
        Self::load_part(&self.octets()[..octets])
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    #[inline(always)]
    fn fold(self) -> Block {
        let octets = self.octets();
        let blocks = octets.as_chunks::<16>().0;
        let sum = blocks
            .iter()
            .fold(0, |sum, block| sum ^ u128::from_ne_bytes(*block));
        sum.to_ne_bytes()
    }
}
