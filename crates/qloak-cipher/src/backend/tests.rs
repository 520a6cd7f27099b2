//! Ciphers and key streams on every backend of this CPU, below the door: against `vectors/block`,
//! and against what the door cannot show, another first counter than 1.

use std::marker::PhantomData;
use std::path::PathBuf;

use ::camellia::Camellia256;
use aes::cipher::{KeyIvInit, StreamCipher};
use aes::{Aes128, Aes192, Aes256};
use proptest::prelude::*;
use serde::Deserialize;

use super::planes::Planes;
use super::soft::{Crypto, Soft, SoftGhash};
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

/// A file of `vectors/edge`; only its group of counters is for us.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EdgeFile {
    test_groups: Vec<serde_json::Value>,
}

/// Key streams from every first counter of some ranges, both ends included.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EveryCounter {
    key: String,
    iv: String,
    /// Repeated to the length below.
    msg: String,
    msg_octets: usize,
    ranges: Vec<(u32, u32)>,
    /// SHA-256 of all ciphertexts, one behind the other.
    sha256: String,
}

#[derive(Deserialize)]
struct CtrVector {
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

/// A cipher's key on some backend. Behind a pointer, so that each kernel is compiled once.
trait Subject {
    fn encrypt(&self, blocks: &mut [Block]);
    fn decrypt(&self, blocks: &mut [Block]);
    fn key_stream(&self, first: u32, frame: &mut Seal<'_>);
}

/// What a kernel is asked to do with the cipher.
enum Work<'w, 'f> {
    Encrypt(&'w mut [Block]),
    Decrypt(&'w mut [Block]),
    KeyStream(u32, &'w mut Seal<'f>),
}

struct On<B, C>(B, C);
struct Make<'k, C>(&'k [u8], PhantomData<C>);
struct Do<'c, 'w, 'f, C>(&'c C, Work<'w, 'f>);

impl<B: Backend, C: FromKey> Kernel<B> for Make<'_, C> {
    type Output = C;

    #[inline(always)]
    fn run(self, _: B) -> C {
        C::from_key(self.0).expect("a key of this cipher's length")
    }
}

impl<B: Backend, C: Cipher<B>> Kernel<B> for Do<'_, '_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        match self.1 {
            Work::Encrypt(blocks) => self.0.encrypt(backend, blocks),
            Work::Decrypt(blocks) => self.0.decrypt(backend, blocks),
            Work::KeyStream(first, frame) => self.0.counter(backend, first, &mut [frame]),
        }
    }
}

impl<B: Backend, C: Cipher<B>> Subject for On<B, C> {
    fn encrypt(&self, blocks: &mut [Block]) {
        self.0.run(Do(&self.1, Work::Encrypt(blocks)));
    }

    fn decrypt(&self, blocks: &mut [Block]) {
        self.0.run(Do(&self.1, Work::Decrypt(blocks)));
    }

    fn key_stream(&self, first: u32, frame: &mut Seal<'_>) {
        self.0.run(Do(&self.1, Work::KeyStream(first, frame)));
    }
}

fn subject<C: Cipher<B> + FromKey, B: Backend>(backend: B, key: &[u8]) -> Box<dyn Subject> {
    Box::new(On(backend, backend.run(Make::<C>(key, PhantomData))))
}

fn own<B: Registers>(backend: B, name: &str, key: &[u8]) -> Box<dyn Subject> {
    match name {
        "AES-128" => subject::<Aes<B::Aes, 11>, B>(backend, key),
        "AES-192" => subject::<Aes<B::Aes, 13>, B>(backend, key),
        "AES-256" => subject::<Aes<B::Aes, 15>, B>(backend, key),
        camellia if camellia.starts_with("Camellia") => {
            subject::<Gather<Camellia<B::Octets>>, B>(backend, key)
        }
        _ => subject::<Gather<Serpent>, B>(backend, key),
    }
}

