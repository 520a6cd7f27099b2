//! What must stand in the kernels of each backend, and what must not.
//!
//! Numbers of functions follow from the kernels: AES has three key lengths in three modes, sealed and
//! opened, so 18; GCM six of them, and one each way for Camellia and Serpent, whose ciphers are kernels of
//! their own. More may stand there, when the compiler copies; fewer means that one was lost.

use iced_x86::Mnemonic::{self, *};

use super::{Function, Kernels, image::Width};

/// An instruction that a backend must use.
struct Rule {
    backend: &'static str,
    instruction: Mnemonic,
    width: Width,
    /// In at least so many functions ...
    functions: usize,
    /// ... so often each.
    times: usize,
    /// The work that it does.
    work: &'static str,
}

const fn rule(
    backend: &'static str,
    instruction: Mnemonic,
    width: Width,
    functions: usize,
    times: usize,
    work: &'static str,
) -> Rule {
    Rule {
        backend,
        instruction,
        width,
        functions,
        times,
        work,
    }
}

use Width::{Xmm, Ymm, Zmm};

/// Times: eight registers go side by side; Serpent has 32 rounds of some sixty gates.
const RULES: [Rule; 19] = [
    rule("aesni", Vaesenc, Xmm, 18, 8, "AES"),
    rule("aesni", Vaesdec, Xmm, 3, 8, "AES in OCB, opened"),
    rule("aesni", Vpclmulqdq, Xmm, 10, 8, "GHASH"),
    rule("aesni", Vpxor, Ymm, 4, 100, "Serpent and Camellia"),
    rule("aesni", Vpshufb, Ymm, 1, 8, "Camellia"),
    rule("aesni", Vpslld, Ymm, 2, 8, "Serpent"),
    rule("vaes256", Vaesenc, Ymm, 18, 8, "AES"),
    rule("vaes256", Vaesdec, Ymm, 3, 8, "AES in OCB, opened"),
    rule("vaes256", Vpclmulqdq, Ymm, 10, 8, "GHASH"),
    rule("vaes256", Vpslld, Ymm, 2, 8, "Serpent"),
    rule("gfni256", Vgf2p8affineqb, Ymm, 2, 8, "Camellia"),
    rule("gfni256", Vgf2p8affineinvqb, Ymm, 2, 8, "Camellia"),
    rule("gfni256", Vpclmulqdq, Ymm, 2, 8, "GHASH"),
    rule("vaes512", Vaesenc, Zmm, 18, 8, "AES"),
    rule("vaes512", Vaesdec, Zmm, 3, 8, "AES in OCB, opened"),
    rule("vaes512", Vpclmulqdq, Zmm, 10, 8, "GHASH"),
    rule("vaes512", Vgf2p8affineqb, Zmm, 2, 8, "Camellia"),
    rule("vaes512", Vgf2p8affineinvqb, Zmm, 2, 8, "Camellia"),
    rule("vaes512", Vpternlogd, Zmm, 2, 100, "Serpent"),
];

/// Parts of our own that a kernel may call: the making and the wiping of keys, which happen once, and
/// counters that carry, which happens once in a thousand blocks.
const CALLED: [&str; 9] = [
    "::drop",
    "drop_in_place",
    "zeroize",
    "::from_key",
    "Offsets::new",
    "bulk::across",
    "::schedule::",
    "Wiped",
    "with_features",
];

impl Rule {
    /// How many functions fulfil it.
    fn found(&self, kernels: &Kernels) -> usize {
        let enough = |function: &&Function| {
            let kind = (self.instruction, Some(self.width));
            function.counts.get(&kind).copied().unwrap_or(0) >= self.times
        };
        kernels
            .get(self.backend)
            .map_or(0, |functions| functions.iter().filter(enough).count())
    }

    fn instruction(&self) -> String {
        format!("{:?} {:?}", self.instruction, self.width).to_lowercase()
    }
}

/// What was found, rule by rule, as a table's rows.
pub(super) fn found(kernels: &Kernels) -> impl Iterator<Item = [String; 6]> {
    RULES.iter().map(|rule| {
        [
            rule.backend.to_owned(),
            kernels.get(rule.backend).map_or(0, Vec::len).to_string(),
            rule.instruction(),
            rule.work.to_owned(),
            rule.found(kernels).to_string(),
            rule.functions.to_string(),
        ]
    })
}

