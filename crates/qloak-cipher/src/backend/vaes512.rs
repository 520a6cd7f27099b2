//! x86-64 with AVX-512 (F, BW, VL, DQ, VBMI), VAES, VPCLMULQDQ and GFNI: AMD Zen 4 and 5, Intel's servers
//! since Ice Lake. Registers of four blocks; masks make part of a register as cheap as all of it.

use std::arch::x86_64::*;

use super::Block;
use super::aesni::{REVERSE, Xmm};
use super::affine::{Affine, Gfni};
use crate::cipher::camellia::octets::Unpack;
use crate::lanes::{Blocks, Clmul, Logic, Rounds, Words};

backend!(
    /// All that this file's registers need.
    Vaes512,
    "aes,pclmulqdq,avx2,bmi1,bmi2,vaes,vpclmulqdq,gfni,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi",
    Lanes = Zmm,
    Aes = Zmm,
    Octets = Affine<Zmm>
);

/// Four blocks.
#[derive(Clone, Copy)]
pub(crate) struct Zmm(pub(crate) __m512i);

#[inline(always)]
fn of(block: &Block) -> __m128i {
    simd!(_mm_loadu_si128(block.as_ptr().cast()))
}

/// A mask of the first `octets` octets, at most 64.
#[inline(always)]
fn mask(octets: usize) -> __mmask64 {
    simd!(_bzhi_u64(u64::MAX, octets as u32))
}

impl Blocks for Zmm {
    const COUNT: usize = 4;

    #[inline(always)]
    fn zero() -> Self {
        simd!(Self(_mm512_setzero_si512()))
    }

    #[inline(always)]
    fn splat(block: &Block) -> Self {
        simd!(Self(_mm512_broadcast_i32x4(of(block))))
    }

    #[inline(always)]
    fn first(block: &Block) -> Self {
        simd!(Self(_mm512_zextsi128_si512(of(block))))
    }

    #[inline(always)]
    fn last(block: &Block) -> Self {
        simd!(Self(_mm512_maskz_broadcast_i64x2(0b1100_0000, of(block))))
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        let from = &from[..Self::OCTETS];
        simd!(Self(_mm512_loadu_si512(from.as_ptr().cast())))
    }

    #[inline(always)]
    fn load_part(from: &[u8]) -> Self {
        debug_assert!(from.len() <= Self::OCTETS);
        // The mask keeps the load inside the slice.
        simd!(Self(_mm512_maskz_loadu_epi8(
            mask(from.len()),
            from.as_ptr().cast()
        )))
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        let to = &mut to[..Self::OCTETS];
        simd!(_mm512_storeu_si512(to.as_mut_ptr().cast(), self.0));
    }

    #[inline(always)]
    fn store_part(self, to: &mut [u8]) {
        debug_assert!(to.len() <= Self::OCTETS);
        simd!(_mm512_mask_storeu_epi8(
            to.as_mut_ptr().cast(),
            mask(to.len()),
            self.0
        ));
    }

