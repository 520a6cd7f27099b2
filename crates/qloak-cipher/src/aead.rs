//! What a caller hands in: one frame's bytes to seal or to open, in place.
//!
//! The words are those of the AEAD interface of RFC 5116: nonce, AAD, data, tag. A batch is a
//! slice of them under one key. [`check_seal`] and [`check_open`] look at every length before the
//! first octet changes, so that a kernel below them need not.

use thiserror::Error;

use crate::limits::{AAD_OCTETS_MAX, DATA_OCTETS_MAX, NONCE_OCTETS};

/// One frame's bytes to seal. `data` is plaintext before and ciphertext after, of the same length.
pub struct Seal<'a> {
    /// 12 octets, never used twice under one key. That is the caller's duty.
    pub nonce: [u8; NONCE_OCTETS],
    /// Authenticated, not encrypted: addresses and SecTAG. A hazmat suite ignores it.
    pub aad: &'a [u8],
    /// Plaintext in, ciphertext out.
    pub data: &'a mut [u8],
    /// Where the tag goes: [`SuiteKey::tag_octets`](crate::SuiteKey::tag_octets) long.
    pub tag: &'a mut [u8],
}

/// One frame's bytes to open. `data` is ciphertext before; after it is plaintext if `valid`, else
/// zeros.
pub struct Open<'a> {
    /// The nonce that the frame was sealed with.
    pub nonce: [u8; NONCE_OCTETS],
    /// The same octets that were authenticated at sealing.
    pub aad: &'a [u8],
    /// Ciphertext in; plaintext or zeros out.
    pub data: &'a mut [u8],
    /// The tag that came with the frame: [`SuiteKey::tag_octets`](crate::SuiteKey::tag_octets) long.
    pub tag: &'a [u8],
    /// Written by `open`, whatever it was. A suite without a tag always says true.
    pub valid: bool,
}

/// What the modes see of a frame, whichever way it goes.
pub(crate) trait Job: Send {
    /// The frame's nonce.
    fn nonce(&self) -> &[u8; NONCE_OCTETS];
    /// What is authenticated and not encrypted.
    fn aad(&self) -> &[u8];
    /// What is encrypted or decrypted.
    fn data(&self) -> &[u8];
    /// The same, to be changed in place.
    fn data_mut(&mut self) -> &mut [u8];
}

impl Job for Seal<'_> {
    #[inline(always)]
    fn nonce(&self) -> &[u8; NONCE_OCTETS] {
        &self.nonce
    }

    #[inline(always)]
    fn aad(&self) -> &[u8] {
        self.aad
    }

    #[inline(always)]
    fn data(&self) -> &[u8] {
        self.data
    }

    #[inline(always)]
    fn data_mut(&mut self) -> &mut [u8] {
        self.data
    }
}

impl Job for Open<'_> {
    #[inline(always)]
    fn nonce(&self) -> &[u8; NONCE_OCTETS] {
        &self.nonce
    }

    #[inline(always)]
    fn aad(&self) -> &[u8] {
        self.aad
    }

    #[inline(always)]
    fn data(&self) -> &[u8] {
        self.data
    }

    #[inline(always)]
    fn data_mut(&mut self) -> &mut [u8] {
        self.data
    }
}

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
}

/// Looks at each frame's lengths, so that the batch is sealed whole or not at all.
pub(crate) fn check_seal(batch: &[Seal<'_>], tag_octets: usize) -> Result<(), BatchError> {
    batch
        .iter()
        .enumerate()
        .try_for_each(|(position, one)| check(position, one.aad, one.data, one.tag, tag_octets))
}

/// The same for opening.
pub(crate) fn check_open(batch: &[Open<'_>], tag_octets: usize) -> Result<(), BatchError> {
    batch
        .iter()
        .enumerate()
        .try_for_each(|(position, one)| check(position, one.aad, one.data, one.tag, tag_octets))
}

fn check(
    position: usize,
    aad: &[u8],
    data: &[u8],
    tag: &[u8],
    needed: usize,
) -> Result<(), BatchError> {
    if tag.len() != needed {
        return Err(BatchError::TagLength {
            position,
            given: tag.len(),
            needed,
        });
    }
    if data.len() > DATA_OCTETS_MAX {
        return Err(BatchError::DataLength {
            position,
            given: data.len(),
            max: DATA_OCTETS_MAX,
        });
    }
    if aad.len() > AAD_OCTETS_MAX {
        return Err(BatchError::AadLength {
            position,
            given: aad.len(),
            max: AAD_OCTETS_MAX,
        });
    }
    Ok(())
}