/// The cipher of `name` on each backend of this CPU.
fn everywhere(name: &str, key: &[u8]) -> Vec<(&'static str, Box<dyn Subject>)> {
    let soft = match name {
        "AES-128" => subject::<Gather<Crypto<Aes128>>, _>(Soft, key),
        "AES-192" => subject::<Gather<Crypto<Aes192>>, _>(Soft, key),
        "AES-256" => subject::<Gather<Crypto<Aes256>>, _>(Soft, key),
        camellia if camellia.starts_with("Camellia") => {
            subject::<Gather<Camellia<Planes>>, _>(Soft, key)
        }
        _ => subject::<Gather<Crypto<::serpent::Serpent>>, _>(Soft, key),
    };
    let mut all = vec![("soft", soft)];
    for level in Level::of_this_cpu().and_below() {
        let subject = match level {
            #[cfg(target_arch = "x86_64")]
            Level::Vaes512 => vaes512::Vaes512::new().map(|b| own(b, name, key)),
            #[cfg(target_arch = "x86_64")]
            Level::Gfni256 => gfni256::Gfni256::new().map(|b| own(b, name, key)),
            #[cfg(target_arch = "x86_64")]
            Level::Vaes256 => vaes256::Vaes256::new().map(|b| own(b, name, key)),
            #[cfg(target_arch = "x86_64")]
            Level::Aesni => aesni::Aesni::new().map(|b| own(b, name, key)),
            #[cfg(target_arch = "aarch64")]
            Level::Armv8 => armv8::Armv8::new().map(|b| own(b, name, key)),
            _ => None,
        };
        all.extend(subject.map(|subject| (level.name(), subject)));
    }
    all
}

#[test]
fn every_block_vector_holds_both_ways() {
    for name in CIPHERS {
        let file: BlockFile = read(&format!("block/{}.json", name.to_lowercase()));
        assert_eq!(file.cipher, name);
        assert!(file.vectors.len() >= 5, "{name}");
        for vector in file.vectors.iter().chain(&file.iterated) {
            let what = format!("{}, {}", vector.source, vector.name);
            for (backend, cipher) in everywhere(name, &hex(&vector.key)) {
                let mut blocks = [block_of(&vector.plaintext)];
                for _ in 0..vector.times.max(1) {
                    cipher.encrypt(&mut blocks);
                }
                assert_eq!(
                    blocks,
                    [block_of(&vector.ciphertext)],
                    "{what} on {backend}"
                );
                for _ in 0..vector.times.max(1) {
                    cipher.decrypt(&mut blocks);
                }
                assert_eq!(
                    blocks,
                    [block_of(&vector.plaintext)],
                    "{what}, back on {backend}"
                );
            }
        }
    }
}

/// The key stream over one frame's data, on each backend.
fn key_streams(name: &str, key: &[u8], nonce: [u8; 12], first: u32, data: &[u8], out: &[u8]) {
    for (backend, cipher) in everywhere(name, key) {
        let mut data = data.to_vec();
        let mut frame = Seal {
            nonce,
            aad: &[],
            data: &mut data,
            tag: &mut [],
        };
        cipher.key_stream(first, &mut frame);
        let octets = data.len();
        assert!(
            data == out,
            "{name} on {backend}: {octets} octets from counter {first}"
        );
    }
}

#[test]
fn every_ctr_vector_holds_whatever_its_first_counter() {
    let mut other_counters = 0;
    for name in CIPHERS {
        let file: CtrFile = read(&format!("suite/{}-ctr.json", name.to_lowercase()));
        assert_eq!(file.cipher, name);
        for vector in &file.vectors {
            let nonce = hex(&vector.nonce).try_into().expect("96 bits");
            let (data, out) = (hex(&vector.plaintext), hex(&vector.ciphertext));
            key_streams(name, &hex(&vector.key), nonce, vector.counter, &data, &out);
            other_counters += usize::from(vector.counter != 1);
        }
    }
    // The three examples of SP 800-38A, which start elsewhere.
    assert_eq!(other_counters, 3);
}

