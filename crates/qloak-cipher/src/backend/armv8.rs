//! 64-bit Arm with AES and PMULL: nearly every such CPU but the Raspberry Pi's before its fifth.
//!
//! All ciphers run on registers of one block. AESE and AESD add a key before the round and x86's
//! instructions add it behind. A round here is therefore one under the key zero and then an exclusive
//! or, which the compiler makes the next round's key, so that it costs nothing. EOR3, the exclusive or of
//! three, belongs to SHA-3, which fewer CPUs have.

// Rust looks at one call at a time: a round alone has not the features that the kernel around it has.
#![allow(unknown_lints, inline_always_mismatching_target_features)]

use std::arch::aarch64::*;

use super::nibbles::{Nibbles, Shuffle, Whole};
use super::{Block, gates, part};
use crate::cipher::camellia::octets::Unpack;
use crate::lanes::{Blocks, Clmul, Logic, Rounds, Words};

backend!(
    /// Neon, AES and PMULL, which Rust's feature `aes` means both.
    Armv8,
    "neon,aes",
    Lanes = Neon,
    Aes = Neon,
    Octets = Nibbles<Whole<Neon>>
);

/// One block.
#[derive(Clone, Copy)]
pub(crate) struct Neon(uint8x16_t);

impl Neon {
    #[inline(always)]
    fn of(block: &Block) -> Self {
        simd!(Self(vld1q_u8(block.as_ptr())))
    }

    #[inline(always)]
    fn block(self) -> Block {
        let mut block = [0; 16];
        simd!(vst1q_u8(block.as_mut_ptr(), self.0));
        block
    }

    #[inline(always)]
    fn of_words(words: uint32x4_t) -> Self {
        simd!(Self(vreinterpretq_u8_u32(words)))
    }

    #[inline(always)]
    fn words(self) -> uint32x4_t {
        simd!(vreinterpretq_u32_u8(self.0))
    }

    #[inline(always)]
    fn of_product(product: u128) -> Self {
        simd!(Self(vreinterpretq_u8_p128(product)))
    }

    #[inline(always)]
    fn halves(self) -> poly64x2_t {
        simd!(vreinterpretq_p64_u8(self.0))
    }
}

impl Blocks for Neon {
    const COUNT: usize = 1;

    #[inline(always)]
    fn zero() -> Self {
        simd!(Self(vdupq_n_u8(0)))
    }

    #[inline(always)]
    fn splat(block: &Block) -> Self {
        Self::of(block)
    }

    #[inline(always)]
    fn first(block: &Block) -> Self {
        Self::of(block)
    }

    #[inline(always)]
    fn last(block: &Block) -> Self {
        Self::of(block)
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        let from = &from[..Self::OCTETS];
        simd!(Self(vld1q_u8(from.as_ptr())))
    }

    #[inline(always)]
    fn load_part(from: &[u8]) -> Self {
        Self::of(&part::read(from).to_le_bytes())
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        let to = &mut to[..Self::OCTETS];
        simd!(vst1q_u8(to.as_mut_ptr(), self.0));
    }

    #[inline(always)]
    fn store_part(self, to: &mut [u8]) {
        part::write(u128::from_le_bytes(self.block()), to);
    }

