//! Batches under several keys, and the guard against a nonce used twice.

mod common;

use common::{everything, seal};
use qloak_cipher::batch::{self, BatchError, Under};
use qloak_cipher::{Open, Seal, SuiteKey};

/// Frames of three keys in turn come out as each would alone; a forged one is refused alone.
#[test]
fn frames_of_several_keys_are_as_each_alone() {
    for (suite, level) in everything() {
        let keys = [1_u8, 2, 3].map(|octet| {
            SuiteKey::new(suite, &vec![octet; suite.key_octets], level).expect("its length")
        });
        let plain: Vec<Vec<u8>> = (0..70).map(|n| vec![n as u8; n * 29 % 400]).collect();
        let (mut data, aad) = (plain.clone(), [9; 20]);
        let mut tags = vec![vec![0; suite.tag_octets]; data.len()];
        let mut frames: Vec<Under<'_, Seal<'_>>> = Vec::new();
        for (n, (data, tag)) in data.iter_mut().zip(&mut tags).enumerate() {
            let (nonce, key) = ([n as u8; 12], &keys[n % 3]);
            let aad = &aad;
            let frame = Seal {
                nonce,
                aad,
                data,
                tag,
            };
            frames.push(Under { key, frame });
        }
        batch::seal(&mut frames).expect("lengths are right");
        for n in 0..plain.len() {
            let alone = seal(&keys[n % 3], [n as u8; 12], &aad, &plain[n]);
            assert_eq!(
                (&data[n], &tags[n]),
                (&alone.0, &alone.1),
                "{} {n}",
                suite.name
            );
        }

        let forged = suite.authenticates().then_some(40);
        if let Some(n) = forged {
            tags[n][0] ^= 1;
        }
        let mut frames: Vec<Under<'_, Open<'_>>> = Vec::new();
        for (n, (data, tag)) in data.iter_mut().zip(&tags).enumerate() {
            let (nonce, key, valid) = ([n as u8; 12], &keys[n % 3], false);
            let aad = &aad;
            let frame = Open {
                nonce,
                aad,
                data,
                tag,
                valid,
            };
            frames.push(Under { key, frame });
        }
        batch::open(&mut frames).expect("lengths are right");
        let valid: Vec<bool> = frames.iter().map(|one| one.frame.valid).collect();
        for n in 0..plain.len() {
            assert_eq!(valid[n], forged != Some(n), "{} {n}", suite.name);
            let left = if valid[n] {
                plain[n].clone()
            } else {
                vec![0; plain[n].len()]
            };
            assert_eq!(data[n], left, "{} {n}", suite.name);
        }
    }
}

/// One nonce twice under one key is refused and nothing is sealed; under two keys it is not.
#[test]
fn a_nonce_used_twice_is_refused() {
    for (suite, level) in everything() {
        let key = || SuiteKey::new(suite, &vec![5; suite.key_octets], level).expect("its length");
        let keys = [key(), key()];
        let nonces = [[1; 12], [2; 12], [1; 12]];
        let twice = Err(BatchError::NonceTwice {
            first: 0,
            second: 2,
        });
        for (second, expected) in [(0, twice), (1, Ok(()))] {
            let mut data = [[7; 40]; 3];
            let mut tags = [const { [0; 16] }; 3];
            let mut frames: Vec<Under<'_, Seal<'_>>> = Vec::new();
            for (n, (data, tag)) in data.iter_mut().zip(&mut tags).enumerate() {
                let key = &keys[if n == 2 { second } else { 0 }];
                let (nonce, aad) = (nonces[n], &[][..]);
                let tag = &mut tag[..suite.tag_octets];
                let frame = Seal {
                    nonce,
                    aad,
                    data,
                    tag,
                };
                frames.push(Under { key, frame });
            }
            assert_eq!(batch::seal(&mut frames), expected, "{}", suite.name);
            if expected.is_err() {
                assert_eq!(data, [[7; 40]; 3], "{}", suite.name);
            }
        }
    }
}
