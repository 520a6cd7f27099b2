//! ChaCha20-Poly1305 by AWS-LC, whose assembler chooses its own CPU features.
//!
//! Chosen above `Level::Soft`. AWS-LC cleanses a key's memory when it frees it.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use super::Schedule;
use crate::aead::{Open, Seal};
use crate::mode::wipe;

/// The backend's name where people read it.
pub(super) const NAME: &str = "aws-lc";

/// AWS-LC's key; None when it has another length than the suite's.
pub(super) fn schedule(key: &[u8]) -> Option<Box<dyn Schedule>> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok()?;
    Some(Box::new(AwsLc(LessSafeKey::new(key))))
}

struct AwsLc(LessSafeKey);

impl Schedule for AwsLc {
    fn seal(&self, batch: &mut [&mut Seal<'_>]) {
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

    fn open(&self, batch: &mut [&mut Open<'_>]) {
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
