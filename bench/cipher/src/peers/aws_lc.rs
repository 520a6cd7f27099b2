//! AWS-LC by way of aws-lc-rs: GCM-AES, ChaCha20-Poly1305 and AES in CTR. One frame a call.

use aws_lc_rs::{
    aead::{
        AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey,
        Nonce, UnboundKey,
    },
    cipher::{self, EncryptingKey, EncryptionContext, UnboundCipherKey},
    iv::FixedLength,
};
use qloak_cipher::{Open, Seal, Suite};

use super::Peer;
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "aws-lc-rs";

pub(super) struct AwsLc;

impl Peer for AwsLc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        super::locked_version(NAME)
    }

    fn manner(&self) -> &'static str {
        "LessSafeKey in place; EncryptingKey for CTR"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let aead = |algorithm: &'static Algorithm| -> Option<Box<dyn Party>> {
            let key = UnboundKey::new(algorithm, key).ok()?;
            Some(Box::new(Each(Aead(LessSafeKey::new(key)))))
        };
        let ctr = |algorithm: &'static cipher::Algorithm| -> Option<Box<dyn Party>> {
            let key = UnboundCipherKey::new(algorithm, key).ok()?;
            Some(Box::new(Each(Ctr(EncryptingKey::ctr(key).ok()?))))
        };
        match suite.name {
            "aes-128-gcm" => aead(&AES_128_GCM),
            "aes-192-gcm" => aead(&AES_192_GCM),
            "aes-256-gcm" => aead(&AES_256_GCM),
            "chacha20-poly1305" => aead(&CHACHA20_POLY1305),
            "aes-128-ctr" => ctr(&cipher::AES_128),
            "aes-192-ctr" => ctr(&cipher::AES_192),
            "aes-256-ctr" => ctr(&cipher::AES_256),
            _ => None,
        }
    }
}

struct Aead(LessSafeKey);

impl OneByOne for Aead {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let nonce = Nonce::assume_unique_for_key(one.nonce);
        let aad = Aad::from(one.aad);
        if let Ok(tag) = self.0.seal_in_place_separate_tag(nonce, aad, one.data) {
            one.tag.copy_from_slice(tag.as_ref());
        }
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let nonce = Nonce::assume_unique_for_key(one.nonce);
        let aad = Aad::from(one.aad);
        let opened = self
            .0
            .open_in_place_separate_tag(nonce, aad, one.tag, one.data);
        opened.is_ok()
    }
}

struct Ctr(EncryptingKey);

impl Ctr {
    /// CTR is its own inverse.
    fn apply(&self, nonce: [u8; 12], data: &mut [u8]) -> bool {
        let iv = FixedLength::from(super::counter_block(nonce));
        let context = EncryptionContext::Iv128(iv);
        self.0.less_safe_encrypt(data, context).is_ok()
    }
}

impl OneByOne for Ctr {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        self.apply(one.nonce, one.data);
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        self.apply(one.nonce, one.data)
    }
}
