//! Every block cipher in GCM and OCB3 beside RustCrypto's own modes and ciphers, which share no code
//! with ours but AES under `soft`: random keys, nonces, AAD and data, and the lengths where tables end.

mod common;

use aes::cipher::{Array, KeyInit, consts::U16};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{AeadInOut, consts::U12};
use camellia::{Camellia128, Camellia192, Camellia256};
use common::{cases, levels, open, seal};
use ocb3::Ocb3;
use proptest::prelude::*;
use qloak_cipher::{Suite, SuiteKey};
use serpent::Serpent;

/// What both are given.
struct Input<'a> {
    key: &'a [u8],
    nonce: [u8; 12],
    aad: &'a [u8],
    data: &'a [u8],
}

impl Input<'_> {
    /// The suite on every level, there and back, beside another's AEAD.
    fn beside(&self, suite: &str, other: &impl AeadInOut<NonceSize = U12, TagSize = U16>) {
        let suite = Suite::by_name(suite).expect("in the table");
        let (nonce, aad) = (self.nonce, self.aad);
        let mut expected = self.data.to_vec();
        let tag = other
            .encrypt_inout_detached(&Array(nonce), aad, expected.as_mut_slice().into())
            .expect("a length that it takes");
        for level in levels() {
            let what = format!("{} at {level}, {} octets", suite.name, self.data.len());
            let key = SuiteKey::new(suite, self.key, level).expect("the suite's length");
            let (data, made) = seal(&key, nonce, aad, self.data);
            assert!(data == expected, "{what}: another ciphertext");
            assert_eq!(made, tag.0, "{what}: another tag");
            let (data, valid) = open(&key, nonce, aad, &data, &made);
            assert!(valid && data == self.data, "{what}: it does not come back");
        }
    }
}

/// Both modes of all ciphers.
fn beside_rustcrypto(key: &[u8; 32], nonce: [u8; 12], aad: &[u8], data: &[u8]) {
    macro_rules! beside {
        ($suite:literal, $cipher:ty, $octets:literal) => {
            let key = &key[..$octets];
            let input = Input {
                key,
                nonce,
                aad,
                data,
            };
            let cipher = || <$cipher>::new_from_slice(key).expect("a key of this length");
            let gcm = AesGcm::<$cipher, U12>::from(cipher());
            input.beside(concat!($suite, "-gcm"), &gcm);
            let ocb = Ocb3::<$cipher, U12, U16>::from(cipher());
            input.beside(concat!($suite, "-ocb"), &ocb);
        };
    }
    beside!("aes-128", Aes128, 16);
    beside!("aes-192", Aes192, 24);
    beside!("aes-256", Aes256, 32);
    beside!("camellia-128", Camellia128, 16);
    beside!("camellia-192", Camellia192, 24);
    beside!("camellia-256", Camellia256, 32);
    beside!("serpent-128", Serpent, 16);
    beside!("serpent-192", Serpent, 24);
    beside!("serpent-256", Serpent, 32);
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn modes_are_rustcryptos_modes(
        key: [u8; 32],
        nonce: [u8; 12],
        aad in prop::collection::vec(any::<u8>(), 0..300),
        data in prop::collection::vec(any::<u8>(), 0..2600),
    ) {
        beside_rustcrypto(&key, nonce, &aad, &data);
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
fn modes_hold_at_the_longest_data() {
    let data = vec![0x5a; qloak_cipher::limits::DATA_OCTETS_MAX];
    let input = Input {
        key: &[3; 16],
        nonce: [9; 12],
        aad: &data,
        data: &data,
    };
    let cipher = || Aes128::new(&Array([3; 16]));
    input.beside("aes-128-ocb", &Ocb3::<_, U12, U16>::from(cipher()));
    input.beside("aes-128-gcm", &AesGcm::<_, U12>::from(cipher()));
}
