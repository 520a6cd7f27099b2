//! Batches: looked at before the first octet changes, then cut and sorted for the kernels.
//!
//! A kernel takes at most [`FRAMES_AT_ONCE`] frames under one key and trusts every length. So the
//! door looks at a batch whole: it is done whole or not at all. A batch under several keys is done key
//! by key, its frames staying where they are.

use arrayvec::ArrayVec;
use thiserror::Error;

use crate::aead::{Job, Open, Seal};
use crate::key::SuiteKey;
use crate::limits::{
    AAD_OCTETS_MAX, DATA_OCTETS_MAX, FRAMES_AT_ONCE, NONCE_OCTETS, OCTETS_AT_ONCE,
};

/// A batch that no kernel may see. The caller made it wrong: lengths come from its own frame
/// format, never from a peer. Nothing of the batch was sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BatchError {
    /// A tag of a length that this key does not make.
    #[error("frame {position} of the batch has a tag of {given} octets, this key makes {needed}")]
    TagLength {
        /// Which frame of the batch, from 0.
        position: usize,
        /// Octets of the tag that was given.
        given: usize,
        /// Octets of this key's tags.
        needed: usize,
    },
    /// More data than one frame may have.
    #[error("frame {position} of the batch has {given} octets of data, at most {max} are allowed")]
    DataLength {
        /// Which frame of the batch, from 0.
        position: usize,
        /// Octets of data that were given.
        given: usize,
        /// [`DATA_OCTETS_MAX`].
        max: usize,
    },
    /// More AAD than one frame may have.
    #[error("frame {position} of the batch has {given} octets of AAD, at most {max} are allowed")]
    AadLength {
        /// Which frame of the batch, from 0.
        position: usize,
        /// Octets of AAD that were given.
        given: usize,
        /// [`AAD_OCTETS_MAX`].
        max: usize,
    },
    /// Two frames under one key have the same nonce. That would give away the exclusive or of their
    /// data, and in GCM the means to forge (SP 800-38D, appendix A).
    #[error("frames {first} and {second} of the batch have the same nonce under the same key")]
    NonceTwice {
        /// The earlier frame, from 0.
        first: usize,
        /// The later one.
        second: usize,
    },
}

/// A frame and the key that it goes under.
pub struct Under<'k, F> {
    /// The key of the frame's SA.
    pub key: &'k SuiteKey,
    /// The frame: a [`Seal`] or an [`Open`].
    pub frame: F,
}

/// Seals frames of several SAs in one call: lanes are filled with all frames of a key, wherever they
/// stand in the batch. Allocates nothing.
///
/// # Errors
/// As [`SuiteKey::seal`]. Nothing of the batch was sealed.
pub fn seal(batch: &mut [Under<'_, Seal<'_>>]) -> Result<(), BatchError> {
    check(batch)?;
    check_nonces(batch.iter().map(|one| &one.frame.nonce), |a, b| {
        let (a, b) = (&batch[a], &batch[b]);
        std::ptr::eq(a.key, b.key) && a.frame.nonce == b.frame.nonce
    })?;
    key_by_key(batch, |key, frames| key.schedule.seal(frames));
    Ok(())
}

/// Opens frames of several SAs in one call and writes each one's `valid`. Allocates nothing.
///
/// # Errors
/// As [`SuiteKey::open`]. Nothing was opened and no frame is valid.
pub fn open(batch: &mut [Under<'_, Open<'_>>]) -> Result<(), BatchError> {
    for one in batch.iter_mut() {
        one.frame.valid = false;
    }
    check(batch)?;
    key_by_key(batch, |key, frames| key.schedule.open(frames));
    Ok(())
}

/// Lengths, with each key's own tags.
fn check<J: Job>(batch: &[Under<'_, J>]) -> Result<(), BatchError> {
    check_lengths(batch.iter().map(|one| (&one.frame, one.key.tag_octets())))
}

/// The frames that a kernel sees at once.
type Frames<'r, J> = ArrayVec<&'r mut J, FRAMES_AT_ONCE>;

/// Cuts the frames of one key into what a kernel sees at once.
pub(crate) fn cut<'r, J: Job + 'r>(
    frames: impl Iterator<Item = &'r mut J>,
    mut kernel: impl FnMut(&mut [&mut J]),
) {
    let mut now = Frames::new();
    let mut octets = 0;
    for one in frames {
        octets += one.data().len();
        if now.is_full() || (octets > OCTETS_AT_ONCE && !now.is_empty()) {
            kernel(&mut now);
            now.clear();
            octets = one.data().len();
        }
        now.push(one);
    }
    if !now.is_empty() {
        kernel(&mut now);
    }
}

/// Hands each key its frames, as many as a kernel sees at once.
fn key_by_key<J: Job>(
    batch: &mut [Under<'_, J>],
    mut kernel: impl FnMut(&SuiteKey, &mut [&mut J]),
) {
    for part in batch.chunks_mut(FRAMES_AT_ONCE) {
        let mut done = [false; FRAMES_AT_ONCE];
        for first in 0..part.len() {
            if done[first] {
                continue;
            }
            let key = part[first].key;
            let same = part.iter_mut().zip(&mut done).filter_map(|(one, done)| {
                let same = std::ptr::eq(one.key, key);
                *done |= same;
                same.then_some(&mut one.frame)
            });
            cut(same, |frames| kernel(key, frames));
        }
    }
}

/// Looks at each frame's lengths. Frames come with the octets of their keys' tags.
pub(crate) fn check_lengths<'a, J: Job + 'a>(
    frames: impl Iterator<Item = (&'a J, usize)>,
) -> Result<(), BatchError> {
    for (position, (one, needed)) in frames.enumerate() {
        if one.tag_octets() != needed {
            return Err(BatchError::TagLength {
                position,
                given: one.tag_octets(),
                needed,
            });
        }
        if one.data().len() > DATA_OCTETS_MAX {
            return Err(BatchError::DataLength {
                position,
                given: one.data().len(),
                max: DATA_OCTETS_MAX,
            });
        }
        if one.aad().len() > AAD_OCTETS_MAX {
            return Err(BatchError::AadLength {
                position,
                given: one.aad().len(),
                max: AAD_OCTETS_MAX,
            });
        }
    }
    Ok(())
}

/// Looks for two frames of which `same(first, second)` says that they have one key and one nonce.
///
/// The nonces of frames in a row count upward or differ in their last bits, so that each falls in a
/// place of its own of a small table; only frames that meet there are compared with those before.
pub(crate) fn check_nonces<'a>(
    nonces: impl Iterator<Item = &'a [u8; NONCE_OCTETS]>,
    same: impl Fn(usize, usize) -> bool,
) -> Result<(), BatchError> {
    let mut seen = [0_u64; 16];
    for (second, nonce) in nonces.enumerate() {
        let place = usize::from(u16::from_be_bytes([nonce[10], nonce[11]])) % (64 * seen.len());
        let (word, bit) = (&mut seen[place / 64], 1 << (place % 64));
        if *word & bit != 0
            && let Some(first) = (0..second).find(|first| same(*first, second))
        {
            return Err(BatchError::NonceTwice { first, second });
        }
        *word |= bit;
    }
    Ok(())
}
