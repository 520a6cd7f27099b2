//! The promises of the door: the same bytes on every backend, one by one or in a batch; forgeries
//! refused and wiped; impossible lengths named before anything changes.

mod common;

use common::{cases, everything, key_of, levels, octets, open, seal};
use proptest::prelude::*;
use qloak_cipher::limits::{AAD_OCTETS_MAX, DATA_OCTETS_MAX};
use qloak_cipher::suite::SUITES;
use qloak_cipher::{BatchError, Level, Mode, Open, Seal, Suite, SuiteKey};

#[test]
fn every_backend_gives_the_same_bytes_at_every_length() {
    for suite in &SUITES {
        let keys: Vec<SuiteKey> = levels().iter().map(|level| key_of(suite, *level)).collect();
        let mut tried = vec![Level::Soft.name()];
        for key in &keys {
            if tried.contains(&key.backend()) {
                continue;
            }
            tried.push(key.backend());
            let soft = key_of(suite, Level::Soft);
            for length in (0..=600).chain([1500, 9001]) {
                let (data, aad) = (octets(length, 1), octets(length % 41, 2));
                let nonce = [length as u8; 12];
                let sealed = seal(key, nonce, &aad, &data);
                assert_eq!(
                    sealed,
                    seal(&soft, nonce, &aad, &data),
                    "{} {length}",
                    suite.name
                );
                let opened = open(key, nonce, &aad, &sealed.0, &sealed.1);
                assert_eq!(opened, (data, true), "{} {length}", suite.name);
            }
        }
    }
}

