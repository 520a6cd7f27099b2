//! ChaCha20-Poly1305 (RFC 8439) by RustCrypto, a mode whole in itself.

use aes::cipher::Array;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::AeadInOut;

use super::Soft;
use crate::aead::{Open, Seal};
use crate::mode::{Modal, wipe};

/// The key; RustCrypto expands it per nonce.
pub(super) struct ChaCha(pub(super) ChaCha20Poly1305);

impl Modal<Soft> for ChaCha {
    fn seal(&self, _: Soft, batch: &mut [&mut Seal<'_>]) {
        for one in batch {
            let data = (&mut *one.data).into();
            match self
                .0
                .encrypt_inout_detached(&Array(one.nonce), one.aad, data)
            {
                Ok(tag) => one.tag.copy_from_slice(&tag),
                // It refuses lengths alone, and those are inside its bounds here. Should it
                // refuse all the same, zeros leave the node and no plaintext.
                Err(_) => {
                    wipe(one.data);
                    wipe(one.tag);
                }
            }
        }
    }

    fn open(&self, _: Soft, batch: &mut [&mut Open<'_>]) {
        for one in batch {
            let data = (&mut *one.data).into();
            one.valid = <&[u8; 16]>::try_from(one.tag).is_ok_and(|tag| {
                self.0
                    .decrypt_inout_detached(&Array(one.nonce), one.aad, data, &Array(*tag))
                    .is_ok()
            });
            if !one.valid {
                wipe(one.data);
            }
        }
    }
}
