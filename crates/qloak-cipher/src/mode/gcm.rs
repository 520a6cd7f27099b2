//! Galois/counter mode with a 96-bit nonce (SP 800-38D, 7.1 and 7.2).
//!
//! ```text
//!   H  = E(0)            J0 = nonce || 1
//!   C  = P xor stream of counters 2, 3, ...
//!   T  = first octets of  E(J0) xor GHASH_H(AAD, C, lengths)
//! ```
//!
//! Opening checks the tag before a single octet is deciphered.

use super::{Modal, ctr, tags_equal, wipe};
use crate::aead::{Open, Seal};
use crate::backend::{Backend, Block, BlockCipher, Ghash};
use crate::limits::NONCE_OCTETS;

/// One key in GCM.
pub(crate) struct Gcm<B: Backend, C> {
    cipher: C,
    ghash: B::Ghash,
    tag_octets: usize,
}

impl<B: Backend, C: BlockCipher<B>> Gcm<B, C> {
    /// `tag_octets`: 16, or 8 in the PON profile.
    pub(crate) fn new(backend: B, cipher: C, tag_octets: usize) -> Self {
        let mut h = [[0; 16]];
        cipher.encrypt(backend, &mut h);
        let ghash = B::Ghash::new(&h[0]);
        zeroize::Zeroize::zeroize(&mut h);
        Self {
            cipher,
            ghash,
            tag_octets,
        }
    }

    #[inline(always)]
    fn tag(&self, backend: B, nonce: &[u8; NONCE_OCTETS], aad: &[u8], ciphertext: &[u8]) -> Block {
        let mut tag = [ctr::counter_block(nonce, 1)];
        self.cipher.encrypt(backend, &mut tag);
        let [mut tag] = tag;
        for (octet, hash) in tag.iter_mut().zip(self.ghash.hash(aad, ciphertext)) {
            *octet ^= hash;
        }
        tag
    }
}

impl<B: Backend, C: BlockCipher<B>> Modal<B> for Gcm<B, C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [Seal<'_>]) {
        for one in batch {
            ctr::apply(backend, &self.cipher, &one.nonce, 2, one.data);
            let tag = self.tag(backend, &one.nonce, one.aad, one.data);
            one.tag.copy_from_slice(&tag[..self.tag_octets]);
        }
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [Open<'_>]) {
        for one in batch {
            let tag = self.tag(backend, &one.nonce, one.aad, one.data);
            one.valid = tags_equal(&tag[..self.tag_octets], one.tag);
            if one.valid {
                ctr::apply(backend, &self.cipher, &one.nonce, 2, one.data);
            } else {
                wipe(one.data);
            }
        }
    }
}
