//! Galois/counter mode with a 96-bit nonce (SP 800-38D, 7.1 and 7.2).
//!
//! ```text
//!   H  = E(0)            J0 = nonce || 1
//!   C  = P xor stream of counters 2, 3, ...
//!   T  = first octets of  E(J0) xor GHASH_H(AAD, C, lengths)
//! ```
//!
//! Opening deciphers while it hashes and wipes what turns out forged, so no plaintext of a forged
//! frame leaves `open`.

use zeroize::Zeroizing;

use super::{Modal, PerFrame, give, judge};
use crate::aead::{Job, Open, Seal};
use crate::backend::{Backend, Block, Ghash};
use crate::bulk::{Cipher, counter_block};

/// One key in GCM.
pub(crate) struct Gcm<B: Backend, C> {
    cipher: C,
    ghash: B::Ghash,
}

impl<B: Backend, C: Cipher<B>> Gcm<B, C> {
    #[inline(always)]
    pub(crate) fn new(backend: B, cipher: C) -> Self {
        let mut h = Zeroizing::new([[0; 16]]);
        cipher.encrypt(backend, &mut *h);
        let ghash = Ghash::<B>::new(&h[0]);
        Self { cipher, ghash }
    }

    /// Ciphers the data and makes the tags.
    #[inline(always)]
    fn run<J: Job, const SEAL: bool>(
        &self,
        backend: B,
        batch: &mut [&mut J],
        tags: &mut PerFrame<Block>,
    ) {
        for one in batch.iter() {
            tags.push(counter_block(one.nonce(), 1));
        }
        self.cipher.encrypt(backend, tags);
        self.cipher
            .counter_and_hash::<J, SEAL>(backend, &self.ghash, batch, tags);
    }
}

impl<B: Backend, C: Cipher<B>> Modal<B> for Gcm<B, C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [&mut Seal<'_>]) {
        let mut tags = PerFrame::new();
        self.run::<_, true>(backend, batch, &mut tags);
        give(batch, &tags);
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [&mut Open<'_>]) {
        let mut tags = PerFrame::new();
        self.run::<_, false>(backend, batch, &mut tags);
        judge(batch, &tags);
    }
}
