//! Keys at rest: each under a key of its own, derived from the KEK and its name.
//!
//! ```text
//! wrap key = HKDF-SHA-256(salt = "qloak kms wrap 1", ikm = KEK, info = kind || key ID)
//! wrapped  = nonce(12, random) || AES-256-GCM(wrap key, nonce, aad = kind || key ID, key) || tag(16)
//! ```
//!
//! Deleting the wrapped octets shreds the key: the KEK alone does not bring it back. A wrap key
//! belongs to one random name, so a nonce repeats under it only if chance repeats both. The KEK is a
//! file of 32 octets that only its owner may read, made at the first start (NIST SP 800-38D, SP 800-56C).
//! An HSM or TPM in place of the file is left to later.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf,
    rand::{SecureRandom, SystemRandom},
};
use qloak_api::KeyId;
use qloak_keys::Key;
use zeroize::Zeroizing;

/// Octets of the KEK.
const KEK_OCTETS: usize = 32;
const TAG_OCTETS: usize = 16;

/// Why the KEK cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KekError {
    /// The file cannot be read or made.
    #[error("the KEK file {path:?} cannot be used: {cause}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file does not hold a KEK.
    #[error("the KEK file {path:?} has {given} octets; 32 are expected")]
    Length {
        /// Which file.
        path: PathBuf,
        /// Octets that it has.
        given: usize,
    },
    /// Others may read the file.
    #[error("the KEK file {path:?} can be read by others (mode {mode:o}); chmod 600 it")]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A ledger is there but its KEK is not: a new one could not open it.
    #[error(
        "the ledger {ledger:?} exists but its KEK file {path:?} does not; bring the KEK back, or move the ledger away and lose its keys"
    )]
    Missing {
        /// Which file.
        path: PathBuf,
        /// The ledger.
        ledger: PathBuf,
    },
    /// The system's randomness failed.
    #[error("the system's randomness failed")]
    Random,
}

/// Wrapping or unwrapping failed: the octets are not what this KEK wrapped under this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a wrapped key does not open under this KEK")]
pub struct WrapError;

/// What a wrap holds; a block cannot be passed off as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Block = 1,
    Key = 2,
    /// The known text by which a ledger recognises its KEK.
    Check = 3,
}

/// The key that keys are wrapped under.
pub(crate) struct Kek {
    prk: hkdf::Prk,
    random: SystemRandom,
}

impl Kek {
    /// Reads the KEK, or makes it if neither it nor the ledger exists.
    pub(crate) fn read_or_make(path: &Path, ledger: &Path) -> Result<Self, KekError> {
        let failed = |cause| KekError::File {
            path: path.to_owned(),
            cause,
        };
        if !path.exists() {
            if ledger.exists() {
                return Err(KekError::Missing {
                    path: path.to_owned(),
                    ledger: ledger.to_owned(),
                });
            }
            make(path)?;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(KekError::Open {
                    path: path.to_owned(),
                    mode,
                });
            }
        }
        let octets = Zeroizing::new(fs::read(path).map_err(failed)?);
        if octets.len() != KEK_OCTETS {
            return Err(KekError::Length {
                path: path.to_owned(),
                given: octets.len(),
            });
        }
        Ok(Self::of(&octets))
    }

    fn of(octets: &[u8]) -> Self {
        Self {
            prk: hkdf::Salt::new(hkdf::HKDF_SHA256, b"qloak kms wrap 1").extract(octets),
            random: SystemRandom::new(),
        }
    }

    pub(crate) fn wrap(&self, kind: Kind, id: KeyId, key: &[u8]) -> Result<Vec<u8>, WrapError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| WrapError)?;
        // All the room at once: nothing is moved, so nothing is left behind unwiped.
        let mut wrapped = Vec::with_capacity(NONCE_LEN + key.len() + TAG_OCTETS);
        wrapped.extend_from_slice(&nonce);
        wrapped.extend_from_slice(key);
        let (_, body) = wrapped.split_at_mut(NONCE_LEN);
        let tag = self
            .key(kind, id)?
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name(kind, id)),
                body,
            )
            .map_err(|_| WrapError)?;
        wrapped.extend_from_slice(tag.as_ref());
        Ok(wrapped)
    }

    /// The octets come in a buffer that wipes itself.
    pub(crate) fn unwrap(
        &self,
        kind: Kind,
        id: KeyId,
        wrapped: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, WrapError> {
        let (nonce, body) = wrapped.split_at_checked(NONCE_LEN).ok_or(WrapError)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| WrapError)?;
        let mut body = Zeroizing::new(body.to_vec());
        let octets = self
            .key(kind, id)?
            .open_in_place(nonce, Aad::from(name(kind, id)), &mut body)
            .map_err(|_| WrapError)?
            .len();
        body.truncate(octets);
        Ok(body)
    }

    pub(crate) fn unwrap_key(
        &self,
        kind: Kind,
        id: KeyId,
        wrapped: &[u8],
    ) -> Result<Key, WrapError> {
        Key::from_slice(&self.unwrap(kind, id, wrapped)?).map_err(|_| WrapError)
    }

    fn key(&self, kind: Kind, id: KeyId) -> Result<LessSafeKey, WrapError> {
        let mut octets = Zeroizing::new([0; KEK_OCTETS]);
        let info = name(kind, id);
        self.prk
            .expand(&[&info], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(octets.as_mut_slice()))
            .map_err(|_| WrapError)?;
        UnboundKey::new(&AES_256_GCM, octets.as_slice())
            .map(LessSafeKey::new)
            .map_err(|_| WrapError)
    }
}

