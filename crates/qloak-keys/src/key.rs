//! The container of key material, on every way that a key goes.
//!
//! What always holds: the octets lie in one heap block that is never reallocated, are wiped when the
//! container is dropped, and cannot be printed, cloned or serialised by accident. Copying is a word of
//! its own ([`Key::duplicate`]) so that a reader sees each place where a second copy comes to be.

use qloak_api::KeyId;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::limits;

/// Key material of 8 to 128 octets (a delivered key) or up to 64 octets (a derived SAK).
pub struct Key {
    octets: Box<[u8]>,
}

/// Why octets are no key: how many were given, and how many are allowed. Never the octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key of {given} octets was given; 8 to 128 octets are allowed")]
pub struct KeyLengthError {
    /// Octets that were given.
    pub given: usize,
}

impl Key {
    /// Copies a delivered key into its container. The caller wipes its own copy.
    ///
    /// # Errors
    /// The length is outside 8 to 128 octets.
    pub fn from_slice(octets: &[u8]) -> Result<Self, KeyLengthError> {
        if limits::KEY_OCTETS.contains(&octets.len()) {
            Ok(Self {
                octets: octets.into(),
            })
        } else {
            Err(KeyLengthError {
                given: octets.len(),
            })
        }
    }

    /// A container of the given length, filled by `fill` in place so that no second copy exists.
    pub(crate) fn derived(octets: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut key = Self {
            octets: vec![0; octets].into_boxed_slice(),
        };
        fill(&mut key.octets);
        key
    }

    /// The octets, for a cipher or a derivation.
    pub fn as_slice(&self) -> &[u8] {
        &self.octets
    }

    /// How many octets the key has.
    pub fn octets(&self) -> usize {
        self.octets.len()
    }

    /// A second copy of the key. Say at the call why one is needed.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self {
            octets: self.octets.clone(),
        }
    }

    /// Whether both hold the same octets, in a time that depends on the lengths alone.
    pub fn same_as(&self, other: &Self) -> bool {
        self.octets.ct_eq(&other.octets).into()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.octets.zeroize();
    }
}

/// A key and its name, as a KME delivers it.
pub struct NamedKey {
    /// The name; it may be shown to anyone.
    pub id: KeyId,
    /// The material.
    pub key: Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_8_to_128_octets() {
        for given in [0, 7, 129, 4096] {
            assert_eq!(
                Key::from_slice(&vec![1; given]).err(),
                Some(KeyLengthError { given })
            );
        }
        assert_eq!(Key::from_slice(&[5; 128]).map(|key| key.octets()), Ok(128));
    }

    #[test]
    fn keys_compare_by_content_and_length() {
        let key = |octets: &[u8]| Key::from_slice(octets).unwrap_or_else(|e| panic!("{e}"));
        let one = key(&[1; 32]);
        assert!(one.same_as(&one.duplicate()));
        assert!(!one.same_as(&key(&[2; 32])));
        assert!(!one.same_as(&key(&[1; 31])));
    }
}
