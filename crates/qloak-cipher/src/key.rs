//! One SAK's key schedule: the door of this crate.
//!
//! A [`SuiteKey`] lies in the SA of `qloak-secy`. It is made once per rekey, then used by one
//! thread or many: `Send + Sync`, no interior state, no lock. The schedule lies on the heap, so
//! that a move of the key leaves no copy behind, and is zeroised where it lies on drop.

use thiserror::Error;

use crate::aead::{Open, Seal};
use crate::backend::{self, Schedule};
use crate::batch::{BatchError, check_lengths, check_nonces, cut};
use crate::level::Level;
use crate::limits::PON_TAG_OCTETS;
use crate::suite::{Mode, Suite};

/// The key schedule of one SAK under one suite.
///
/// It has no Debug, Clone or text form. On drop every table that depends on the key is zeroised.
pub struct SuiteKey {
    suite: &'static Suite,
    tag_octets: usize,
    backend: &'static str,
    pub(crate) schedule: Box<dyn Schedule>,
}

/// A SAK of another length than the suite's. Names lengths, never octets of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a key of {given} octets was given to {suite}, which needs {needed}")]
pub struct KeyLengthError {
    /// The suite's name.
    pub suite: &'static str,
    /// Octets that were given.
    pub given: usize,
    /// Octets that the suite needs.
    pub needed: usize,
}

/// Why there is no PON key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PonKeyError {
    /// The PON profile has short tags in GCM alone.
    #[error("{suite} has no 64-bit tag; in the PON profile only GCM suites have one")]
    NotGcm {
        /// The suite's name.
        suite: &'static str,
    },
    /// The key has another length than the suite's.
    #[error(transparent)]
    KeyLength(#[from] KeyLengthError),
}

impl SuiteKey {
    /// The schedule of `key` under `suite`, on the best backend that `level` allows.
    ///
    /// # Errors
    /// `key` does not have `suite.key_octets`.
    pub fn new(suite: &'static Suite, key: &[u8], level: Level) -> Result<Self, KeyLengthError> {
        Self::with_tag(suite, key, suite.tag_octets, level)
    }

    /// The same with tags of 64 bits, for the PON profile alone, whose frames leave no room for
    /// more. A forgery passes once in 2^64 tries at best and oftener for long data (SP 800-38D,
    /// appendix C), so nothing else may use it.
    ///
    /// # Errors
    /// The suite is not a GCM suite, or `key` does not have `suite.key_octets`.
    pub fn pon(suite: &'static Suite, key: &[u8], level: Level) -> Result<Self, PonKeyError> {
        if suite.mode != Mode::Gcm {
            return Err(PonKeyError::NotGcm { suite: suite.name });
        }
        Ok(Self::with_tag(suite, key, PON_TAG_OCTETS, level)?)
    }

    fn with_tag(
        suite: &'static Suite,
        key: &[u8],
        tag_octets: usize,
        level: Level,
    ) -> Result<Self, KeyLengthError> {
        let wrong_length = KeyLengthError {
            suite: suite.name,
            given: key.len(),
            needed: suite.key_octets,
        };
        if key.len() != suite.key_octets {
            return Err(wrong_length);
        }
        let (backend, schedule) = backend::schedule(suite, key, level).ok_or(wrong_length)?;
        Ok(Self {
            suite,
            tag_octets,
            backend,
            schedule,
        })
    }

    /// The suite that this key was made for.
    pub fn suite(&self) -> &'static Suite {
        self.suite
    }

    /// Octets of each tag: 16; 8 for a PON key; 0 for a hazmat suite.
    pub fn tag_octets(&self) -> usize {
        self.tag_octets
    }

    /// The backend that runs it, such as `soft` or `aws-lc`.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Seals each frame of the batch in place and writes its tag. Allocates nothing.
    ///
    /// # Errors
    /// A length that cannot be, or one nonce twice: see [`BatchError`]. Nothing of the batch was
    /// sealed.
    pub fn seal(&self, batch: &mut [Seal<'_>]) -> Result<(), BatchError> {
        check_lengths(batch.iter().map(|one| (one, self.tag_octets)))?;
        check_nonces(batch.iter().map(|one| &one.nonce), |a, b| {
            batch[a].nonce == batch[b].nonce
        })?;
        cut(batch.iter_mut(), |frames| self.schedule.seal(frames));
        Ok(())
    }

    /// Opens each frame of the batch in place and writes its `valid`. A frame that fails is wiped.
    /// Allocates nothing.
    ///
    /// # Errors
    /// A length that cannot be: see [`BatchError`]. Nothing was opened and no frame is valid.
    pub fn open(&self, batch: &mut [Open<'_>]) -> Result<(), BatchError> {
        for one in batch.iter_mut() {
            one.valid = false;
        }
        check_lengths(batch.iter().map(|one| (one, self.tag_octets)))?;
        cut(batch.iter_mut(), |frames| self.schedule.open(frames));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::SUITES;

    const fn crosses_threads<T: Send + Sync>() {}
    const _: () = crosses_threads::<SuiteKey>();

    #[test]
    fn a_key_of_another_length_is_refused_by_its_length_alone() {
        let octets = [0xa5; 64];
        for suite in &SUITES {
            for given in (0..64).filter(|given| *given != suite.key_octets) {
                let error = SuiteKey::new(suite, &octets[..given], Level::Soft).err();
                let needed = suite.key_octets;
                assert_eq!(
                    error,
                    Some(KeyLengthError {
                        suite: suite.name,
                        given,
                        needed
                    })
                );
            }
            assert!(SuiteKey::new(suite, &octets[..suite.key_octets], Level::Soft).is_ok());
        }
    }

    #[test]
    fn short_tags_exist_for_gcm_alone() {
        let octets = [0xa5; 32];
        for suite in &SUITES {
            let key = SuiteKey::pon(suite, &octets[..suite.key_octets], Level::Soft);
            match key {
                Ok(key) => {
                    assert_eq!(suite.mode, Mode::Gcm);
                    assert_eq!(key.tag_octets(), PON_TAG_OCTETS);
                }
                Err(error) => assert_eq!(error, PonKeyError::NotGcm { suite: suite.name }),
            }
        }
        let aes = Suite::by_name("aes-128-gcm").expect("in the table");
        assert!(matches!(
            SuiteKey::pon(aes, &octets, Level::Soft),
            Err(PonKeyError::KeyLength(KeyLengthError {
                given: 32,
                needed: 16,
                ..
            }))
        ));
    }
}
