//! Camellia on every kind of register that this CPU has, against the vectors, another's code and itself.

use camellia::cipher::{BlockCipherEncrypt, KeyInit};
use camellia::{Camellia128, Camellia192, Camellia256};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::backend::Block;
use crate::backend::affine::{Affine, model::Model};
use crate::backend::planes::Planes;
#[cfg(target_arch = "x86_64")]
use crate::backend::{
    aesni::{AesNi, Ymm},
    nibbles::{Nibbles, Whole},
    vaes512::Zmm,
};
#[cfg(target_arch = "aarch64")]
use crate::backend::{
    armv8::Neon,
    nibbles::{Nibbles, Whole},
};
use crate::lanes::Blocks;

/// The first S-box as RFC 3713, 2.4.1, prints it.
const FIRST_BOX: [u8; 256] = [
    112, 130, 44, 236, 179, 39, 192, 229, 228, 133, 87, 53, 234, 12, 174, 65, 35, 239, 107, 147,
    69, 25, 165, 33, 237, 14, 79, 78, 29, 101, 146, 189, 134, 184, 175, 143, 124, 235, 31, 206, 62,
    48, 220, 95, 94, 197, 11, 26, 166, 225, 57, 202, 213, 71, 93, 61, 217, 1, 90, 214, 81, 86, 108,
    77, 139, 13, 154, 102, 251, 204, 176, 45, 116, 18, 43, 32, 240, 177, 132, 153, 223, 76, 203,
    194, 52, 126, 118, 5, 109, 183, 169, 49, 209, 23, 4, 215, 20, 88, 58, 97, 222, 27, 17, 28, 50,
    15, 156, 22, 83, 24, 242, 34, 254, 68, 207, 178, 195, 181, 122, 145, 36, 8, 232, 168, 96, 252,
    105, 80, 170, 208, 160, 125, 161, 137, 98, 151, 84, 91, 30, 149, 224, 255, 100, 210, 16, 196,
    0, 72, 163, 247, 117, 219, 138, 3, 230, 218, 9, 63, 221, 148, 135, 92, 131, 2, 205, 74, 144,
    51, 115, 103, 246, 243, 157, 127, 191, 226, 82, 155, 216, 38, 200, 55, 198, 59, 129, 150, 111,
    75, 19, 190, 99, 46, 233, 121, 167, 140, 159, 110, 188, 142, 41, 245, 249, 182, 47, 253, 180,
    89, 120, 152, 6, 106, 231, 70, 113, 186, 212, 37, 171, 66, 136, 162, 141, 250, 114, 7, 185, 85,
    248, 238, 172, 10, 54, 73, 42, 104, 60, 56, 241, 164, 64, 40, 211, 123, 187, 201, 67, 193, 21,
    227, 173, 244, 119, 199, 128, 158,
];

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    source: String,
    name: String,
    key: String,
    plaintext: String,
    ciphertext: String,
}

fn files() -> impl Iterator<Item = File> {
    [128, 192, 256].into_iter().map(|bits| {
        let path = format!(
            "{}/../../vectors/block/camellia-{bits}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
    })
}

fn octets(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| std::str::from_utf8(pair).expect("hex is ASCII"));
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).expect("hex"))
        .collect()
}

/// One way of running Camellia: a batch of blocks under a key, there or back.
struct Way {
    name: &'static str,
    blocks: usize,
    run: fn(&[u8], &mut [Block], Direction),
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    There,
    Back,
}

