//! x86-64 with GFNI on registers of two blocks, without AVX-512: Intel's client CPUs since Alder Lake.

use std::arch::x86_64::*;

use super::aesni::Ymm;
use super::affine::{Affine, Gfni};

backend!(
    /// What `Vaes256` has, and GFNI.
    Gfni256,
    "aes,pclmulqdq,avx2,bmi1,bmi2,vaes,vpclmulqdq,gfni",
    Lanes = Ymm,
    Aes = Ymm,
    Octets = Affine<Ymm>
);

impl Gfni for Ymm {
    const HAS_XOR3: bool = false;

    #[inline(always)]
    fn splat_octets(octets: u32) -> Self {
        simd!(Self(_mm256_set1_epi32(octets.cast_signed())))
    }

    #[inline(always)]
    fn splat_rows(rows: u64) -> Self {
        simd!(Self(_mm256_set1_epi64x(rows.cast_signed())))
    }

    #[inline(always)]
    fn mapped(self, rows: Self) -> Self {
        simd!(Self(_mm256_gf2p8affine_epi64_epi8::<0>(self.0, rows.0)))
    }

    #[inline(always)]
    fn inverted_and_mapped(self, rows: Self) -> Self {
        simd!(Self(_mm256_gf2p8affineinv_epi64_epi8::<0>(self.0, rows.0)))
    }
}
