//! The soft backend's primitives against `vectors/block`, and its modes where a vector needs more
//! than the door gives: another first counter than 1. Also every mode beside RustCrypto's own.

use std::path::PathBuf;

use aes_gcm::AesGcm;
use aes_gcm::aead::{AeadInOut, consts::U12};
use ocb3::Ocb3;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::aead::{Open, Seal};
use crate::mode::ctr;

#[derive(Deserialize)]
struct BlockFile {
    cipher: String,
    vectors: Vec<BlockVector>,
    iterated: Vec<BlockVector>,
}

#[derive(Deserialize)]
struct BlockVector {
    source: String,
    name: String,
    key: String,
    plaintext: String,
    ciphertext: String,
    #[serde(default)]
    times: usize,
}

#[derive(Deserialize)]
struct CtrFile {
    cipher: String,
    vectors: Vec<CtrVector>,
}

#[derive(Deserialize)]
struct CtrVector {
    source: String,
    name: String,
    key: String,
    nonce: String,
    counter: u32,
    plaintext: String,
    ciphertext: String,
}

const CIPHERS: [&str; 9] = [
    "AES-128",
    "AES-192",
    "AES-256",
    "Camellia-128",
    "Camellia-192",
    "Camellia-256",
    "Serpent-128",
    "Serpent-192",
    "Serpent-256",
];

/// What a test does with whichever cipher a file names.
trait WithCipher {
    fn call<C: KeyInit + BlockCipher<Soft>>(&self, cipher: C);
}

fn with_cipher(name: &str, key: &[u8], test: &impl WithCipher) {
    macro_rules! call {
        ($cipher:ty) => {
            test.call(<$cipher>::new_from_slice(key).expect("a key of this cipher's length"))
        };
    }
    match name {
        "AES-128" => call!(Aes128),
        "AES-192" => call!(Aes192),
        "AES-256" => call!(Aes256),
        "Camellia-128" => call!(Camellia128),
        "Camellia-192" => call!(Camellia192),
        "Camellia-256" => call!(Camellia256),
        serpent if serpent.starts_with("Serpent") => call!(Serpent),
        other => panic!("no cipher {other}"),
    }
}

#[test]
fn every_block_vector_holds_both_ways() {
    struct Test<'a>(&'a BlockVector);
    impl WithCipher for Test<'_> {
        fn call<C: KeyInit + BlockCipher<Soft>>(&self, cipher: C) {
            let vector = self.0;
            let what = format!("{}, {}", vector.source, vector.name);
            let mut blocks = [block_of(&vector.plaintext)];
            for _ in 0..vector.times.max(1) {
                cipher.encrypt(Soft, &mut blocks);
            }
            assert_eq!(blocks, [block_of(&vector.ciphertext)], "{what}");
            for _ in 0..vector.times.max(1) {
                cipher.decrypt(Soft, &mut blocks);
            }
            assert_eq!(blocks, [block_of(&vector.plaintext)], "{what}, back");
        }
    }

    for name in CIPHERS {
        let file: BlockFile = read(&format!("block/{}.json", name.to_lowercase()));
        assert_eq!(file.cipher, name);
        assert!(file.vectors.len() >= 5, "{name}");
        for vector in file.vectors.iter().chain(&file.iterated) {
            with_cipher(name, &hex(&vector.key), &Test(vector));
        }
    }
}

#[test]
fn every_ctr_vector_holds_whatever_its_first_counter() {
    struct Test<'a>(&'a CtrVector);
    impl WithCipher for Test<'_> {
        fn call<C: KeyInit + BlockCipher<Soft>>(&self, cipher: C) {
            let vector = self.0;
            let nonce = hex(&vector.nonce).try_into().expect("96 bits");
            let mut data = hex(&vector.plaintext);
            ctr::apply(Soft, &cipher, &nonce, vector.counter, &mut data);
            assert_eq!(
                data,
                hex(&vector.ciphertext),
                "{}, {}",
                vector.source,
                vector.name
            );
        }
    }

    let mut other_counters = 0;
    for name in CIPHERS {
        let file: CtrFile = read(&format!("suite/{}-ctr.json", name.to_lowercase()));
        assert_eq!(file.cipher, name);
        for vector in &file.vectors {
            with_cipher(name, &hex(&vector.key), &Test(vector));
            other_counters += usize::from(vector.counter != 1);
        }
    }
    // The three examples of SP 800-38A, which start elsewhere.
    assert_eq!(other_counters, 3);
}

