//! Serpent on every register of this CPU, against `vectors/block` and the `serpent` crate.

use std::path::PathBuf;

use proptest::prelude::*;
use serde::Deserialize;
use serpent::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

use super::*;
use crate::backend::Block;
use crate::backend::portable::Portable;

/// Blocks in a stripe of the widest registers.
const BLOCKS_MAX: usize = STRIPE * 4;

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
    iterated: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    source: String,
    name: String,
    key: String,
    plaintext: String,
    ciphertext: String,
    #[serde(default)]
    times: usize,
}

/// Runs blocks through a stripe: some registers of this CPU, and which way.
struct Machine {
    name: &'static str,
    run: fn(&Serpent, &mut [Block], encrypt: bool),
}

fn machines() -> Vec<Machine> {
    let mut machines = vec![Machine {
        name: "plain Rust",
        run: through::<Portable>,
    }];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") {
            let (name, run) = ("AVX2", x86::avx2 as _);
            machines.push(Machine { name, run });
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            let (name, run) = ("AVX-512", x86::avx512 as _);
            machines.push(Machine { name, run });
        }
    }
    machines
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::backend::{aesni::Ymm, vaes512::Zmm};

    pub(super) fn avx2(serpent: &Serpent, blocks: &mut [Block], encrypt: bool) {
        #[target_feature(enable = "avx2")]
        fn run(serpent: &Serpent, blocks: &mut [Block], encrypt: bool) {
            through::<Ymm>(serpent, blocks, encrypt);
        }
        // SAFETY: `machines` names this function only where the CPU has AVX2.
        #[allow(unsafe_code)]
        unsafe {
            run(serpent, blocks, encrypt);
        }
    }

    pub(super) fn avx512(serpent: &Serpent, blocks: &mut [Block], encrypt: bool) {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi2")]
        fn run(serpent: &Serpent, blocks: &mut [Block], encrypt: bool) {
            through::<Zmm>(serpent, blocks, encrypt);
        }
        // SAFETY: `machines` names this function only where the CPU has AVX-512 F and BW; every
        // such CPU has VL, DQ and BMI2.
        #[allow(unsafe_code)]
        unsafe {
            run(serpent, blocks, encrypt);
        }
    }
}

/// At most a stripe of blocks, one register of them after the other.
#[inline(always)]
fn through<V: Words>(serpent: &Serpent, blocks: &mut [Block], encrypt: bool) {
    for blocks in blocks.chunks_mut(STRIPE * V::COUNT) {
        let mut stripe = [V::zero(); STRIPE];
        let octets = blocks.as_flattened_mut();
        let used = octets.len().div_ceil(V::OCTETS);
        for (register, octets) in stripe.iter_mut().zip(octets.chunks(V::OCTETS)) {
            *register = V::load_part(octets);
        }
        if encrypt {
            serpent.encrypt(&mut stripe, used);
        } else {
            serpent.decrypt(&mut stripe, used);
        }
        for (register, octets) in stripe.iter().zip(octets.chunks_mut(V::OCTETS)) {
            register.store_part(octets);
        }
    }
}

#[test]
fn every_vector_holds_both_ways() {
    for bits in [128, 192, 256] {
        let file = read(bits);
        assert!(file.vectors.len() >= 5, "Serpent-{bits}");
        for vector in file.vectors.iter().chain(&file.iterated) {
            let serpent = Serpent::new(&hex(&vector.key));
            for machine in machines() {
                let what = format!("{}, {}, {}", machine.name, vector.source, vector.name);
                let mut blocks = [block_of(&vector.plaintext)];
                for _ in 0..vector.times.max(1) {
                    (machine.run)(&serpent, &mut blocks, true);
                }
                assert_eq!(blocks, [block_of(&vector.ciphertext)], "{what}");
                for _ in 0..vector.times.max(1) {
                    (machine.run)(&serpent, &mut blocks, false);
                }
                assert_eq!(blocks, [block_of(&vector.plaintext)], "{what}, back");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any number of blocks, so that one group, two and all of them have their turn.
    #[test]
    fn every_machine_agrees_with_the_serpent_crate(
        key in prop_oneof![
            prop::collection::vec(any::<u8>(), 16),
            prop::collection::vec(any::<u8>(), 24),
            prop::collection::vec(any::<u8>(), 32),
        ],
        plaintext in prop::collection::vec(any::<Block>(), 0..=BLOCKS_MAX),
    ) {
        let other = serpent::Serpent::new_from_slice(&key).expect("a key of Serpent's length");
        let mut ciphertext = plaintext.clone();
        other.encrypt_blocks(Array::cast_slice_from_core_mut(&mut ciphertext));

        let serpent = Serpent::new(&key);
        for machine in machines() {
            let mut blocks = plaintext.clone();
            (machine.run)(&serpent, &mut blocks, true);
            prop_assert_eq!(&blocks, &ciphertext, "{}", machine.name);
            (machine.run)(&serpent, &mut blocks, false);
            prop_assert_eq!(&blocks, &plaintext, "{}, back", machine.name);
        }
        other.decrypt_blocks(Array::cast_slice_from_core_mut(&mut ciphertext));
        prop_assert_eq!(&ciphertext, &plaintext);
    }
}

fn read(bits: usize) -> File {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../vectors/block/serpent-{bits}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex"))
        .collect()
}

fn block_of(digits: &str) -> Block {
    hex(digits).try_into().expect("one block")
}
