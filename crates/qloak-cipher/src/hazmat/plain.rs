//! The data as they are: what every other suite's speed is held against.

use crate::aead::{Open, Seal};
use crate::backend::Backend;
use crate::mode::Modal;

/// No key: the one that was agreed is ignored.
pub(crate) struct Plain;

impl<B: Backend> Modal<B> for Plain {
    fn seal(&self, _: B, _: &mut [&mut Seal<'_>]) {}

    fn open(&self, _: B, batch: &mut [&mut Open<'_>]) {
        for one in batch {
            one.valid = true;
        }
    }
}
