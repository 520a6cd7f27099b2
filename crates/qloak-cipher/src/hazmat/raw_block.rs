//! The bare block cipher, block after block (ECB, SP 800-38A, 6.1), as the first hardware did it.
//!
//! Equal blocks give equal ciphertext, in one frame and across frames; the nonce plays no part.
//! The hardware's words were always whole blocks. A frame's are not, and it may not grow: the
//! tail of fewer than 16 octets crosses the line in the clear.

use crate::aead::{Open, Seal};
use crate::backend::{Backend, BlockCipher};
use crate::mode::Modal;

/// One key, no mode.
pub(crate) struct RawBlock<C> {
    cipher: C,
}

impl<C> RawBlock<C> {
    pub(crate) fn new(cipher: C) -> Self {
        Self { cipher }
    }
}

impl<B: Backend, C: BlockCipher<B>> Modal<B> for RawBlock<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [Seal<'_>]) {
        for one in batch {
            self.cipher.encrypt(backend, one.data.as_chunks_mut().0);
        }
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [Open<'_>]) {
        for one in batch {
            self.cipher.decrypt(backend, one.data.as_chunks_mut().0);
            one.valid = true;
        }
    }
}