/// Every rule that is broken, in a sentence.
pub(super) fn findings(kernels: &Kernels) -> Vec<String> {
    let mut findings = Vec::new();
    for rule in &RULES {
        let found = rule.found(kernels);
        if found < rule.functions {
            findings.push(format!(
                "{}: {} functions have {} times {} for {}, and {} should",
                rule.backend,
                found,
                rule.times,
                rule.instruction(),
                rule.work,
                rule.functions
            ));
        }
    }
    for (backend, functions) in kernels {
        for function in functions {
            for called in function.calls.iter().filter(|name| is_part_of_kernel(name)) {
                findings.push(format!(
                    "{backend}: a kernel calls {called} instead of inlining it"
                ));
            }
            for (mnemonic, _) in function.counts.keys().filter(|(m, _)| is_uneven(*m)) {
                findings.push(format!(
                    "{backend}: a kernel has {mnemonic:?}, whose time depends on its operands"
                ));
            }
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Whether a function is an intrinsic, a closure around one, or a part of a kernel.
fn is_part_of_kernel(name: &str) -> bool {
    let kernel = name.contains("qloak_cipher::") && !CALLED.iter().any(|part| name.contains(part));
    kernel
        || name.contains("core_arch")
        || name.contains("{{closure}}")
        || name.contains("{closure#")
}

/// Whether an instruction takes longer for some operands than for others, or looks up at addresses out
/// of a register of data.
fn is_uneven(mnemonic: Mnemonic) -> bool {
    let name = format!("{mnemonic:?}").to_lowercase();
    matches!(mnemonic, Div | Idiv) || name.contains("gather") || name.contains("scatter")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Kernels that fulfil every rule, and nothing else.
    fn sound() -> Kernels {
        let mut kernels = Kernels::new();
        for rule in &RULES {
            let functions = kernels.entry(rule.backend.to_owned()).or_default();
            for _ in 0..rule.functions {
                functions.push(Function {
                    counts: HashMap::from([((rule.instruction, Some(rule.width)), rule.times)]),
                    calls: ["memcpy".to_owned()].into(),
                });
            }
        }
        kernels
    }

    #[test]
    fn sound_kernels_have_no_findings() {
        assert_eq!(findings(&sound()), Vec::<String>::new());
    }

    #[test]
    fn a_wide_backend_of_narrow_instructions_is_found() {
        let mut kernels = sound();
        for function in kernels.get_mut("vaes512").expect("there") {
            let narrow = function
                .counts
                .drain()
                .map(|((mnemonic, _), n)| ((mnemonic, Some(Ymm)), n));
            function.counts = narrow.collect();
        }
        let found = findings(&kernels);
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(
            found
                .iter()
                .any(|text| text.contains("vaesenc zmm for AES")),
            "{found:?}"
        );
    }

    #[test]
    fn a_kernel_that_was_lost_is_found() {
        let mut kernels = sound();
        kernels.get_mut("aesni").expect("there").remove(0);
        let found = findings(&kernels);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("aesni: 17 functions"), "{found:?}");
    }

    #[test]
    fn an_intrinsic_that_was_not_inlined_is_found() {
        for called in [
            "core::core_arch::x86::vaes::_mm256_aesenc_epi128",
            "<qloak_cipher::backend::aesni::Xmm as qloak_cipher::lanes::Rounds>::round",
            "core::array::from_fn::{{closure}}",
        ] {
            let mut kernels = sound();
            let function = &mut kernels.get_mut("vaes256").expect("there")[0];
            function.calls.insert(called.to_owned());
            let found = findings(&kernels);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(called), "{found:?}");
        }
    }

    #[test]
    fn uneven_instructions_are_found() {
        for mnemonic in [Vpgatherdd, Div] {
            let mut kernels = sound();
            let function = &mut kernels.get_mut("aesni").expect("there")[0];
            function.counts.insert((mnemonic, None), 1);
            assert_eq!(findings(&kernels).len(), 1);
        }
    }
}