    #[inline(always)]
    fn keep(self, octets: usize) -> Self {
        simd!(Self(_mm512_maskz_mov_epi8(mask(octets), self.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        simd!(Self(_mm512_xor_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn xor3(self, second: Self, third: Self) -> Self {
        Self::lut::<0x96>(self, second, third)
    }

    #[inline(always)]
    fn fold(self) -> Block {
        self.fold_one().block()
    }
}

impl Rounds for Zmm {
    const KEYS_FIT: bool = true;

    #[inline(always)]
    fn round(self, key: Self) -> Self {
        simd!(Self(_mm512_aesenc_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn last_round(self, key: Self) -> Self {
        simd!(Self(_mm512_aesenclast_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn inverse_round(self, key: Self) -> Self {
        simd!(Self(_mm512_aesdec_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn last_inverse_round(self, key: Self) -> Self {
        simd!(Self(_mm512_aesdeclast_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        let zero = Self::zero();
        self.last_round(zero).inverse_round(zero)
    }
}

impl Clmul for Zmm {
    type One = Xmm;

    #[inline(always)]
    fn low_low(self, other: Self) -> Self {
        simd!(Self(_mm512_clmulepi64_epi128::<0x00>(self.0, other.0)))
    }

    #[inline(always)]
    fn high_high(self, other: Self) -> Self {
        simd!(Self(_mm512_clmulepi64_epi128::<0x11>(self.0, other.0)))
    }

    #[inline(always)]
    fn low_high(self, other: Self) -> Self {
        simd!(Self(_mm512_clmulepi64_epi128::<0x10>(self.0, other.0)))
    }

    #[inline(always)]
    fn high_low(self, other: Self) -> Self {
        simd!(Self(_mm512_clmulepi64_epi128::<0x01>(self.0, other.0)))
    }

    #[inline(always)]
    fn exchange(self) -> Self {
        simd!(Self(_mm512_shuffle_epi32::<0x4e>(self.0)))
    }

    #[inline(always)]
    fn reverse(self) -> Self {
        simd!(Self(_mm512_shuffle_epi8(self.0, Self::splat(&REVERSE).0)))
    }

    #[inline(always)]
    fn raise(self) -> Self {
        simd!(Self(_mm512_bslli_epi128::<8>(self.0)))
    }

    #[inline(always)]
    fn lower(self) -> Self {
        simd!(Self(_mm512_bsrli_epi128::<8>(self.0)))
    }

    #[inline(always)]
    fn fold_one(self) -> Xmm {
        let half = simd!(_mm256_xor_si256(
            _mm512_castsi512_si256(self.0),
            _mm512_extracti64x4_epi64::<1>(self.0)
        ));
        simd!(Xmm(_mm_xor_si128(
            _mm256_castsi256_si128(half),
            _mm256_extracti128_si256::<1>(half)
        )))
    }
}

impl Logic for Zmm {
    #[inline(always)]
    fn lut<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
        simd!(Self(_mm512_ternarylogic_epi32::<TABLE>(a.0, b.0, c.0)))
    }
}

impl Words for Zmm {
    const GROUPS: usize = 4;

    #[inline(always)]
    fn splat_word(word: u32) -> Self {
        simd!(Self(_mm512_set1_epi32(word.cast_signed())))
    }

    #[inline(always)]
    fn rotate_left<const BITS: i32>(self) -> Self {
        simd!(Self(_mm512_rol_epi32::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        simd!(Self(_mm512_sll_epi32(self.0, _mm_cvtsi32_si128(BITS))))
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let low = [
            simd!(_mm512_unpacklo_epi32(a.0, b.0)),
            simd!(_mm512_unpacklo_epi32(c.0, d.0)),
        ];
        let high = [
            simd!(_mm512_unpackhi_epi32(a.0, b.0)),
            simd!(_mm512_unpackhi_epi32(c.0, d.0)),
        ];
        [
            simd!(Self(_mm512_unpacklo_epi64(low[0], low[1]))),
            simd!(Self(_mm512_unpackhi_epi64(low[0], low[1]))),
            simd!(Self(_mm512_unpacklo_epi64(high[0], high[1]))),
            simd!(Self(_mm512_unpackhi_epi64(high[0], high[1]))),
        ]
    }
}

impl Unpack for Zmm {
    #[inline(always)]
    fn unpack_low(self, other: Self) -> Self {
        simd!(Self(_mm512_unpacklo_epi8(self.0, other.0)))
    }

    #[inline(always)]
    fn unpack_high(self, other: Self) -> Self {
        simd!(Self(_mm512_unpackhi_epi8(self.0, other.0)))
    }
}

impl Gfni for Zmm {
    const HAS_XOR3: bool = true;

    #[inline(always)]
    fn splat_octets(octets: u32) -> Self {
        simd!(Self(_mm512_set1_epi32(octets.cast_signed())))
    }

    #[inline(always)]
    fn splat_rows(rows: u64) -> Self {
        simd!(Self(_mm512_set1_epi64(rows.cast_signed())))
    }

    #[inline(always)]
    fn mapped(self, rows: Self) -> Self {
        simd!(Self(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, rows.0)))
    }

    #[inline(always)]
    fn inverted_and_mapped(self, rows: Self) -> Self {
        simd!(Self(_mm512_gf2p8affineinv_epi64_epi8::<0>(self.0, rows.0)))
    }
}