/// Those that this CPU can do.
fn ways() -> Vec<Way> {
    let mut ways = vec![
        way::<Planes>("planes"),
        way::<Affine<Model<false>>>("a model of GFNI"),
        way::<Affine<Model<true>>>("a model of GFNI and AVX-512"),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        let (avx2, aes) = (
            is_x86_feature_detected!("avx2"),
            is_x86_feature_detected!("aes"),
        );
        if avx2 && aes {
            ways.push(way::<Nibbles<AesNi>>("AES-NI"));
        }
        if avx2 && is_x86_feature_detected!("vaes") {
            ways.push(way::<Nibbles<Whole<Ymm>>>("VAES"));
        }
        if avx2 && is_x86_feature_detected!("gfni") {
            ways.push(way::<Affine<Ymm>>("GFNI"));
        }
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("gfni") {
            ways.push(way::<Affine<Zmm>>("GFNI and AVX-512"));
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("aes") {
        ways.push(way::<Nibbles<Whole<Neon>>>("Neon"));
    }
    ways
}

fn way<Y: Octets>(name: &'static str) -> Way {
    Way {
        name,
        blocks: STRIPE * Y::Memory::COUNT,
        run: run::<Y>,
    }
}

/// Whole stripes of blocks.
fn run<Y: Octets>(key: &[u8], blocks: &mut [Block], direction: Direction) {
    let cipher = Camellia::<Y>::new(key).expect("a key of a length that Camellia has");
    for blocks in blocks.chunks_exact_mut(STRIPE * Y::Memory::COUNT) {
        let registers = blocks
            .as_flattened_mut()
            .chunks_exact_mut(Y::Memory::OCTETS);
        let mut stripe = [Y::Memory::zero(); STRIPE];
        for (register, octets) in stripe.iter_mut().zip(registers) {
            *register = Y::Memory::load(octets);
        }
        match direction {
            Direction::There => cipher.encrypt(&mut stripe, STRIPE),
            Direction::Back => cipher.decrypt(&mut stripe, STRIPE),
        }
        let registers = blocks
            .as_flattened_mut()
            .chunks_exact_mut(Y::Memory::OCTETS);
        for (register, octets) in stripe.into_iter().zip(registers) {
            register.store(octets);
        }
    }
}

#[test]
fn every_octet_goes_through_the_four_boxes_as_the_rfc_prints_them() {
    for octet in 0..=255_u8 {
        let first = FIRST_BOX[usize::from(octet)];
        let fourth = FIRST_BOX[usize::from(octet.rotate_left(1))];
        let (second, third) = (first.rotate_left(1), first.rotate_right(1));
        let boxes = [first, second, third, fourth, second, third, fourth, first];
        let half = u64::from_ne_bytes([octet; 8]);
        assert_eq!(
            schedule::gathered(schedule::round(half)),
            u64::from_be_bytes(boxes),
            "of {octet:#04x}"
        );
    }
}

#[test]
fn the_vectors_hold_in_every_lane_of_every_way() {
    for file in files() {
        for vector in &file.vectors {
            let (key, plaintext) = (octets(&vector.key), octets(&vector.plaintext));
            let plaintext = Block::try_from(plaintext).expect("a block");
            for way in ways() {
                let mut blocks = vec![plaintext; way.blocks];
                (way.run)(&key, &mut blocks, Direction::There);
                for block in &blocks {
                    assert_eq!(
                        block[..],
                        octets(&vector.ciphertext),
                        "{} {} on {}",
                        vector.source,
                        vector.name,
                        way.name
                    );
                }
                (way.run)(&key, &mut blocks, Direction::Back);
                assert!(
                    blocks.iter().all(|block| *block == plaintext),
                    "{} {} back on {}",
                    vector.source,
                    vector.name,
                    way.name
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn every_way_does_what_another_s_code_does(
        key in prop_oneof![
            proptest::collection::vec(any::<u8>(), 16),
            proptest::collection::vec(any::<u8>(), 24),
            proptest::collection::vec(any::<u8>(), 32),
        ],
        plaintext in proptest::collection::vec(any::<Block>(), 64),
    ) {
        let ciphertext: Vec<Block> = plaintext.iter().map(|block| by_another(&key, *block)).collect();
        for way in ways() {
            let mut blocks = plaintext.clone();
            (way.run)(&key, &mut blocks, Direction::There);
            prop_assert_eq!(&blocks, &ciphertext, "on {}", way.name);
            (way.run)(&key, &mut blocks, Direction::Back);
            prop_assert_eq!(&blocks, &plaintext, "back on {}", way.name);
        }
    }
}

fn by_another(key: &[u8], block: Block) -> Block {
    let mut block = block.into();
    match key.len() {
        16 => Camellia128::new_from_slice(key)
            .expect("16 octets")
            .encrypt_block(&mut block),
        24 => Camellia192::new_from_slice(key)
            .expect("24 octets")
            .encrypt_block(&mut block),
        _ => Camellia256::new_from_slice(key)
            .expect("32 octets")
            .encrypt_block(&mut block),
    }
    block.into()
}

#[test]
fn a_key_of_another_length_is_none() {
    for octets in (0..=64).filter(|octets| ![16, 24, 32].contains(octets)) {
        assert!(
            Camellia::<Planes>::new(&vec![7; octets]).is_none(),
            "{octets} octets"
        );
    }
}
