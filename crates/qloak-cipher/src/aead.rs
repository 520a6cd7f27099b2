//! What a caller hands in: one frame's bytes to seal or to open, in place.
//!
//! The words are those of the AEAD interface of RFC 5116: nonce, AAD, data, tag.

use crate::limits::NONCE_OCTETS;

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
    /// Octets of the tag's place.
    fn tag_octets(&self) -> usize;
}

macro_rules! job {
    ($frame:ident) => {
        impl Job for $frame<'_> {
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

            #[inline(always)]
            fn tag_octets(&self) -> usize {
                self.tag.len()
            }
        }
    };
}

job!(Seal);
job!(Open);
