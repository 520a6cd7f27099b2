//! What the tests share: vectors from `vectors/suite`, levels, and one frame at a time.

#![allow(dead_code)]

use std::path::PathBuf;

use proptest::prelude::ProptestConfig;
use qloak_cipher::suite::SUITES;
use qloak_cipher::{Level, Open, Seal, Suite, SuiteKey};
use serde::Deserialize;

/// One file of `vectors/suite`.
#[derive(Deserialize)]
pub(crate) struct SuiteFile {
    pub(crate) suite: String,
    pub(crate) cipher: String,
    pub(crate) mode: String,
    pub(crate) vectors: Vec<Vector>,
    #[serde(rename = "loop")]
    pub(crate) all_lengths: Option<LoopVector>,
}

/// One vector; octets in hex.
#[derive(Deserialize)]
pub(crate) struct Vector {
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) nonce: String,
    #[serde(default)]
    pub(crate) aad: String,
    /// Counter of the first block, in a CTR file.
    pub(crate) counter: Option<u32>,
    pub(crate) plaintext: String,
    pub(crate) ciphertext: String,
    #[serde(default)]
    pub(crate) tag: String,
}

/// The result of RFC 7253's loop over all lengths.
#[derive(Deserialize)]
pub(crate) struct LoopVector {
    pub(crate) source: String,
    pub(crate) result: String,
}

pub(crate) fn read(suite: &Suite) -> SuiteFile {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/suite")
        .join(format!("{}.json", suite.name));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every level of this machine, highest first; `Soft` is the last.
pub(crate) fn levels() -> Vec<Level> {
    Level::detect("")
        .expect("nothing is disabled")
        .and_below()
        .collect()
}

/// Every suite at every level.
pub(crate) fn everything() -> impl Iterator<Item = (&'static Suite, Level)> {
    SUITES
        .iter()
        .flat_map(|suite| levels().into_iter().map(move |level| (suite, level)))
}

pub(crate) fn key_of(suite: &'static Suite, level: Level) -> SuiteKey {
    let octets: Vec<u8> = (0..suite.key_octets).map(|n| (n * 37 + 11) as u8).collect();
    SuiteKey::new(suite, &octets, level).expect("the suite's own length")
}

/// As many random cases, unless `PROPTEST_CASES` says how many: an emulated CPU takes fewer.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(usual),
    }
}

/// Octets without a pattern that a wrong block order could hide behind.
pub(crate) fn octets(count: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

pub(crate) fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex"))
        .collect()
}

/// Seals one frame: ciphertext and tag.
pub(crate) fn seal(
    key: &SuiteKey,
    nonce: [u8; 12],
    aad: &[u8],
    plaintext: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let mut data = plaintext.to_vec();
    let mut tag = vec![0; key.tag_octets()];
    key.seal(&mut [Seal {
        nonce,
        aad,
        data: &mut data,
        tag: &mut tag,
    }])
    .expect("lengths are right");
    (data, tag)
}

/// Opens one frame: what is left in `data`, and whether it is valid.
pub(crate) fn open(
    key: &SuiteKey,
    nonce: [u8; 12],
    aad: &[u8],
    ciphertext: &[u8],
    tag: &[u8],
) -> (Vec<u8>, bool) {
    let mut data = ciphertext.to_vec();
    let mut batch = [Open {
        nonce,
        aad,
        data: &mut data,
        tag,
        valid: !ciphertext.is_empty(),
    }];
    key.open(&mut batch).expect("lengths are right");
    let valid = batch[0].valid;
    (data, valid)
}