    #[inline(always)]
    fn keep(self, octets: usize) -> Self {
        let kept = simd!(vcltq_u8(Self::of(&PLACES).0, vdupq_n_u8(octets as u8)));
        simd!(Self(vandq_u8(self.0, kept)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        simd!(Self(veorq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn fold(self) -> Block {
        self.block()
    }
}

impl Rounds for Neon {
    const KEYS_FIT: bool = true;

    #[inline(always)]
    fn round(self, key: Self) -> Self {
        let substituted = self.last_round(Self::zero());
        simd!(Self(vaesmcq_u8(substituted.0))).xor(key)
    }

    #[inline(always)]
    fn last_round(self, key: Self) -> Self {
        simd!(Self(vaeseq_u8(self.0, Self::zero().0))).xor(key)
    }

    #[inline(always)]
    fn inverse_round(self, key: Self) -> Self {
        self.last_inverse_round(Self::zero()).inverse_mix().xor(key)
    }

    #[inline(always)]
    fn last_inverse_round(self, key: Self) -> Self {
        simd!(Self(vaesdq_u8(self.0, Self::zero().0))).xor(key)
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        simd!(Self(vaesimcq_u8(self.0)))
    }
}

impl Clmul for Neon {
    type One = Self;

    #[inline(always)]
    fn low_low(self, other: Self) -> Self {
        let (a, b) = (self.halves(), other.halves());
        simd!(Self::of_product(vmull_p64(
            vgetq_lane_p64::<0>(a),
            vgetq_lane_p64::<0>(b)
        )))
    }

    #[inline(always)]
    fn high_high(self, other: Self) -> Self {
        simd!(Self::of_product(vmull_high_p64(
            self.halves(),
            other.halves()
        )))
    }

    #[inline(always)]
    fn low_high(self, other: Self) -> Self {
        self.low_low(other.exchange())
    }

    #[inline(always)]
    fn high_low(self, other: Self) -> Self {
        self.exchange().low_low(other)
    }

    #[inline(always)]
    fn exchange(self) -> Self {
        simd!(Self(vextq_u8::<8>(self.0, self.0)))
    }

    #[inline(always)]
    fn reverse(self) -> Self {
        simd!(Self(vrev64q_u8(self.0))).exchange()
    }

    #[inline(always)]
    fn raise(self) -> Self {
        simd!(Self(vextq_u8::<8>(Self::zero().0, self.0)))
    }

    #[inline(always)]
    fn lower(self) -> Self {
        simd!(Self(vextq_u8::<8>(self.0, Self::zero().0)))
    }

    #[inline(always)]
    fn fold_one(self) -> Self {
        self
    }
}

impl gates::Gates for Neon {
    const SELECTS: bool = true;

    #[inline(always)]
    fn zero() -> Self {
        <Self as Blocks>::zero()
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Blocks::xor(self, other)
    }

    #[inline(always)]
    fn ones() -> Self {
        simd!(Self(vdupq_n_u8(0xff)))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        simd!(Self(vandq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        simd!(Self(vorrq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        simd!(Self(vbicq_u8(other.0, self.0)))
    }

    #[inline(always)]
    fn select(self, one: Self, zero: Self) -> Self {
        simd!(Self(vbslq_u8(self.0, one.0, zero.0)))
    }
}

impl Logic for Neon {
    #[inline(always)]
    fn lut<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
        gates::lut::<TABLE, Self>(a, b, c)
    }
}

impl Words for Neon {
    const GROUPS: usize = 4;

    #[inline(always)]
    fn splat_word(word: u32) -> Self {
        simd!(Self::of_words(vdupq_n_u32(word)))
    }

    #[inline(always)]
    fn rotate_left<const BITS: i32>(self) -> Self {
        // A shift by a negative number goes to the right; this one is known when it is compiled.
        let right = simd!(vshlq_u32(self.words(), vdupq_n_s32(BITS - 32)));
        simd!(Self::of_words(vorrq_u32(
            self.shift_left::<BITS>().words(),
            right
        )))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        simd!(Self::of_words(vshlq_n_u32::<BITS>(self.words())))
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (a, b, c, d) = (a.words(), b.words(), c.words(), d.words());
        let low = simd!([vzip1q_u32(a, c), vzip1q_u32(b, d)]);
        let high = simd!([vzip2q_u32(a, c), vzip2q_u32(b, d)]);
        simd!([
            Self::of_words(vzip1q_u32(low[0], low[1])),
            Self::of_words(vzip2q_u32(low[0], low[1])),
            Self::of_words(vzip1q_u32(high[0], high[1])),
            Self::of_words(vzip2q_u32(high[0], high[1])),
        ])
    }
}

impl Unpack for Neon {
    #[inline(always)]
    fn unpack_low(self, other: Self) -> Self {
        simd!(Self(vzip1q_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn unpack_high(self, other: Self) -> Self {
        simd!(Self(vzip2q_u8(self.0, other.0)))
    }
}

impl Shuffle for Neon {
    #[inline(always)]
    fn splat_octets(octets: u32) -> Self {
        Self::splat_word(octets)
    }

    #[inline(always)]
    fn nibbles(self) -> [Self; 2] {
        simd!([
            Self(vandq_u8(self.0, vdupq_n_u8(0x0f))),
            Self(vshrq_n_u8::<4>(self.0)),
        ])
    }

    #[inline(always)]
    fn shuffled(self, places: Self) -> Self {
        simd!(Self(vqtbl1q_u8(self.0, places.0)))
    }
}

/// The number of each octet of a block.
const PLACES: Block = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
