//! x86-64 with AES-NI, PCLMULQDQ and AVX2: nearly every such CPU since 2013.
//!
//! AES and GHASH run on registers of one block, because the instructions have no wider form here;
//! Serpent and Camellia run on registers of two.

use std::arch::x86_64::*;

use super::Block;
use super::gates;
use super::nibbles::{LastRounds, Nibbles, Shuffle};
use super::part;
use crate::cipher::camellia::octets::Unpack;
use crate::lanes::{Blocks, Clmul, Logic, Rounds, Words};

backend!(
    /// AES-NI, PCLMULQDQ and AVX2, with the bit instructions that came before it.
    Aesni,
    "aes,pclmulqdq,avx2,bmi1,bmi2",
    Lanes = Ymm,
    Aes = Xmm,
    Octets = Nibbles<AesNi>
);

/// One block, for AES-NI and PCLMULQDQ.
#[derive(Clone, Copy)]
pub(crate) struct Xmm(pub(crate) __m128i);

/// Two blocks, for AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Ymm(pub(crate) __m256i);

impl Xmm {
    #[inline(always)]
    fn of(block: &Block) -> Self {
        simd!(Self(_mm_loadu_si128(block.as_ptr().cast())))
    }

    #[inline(always)]
    pub(crate) fn block(self) -> Block {
        let mut block = [0; 16];
        simd!(_mm_storeu_si128(block.as_mut_ptr().cast(), self.0));
        block
    }
}

impl Blocks for Xmm {
    const COUNT: usize = 1;

    #[inline(always)]
    fn zero() -> Self {
        simd!(Self(_mm_setzero_si128()))
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
        simd!(Self(_mm_loadu_si128(from.as_ptr().cast())))
    }

    #[inline(always)]
    fn load_part(from: &[u8]) -> Self {
        Self::of(&part::read(from).to_le_bytes())
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        let to = &mut to[..Self::OCTETS];
        simd!(_mm_storeu_si128(to.as_mut_ptr().cast(), self.0));
    }

    #[inline(always)]
    fn store_part(self, to: &mut [u8]) {
        part::write(u128::from_le_bytes(self.block()), to);
    }

