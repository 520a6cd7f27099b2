//! ring: GCM-AES of two key lengths and ChaCha20-Poly1305. One frame a call.

use qloak_cipher::{Open, Seal, Suite};
use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey,
};

use super::Peer;
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "ring";

pub(super) struct Ring;

impl Peer for Ring {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        super::locked_version(NAME)
    }

    fn manner(&self) -> &'static str {
        "LessSafeKey in place"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let algorithm = match suite.name {
            "aes-128-gcm" => &AES_128_GCM,
            "aes-256-gcm" => &AES_256_GCM,
            "chacha20-poly1305" => &CHACHA20_POLY1305,
            _ => return None,
        };
        let key = UnboundKey::new(algorithm, key).ok()?;
        Some(Box::new(Each(Aead(LessSafeKey::new(key)))))
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
        Tag::try_from(one.tag).is_ok_and(|tag| {
            let opened = self
                .0
                .open_in_place_separate_tag(nonce, aad, tag, one.data, 0..);
            opened.is_ok()
        })
    }
}
