//! Ciphers, modes and key streams on every backend of this CPU, below the door: against
//! `vectors/block`, against vectors that the door cannot show (another first counter than 1), and
//! against RustCrypto's own modes and ciphers, which share no code with ours.

use std::marker::PhantomData;
use std::path::PathBuf;

use ::camellia::{Camellia128, Camellia192, Camellia256};
use aes::cipher::{Array, KeyInit, KeyIvInit, StreamCipher, consts::U16};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{AeadInOut, consts::U12};
use ocb3::Ocb3;
use proptest::prelude::*;
use serde::Deserialize;

use super::planes::Planes;
use super::soft::{Crypto, Soft};
use super::*;

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

/// What a test does with a cipher's key on a backend, inside `Backend::run`.
trait Test {
    fn run<B: Backend, C: Cipher<B>>(&self, backend: B, cipher: C);
}

struct Call<'t, T, C>(&'t T, &'t [u8], PhantomData<C>);

impl<B: Backend, C: Cipher<B> + FromKey, T: Test> Kernel<B> for Call<'_, T, C> {
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        let cipher = C::from_key(self.1).expect("a key of this cipher's length");
        self.0.run(backend, cipher);
    }
}

fn call<C: Cipher<B> + FromKey, B: Backend>(backend: B, key: &[u8], test: &impl Test) {
    backend.run(Call(test, key, PhantomData::<C>));
}

fn call_own<B: Registers>(backend: B, name: &str, key: &[u8], test: &impl Test) {
    match name {
        "AES-128" => call::<Aes<B::Aes, 11>, B>(backend, key, test),
        "AES-192" => call::<Aes<B::Aes, 13>, B>(backend, key, test),
        "AES-256" => call::<Aes<B::Aes, 15>, B>(backend, key, test),
        camellia if camellia.starts_with("Camellia") => {
            call::<Gather<Camellia<B::Octets>>, B>(backend, key, test);
        }
        _ => call::<Gather<Serpent>, B>(backend, key, test),
    }
}

/// The test on each backend of this CPU.
#[allow(unsafe_code)]
fn everywhere(name: &str, key: &[u8], test: &impl Test) {
    match name {
        "AES-128" => call::<Gather<Crypto<Aes128>>, _>(Soft, key, test),
        "AES-192" => call::<Gather<Crypto<Aes192>>, _>(Soft, key, test),
        "AES-256" => call::<Gather<Crypto<Aes256>>, _>(Soft, key, test),
        camellia if camellia.starts_with("Camellia") => {
            call::<Gather<Camellia<Planes>>, _>(Soft, key, test);
        }
        _ => call::<Gather<Serpent>, _>(Soft, key, test),
    }
    for level in Level::of_this_cpu().and_below() {
        // SAFETY: the level is this CPU's or one below, and each stands for its backend's features.
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Vaes512 => call_own(unsafe { vaes512::Vaes512::assume() }, name, key, test),
            #[cfg(target_arch = "x86_64")]
            Level::Gfni256 => call_own(unsafe { gfni256::Gfni256::assume() }, name, key, test),
            #[cfg(target_arch = "x86_64")]
            Level::Vaes256 => call_own(unsafe { vaes256::Vaes256::assume() }, name, key, test),
            #[cfg(target_arch = "x86_64")]
            Level::Aesni => call_own(unsafe { aesni::Aesni::assume() }, name, key, test),
            _ => {}
        }
    }
}

#[test]
fn every_block_vector_holds_both_ways() {
    struct Vector<'a>(&'a BlockVector);
    impl Test for Vector<'_> {
        fn run<B: Backend, C: Cipher<B>>(&self, backend: B, cipher: C) {
            let vector = self.0;
            let what = format!("{}, {}", vector.source, vector.name);
            let mut blocks = [block_of(&vector.plaintext)];
            for _ in 0..vector.times.max(1) {
                cipher.encrypt(backend, &mut blocks);
            }
            assert_eq!(blocks, [block_of(&vector.ciphertext)], "{what}");
            for _ in 0..vector.times.max(1) {
                cipher.decrypt(backend, &mut blocks);
            }
            assert_eq!(blocks, [block_of(&vector.plaintext)], "{what}, back");
        }
    }

    for name in CIPHERS {
        let file: BlockFile = read(&format!("block/{}.json", name.to_lowercase()));
        assert_eq!(file.cipher, name);
        assert!(file.vectors.len() >= 5, "{name}");
        for vector in file.vectors.iter().chain(&file.iterated) {
            everywhere(name, &hex(&vector.key), &Vector(vector));
        }
    }
}

