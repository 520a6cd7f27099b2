//! Every vector of `vectors/suite` on every backend that this machine has.

mod common;

use common::{SuiteFile, everything, hex, open, read, seal};
use qloak_cipher::limits::PON_TAG_OCTETS;
use qloak_cipher::suite::SUITES;
use qloak_cipher::{Mode, SuiteKey};

#[test]
fn every_vector_seals_and_opens_on_every_backend() {
    for (suite, level) in everything() {
        let file = read(suite);
        assert_eq!(file.suite, suite.name);
        assert_eq!(file.cipher, suite.cipher);
        assert!(file.vectors.len() >= 14, "{}", suite.name);
        // A CTR suite starts at 1; examples that start elsewhere are tried inside the crate.
        for vector in file.vectors.iter().filter(|v| v.counter.unwrap_or(1) == 1) {
            let what = format!(
                "{} at {level}: {}, {}",
                suite.name, vector.source, vector.name
            );
            let tag = hex(&vector.tag);
            let octets = hex(&vector.key);
            let key = if suite.mode == Mode::Gcm && tag.len() == PON_TAG_OCTETS {
                SuiteKey::pon(suite, &octets, level).expect(&what)
            } else {
                SuiteKey::new(suite, &octets, level).expect(&what)
            };
            let nonce = hex(&vector.nonce).try_into().expect(&what);
            let (aad, plaintext) = (hex(&vector.aad), hex(&vector.plaintext));

            let sealed = seal(&key, nonce, &aad, &plaintext);
            assert_eq!(sealed, (hex(&vector.ciphertext), tag), "{what}");
            let opened = open(&key, nonce, &aad, &sealed.0, &sealed.1);
            assert_eq!(opened, (plaintext, true), "{what}");
        }
    }
}

/// RFC 7253, appendix A: a loop over all lengths from 0 to 127, here for each AEAD.
#[test]
fn the_loop_over_all_lengths_ends_where_it_must() {
    for (suite, level) in everything().filter(|(suite, _)| suite.authenticates()) {
        let mut octets = vec![0; suite.key_octets];
        *octets.last_mut().expect("a key") = 128;
        let key = SuiteKey::new(suite, &octets, level).expect("the suite's own length");
        let sealed = |number: u64, aad: &[u8], plaintext: &[u8]| {
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&number.to_be_bytes());
            let (ciphertext, tag) = seal(&key, nonce, aad, plaintext);
            [ciphertext, tag].concat()
        };
        let mut out = Vec::new();
        for i in 0..128 {
            let zeros = vec![0; i];
            let number = 3 * i as u64;
            out.extend(sealed(number + 1, &zeros, &zeros));
            out.extend(sealed(number + 2, &[], &zeros));
            out.extend(sealed(number + 3, &zeros, &[]));
        }
        let SuiteFile { all_lengths, .. } = read(suite);
        let expected = all_lengths.expect("each AEAD file has the loop's result");
        let result = sealed(385, &out, &[]);
        assert_eq!(
            result,
            hex(&expected.result),
            "{} at {level}: {}",
            suite.name,
            expected.source
        );
    }
}

/// A suite whose file is missing, or a file whose suite is gone, is drift.
#[test]
fn there_is_one_file_a_suite_and_no_other() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/suite");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("vectors/suite")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let mut names: Vec<String> = SUITES.iter().map(|s| format!("{}.json", s.name)).collect();
    files.sort();
    names.sort();
    assert_eq!(files, names);
}
