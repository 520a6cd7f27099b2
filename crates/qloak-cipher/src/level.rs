//! Which CPU features our own code may rest on.
//!
//! A level is a rung of a ladder: each x86 rung implies the ones below. It is detected once, at
//! start, and handed down as an argument; [`crate::SuiteKey::new`] chooses a backend by it.
//! `disable` (the node gives it the text of `QLOAK_CPU_DISABLE`) caps the ladder, so that a test
//! can run every backend on one machine.
//!
//! The level speaks of our choice of code. The RustCrypto ciphers under `Soft` still look for AES
//! instructions themselves.

use std::fmt;

use thiserror::Error;

/// A rung of the ladder, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Portable Rust: no intrinsic of ours, no library in C or assembler.
    Soft,
    /// An Arm CPU with AES and PMULL.
    Armv8,
    /// An x86 CPU with AES-NI, PCLMULQDQ and AVX2: nearly all since 2013.
    Aesni,
    /// The same with VAES and VPCLMULQDQ on registers of 256 bits: AMD Zen 3.
    Vaes256,
    /// The same with GFNI: Intel's client CPUs since Alder Lake.
    Gfni256,
    /// The same with AVX-512 (F, BW, VL, DQ, VBMI): AMD Zen 4 and 5, Intel's servers since Ice Lake.
    Vaes512,
}

/// A word in the `disable` text that names no level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "there is no CPU level `{given}` to disable; known are armv8, aesni, vaes256, gfni256, vaes512"
)]
pub struct UnknownLevelError {
    /// The word.
    pub given: String,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Level; 6] = [
        Level::Soft,
        Level::Armv8,
        Level::Aesni,
        Level::Vaes256,
        Level::Gfni256,
        Level::Vaes512,
    ];

    /// The highest level of this CPU below each one that `disable` names.
    ///
    /// `disable` is a list with commas, such as `vaes512,aesni`; empty disables nothing. A level
    /// takes those above it along, because they need its features.
    ///
    /// # Errors
    /// A word that names no level: whoever wrote it meant to disable something.
    pub fn detect(disable: &str) -> Result<Level, UnknownLevelError> {
        let mut level = Self::of_this_cpu();
        for word in disable.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let disabled = Self::ALL
                .into_iter()
                .find(|l| *l != Level::Soft && l.name() == word)
                .ok_or_else(|| UnknownLevelError {
                    given: word.to_owned(),
                })?;
            // A level of another kind of CPU is below none of this one's.
            if level.and_below().any(|below| below == disabled) {
                level = disabled.below();
            }
        }
        Ok(level)
    }

    /// This level and each one below it on this kind of CPU, highest first. `Soft` is the last.
    pub fn and_below(self) -> impl Iterator<Item = Level> {
        std::iter::successors(Some(self), |level| {
            (*level != Level::Soft).then(|| level.below())
        })
    }

    /// The name, as in `disable`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Soft => "soft",
            Level::Armv8 => "armv8",
            Level::Aesni => "aesni",
            Level::Vaes256 => "vaes256",
            Level::Gfni256 => "gfni256",
            Level::Vaes512 => "vaes512",
        }
    }

    fn below(self) -> Level {
        match self {
            Level::Vaes512 => Level::Gfni256,
            Level::Gfni256 => Level::Vaes256,
            Level::Vaes256 => Level::Aesni,
            Level::Aesni | Level::Armv8 | Level::Soft => Level::Soft,
        }
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of_this_cpu() -> Level {
        use std::arch::is_x86_feature_detected as has;
        let aesni =
            has!("aes") && has!("pclmulqdq") && has!("avx2") && has!("bmi1") && has!("bmi2");
        let vaes256 = aesni && has!("vaes") && has!("vpclmulqdq");
        let gfni256 = vaes256 && has!("gfni");
        let vaes512 = gfni256
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512vl")
            && has!("avx512dq")
            && has!("avx512vbmi");
        match (aesni, vaes256, gfni256, vaes512) {
            (_, _, _, true) => Level::Vaes512,
            (_, _, true, _) => Level::Gfni256,
            (_, true, ..) => Level::Vaes256,
            (true, ..) => Level::Aesni,
            _ => Level::Soft,
        }
    }

    /// Whether GHASH is faster with three multiplications and more additions than with four: where
    /// multiplications are what it waits for. So it is on AMD's CPUs; Intel's of AVX-512 have a unit
    /// that would be busy with the additions' shuffles as long as with the fourth multiplication.
    pub(crate) fn karatsuba_pays() -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let vendor = std::arch::x86_64::__cpuid(0);
            let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
            name.as_flattened() != b"GenuineIntel"
        }
        #[cfg(not(target_arch = "x86_64"))]
        true
    }

    #[cfg(target_arch = "aarch64")]
    pub(crate) fn of_this_cpu() -> Level {
        use std::arch::is_aarch64_feature_detected as has;
        // The registers' octets and words are taken to lie as in memory.
        if cfg!(target_endian = "little") && has!("aes") && has!("pmull") {
            Level::Armv8
        } else {
            Level::Soft
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn of_this_cpu() -> Level {
        Level::Soft
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabling_every_level_leaves_soft() {
        assert_eq!(Level::detect("vaes512, aesni,armv8"), Ok(Level::Soft));
        // A level of another kind of CPU takes nothing away.
        let foreign = if cfg!(target_arch = "aarch64") {
            "aesni"
        } else {
            "armv8"
        };
        assert_eq!(Level::detect(foreign), Ok(Level::of_this_cpu()));
    }

    #[test]
    fn a_level_takes_those_above_it_along() {
        for level in &Level::ALL[2..] {
            assert!(Level::detect(level.name()).expect("a level") < *level);
        }
    }

    #[test]
    fn a_word_that_names_no_level_is_refused() {
        for word in ["sse9", "soft", "AESNI", "aesni;vaes512"] {
            let error = Level::detect(word).expect_err("no such level");
            assert_eq!(error.given, word);
        }
    }

    #[test]
    fn the_ladder_ends_at_soft() {
        let below: Vec<Level> = Level::Vaes512.and_below().collect();
        let mut ladder = Level::ALL.to_vec();
        ladder.retain(|level| *level != Level::Armv8);
        ladder.reverse();
        assert_eq!(below, ladder);
        assert_eq!(Level::Soft.and_below().count(), 1);
    }
}