/// The key stream over one frame's data.
fn key_stream<B: Backend, C: Cipher<B>>(
    backend: B,
    cipher: &C,
    nonce: [u8; 12],
    first: u32,
    data: &mut [u8],
) {
    let (aad, tag) = (&[][..], &mut [][..]);
    let mut frame = Seal {
        nonce,
        aad,
        data,
        tag,
    };
    cipher.counter(backend, first, &mut [&mut frame]);
}

#[test]
fn every_ctr_vector_holds_whatever_its_first_counter() {
    struct Vector<'a>(&'a CtrVector);
    impl Test for Vector<'_> {
        fn run<B: Backend, C: Cipher<B>>(&self, backend: B, cipher: C) {
            let vector = self.0;
            let nonce = hex(&vector.nonce).try_into().expect("96 bits");
            let mut data = hex(&vector.plaintext);
            key_stream(backend, &cipher, nonce, vector.counter, &mut data);
            let what = format!("{}, {}", vector.source, vector.name);
            assert_eq!(data, hex(&vector.ciphertext), "{what}");
        }
    }

    let mut other_counters = 0;
    for name in CIPHERS {
        let file: CtrFile = read(&format!("suite/{}-ctr.json", name.to_lowercase()));
        assert_eq!(file.cipher, name);
        for vector in &file.vectors {
            everywhere(name, &hex(&vector.key), &Vector(vector));
            other_counters += usize::from(vector.counter != 1);
        }
    }
    // The three examples of SP 800-38A, which start elsewhere.
    assert_eq!(other_counters, 3);
}

/// Any number of blocks at once gives what one at a time gives, and comes back.
#[test]
fn blocks_do_not_depend_on_their_neighbours() {
    struct Counts;
    impl Test for Counts {
        fn run<B: Backend, C: Cipher<B>>(&self, backend: B, cipher: C) {
            for count in 0..150 {
                let plain: Vec<Block> = (0..count).map(|n| [n as u8; 16]).collect();
                let (mut together, mut alone) = (plain.clone(), plain.clone());
                cipher.encrypt(backend, &mut together);
                for block in alone.chunks_mut(1) {
                    cipher.encrypt(backend, block);
                }
                assert_eq!(together, alone);
                cipher.decrypt(backend, &mut together);
                assert_eq!(together, plain);
            }
        }
    }
    for name in CIPHERS {
        let bits: usize = name
            .rsplit('-')
            .next()
            .and_then(|b| b.parse().ok())
            .expect("bits");
        everywhere(name, &vec![7; bits / 8], &Counts);
    }
}

/// Our mode and RustCrypto's own on the same input: ciphertext and tag, then back.
struct Beside<'a, O> {
    mode: Mode,
    other: O,
    nonce: [u8; 12],
    aad: &'a [u8],
    data: &'a [u8],
}

impl<O: AeadInOut<NonceSize = U12, TagSize = U16>> Test for Beside<'_, O> {
    fn run<B: Backend, C: Cipher<B>>(&self, backend: B, cipher: C) {
        match self.mode {
            Mode::Gcm => self.with(backend, &Gcm::new(backend, cipher)),
            _ => self.with(backend, &Ocb::new(backend, cipher)),
        }
    }
}

impl<O: AeadInOut<NonceSize = U12, TagSize = U16>> Beside<'_, O> {
    fn with<B: Backend, M: Modal<B>>(&self, backend: B, ours: &M) {
        let (nonce, aad) = (self.nonce, self.aad);
        let mut expected = self.data.to_vec();
        let expected_tag = self
            .other
            .encrypt_inout_detached(&Array(nonce), aad, expected.as_mut_slice().into())
            .expect("a length that it takes");

        let (mut data, mut tag) = (self.data.to_vec(), [0; 16]);
        let mut frame = Seal {
            nonce,
            aad,
            data: &mut data,
            tag: &mut tag,
        };
        ours.seal(backend, &mut [&mut frame]);
        assert!(data == expected, "{} octets of data", data.len());
        assert_eq!(tag, expected_tag.0, "{} octets of data", data.len());

        let mut frame = Open {
            nonce,
            aad,
            data: &mut data,
            tag: &tag,
            valid: false,
        };
        ours.open(backend, &mut [&mut frame]);
        assert!(frame.valid);
        assert!(data == self.data, "{} octets of data", data.len());
    }
}