    #[inline(always)]
    fn keep(self, octets: usize) -> Self {
        let kept = Self::load(&KEEP[KEEP.len() / 2 - octets..]);
        simd!(Self(_mm_and_si128(self.0, kept.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        simd!(Self(_mm_xor_si128(self.0, other.0)))
    }

    #[inline(always)]
    fn fold(self) -> Block {
        self.block()
    }

    #[inline(always)]
    fn in_order(a: &mut Self, b: &mut Self, c: &mut Self, d: &mut Self) {
        in_order!(xmm_reg, __m128i: &mut a.0, &mut b.0, &mut c.0, &mut d.0);
    }
}

impl Rounds for Xmm {
    const KEYS_FIT: bool = false;

    #[inline(always)]
    fn round(self, key: Self) -> Self {
        simd!(Self(_mm_aesenc_si128(self.0, key.0)))
    }

    #[inline(always)]
    fn last_round(self, key: Self) -> Self {
        simd!(Self(_mm_aesenclast_si128(self.0, key.0)))
    }

    #[inline(always)]
    fn inverse_round(self, key: Self) -> Self {
        simd!(Self(_mm_aesdec_si128(self.0, key.0)))
    }

    #[inline(always)]
    fn last_inverse_round(self, key: Self) -> Self {
        simd!(Self(_mm_aesdeclast_si128(self.0, key.0)))
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        simd!(Self(_mm_aesimc_si128(self.0)))
    }
}

impl Clmul for Xmm {
    type One = Self;

    #[inline(always)]
    fn low_low(self, other: Self) -> Self {
        simd!(Self(_mm_clmulepi64_si128::<0x00>(self.0, other.0)))
    }

    #[inline(always)]
    fn high_high(self, other: Self) -> Self {
        simd!(Self(_mm_clmulepi64_si128::<0x11>(self.0, other.0)))
    }

    #[inline(always)]
    fn low_high(self, other: Self) -> Self {
        simd!(Self(_mm_clmulepi64_si128::<0x10>(self.0, other.0)))
    }

    #[inline(always)]
    fn high_low(self, other: Self) -> Self {
        simd!(Self(_mm_clmulepi64_si128::<0x01>(self.0, other.0)))
    }

    #[inline(always)]
    fn exchange(self) -> Self {
        simd!(Self(_mm_shuffle_epi32::<0x4e>(self.0)))
    }

    #[inline(always)]
    fn reverse(self) -> Self {
        simd!(Self(_mm_shuffle_epi8(self.0, Self::of(&REVERSE).0)))
    }

    #[inline(always)]
    fn raise(self) -> Self {
        simd!(Self(_mm_slli_si128::<8>(self.0)))
    }

    #[inline(always)]
    fn lower(self) -> Self {
        simd!(Self(_mm_srli_si128::<8>(self.0)))
    }

    #[inline(always)]
    fn fold_one(self) -> Self {
        self
    }
}

impl Blocks for Ymm {
    const COUNT: usize = 2;

    #[inline(always)]
    fn zero() -> Self {
        simd!(Self(_mm256_setzero_si256()))
    }

    #[inline(always)]
    fn splat(block: &Block) -> Self {
        simd!(Self(_mm256_broadcastsi128_si256(Xmm::of(block).0)))
    }

    #[inline(always)]
    fn first(block: &Block) -> Self {
        simd!(Self(_mm256_zextsi128_si256(Xmm::of(block).0)))
    }

    #[inline(always)]
    fn last(block: &Block) -> Self {
        simd!(Self(_mm256_inserti128_si256::<1>(
            _mm256_setzero_si256(),
            Xmm::of(block).0
        )))
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        let from = &from[..Self::OCTETS];
        simd!(Self(_mm256_loadu_si256(from.as_ptr().cast())))
    }

    #[inline(always)]
    fn load_part(from: &[u8]) -> Self {
        let (low, high) = match from.split_at_checked(16) {
            Some((low, high)) => (Xmm::load(low), Xmm::load_part(high)),
            None => (Xmm::load_part(from), Xmm::zero()),
        };
        simd!(Self(_mm256_set_m128i(high.0, low.0)))
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        let to = &mut to[..Self::OCTETS];
        simd!(_mm256_storeu_si256(to.as_mut_ptr().cast(), self.0));
    }

    #[inline(always)]
    fn store_part(self, to: &mut [u8]) {
        let low = simd!(Xmm(_mm256_castsi256_si128(self.0)));
        let high = simd!(Xmm(_mm256_extracti128_si256::<1>(self.0)));
        match to.split_at_mut_checked(16) {
            Some((first, second)) => {
                low.store(first);
                high.store_part(second);
            }
            None => low.store_part(to),
        }
    }

    #[inline(always)]
    fn keep(self, octets: usize) -> Self {
        let kept = Self::load(&KEEP[KEEP.len() / 2 - octets..]);
        simd!(Self(_mm256_and_si256(self.0, kept.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        simd!(Self(_mm256_xor_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn fold(self) -> Block {
        simd!(Xmm(_mm_xor_si128(
            _mm256_castsi256_si128(self.0),
            _mm256_extracti128_si256::<1>(self.0)
        )))
        .block()
    }

    #[inline(always)]
    fn in_order(a: &mut Self, b: &mut Self, c: &mut Self, d: &mut Self) {
        in_order!(ymm_reg, __m256i: &mut a.0, &mut b.0, &mut c.0, &mut d.0);
    }
}

impl gates::Gates for Ymm {
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
        simd!(Self(_mm256_set1_epi32(-1)))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        simd!(Self(_mm256_and_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        simd!(Self(_mm256_or_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        simd!(Self(_mm256_andnot_si256(self.0, other.0)))
    }
}

impl Logic for Ymm {
    #[inline(always)]
    fn lut<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
        gates::lut::<TABLE, Self>(a, b, c)
    }
}

impl Words for Ymm {
    const GROUPS: usize = 2;

    #[inline(always)]
    fn splat_word(word: u32) -> Self {
        simd!(Self(_mm256_set1_epi32(word.cast_signed())))
    }

    #[inline(always)]
    fn rotate_left<const BITS: i32>(self) -> Self {
        let left = simd!(_mm256_sll_epi32(self.0, _mm_cvtsi32_si128(BITS)));
        let right = simd!(_mm256_srl_epi32(self.0, _mm_cvtsi32_si128(32 - BITS)));
        simd!(Self(_mm256_or_si256(left, right)))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        simd!(Self(_mm256_slli_epi32::<BITS>(self.0)))
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let low = [
            simd!(_mm256_unpacklo_epi32(a.0, b.0)),
            simd!(_mm256_unpacklo_epi32(c.0, d.0)),
        ];
        let high = [
            simd!(_mm256_unpackhi_epi32(a.0, b.0)),
            simd!(_mm256_unpackhi_epi32(c.0, d.0)),
        ];
        [
            simd!(Self(_mm256_unpacklo_epi64(low[0], low[1]))),
            simd!(Self(_mm256_unpackhi_epi64(low[0], low[1]))),
            simd!(Self(_mm256_unpacklo_epi64(high[0], high[1]))),
            simd!(Self(_mm256_unpackhi_epi64(high[0], high[1]))),
        ]
    }
}

impl Unpack for Ymm {
    #[inline(always)]
    fn unpack_low(self, other: Self) -> Self {
        simd!(Self(_mm256_unpacklo_epi8(self.0, other.0)))
    }

    #[inline(always)]
    fn unpack_high(self, other: Self) -> Self {
        simd!(Self(_mm256_unpackhi_epi8(self.0, other.0)))
    }
}

impl Shuffle for Ymm {
    #[inline(always)]
    fn splat_octets(octets: u32) -> Self {
        Self::splat_word(octets)
    }

    #[inline(always)]
    fn nibbles(self) -> [Self; 2] {
        simd!({
            let mask = _mm256_set1_epi8(0x0f);
            let high = _mm256_srli_epi16::<4>(self.0);
            [
                Self(_mm256_and_si256(self.0, mask)),
                Self(_mm256_and_si256(high, mask)),
            ]
        })
    }

    #[inline(always)]
    fn shuffled(self, places: Self) -> Self {
        simd!(Self(_mm256_shuffle_epi8(self.0, places.0)))
    }
}

/// AES on one half of a register after the other, for Camellia.
#[derive(Clone, Copy)]
pub(crate) struct AesNi;

impl AesNi {
    #[inline(always)]
    fn halves(register: Ymm) -> [Xmm; 2] {
        simd!([
            Xmm(_mm256_castsi256_si128(register.0)),
            Xmm(_mm256_extracti128_si256::<1>(register.0))
        ])
    }

    #[inline(always)]
    fn joined(low: Xmm, high: Xmm) -> Ymm {
        simd!(Ymm(_mm256_set_m128i(high.0, low.0)))
    }
}

impl LastRounds for AesNi {
    type Register = Ymm;

    #[inline(always)]
    fn forward(octets: Ymm, key: Ymm) -> Ymm {
        let ([low, high], [key, _]) = (Self::halves(octets), Self::halves(key));
        Self::joined(low.last_round(key), high.last_round(key))
    }

    #[inline(always)]
    fn backward(octets: Ymm, key: Ymm) -> Ymm {
        let ([low, high], [key, _]) = (Self::halves(octets), Self::halves(key));
        Self::joined(low.last_inverse_round(key), high.last_inverse_round(key))
    }
}

/// Ones, then zeros: a window of it keeps the first octets of a register.
pub(super) static KEEP: [u8; 128] = {
    let mut octets = [0; 128];
    let mut at = 0;
    while at < octets.len() / 2 {
        octets[at] = 0xff;
        at += 1;
    }
    octets
};

/// Octet numbers in reverse order, for the byte shuffle.
pub(super) const REVERSE: Block = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