/// So that a level that falls back to another backend does not go unseen.
#[test]
fn each_suite_runs_on_the_backend_of_its_level() {
    for (suite, level) in everything() {
        let expected = match (suite.mode, level) {
            (Mode::Poly1305, level) if level > Level::Soft => "aws-lc",
            // Instructions of the Galois field help Camellia alone.
            (_, Level::Gfni256) if !suite.cipher.starts_with("Camellia") => "vaes256",
            _ => level.name(),
        };
        assert_eq!(key_of(suite, level).backend(), expected, "{}", suite.name);
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn what_was_sealed_on_one_backend_opens_on_another(
        which in 0..SUITES.len(),
        nonce: [u8; 12],
        aad in prop::collection::vec(any::<u8>(), 0..64),
        data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let suite = &SUITES[which];
        for from in levels() {
            let (ciphertext, tag) = seal(&key_of(suite, from), nonce, &aad, &data);
            for to in levels() {
                let opened = open(&key_of(suite, to), nonce, &aad, &ciphertext, &tag);
                prop_assert_eq!(&opened, &(data.clone(), true));
            }
        }
    }
}

#[test]
fn a_batch_is_its_frames_one_by_one() {
    const FRAMES: usize = 37;
    for (suite, level) in everything() {
        let key = key_of(suite, level);
        let plaintexts: Vec<Vec<u8>> = (0..FRAMES)
            .map(|n| octets(n * 23 % 301, n as u32))
            .collect();
        let aads: Vec<Vec<u8>> = (0..FRAMES).map(|n| octets(n % 29, 99 + n as u32)).collect();
        let mut data = plaintexts.clone();
        let mut tags = vec![vec![0; key.tag_octets()]; FRAMES];

        let mut batch: Vec<Seal<'_>> = data
            .iter_mut()
            .zip(&mut tags)
            .zip(&aads)
            .enumerate()
            .map(|(n, ((data, tag), aad))| Seal {
                nonce: [n as u8; 12],
                aad,
                data,
                tag,
            })
            .collect();
        key.seal(&mut batch).expect("lengths are right");
        for n in 0..FRAMES {
            let alone = seal(&key, [n as u8; 12], &aads[n], &plaintexts[n]);
            assert_eq!(
                (&data[n], &tags[n]),
                (&alone.0, &alone.1),
                "{} frame {n}",
                suite.name
            );
        }

        // One frame in the middle is forged: its neighbours do not suffer.
        let forged = 17;
        if suite.authenticates() {
            tags[forged][0] ^= 1;
        }
        let mut batch: Vec<Open<'_>> = data
            .iter_mut()
            .zip(&tags)
            .zip(&aads)
            .enumerate()
            .map(|(n, ((data, tag), aad))| Open {
                nonce: [n as u8; 12],
                aad,
                data,
                tag,
                valid: n == forged,
            })
            .collect();
        key.open(&mut batch).expect("lengths are right");
        let valid: Vec<bool> = batch.iter().map(|one| one.valid).collect();
        for n in 0..FRAMES {
            let refused = suite.authenticates() && n == forged;
            assert_eq!(valid[n], !refused, "{} frame {n}", suite.name);
            let expected = if refused {
                vec![0; data[n].len()]
            } else {
                plaintexts[n].clone()
            };
            assert_eq!(data[n], expected, "{} frame {n}", suite.name);
        }
    }
}

/// Each bit of data, AAD, nonce and tag, one at a time, in every AEAD suite on every backend.
#[test]
fn one_wrong_bit_anywhere_is_refused_and_the_data_wiped() {
    let nonce = [0xc3; 12];
    // A short frame, and one that fills the lanes of a backend and has a tail.
    for (data_octets, step) in [(37, 1), (530, 29)] {
        let (aad, plaintext) = (octets(28, 5), octets(data_octets, 6));
        for (suite, level) in everything().filter(|(suite, _)| suite.authenticates()) {
            let keys = [
                Some(key_of(suite, level)),
                SuiteKey::pon(suite, &vec![9; suite.key_octets], level).ok(),
            ];
            for key in keys.iter().flatten() {
                let (ciphertext, tag) = seal(key, nonce, &aad, &plaintext);
                assert_ne!(ciphertext, plaintext);
                let parts = [&ciphertext, &aad, &nonce.to_vec(), &tag].map(|part| part.clone());
                for part in 0..parts.len() {
                    for bit in (0..parts[part].len() * 8).step_by(step) {
                        let mut wrong = parts.clone();
                        wrong[part][bit / 8] ^= 1 << (bit % 8);
                        let [data, aad, nonce, tag] = wrong;
                        let nonce = nonce.try_into().expect("12 octets");
                        let (left, valid) = open(key, nonce, &aad, &data, &tag);
                        assert!(!valid, "{} part {part} bit {bit}", suite.name);
                        assert!(
                            left.iter().all(|octet| *octet == 0),
                            "{} is not wiped",
                            suite.name
                        );
                    }
                }
                // Nor is the frame cut or stretched by what looks like padding.
                for end in [data_octets - 1, data_octets - 16] {
                    assert!(
                        !open(key, nonce, &aad, &ciphertext[..end], &tag).1,
                        "{}",
                        suite.name
                    );
                }
                let longer = [&ciphertext[..], &[0]].concat();
                assert!(!open(key, nonce, &aad, &longer, &tag).1, "{}", suite.name);
                let longer = [&aad[..], &[0]].concat();
                assert!(
                    !open(key, nonce, &longer, &ciphertext, &tag).1,
                    "{}",
                    suite.name
                );
            }
        }
    }
}

#[test]
fn another_key_is_refused() {
    for (suite, level) in everything().filter(|(suite, _)| suite.authenticates()) {
        let (data, tag) = seal(&key_of(suite, level), [1; 12], &[2; 12], &[3; 60]);
        let other = SuiteKey::new(suite, &vec![4; suite.key_octets], level).expect("its length");
        assert_eq!(
            open(&other, [1; 12], &[2; 12], &data, &tag),
            (vec![0; 60], false)
        );
    }
}

#[test]
fn hazmat_suites_take_anything() {
    for (suite, level) in everything().filter(|(suite, _)| suite.hazmat) {
        let key = key_of(suite, level);
        assert!(
            open(&key, [1; 12], &[2; 12], &[3; 60], &[]).1,
            "{}",
            suite.name
        );
    }
}

#[test]
fn a_tag_of_another_length_is_named_and_nothing_happens() {
    for (suite, level) in everything() {
        let key = key_of(suite, level);
        let needed = key.tag_octets();
        for given in [0, 1, 8, 15, 16, 17]
            .into_iter()
            .filter(|given| *given != needed)
        {
            let error = Err(BatchError::TagLength {
                position: 1,
                given,
                needed,
            });
            let (mut first, mut second) = ([7; 20], [7; 20]);
            let (mut right, mut wrong) = (vec![0; needed], vec![0; given]);
            let mut batch = [
                Seal {
                    nonce: [0; 12],
                    aad: &[],
                    data: &mut first,
                    tag: &mut right,
                },
                Seal {
                    nonce: [1; 12],
                    aad: &[],
                    data: &mut second,
                    tag: &mut wrong,
                },
            ];
            assert_eq!(key.seal(&mut batch), error, "{}", suite.name);
            let mut batch = [
                Open {
                    nonce: [0; 12],
                    aad: &[],
                    data: &mut first,
                    tag: &right,
                    valid: true,
                },
                Open {
                    nonce: [1; 12],
                    aad: &[],
                    data: &mut second,
                    tag: &wrong,
                    valid: true,
                },
            ];
            assert_eq!(key.open(&mut batch), error, "{}", suite.name);
            assert!(batch.iter().all(|one| !one.valid), "{}", suite.name);
            assert_eq!((first, second), ([7; 20], [7; 20]), "{}", suite.name);
        }
    }
}

#[test]
fn data_and_aad_beyond_the_limit_are_named() {
    let suite = Suite::by_name("aes-256-gcm").expect("in the table");
    for level in levels() {
        let key = key_of(suite, level);
        let mut tag = [0; 16];
        let mut data = vec![0; DATA_OCTETS_MAX + 1];
        let error = key.seal(&mut [Seal {
            nonce: [0; 12],
            aad: &[],
            data: &mut data,
            tag: &mut tag,
        }]);
        let (position, given, max) = (0, DATA_OCTETS_MAX + 1, DATA_OCTETS_MAX);
        assert_eq!(
            error,
            Err(BatchError::DataLength {
                position,
                given,
                max
            })
        );
        let aad = vec![0; AAD_OCTETS_MAX + 1];
        let error = key.seal(&mut [Seal {
            nonce: [0; 12],
            aad: &aad,
            data: &mut [],
            tag: &mut tag,
        }]);
        let (given, max) = (AAD_OCTETS_MAX + 1, AAD_OCTETS_MAX);
        assert_eq!(
            error,
            Err(BatchError::AadLength {
                position,
                given,
                max
            })
        );
    }
}

#[test]
fn an_empty_batch_is_no_error() {
    for (suite, level) in everything() {
        let key = key_of(suite, level);
        assert_eq!(key.seal(&mut []), Ok(()));
        assert_eq!(key.open(&mut []), Ok(()));
    }
}

/// The seeds' raw block: whole blocks alone, a tail of under 16 octets in the clear.
#[test]
fn raw_block_shows_equal_blocks_and_the_tail() {
    let suite = Suite::by_name("raw-block-aes-256").expect("in the table");
    let key = key_of(suite, Level::Soft);
    let (data, _) = seal(&key, [1; 12], &[], &[0x42; 40]);
    assert_eq!(data[..16], data[16..32]);
    assert_ne!(data[..16], [0x42; 16]);
    assert_eq!(data[32..], [0x42; 8]);
    assert_eq!(seal(&key, [2; 12], &[], &[0x42; 40]).0, data);
}

/// One key serves two threads at once.
#[test]
fn two_threads_share_a_key() {
    let suite = Suite::by_name("aes-256-ocb").expect("in the table");
    let key = key_of(suite, levels()[0]);
    let expected = seal(&key, [1; 12], &[2; 20], &[3; 333]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(seal(&key, [1; 12], &[2; 20], &[3; 333]), expected);
                }
            });
        }
    });
}
