//! The CPUs that we emulate, each named by the highest level of qloak-cipher that it has.
//!
//! A name says what the guest's CPU must have and what it must lack; the console's reader compares that
//! with what the guest's kernel found, so that tests cannot run unseen on a lower level.

use clap::ValueEnum;

/// An emulated CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cpu {
    /// No AES instructions: the portable code.
    Soft,
    /// AES-NI, PCLMULQDQ and AVX2.
    Aesni,
    /// The same with GFNI, VAES and VPCLMULQDQ of 256 bits, and no AVX-512.
    Gfni256,
    /// AVX-512 (F, BW, VL, DQ, VBMI), VAES, VPCLMULQDQ and GFNI.
    Vaes512,
}

impl Cpu {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Aesni => "aesni",
            Self::Gfni256 => "gfni256",
            Self::Vaes512 => "vaes512",
        }
    }

    /// Bochs's words for it. Each one has RDRAND, without which the guest waits for randomness. Not its Ice Lake: a kernel of Debian hangs early on that model, and on a
    /// Cannon Lake with the same instructions it does not.
    pub(super) fn model(self) -> &'static str {
        match self {
            Self::Soft => "model=corei5_lynnfield_750, add_features=\"rdrand\"",
            Self::Aesni => "model=corei7_haswell_4770",
            Self::Gfni256 => {
                "model=corei3_cnl, add_features=\"vaes_vpclmulqdq gfni\", exclude_features=\"avx512 \
                 avx512dq avx512bw avx512cd avx512vbmi avx512ifma52\""
            }
            Self::Vaes512 => {
                "model=corei3_cnl, add_features=\"vaes_vpclmulqdq gfni avx512vbmi2 avx512vpopcnt \
                 avx512bitalg\""
            }
        }
    }

    /// What the kernel must find, in its words.
    pub(super) fn has(self) -> &'static [&'static str] {
        match self {
            Self::Soft => &["sse2", "rdrand"],
            Self::Aesni => &["aes", "pclmulqdq", "avx2"],
            Self::Gfni256 => &["aes", "pclmulqdq", "avx2", "gfni", "vaes", "vpclmulqdq"],
            Self::Vaes512 => &[
                "aes",
                "pclmulqdq",
                "avx2",
                "gfni",
                "vaes",
                "vpclmulqdq",
                "avx512f",
                "avx512bw",
                "avx512vl",
                "avx512dq",
                "avx512vbmi",
            ],
        }
    }

    /// What it must not find.
    pub(super) fn lacks(self) -> &'static [&'static str] {
        match self {
            Self::Soft => &["aes", "avx", "avx2"],
            Self::Aesni => &["gfni", "vaes", "avx512f"],
            Self::Gfni256 => &["avx512f"],
            Self::Vaes512 => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_of_the_command_line() {
        for cpu in Cpu::value_variants() {
            assert_eq!(Cpu::from_str(cpu.name(), false), Ok(*cpu));
        }
    }

    #[test]
    fn nothing_is_both_wanted_and_unwanted() {
        for cpu in Cpu::value_variants() {
            assert!(
                cpu.has().iter().all(|flag| !cpu.lacks().contains(flag)),
                "{cpu:?}"
            );
        }
    }
}