fn name(kind: Kind, id: KeyId) -> [u8; 17] {
    let mut name = [kind as u8; 17];
    name[1..].copy_from_slice(&id.0);
    name
}

/// The file has its mode from the beginning and is on the disk before the first key is wrapped.
fn make(path: &Path) -> Result<(), KekError> {
    let failed = |cause| KekError::File {
        path: path.to_owned(),
        cause,
    };
    let mut octets = Zeroizing::new([0; KEK_OCTETS]);
    SystemRandom::new()
        .fill(octets.as_mut_slice())
        .map_err(|_| KekError::Random)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(octets.as_slice()).map_err(failed)?;
    file.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: KeyId = KeyId([7; 16]);

    #[test]
    fn a_wrap_opens_only_under_its_kek_kind_and_name() {
        let kek = Kek::of(&[1; 32]);
        let wrapped = kek.wrap(Kind::Key, ID, &[9; 32]).unwrap();
        assert_eq!(wrapped.len(), 12 + 32 + 16);
        assert!(!wrapped.windows(4).any(|four| four == [9; 4]));
        assert_eq!(*kek.unwrap(Kind::Key, ID, &wrapped).unwrap(), [9; 32]);
        assert!(kek.unwrap_key(Kind::Block, ID, &wrapped).is_err());
        assert!(kek.unwrap_key(Kind::Key, KeyId([8; 16]), &wrapped).is_err());
        assert!(
            Kek::of(&[2; 32])
                .unwrap_key(Kind::Key, ID, &wrapped)
                .is_err()
        );
        for bit in 0..wrapped.len() * 8 {
            let mut bent = wrapped.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(kek.unwrap(Kind::Key, ID, &bent).is_err());
        }
        for cut in 0..wrapped.len() {
            assert!(kek.unwrap(Kind::Key, ID, &wrapped[..cut]).is_err());
        }
    }

    #[test]
    fn the_file_is_made_once_private_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let (path, ledger) = (folder.path().join("kek"), folder.path().join("ledger"));
        let wrapped = Kek::read_or_make(&path, &ledger)
            .unwrap()
            .wrap(Kind::Key, ID, &[9; 32])
            .unwrap();
        assert!(
            Kek::read_or_make(&path, &ledger)
                .unwrap()
                .unwrap(Kind::Key, ID, &wrapped)
                .is_ok()
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(matches!(
                Kek::read_or_make(&path, &ledger),
                Err(KekError::Open { mode: 0o640, .. })
            ));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(&path, [0; 31]).unwrap();
        assert!(matches!(
            Kek::read_or_make(&path, &ledger),
            Err(KekError::Length { given: 31, .. })
        ));
        fs::remove_file(&path).unwrap();
        fs::write(&ledger, "").unwrap();
        assert!(matches!(
            Kek::read_or_make(&path, &ledger),
            Err(KekError::Missing { .. })
        ));
    }
}
