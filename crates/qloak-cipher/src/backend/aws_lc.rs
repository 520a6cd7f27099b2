//! GCM-AES and ChaCha20-Poly1305 by AWS-LC, whose assembler chooses its own CPU features.
//!
//! Chosen above `Level::Soft`. Tags of 128 bits only; the PON profile stays with `soft`. AWS-LC
//! cleanses a key's memory when it frees it.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce,
    UnboundKey,
};

use super::Schedule;
use crate::aead::{Open, Seal};
use crate::limits::TAG_OCTETS;
use crate::mode::wipe;
use crate::suite::{Mode, Suite};

/// The backend's name where people read it.
pub(super) const NAME: &str = "aws-lc";

/// AWS-LC's key for `suite`, or None where it has none.
pub(super) fn schedule(suite: &Suite, key: &[u8], tag_octets: usize) -> Option<Box<dyn Schedule>> {
    if tag_octets != TAG_OCTETS {
        return None;
    }
    let key = UnboundKey::new(algorithm(suite)?, key).ok()?;
    Some(Box::new(AwsLc(LessSafeKey::new(key))))
}

fn algorithm(suite: &Suite) -> Option<&'static Algorithm> {
    match (suite.cipher, suite.mode) {
        ("AES-128", Mode::Gcm) => Some(&AES_128_GCM),
        ("AES-192", Mode::Gcm) => Some(&AES_192_GCM),
        ("AES-256", Mode::Gcm) => Some(&AES_256_GCM),
        ("ChaCha20", Mode::Poly1305) => Some(&CHACHA20_POLY1305),
        _ => None,
    }
}

struct AwsLc(LessSafeKey);

impl Schedule for AwsLc {
    fn seal(&self, batch: &mut [Seal<'_>]) {
        for one in batch {
            let nonce = Nonce::assume_unique_for_key(one.nonce);
            match self
                .0
                .seal_in_place_separate_tag(nonce, Aad::from(one.aad), one.data)
            {
                Ok(tag) => one.tag.copy_from_slice(tag.as_ref()),
                // AWS-LC refuses lengths alone, and those are inside its bounds here. Should it
                // refuse all the same, zeros leave the node and no plaintext.
                Err(_) => {
                    wipe(one.data);
                    wipe(one.tag);
                }
            }
        }
    }

    fn open(&self, batch: &mut [Open<'_>]) {
        for one in batch {
            let nonce = Nonce::assume_unique_for_key(one.nonce);
            let opened =
                self.0
                    .open_in_place_separate_tag(nonce, Aad::from(one.aad), one.tag, one.data);
            one.valid = opened.is_ok();
            if !one.valid {
                wipe(one.data);
            }
        }
    }
}
