//! Modes of operation, each written once over whatever cipher a backend gives.
//!
//! A mode sees a whole batch. What happens once a frame (nonces, AAD, tails, tags) is here, and its
//! blocks are enciphered side by side for all frames; the bulk of the data is in [`crate::bulk`].

use arrayvec::ArrayVec;

use crate::aead::{Open, Seal};
use crate::backend::{Backend, Block, part};
use crate::limits::FRAMES_AT_ONCE;

mod gcm;
mod ocb;
mod offsets;

pub(crate) use gcm::Gcm;
pub(crate) use ocb::Ocb;
pub(crate) use offsets::{Offsets, Run};

/// A mode's key on backend `B`. Lengths of the batch were checked at the door, and it has at most
/// [`FRAMES_AT_ONCE`] frames.
pub(crate) trait Modal<B: Backend>: Send + Sync + 'static {
    /// Seals each frame in place and writes its tag.
    fn seal(&self, backend: B, batch: &mut [&mut Seal<'_>]);
    /// Opens each frame in place, sets `valid` and wipes what fails.
    fn open(&self, backend: B, batch: &mut [&mut Open<'_>]);
}

/// Something for each frame of a batch, in its order. What is not used costs nothing: to fill room for
/// 64 frames takes longer than to seal a short one.
type PerFrame<T> = ArrayVec<T, FRAMES_AT_ONCE>;

/// Hands out the tags of a sealed batch, each as long as its place.
#[inline(always)]
fn give(batch: &mut [&mut Seal<'_>], tags: &[Block]) {
    for (one, tag) in batch.iter_mut().zip(tags) {
        let octets = one.tag.len();
        one.tag.copy_from_slice(&tag[..octets]);
    }
}

/// Holds the tags that the frames ought to have against those that they came with.
#[inline(always)]
fn judge(batch: &mut [&mut Open<'_>], tags: &[Block]) {
    for (one, tag) in batch.iter_mut().zip(tags) {
        one.valid = tags_equal(&tag[..one.tag.len()], one.tag);
        if !one.valid {
            wipe(one.data);
        }
    }
}

/// True when both tags are equal, in a time that says nothing of where they differ.
/// Tags of different lengths are not equal; none is longer than 16 octets.
#[inline(always)]
pub(crate) fn tags_equal(expected: &[u8], given: &[u8]) -> bool {
    // One number is compared with zero. The compiler may not know that it could look earlier.
    let difference = std::hint::black_box(part::read(expected) ^ part::read(given));
    expected.len() == given.len() && difference == 0
}

/// Leaves zeros: what failed to open is neither plaintext nor the forger's text.
pub(crate) fn wipe(data: &mut [u8]) {
    data.fill(0);
}
