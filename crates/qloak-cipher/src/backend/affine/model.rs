//! A register of one block in plain Rust with the Galois field instructions as their manual defines
//! them, one bit at a time: what they do is proved on machines that do not have them.

use std::sync::LazyLock;

use super::Gfni;
use crate::backend::Block;
use crate::cipher::camellia::octets::Unpack;
use crate::lanes::Blocks;

/// One block. Only what Camellia needs of a register is here.
#[derive(Clone, Copy)]
pub(crate) struct Model<const HAS_XOR3: bool>(Block);

/// `affine_byte` of GF2P8AFFINEQB: bit i is the parity of the octet under octet 7 - i of the map.
fn affine(rows: u64, octet: u8) -> u8 {
    (0..8_u32).fold(0, |image, bit| {
        let row = rows.to_le_bytes()[7 - bit as usize];
        image | ((row & octet).count_ones() as u8 & 1) << bit
    })
}

/// The inverses modulo x^8 + x^4 + x^3 + x + 1, found by trying; of zero zero.
static INVERSES: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let inverse = |octet| (0..=255).find(|&other| product(octet, other) == 1);
    std::array::from_fn(|octet| inverse(octet as u8).unwrap_or(0))
});

fn product(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0_u8, |sum, bit| {
        let reduced = if sum & 0x80 == 0 { 0 } else { 0x1b };
        let added = if b >> bit & 1 == 0 { 0 } else { a };
        sum << 1 ^ reduced ^ added
    })
}

impl<const HAS_XOR3: bool> Gfni for Model<HAS_XOR3> {
    const HAS_XOR3: bool = HAS_XOR3;

    fn splat_octets(octets: u32) -> Self {
        Self(std::array::from_fn(|at| octets.to_le_bytes()[at % 4]))
    }

    fn splat_rows(rows: u64) -> Self {
        Self((u128::from(rows) << 64 | u128::from(rows)).to_le_bytes())
    }

    fn mapped(self, rows: Self) -> Self {
        let [low, high] =
            [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|octet| rows.0[at + octet])));
        Self(std::array::from_fn(|at| {
            affine(if at < 8 { low } else { high }, self.0[at])
        }))
    }

    fn inverted_and_mapped(self, rows: Self) -> Self {
        Self(self.0.map(|octet| INVERSES[usize::from(octet)])).mapped(rows)
    }
}

impl<const HAS_XOR3: bool> Unpack for Model<HAS_XOR3> {
    fn unpack_low(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| [self, other][at % 2].0[at / 2]))
    }

    fn unpack_high(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| {
            [self, other][at % 2].0[at / 2 + 8]
        }))
    }
}

impl<const HAS_XOR3: bool> Blocks for Model<HAS_XOR3> {
    const COUNT: usize = 1;

    fn zero() -> Self {
        Self([0; 16])
    }

    fn splat(block: &Block) -> Self {
        Self(*block)
    }

    fn first(block: &Block) -> Self {
        Self(*block)
    }

    fn last(block: &Block) -> Self {
        Self(*block)
    }

    fn load(from: &[u8]) -> Self {
        Self::load_part(&from[..16])
    }

    fn load_part(from: &[u8]) -> Self {
        let mut block = [0; 16];
        block[..from.len()].copy_from_slice(from);
        Self(block)
    }

    fn store(self, to: &mut [u8]) {
        to[..16].copy_from_slice(&self.0);
    }

    fn store_part(self, to: &mut [u8]) {
        to.copy_from_slice(&self.0[..to.len()]);
    }

    fn keep(self, octets: usize) -> Self {
        Self::load_part(&self.0[..octets])
    }

    fn xor(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] ^ other.0[at]))
    }

    fn fold(self) -> Block {
        self.0
    }
}
