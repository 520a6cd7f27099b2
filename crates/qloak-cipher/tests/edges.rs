//! The edge cases of `vectors/edge` on every backend that this machine has: frames of every length, AAD
//! of every length, tags that were changed or cut. What stands there came from other libraries.
//!
//! A file has the form of Project Wycheproof. Groups of type `AeadTest` are Wycheproof's own; the others
//! hold a whole range in one line (vectors/README.md). First counters other than 1 are out of the
//! door's reach and are tried inside the crate.

mod common;

use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use common::{everything, hex, open, seal};
use qloak_cipher::limits::PON_TAG_OCTETS;
use qloak_cipher::suite::SUITES;
use qloak_cipher::{BatchError, Level, Open, Seal, Suite, SuiteKey};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    algorithm: String,
    number_of_tests: usize,
    test_groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Group {
    #[serde(rename_all = "camelCase")]
    AeadTest {
        tag_size: usize,
        tests: Vec<Test>,
    },
    EveryLength(Range),
    EveryAad(Range),
    /// Out of the door's reach.
    EveryCounter(Range),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    tc_id: usize,
    comment: String,
    flags: Vec<String>,
    key: String,
    iv: String,
    aad: String,
    msg: String,
    ct: String,
    tag: String,
    result: String,
}

/// Frames numbered by all numbers of some ranges, both ends included. The number stands in the last
/// three octets of the frame's nonce. `msg` and `aad` are repeated to the length that is wanted.
#[derive(Deserialize)]
struct Range {
    key: String,
    iv: String,
    aad: String,
    msg: String,
    ranges: Vec<(usize, usize)>,
    /// Two octets of SHA-256 of each frame's ciphertext and tag.
    digests: String,
    /// Of all ciphertexts and tags, one behind the other.
    sha256: String,
}

/// One frame of a range.
struct Frame {
    number: usize,
    nonce: [u8; 12],
    aad: Vec<u8>,
    data: Vec<u8>,
}

