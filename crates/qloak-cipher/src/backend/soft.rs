//! The portable backend: RustCrypto's block ciphers and GHASH under our modes.
//!
//! Every suite runs here, so it is what every other backend is held against. The `camellia` crate
//! looks octets up in tables, which a neighbour on the same core may observe through the cache;
//! `aes` and `serpent` do not. Serpent takes keys and blocks as octet strings in the order of the
//! NESSIE vectors (Botan and libgcrypt do the same; the AES submission prints them reversed).

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16,
};
use aes::{Aes128, Aes192, Aes256};
use camellia::{Camellia128, Camellia192, Camellia256};
use chacha20poly1305::ChaCha20Poly1305;
use ghash::{GHash, universal_hash::UniversalHash};
use serpent::Serpent;

use super::{Backend, Block, BlockCipher, Ghash, Keyed, Schedule};
use crate::hazmat::{Ctr, Plain, RawBlock, Xor};
use crate::mode::{Gcm, Modal, Ocb};
use crate::suite::{Mode, Suite};

mod chacha;
#[cfg(test)]
mod tests;

/// The backend's name where people read it.
pub(super) const NAME: &str = "soft";

/// Proof of nothing: this backend runs anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Soft;

impl Backend for Soft {
    type Ghash = SoftGhash;
}

/// The schedule of `key` under `suite`; None when its length is not the cipher's.
pub(super) fn schedule(suite: &Suite, key: &[u8], tag_octets: usize) -> Option<Box<dyn Schedule>> {
    match suite.mode {
        Mode::Poly1305 => {
            let key = ChaCha20Poly1305::new_from_slice(key).ok()?;
            keyed(chacha::ChaCha(key))
        }
        Mode::Xor => keyed(Xor::new(key)),
        Mode::Plain => keyed(Plain),
        _ => match suite.cipher {
            "AES-128" => block::<Aes128>(suite.mode, key, tag_octets),
            "AES-192" => block::<Aes192>(suite.mode, key, tag_octets),
            "AES-256" => block::<Aes256>(suite.mode, key, tag_octets),
            "Camellia-128" => block::<Camellia128>(suite.mode, key, tag_octets),
            "Camellia-192" => block::<Camellia192>(suite.mode, key, tag_octets),
            "Camellia-256" => block::<Camellia256>(suite.mode, key, tag_octets),
            // One type takes keys of 16 to 32 octets; the suite has said which.
            _ => block::<Serpent>(suite.mode, key, tag_octets),
        },
    }
}

fn block<C: KeyInit + BlockCipher<Soft>>(
    mode: Mode,
    key: &[u8],
    tag_octets: usize,
) -> Option<Box<dyn Schedule>> {
    let cipher = C::new_from_slice(key).ok()?;
    match mode {
        Mode::Gcm => keyed(Gcm::new(Soft, cipher, tag_octets)),
        Mode::Ocb3 => keyed(Ocb::new(Soft, cipher)),
        Mode::Ctr => keyed(Ctr::new(cipher)),
        Mode::RawBlock => keyed(RawBlock::new(cipher)),
        Mode::Poly1305 | Mode::Xor | Mode::Plain => None,
    }
}

fn keyed<M: Modal<Soft>>(key: M) -> Option<Box<dyn Schedule>> {
    Some(Box::new(Keyed { backend: Soft, key }))
}

impl<C> BlockCipher<Soft> for C
where
    C: BlockCipherEncrypt
        + BlockCipherDecrypt
        + BlockSizeUser<BlockSize = U16>
        + aes::cipher::zeroize::ZeroizeOnDrop
        + Send
        + Sync
        + 'static,
{
    #[inline(always)]
    fn encrypt(&self, _: Soft, blocks: &mut [Block]) {
        self.encrypt_blocks(Array::cast_slice_from_core_mut(blocks));
    }

    #[inline(always)]
    fn decrypt(&self, _: Soft, blocks: &mut [Block]) {
        self.decrypt_blocks(Array::cast_slice_from_core_mut(blocks));
    }
}

/// RustCrypto's GHASH, which finds carry-less multiplication by itself.
pub(crate) struct SoftGhash(GHash);

impl Ghash for SoftGhash {
    fn new(h: &Block) -> Self {
        Self(GHash::new(&Array(*h)))
    }

    #[inline(always)]
    fn hash(&self, aad: &[u8], ciphertext: &[u8]) -> Block {
        let mut lengths = [0; 16];
        let (first, second) = lengths.split_at_mut(8);
        first.copy_from_slice(&(aad.len() as u64 * 8).to_be_bytes());
        second.copy_from_slice(&(ciphertext.len() as u64 * 8).to_be_bytes());

        let mut ghash = self.0.clone();
        ghash.update_padded(aad);
        ghash.update_padded(ciphertext);
        ghash.update(&[Array(lengths)]);
        ghash.finalize().0
    }
}
