//! The bare block cipher, block after block (ECB, SP 800-38A, 6.1), as the first hardware did it.
//!
//! Equal blocks give equal ciphertext, in one frame and across frames; the nonce plays no part.
//! The hardware's words were always whole blocks. A frame's are not, and it may not grow: the
//! tail of fewer than 16 octets crosses the line in the clear.

use crate::aead::{Open, Seal};
use crate::backend::Backend;
use crate::bulk::Cipher;
use crate::mode::Modal;

/// One key, no mode.
pub(crate) struct RawBlock<C>(pub(crate) C);

impl<B: Backend, C: Cipher<B>> Modal<B> for RawBlock<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [&mut Seal<'_>]) {
        for one in batch {
            self.0.encrypt(backend, one.data.as_chunks_mut().0);
        }
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [&mut Open<'_>]) {
        for one in batch {
            self.0.decrypt(backend, one.data.as_chunks_mut().0);
            one.valid = true;
        }
    }
}