fn read(suite: &Suite) -> File {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/edge")
        .join(format!("{}.json", suite.name));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Frames up to this number are sealed alone too. Longer ones alone are beside `soft` in `door.rs`.
const ALONE_MAX: usize = 160;

#[test]
fn every_edge_case_comes_out_as_it_must() {
    for (suite, level) in everything() {
        let file = read(suite);
        assert_eq!(file.algorithm, suite.name);
        let mut tried = 0;
        for group in &file.test_groups {
            tried += match group {
                Group::AeadTest { tag_size, tests } => {
                    for test in tests {
                        test.run(suite, level, *tag_size == 8 * PON_TAG_OCTETS);
                    }
                    tests.len()
                }
                Group::EveryLength(range) => range.run(suite, level, "octets of data", |number| {
                    (hex(&range.aad), repeated(&range.msg, number))
                }),
                Group::EveryAad(range) => range.run(suite, level, "octets of AAD", |number| {
                    (repeated(&range.aad, number), hex(&range.msg))
                }),
                Group::EveryCounter(range) => range.numbers().count(),
            };
        }
        assert_eq!(tried, file.number_of_tests, "{}", suite.name);
        // Every length from 0 to 600 at least.
        assert!(tried >= 601, "{}", suite.name);
    }
}

impl Test {
    fn run(&self, suite: &'static Suite, level: Level, pon: bool) {
        let what = format!(
            "{} at {level}: {}, {}",
            suite.name, self.tc_id, self.comment
        );
        let octets = hex(&self.key);
        let key = if pon {
            SuiteKey::pon(suite, &octets, level).expect(&what)
        } else {
            SuiteKey::new(suite, &octets, level).expect(&what)
        };
        let nonce = hex(&self.iv).try_into().expect("96 bits");
        let (aad, msg) = (hex(&self.aad), hex(&self.msg));
        let (ct, tag) = (hex(&self.ct), hex(&self.tag));
        let zeros = vec![0; ct.len()];

        if self.flags.iter().any(|flag| flag == "TruncatedTag") {
            assert_eq!(self.result, "invalid", "{what}");
            return refused(&key, nonce, &aad, &ct, &tag, &what);
        }
        match self.result.as_str() {
            "valid" => {
                assert_eq!(
                    seal(&key, nonce, &aad, &msg),
                    (ct.clone(), tag.clone()),
                    "{what}"
                );
                assert_eq!(open(&key, nonce, &aad, &ct, &tag), (msg, true), "{what}");
            }
            "invalid" => assert_eq!(open(&key, nonce, &aad, &ct, &tag), (zeros, false), "{what}"),
            other => panic!("{what}: a result called {other}"),
        }
    }
}

/// A tag of another length is refused by a sentence that names both lengths, and nothing is opened.
fn refused(key: &SuiteKey, nonce: [u8; 12], aad: &[u8], ct: &[u8], tag: &[u8], what: &str) {
    let mut data = ct.to_vec();
    let mut batch = [Open {
        nonce,
        aad,
        data: &mut data,
        tag,
        valid: true,
    }];
    let error = key.open(&mut batch).expect_err(what);
    assert!(!batch[0].valid, "{what}");
    assert_eq!(data, ct, "{what}");
    let (given, needed) = (tag.len(), key.tag_octets());
    let position = 0;
    assert_eq!(
        error,
        BatchError::TagLength {
            position,
            given,
            needed
        },
        "{what}"
    );
    let sentence = error.to_string();
    let told = [format!(" {given} octets"), format!(" {needed}")];
    assert!(
        told.iter().all(|words| sentence.contains(words)),
        "{what}: {sentence}"
    );
}

impl Range {
    fn numbers(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// All frames of the range in one batch, sealed and opened; short ones alone as well.
    fn run(
        &self,
        suite: &'static Suite,
        level: Level,
        unit: &str,
        parts: impl Fn(usize) -> (Vec<u8>, Vec<u8>),
    ) -> usize {
        let what = |number| format!("{} at {level}: {number} {unit}", suite.name);
        let key = SuiteKey::new(suite, &hex(&self.key), level).expect("the suite's length");
        let frames: Vec<Frame> = self
            .numbers()
            .map(|number| self.frame(number, &parts))
            .collect();

        let mut sealed: Vec<Vec<u8>> = frames.iter().map(|frame| frame.data.clone()).collect();
        let mut tags = vec![vec![0; key.tag_octets()]; frames.len()];
        let mut batch: Vec<Seal<'_>> = Vec::new();
        for ((frame, data), tag) in frames.iter().zip(&mut sealed).zip(&mut tags) {
            let (nonce, aad) = (frame.nonce, &frame.aad[..]);
            batch.push(Seal {
                nonce,
                aad,
                data,
                tag,
            });
        }
        key.seal(&mut batch).expect("lengths are right");

        let mut all = Vec::new();
        let expected = hex(&self.digests);
        assert_eq!(expected.len(), 2 * frames.len(), "{}", suite.name);
        for (at, frame) in frames.iter().enumerate() {
            let octets = [&sealed[at][..], &tags[at]].concat();
            let found = digest(&SHA256, &octets);
            let expected = &expected[2 * at..][..2];
            assert_eq!(&found.as_ref()[..2], expected, "{}", what(frame.number));
            all.extend(octets);
            if frame.number <= ALONE_MAX {
                let alone = seal(&key, frame.nonce, &frame.aad, &frame.data);
                assert!(
                    alone.0 == sealed[at] && alone.1 == tags[at],
                    "{}",
                    what(frame.number)
                );
            }
        }
        assert_eq!(
            digest(&SHA256, &all).as_ref(),
            hex(&self.sha256),
            "{}",
            suite.name
        );

        let mut batch: Vec<Open<'_>> = Vec::new();
        for ((frame, data), tag) in frames.iter().zip(&mut sealed).zip(&tags) {
            let (nonce, aad, valid) = (frame.nonce, &frame.aad[..], false);
            batch.push(Open {
                nonce,
                aad,
                data,
                tag,
                valid,
            });
        }
        key.open(&mut batch).expect("lengths are right");
        for (open, frame) in batch.iter().zip(&frames) {
            assert!(open.valid, "{}", what(frame.number));
            assert!(open.data == frame.data, "{}", what(frame.number));
        }
        frames.len()
    }

    fn frame(&self, number: usize, parts: impl Fn(usize) -> (Vec<u8>, Vec<u8>)) -> Frame {
        let mut nonce: [u8; 12] = hex(&self.iv).try_into().expect("96 bits");
        nonce[9..].copy_from_slice(&(number as u32).to_be_bytes()[1..]);
        let (aad, data) = parts(number);
        Frame {
            number,
            nonce,
            aad,
            data,
        }
    }
}

/// The text in hex, again and again, to a length.
fn repeated(text: &str, octets: usize) -> Vec<u8> {
    hex(text).into_iter().cycle().take(octets).collect()
}

/// A suite whose file is missing, or a file whose suite is gone, is drift.
#[test]
fn there_is_one_file_a_suite_and_no_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/edge");
    let entries = std::fs::read_dir(folder).expect("vectors/edge");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string())
        .map(|name| name.expect("a name in UTF-8"))
        .collect();
    let mut names: Vec<String> = SUITES.iter().map(|s| format!("{}.json", s.name)).collect();
    files.sort();
    names.sort();
    assert_eq!(files, names);
}
