//! Counter mode alone: a stream cipher. The first block's counter is 1, as in RFC 3686, 4 and
//! RFC 5528, 2.1.

use crate::aead::{Open, Seal};
use crate::backend::Backend;
use crate::bulk::Cipher;
use crate::mode::Modal;

/// The counter of a frame's first block.
const FIRST: u32 = 1;

/// One key in CTR.
pub(crate) struct Ctr<C>(pub(crate) C);

impl<B: Backend, C: Cipher<B>> Modal<B> for Ctr<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [&mut Seal<'_>]) {
        self.0.counter(backend, FIRST, batch);
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [&mut Open<'_>]) {
        self.0.counter(backend, FIRST, batch);
        for one in batch {
            one.valid = true;
        }
    }
}