/// Both modes of all ciphers beside RustCrypto's. Its GCM and OCB3 are generic, so that they take
/// the ciphers of its crates `aes`, `camellia` and `serpent`.
fn beside_rustcrypto(key: &[u8; 32], nonce: [u8; 12], aad: &[u8], data: &[u8]) {
    macro_rules! beside {
        ($name:literal, $cipher:ty, $octets:literal) => {
            let key = &key[..$octets];
            let cipher = || <$cipher>::new_from_slice(key).expect("a key of this length");
            let (mode, other) = (Mode::Gcm, AesGcm::<$cipher, U12>::from(cipher()));
            everywhere(
                $name,
                key,
                &Beside {
                    mode,
                    other,
                    nonce,
                    aad,
                    data,
                },
            );
            let (mode, other) = (Mode::Ocb3, Ocb3::<$cipher, U12, U16>::from(cipher()));
            everywhere(
                $name,
                key,
                &Beside {
                    mode,
                    other,
                    nonce,
                    aad,
                    data,
                },
            );
        };
    }
    beside!("AES-128", Aes128, 16);
    beside!("AES-192", Aes192, 24);
    beside!("AES-256", Aes256, 32);
    beside!("Camellia-128", Camellia128, 16);
    beside!("Camellia-192", Camellia192, 24);
    beside!("Camellia-256", Camellia256, 32);
    beside!("Serpent-128", ::serpent::Serpent, 16);
    beside!("Serpent-192", ::serpent::Serpent, 24);
    beside!("Serpent-256", ::serpent::Serpent, 32);
}

/// A counter mode's key stream beside another's.
struct Stream<'a> {
    expected: &'a [u8],
    nonce: [u8; 12],
    first: u32,
    data: &'a [u8],
}

impl Test for Stream<'_> {
    fn run<B: Backend, C: Cipher<B>>(&self, backend: B, cipher: C) {
        let mut data = self.data.to_vec();
        key_stream(backend, &cipher, self.nonce, self.first, &mut data);
        assert!(
            data == self.expected,
            "{} octets from counter {}",
            data.len(),
            self.first
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn modes_are_rustcryptos_modes(
        key: [u8; 32],
        nonce: [u8; 12],
        aad in prop::collection::vec(any::<u8>(), 0..300),
        data in prop::collection::vec(any::<u8>(), 0..2600),
    ) {
        beside_rustcrypto(&key, nonce, &aad, &data);
    }

    /// Near the top the 32-bit counter wraps in both and leaves the nonce alone.
    #[test]
    fn key_stream_is_rustcryptos_ctr(
        key: [u8; 32],
        nonce: [u8; 12],
        first in prop_oneof![Just(1u32), 900..1100u32, u32::MAX - 90..=u32::MAX, any::<u32>()],
        data in prop::collection::vec(any::<u8>(), 0..2600),
    ) {
        let start = crate::bulk::counter_block(&nonce, first);
        let (key, data) = (&key[..], &data[..]);
        macro_rules! beside {
            ($name:literal, $cipher:ty) => {
                let mut expected = data.to_vec();
                ::ctr::Ctr32BE::<$cipher>::new_from_slices(key, &start)
                    .expect("32 octets")
                    .apply_keystream(&mut expected);
                let expected = &expected[..];
                everywhere($name, key, &Stream { expected, nonce, first, data });
            };
        }
        beside!("AES-256", Aes256);
        beside!("Camellia-256", Camellia256);
        beside!("Serpent-256", ::serpent::Serpent);
    }
}

/// Texts of more than 128 blocks are reduced on the way, and OCB's table of offsets begins anew.
#[test]
fn modes_hold_where_tables_end() {
    for octets in [
        2016, 2032, 2047, 2048, 2049, 4096, 8191, 8192, 16_400, 65_536,
    ] {
        let data: Vec<u8> = (0..octets).map(|n| (n * 7) as u8).collect();
        for aad in [0, 20, 2040, 5000] {
            beside_rustcrypto(&[3; 32], [9; 12], &data[..aad.min(octets)], &data);
        }
    }
}

/// The longest data that a frame may have reach the last value of OCB's L table.
#[test]
fn ocb_holds_at_the_longest_data() {
    let data = vec![0x5a; crate::limits::DATA_OCTETS_MAX];
    let (nonce, data) = ([9; 12], &data[..]);
    let (mode, aad) = (Mode::Ocb3, data);
    let other = Ocb3::<Aes128, U12, U16>::from(Aes128::new(&Array([3; 16])));
    everywhere(
        "AES-128",
        &[3; 16],
        &Beside {
            mode,
            other,
            nonce,
            aad,
            data,
        },
    );
    let other = Ocb3::<::serpent::Serpent, U12, U16>::from(
        ::serpent::Serpent::new_from_slice(&[3; 16]).expect("16 octets"),
    );
    everywhere(
        "Serpent-128",
        &[3; 16],
        &Beside {
            mode,
            other,
            nonce,
            aad,
            data,
        },
    );
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
