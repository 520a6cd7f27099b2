//! What the core's units can do: a chain of additions for the clock, and how many instructions of a
//! kind the core finishes in a cycle. In assembler, because a compiler would fold such loops away.
#![allow(unsafe_code)]

use crate::stopwatch::Stopwatch;

/// How many 16-octet lanes a unit finishes in a cycle, by the widest registers of this CPU. 0 where
/// the CPU has no such instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub(crate) struct Units {
    /// One round of AES.
    pub(crate) aes_rounds: f64,
    /// Carry-less multiplications of 64 by 64 bits.
    pub(crate) multiplications: f64,
    /// Bitwise logic.
    pub(crate) logic: f64,
    /// Logic takes three operands at once (AVX-512).
    pub(crate) three_operands: bool,
    /// Affine maps of octets (GFNI).
    pub(crate) affine: bool,
}

impl Units {
    /// The better of two looks, unit by unit: a neighbour on the same core takes units away from us
    /// and never adds any.
    pub(crate) fn better_of(self, other: Self) -> Self {
        Self {
            aes_rounds: self.aes_rounds.max(other.aes_rounds),
            multiplications: self.multiplications.max(other.multiplications),
            logic: self.logic.max(other.logic),
            ..self
        }
    }
}

/// Additions that wait for one another, one cycle each on every core that we know. None where we have
/// not written them.
pub(crate) fn chain(additions: u64) -> Option<()> {
    let rounds = additions / 8;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: adds registers to one another and counts down; touches no memory and no stack.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {x}, {y}", "add {x}, {y}", "add {x}, {y}", "add {x}, {y}",
            "add {x}, {y}", "add {x}, {y}", "add {x}, {y}", "add {x}, {y}",
            "dec {n}", "jnz 2b",
            x = inout(reg) 0_u64 => _, y = in(reg) 3_u64, n = inout(reg) rounds.max(1) => _,
            options(nomem, nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: adds registers to one another and counts down; touches no memory and no stack.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}",
            "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}",
            "subs {n}, {n}, #1", "b.ne 2b",
            x = inout(reg) 0_u64 => _, y = in(reg) 3_u64, n = inout(reg) rounds.max(1) => _,
            options(nomem, nostack)
        );
    }
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    known.then_some(std::hint::black_box(rounds)).map(|_| ())
}

#[cfg(not(target_arch = "x86_64"))]
impl Units {
    /// Not measured on this kind of CPU.
    pub(crate) fn measure(_: &Stopwatch) -> Option<Self> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
impl Units {
    /// Measures them, about a millisecond in all.
    pub(crate) fn measure(watch: &Stopwatch) -> Option<Self> {
        use std::arch::is_x86_feature_detected as has;

        let wide = has!("avx512f") && has!("avx512bw") && has!("avx512vl");
        let avx2 = has!("avx2");
        if !avx2 {
            return None;
        }
        let mut units = Self {
            three_operands: wide,
            affine: has!("gfni"),
            ..Self::default()
        };
        // SAFETY: each loop runs only instructions whose features were found just above it.
        unsafe {
            if has!("aes") {
                units.aes_rounds = per_cycle(watch, |n| loops::aes_128(n));
            }
            if has!("pclmulqdq") {
                units.multiplications = per_cycle(watch, |n| loops::multiply_128(n));
            }
            units.logic = 2.0 * per_cycle(watch, |n| loops::logic_256(n));
            if has!("vaes") {
                let two = 2.0 * per_cycle(watch, |n| loops::aes_256(n));
                units.aes_rounds = units.aes_rounds.max(two);
            }
            if has!("vpclmulqdq") {
                let two = 2.0 * per_cycle(watch, |n| loops::multiply_256(n));
                units.multiplications = units.multiplications.max(two);
            }
            if wide {
                units.logic = units
                    .logic
                    .max(4.0 * per_cycle(watch, |n| loops::logic_512(n)));
            }
            if wide && has!("vaes") {
                let four = 4.0 * per_cycle(watch, |n| loops::aes_512(n));
                units.aes_rounds = units.aes_rounds.max(four);
            }
            if wide && has!("vpclmulqdq") {
                let four = 4.0 * per_cycle(watch, |n| loops::multiply_512(n));
                units.multiplications = units.multiplications.max(four);
            }
        }
        Some(units)
    }
}

/// Instructions per cycle of a loop of twelve independent ones. Interruptions only make it slower, so
/// the quickest of several looks counts.
#[cfg(target_arch = "x86_64")]
fn per_cycle(watch: &Stopwatch, work: impl Fn(u64)) -> f64 {
    const ROUNDS: u64 = 4000;
    let quickest = (0..9)
        .map(|_| {
            let mark = watch.start();
            work(ROUNDS);
            watch.stop(&mark)
        })
        .fold(f64::INFINITY, f64::min);
    (12 * ROUNDS) as f64 / watch.cycles_at_most(quickest.max(1.0))
}

#[cfg(target_arch = "x86_64")]
mod loops {
    //! Twelve instructions that do not wait for one another, again and again.

    macro_rules! twelve {
        ($name:ident, $instruction:literal, $register:literal, $tail:literal) => {
            /// # Safety
            /// The CPU has the instruction.
            pub(super) unsafe fn $name(rounds: u64) {
                // SAFETY: works on registers that are all named as changed; the caller answers for
                // the instruction.
                unsafe {
                    std::arch::asm!(
                        "2:",
                        concat!($instruction, " ", $register, "0, ", $register, "0, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "1, ", $register, "1, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "2, ", $register, "2, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "3, ", $register, "3, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "4, ", $register, "4, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "5, ", $register, "5, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "6, ", $register, "6, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "7, ", $register, "7, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "8, ", $register, "8, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "9, ", $register, "9, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "10, ", $register, "10, ", $register, "15", $tail),
                        concat!($instruction, " ", $register, "11, ", $register, "11, ", $register, "15", $tail),
                        "dec {n}", "jnz 2b", "vzeroupper",
                        n = inout(reg) rounds => _,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                        out("xmm15") _,
                        options(nomem, nostack)
                    );
                }
            }
        };
    }

    twelve!(aes_128, "vaesenc", "xmm", "");
    twelve!(aes_256, "vaesenc", "ymm", "");
    twelve!(aes_512, "vaesenc", "zmm", "");
    twelve!(multiply_128, "vpclmulqdq", "xmm", ", 0");
    twelve!(multiply_256, "vpclmulqdq", "ymm", ", 0");
    twelve!(multiply_512, "vpclmulqdq", "zmm", ", 0");
    twelve!(logic_256, "vpand", "ymm", "");
    twelve!(logic_512, "vpternlogd", "zmm", ", 0x96");
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn what_the_cpu_has_is_measured_and_nothing_else() {
        let watch = Stopwatch::new().expect("the clock of an x86 CPU can be told");
        let units = Units::measure(&watch);
        assert_eq!(units.is_some(), std::arch::is_x86_feature_detected!("avx2"));
        if let Some(units) = units {
            let has_aes = std::arch::is_x86_feature_detected!("aes");
            assert_eq!(units.aes_rounds > 0.0, has_aes);
            assert!(units.logic > 0.0);
        }
    }

    #[test]
    fn the_better_look_counts() {
        let one = Units {
            aes_rounds: 2.0,
            logic: 4.0,
            ..Units::default()
        };
        let other = Units {
            aes_rounds: 4.0,
            logic: 3.0,
            ..Units::default()
        };
        let better = one.better_of(other);
        assert_eq!((better.aes_rounds, better.logic), (4.0, 4.0));
    }
}
