//! x86-64 with VAES and VPCLMULQDQ on registers of two blocks, without AVX-512: AMD Zen 3, and Intel's
//! client CPUs since Alder Lake.

use std::arch::x86_64::*;

use super::aesni::{REVERSE, Xmm, Ymm};
use super::nibbles::{Nibbles, Whole};
use crate::lanes::{Blocks, Clmul, Rounds};

backend!(
    /// What `Aesni` has, and VAES and VPCLMULQDQ.
    Vaes256,
    "aes,pclmulqdq,avx2,bmi1,bmi2,vaes,vpclmulqdq",
    Lanes = Ymm,
    Aes = Ymm,
    Octets = Nibbles<Whole<Ymm>>
);

impl Rounds for Ymm {
    const KEYS_FIT: bool = false;

    #[inline(always)]
    fn round(self, key: Self) -> Self {
        simd!(Self(_mm256_aesenc_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn last_round(self, key: Self) -> Self {
        simd!(Self(_mm256_aesenclast_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn inverse_round(self, key: Self) -> Self {
        simd!(Self(_mm256_aesdec_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn last_inverse_round(self, key: Self) -> Self {
        simd!(Self(_mm256_aesdeclast_epi128(self.0, key.0)))
    }

    #[inline(always)]
    fn inverse_mix(self) -> Self {
        // The last round turns SubBytes on; the inverse round turns it off again and then mixes.
        let zero = Self::zero();
        self.last_round(zero).inverse_round(zero)
    }
}

impl Clmul for Ymm {
    type One = Xmm;

    #[inline(always)]
    fn low_low(self, other: Self) -> Self {
        simd!(Self(_mm256_clmulepi64_epi128::<0x00>(self.0, other.0)))
    }

    #[inline(always)]
    fn high_high(self, other: Self) -> Self {
        simd!(Self(_mm256_clmulepi64_epi128::<0x11>(self.0, other.0)))
    }

    #[inline(always)]
    fn low_high(self, other: Self) -> Self {
        simd!(Self(_mm256_clmulepi64_epi128::<0x10>(self.0, other.0)))
    }

    #[inline(always)]
    fn high_low(self, other: Self) -> Self {
        simd!(Self(_mm256_clmulepi64_epi128::<0x01>(self.0, other.0)))
    }

    #[inline(always)]
    fn exchange(self) -> Self {
        simd!(Self(_mm256_shuffle_epi32::<0x4e>(self.0)))
    }

    #[inline(always)]
    fn reverse(self) -> Self {
        simd!(Self(_mm256_shuffle_epi8(self.0, Self::splat(&REVERSE).0)))
    }

    #[inline(always)]
    fn raise(self) -> Self {
        simd!(Self(_mm256_slli_si256::<8>(self.0)))
    }

    #[inline(always)]
    fn lower(self) -> Self {
        simd!(Self(_mm256_srli_si256::<8>(self.0)))
    }

    #[inline(always)]
    fn fold_one(self) -> Xmm {
        simd!(Xmm(_mm_xor_si128(
            _mm256_castsi256_si128(self.0),
            _mm256_extracti128_si256::<1>(self.0)
        )))
    }
}
