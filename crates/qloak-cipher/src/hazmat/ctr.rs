//! Counter mode alone: a stream cipher. The first block's counter is 1, as in RFC 3686, 4 and
//! RFC 5528, 2.1.

use crate::aead::{Open, Seal};
use crate::backend::{Backend, BlockCipher};
use crate::mode::{Modal, ctr::apply};

/// The counter of a frame's first block.
const FIRST: u32 = 1;

/// One key in CTR.
pub(crate) struct Ctr<C> {
    cipher: C,
}

impl<C> Ctr<C> {
    pub(crate) fn new(cipher: C) -> Self {
        Self { cipher }
    }
}

impl<B: Backend, C: BlockCipher<B>> Modal<B> for Ctr<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [Seal<'_>]) {
        for one in batch {
            apply(backend, &self.cipher, &one.nonce, FIRST, one.data);
        }
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [Open<'_>]) {
        for one in batch {
            apply(backend, &self.cipher, &one.nonce, FIRST, one.data);
            one.valid = true;
        }
    }
}