/// Any number of blocks at once gives what one at a time gives.
#[test]
fn blocks_do_not_depend_on_their_neighbours() {
    struct Test;
    impl WithCipher for Test {
        fn call<C: KeyInit + BlockCipher<Soft>>(&self, cipher: C) {
            for count in 0..20 {
                let mut together: Vec<Block> = (0..count).map(|n| [n as u8; 16]).collect();
                let mut alone = together.clone();
                cipher.encrypt(Soft, &mut together);
                for block in alone.chunks_mut(1) {
                    cipher.encrypt(Soft, block);
                }
                assert_eq!(together, alone);
            }
        }
    }
    for name in CIPHERS {
        let bits: usize = name
            .rsplit('-')
            .next()
            .and_then(|b| b.parse().ok())
            .expect("bits");
        with_cipher(name, &vec![7; bits / 8], &Test);
    }
}

/// Our mode and RustCrypto's own on the same input: ciphertext and tag, then back.
fn beside<M, O>(ours: &M, other: &O, nonce: [u8; 12], aad: &[u8], plaintext: &[u8])
where
    M: Modal<Soft>,
    O: AeadInOut<NonceSize = U12, TagSize = U16>,
{
    let mut expected = plaintext.to_vec();
    let expected_tag = other
        .encrypt_inout_detached(&Array(nonce), aad, expected.as_mut_slice().into())
        .expect("a length that it takes");

    let (mut data, mut tag) = (plaintext.to_vec(), [0; 16]);
    ours.seal(
        Soft,
        &mut [Seal {
            nonce,
            aad,
            data: &mut data,
            tag: &mut tag,
        }],
    );
    assert_eq!(data, expected);
    assert_eq!(tag, expected_tag.0);

    let mut batch = [Open {
        nonce,
        aad,
        data: &mut data,
        tag: &tag,
        valid: false,
    }];
    ours.open(Soft, &mut batch);
    assert!(batch[0].valid);
    assert_eq!(data, plaintext);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gcm_is_rustcryptos_gcm(
        key: [u8; 32],
        nonce: [u8; 12],
        aad in prop::collection::vec(any::<u8>(), 0..80),
        data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let cipher = || Camellia256::new(&Array(key));
        let other = AesGcm::<Camellia256, U12>::from(cipher());
        beside(&Gcm::new(Soft, cipher(), 16), &other, nonce, &aad, &data);
    }

    #[test]
    fn ocb_is_rustcryptos_ocb3(
        key: [u8; 32],
        nonce: [u8; 12],
        aad in prop::collection::vec(any::<u8>(), 0..300),
        data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let cipher = || Aes256::new(&Array(key));
        let other = Ocb3::<Aes256, U12, U16>::from(cipher());
        beside(&Ocb::new(Soft, cipher()), &other, nonce, &aad, &data);
    }

    #[test]
    fn key_stream_is_rustcryptos_ctr(
        key: [u8; 16],
        nonce: [u8; 12],
        first in prop_oneof![Just(1u32), Just(u32::MAX - 2), any::<u32>()],
        data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        use aes::cipher::{KeyIvInit, StreamCipher};
        let mut expected = data.clone();
        // Near the top the 32-bit counter wraps in both and leaves the nonce alone.
        let start = ctr::counter_block(&nonce, first);
        let mut other = ::ctr::Ctr32BE::<Aes128>::new(&Array(key), &Array(start));
        other.apply_keystream(&mut expected);
        let mut ours = data;
        ctr::apply(Soft, &Aes128::new(&Array(key)), &nonce, first, &mut ours);
        prop_assert_eq!(ours, expected);
    }
}

/// The longest data that a frame may have reach the last value of OCB's L table.
#[test]
fn ocb_holds_at_the_longest_data() {
    let cipher = || Aes128::new(&Array([3; 16]));
    let data = vec![0x5a; crate::limits::DATA_OCTETS_MAX];
    let other = Ocb3::<Aes128, U12, U16>::from(cipher());
    beside(&Ocb::new(Soft, cipher()), &other, [9; 12], &data, &data);
}

fn read<T: for<'a> Deserialize<'a>>(path: &str) -> T {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(path);
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