/// Counters carry from octet to octet, leave the table of ready ones, and wrap at 2^32 without touching
/// the nonce (SP 800-38D, 6.2). The door always starts at 1 or 2, and no frame is that long.
#[test]
fn counters_carry_and_wrap_as_other_libraries_have_it() {
    for name in CIPHERS {
        let file: EdgeFile = read(&format!("edge/{}-ctr.json", name.to_lowercase()));
        let mut groups = file.test_groups.into_iter();
        let group = groups
            .find(|group| group["type"] == "EveryCounter")
            .expect("a group of counters");
        let every: EveryCounter = serde_json::from_value(group).expect("its form");
        let nonce = hex(&every.iv).try_into().expect("96 bits");
        let text = hex(&every.msg).into_iter().cycle();
        let text: Vec<u8> = text.take(every.msg_octets).collect();
        assert!(every.ranges.iter().any(|range| range.1 == u32::MAX));
        for (backend, cipher) in everywhere(name, &hex(&every.key)) {
            let mut all = Vec::new();
            for first in every.ranges.iter().flat_map(|range| range.0..=range.1) {
                let mut data = text.clone();
                cipher.key_stream(
                    first,
                    &mut Seal {
                        nonce,
                        aad: &[],
                        data: &mut data,
                        tag: &mut [],
                    },
                );
                all.extend(data);
            }
            let found = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &all);
            assert_eq!(found.as_ref(), hex(&every.sha256), "{name} on {backend}");
        }
    }
}

/// Any number of blocks at once gives what one at a time gives, and comes back.
#[test]
fn blocks_do_not_depend_on_their_neighbours() {
    for name in CIPHERS {
        for (backend, cipher) in everywhere(name, &[7; 32][..octets_of(name)]) {
            for count in (0..40).chain([63, 64, 65, 127, 128, 129]) {
                let plain: Vec<Block> = (0..count).map(|n| [n as u8; 16]).collect();
                let (mut together, mut alone) = (plain.clone(), plain.clone());
                cipher.encrypt(&mut together);
                for block in alone.chunks_mut(1) {
                    cipher.encrypt(block);
                }
                assert_eq!(together, alone, "{name} on {backend}");
                cipher.decrypt(&mut together);
                assert_eq!(together, plain, "{name} on {backend}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Near the top the 32-bit counter wraps in both and leaves the nonce alone.
    #[test]
    fn key_stream_is_rustcryptos_ctr(
        key: [u8; 32],
        nonce: [u8; 12],
        first in prop_oneof![Just(1u32), 900..1100u32, u32::MAX - 90..=u32::MAX, any::<u32>()],
        data in prop::collection::vec(any::<u8>(), 0..2600),
    ) {
        let start = crate::bulk::counter_block(&nonce, first);
        macro_rules! beside {
            ($name:literal, $cipher:ty) => {
                let mut out = data.clone();
                ::ctr::Ctr32BE::<$cipher>::new_from_slices(&key, &start)
                    .expect("32 octets")
                    .apply_keystream(&mut out);
                key_streams($name, &key, nonce, first, &data, &out);
            };
        }
        beside!("AES-256", Aes256);
        beside!("Camellia-256", Camellia256);
    }
}

/// Octets of a cipher's key.
fn octets_of(name: &str) -> usize {
    let bits = name
        .rsplit('-')
        .next()
        .and_then(|bits| bits.parse::<usize>().ok());
    bits.expect("a name that ends in bits") / 8
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

/// GHASH of texts around a register, a stripe and a round of powers, multiplied both ways.
struct BothWays;

impl<B: Registers> Kernel<B> for BothWays {
    type Output = ();

    #[inline(always)]
    fn run(self, _: B) {
        let octets: Vec<u8> = (0..3000_u32).map(|n| ((n * n) >> 3) as u8).collect();
        let block = |at: usize| <Block>::try_from(&octets[at..at + 16]).expect("16 octets");
        let (h, mask) = (block(50), block(9));
        let key = Powers::<B::Aes>::of(&h, true);
        for text in (0..140).chain(500..530).chain(2000..2100) {
            let (aad, text) = (&octets[..text % 41], &octets[3..3 + text]);
            let expected = <SoftGhash as Ghash<Soft>>::new(&h).tag(aad, text, &mask);
            let what = format!("AAD of {} octets, text of {}", aad.len(), text.len());
            assert_eq!(key.hash::<true>(aad, text, &mask), expected, "{what}");
            assert_eq!(key.hash::<false>(aad, text, &mask), expected, "{what}");
        }
    }
}

#[test]
fn both_ways_of_multiplying_are_ghash() {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(backend) = aesni::Aesni::new() {
            backend.run(BothWays);
        }
        if let Some(backend) = vaes256::Vaes256::new() {
            backend.run(BothWays);
        }
        if let Some(backend) = vaes512::Vaes512::new() {
            backend.run(BothWays);
        }
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(backend) = armv8::Armv8::new() {
        backend.run(BothWays);
    }
}
