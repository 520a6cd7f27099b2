//! A secure association: one key's life in a channel.
//!
//! [`Sa`] is made by the key handler, with the key schedule done there, and moved to the data path by
//! `install`. It comes back from `retire`, so that the data path does not pay for wiping it; dropping
//! it zeroises the key. It can be neither copied nor printed.
//!
//! The PN form (32 or 64 bits) is the channel's, not the SA's: see [`crate::channel::ChannelConfig`].
//! IEEE 802.1AE-2018, 7.1.3 and 10.7.13 to 10.7.24.

use qloak_api::KeyId;
use qloak_cipher::{Level, Suite, SuiteKey};
use qloak_keys::Key;
use zeroize::Zeroizing;

/// The key does not fit the suite: the fault of whoever derived it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a SAK of {given} octets does not fit {suite}, which takes {allowed}")]
pub struct SaError {
    /// The suite's name.
    pub suite: &'static str,
    /// Octets given.
    pub given: usize,
    /// Octets that the suite takes.
    pub allowed: usize,
}

/// The key, suite and salt of an association, ready to install.
pub struct Sa {
    suite: &'static Suite,
    key: SuiteKey,
    salt: Zeroizing<[u8; 12]>,
    key_id: KeyId,
    first_pn: u64,
}

impl Sa {
    /// An association from its SAK (as many octets as the suite takes), the salt of its XPN nonces
    /// (unused with 32-bit PNs) and the name of its key. `level` is what the CPU may use.
    pub fn new(
        suite: &'static Suite,
        level: Level,
        sak: &Key,
        salt: [u8; 12],
        key_id: KeyId,
    ) -> Result<Self, SaError> {
        let salt = Zeroizing::new(salt);
        let key = SuiteKey::new(suite, sak.as_slice(), level).map_err(|_| SaError {
            suite: suite.name,
            given: sak.as_slice().len(),
            allowed: suite.key_octets,
        })?;
        Ok(Self {
            suite,
            key,
            salt,
            key_id,
            first_pn: 1,
        })
    }

    /// The same association with another first PN than 1: the first that is sent, and the lowest that
    /// is accepted. For whoever protects under one SAK in several runs and keeps count. 0 means 1.
    pub fn starting_at(mut self, pn: u64) -> Self {
        //= IEEE 802.1AE-2018 10.7.13, 10.7.21
        // nextPN and lowestPN are parameters of a new SA.
        self.first_pn = pn.max(1);
        self
    }

    /// Its suite.
    pub fn suite(&self) -> &'static Suite {
        self.suite
    }

    /// The name of its key.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    pub(crate) fn first_pn(&self) -> u64 {
        self.first_pn
    }

    pub(crate) fn key(&self) -> &SuiteKey {
        &self.key
    }

    pub(crate) fn salt(&self) -> &[u8; 12] {
        &self.salt
    }
}
