//! Modes of operation, each written once over whatever block cipher a backend gives.
//!
//! A mode sees a whole batch, so that one with many lanes may fill them from several frames.

use subtle::ConstantTimeEq;

use crate::aead::{Open, Seal};
use crate::backend::Backend;

pub(crate) mod ctr;
mod gcm;
mod ocb;

pub(crate) use gcm::Gcm;
pub(crate) use ocb::Ocb;

/// A mode's key on backend `B`. Lengths of the batch were checked at the door.
pub(crate) trait Modal<B: Backend>: Send + Sync + 'static {
    /// Seals each frame in place and writes its tag.
    fn seal(&self, backend: B, batch: &mut [Seal<'_>]);
    /// Opens each frame in place, sets `valid` and wipes what fails.
    fn open(&self, backend: B, batch: &mut [Open<'_>]);
}

/// True when both tags are equal, in a time that says nothing of where they differ.
/// Tags of different lengths are not equal.
pub(crate) fn tags_equal(expected: &[u8], given: &[u8]) -> bool {
    expected.ct_eq(given).into()
}

/// Leaves zeros: what failed to open is neither plaintext nor the forger's text.
pub(crate) fn wipe(data: &mut [u8]) {
    data.fill(0);
}
