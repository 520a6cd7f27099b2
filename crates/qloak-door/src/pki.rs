//! A certificate authority for a lab: one call makes the CA and a certificate for each name.
//!
//! ```text
//! folder/ca.pem  ca.key            the authority; ca.key is needed only to issue more
//!        <name>.pem  <name>.key    one pair for each node, KMS, controller and operator
//! ```
//!
//! A certificate says two things: the name (common name and DNS name) and the role (organisational
//! unit, [`crate::role`]). What always holds: private keys are made here, are readable by their owner
//! only, and are never overwritten; calling it again issues what is missing under the same CA.
//! Revocation and short lives are left to a real PKI: this one is for labs and lasts ten years.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384,
};
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

use crate::{limits, role};

/// How long certificates of a lab last.
const LIFETIME: Duration = Duration::days(3652);

/// Which certificates a lab needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PkiPlan {
    /// Names of nodes (SAE IDs).
    pub nodes: Vec<String>,
    /// Names of KMSs (KME IDs).
    pub kms: Vec<String>,
    /// Names of controllers.
    pub controllers: Vec<String>,
    /// Names of operators.
    pub operators: Vec<String>,
    /// Host names and IP addresses that every certificate shall be good for, besides its own name.
    pub hosts: Vec<String>,
}

/// What a call has made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Issued {
    /// Files written, in order.
    pub written: Vec<PathBuf>,
    /// Certificates that were there already and were left alone.
    pub kept: Vec<PathBuf>,
}

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A name that no certificate or file can have.
    #[error(
        "{given:?} is no name for a certificate: 1 to 64 letters, digits, '-', '_' or '.', not beginning with '.', and not \"ca\""
    )]
    Name {
        /// What was given.
        given: String,
    },
    /// The same name twice: one file would overwrite the other.
    #[error("the name {given:?} is given twice")]
    Twice {
        /// What was given.
        given: String,
    },
    /// A host that is neither an IP address nor a host name.
    #[error("{given:?} is neither an IP address nor a host name")]
    Host {
        /// What was given.
        given: String,
    },
    /// More certificates than one call makes.
    #[error(
        "{given} certificates are asked for; one call makes at most {}",
        limits::CERTIFICATES_MAX
    )]
    TooMany {
        /// How many were asked for.
        given: usize,
    },
    /// A file cannot be read or written.
    #[error("{path:?}: {cause}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Half a pair is there: the other half must not be guessed.
    #[error("{there:?} exists but {missing:?} does not; move it away or bring the other back")]
    Half {
        /// The file that exists.
        there: PathBuf,
        /// The file that does not.
        missing: PathBuf,
    },
    /// The library for certificates failed, or the CA in the folder cannot be used.
    #[error("certificates cannot be made: {0}")]
    Library(#[from] rcgen::Error),
}

impl PkiPlan {
    /// Writes what the plan names into `folder` (made if missing) and the CA if there is none yet.
    ///
    /// # Errors
    /// [`PkiError`]; names are all checked before anything is written.
    pub fn write(&self, folder: &Path) -> Result<Issued, PkiError> {
        let identities = self.identities()?;
        fs::create_dir_all(folder).map_err(|cause| PkiError::File {
            path: folder.to_owned(),
            cause,
        })?;
        let mut issued = Issued::default();
        let issuer = authority(folder, &mut issued)?;
        for (name, role) in identities {
            let pair = Pair::of(folder, name);
            if pair.exists()? {
                issued.kept.push(pair.cert);
                continue;
            }
            let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
            let certificate = self.parameters(name, role)?.signed_by(&key, &issuer)?;
            pair.write(&certificate.pem(), &key, &mut issued)?;
        }
        Ok(issued)
    }

    fn identities(&self) -> Result<Vec<(&str, &'static str)>, PkiError> {
        let groups = [
            (&self.nodes, role::NODE),
            (&self.kms, role::KMS),
            (&self.controllers, role::CONTROLLER),
            (&self.operators, role::OPERATOR),
        ];
        let all: Vec<_> = groups
            .into_iter()
            .flat_map(|(names, role)| names.iter().map(move |name| (name.as_str(), role)))
            .collect();
        if all.len() > limits::CERTIFICATES_MAX {
            return Err(PkiError::TooMany { given: all.len() });
        }
        let mut seen = std::collections::HashSet::new();
        for (name, _) in &all {
            if !sound(name) {
                return Err(PkiError::Name {
                    given: shortened(name),
                });
            }
            // File systems that ignore case would let one pair overwrite another.
            if !seen.insert(name.to_ascii_lowercase()) {
                return Err(PkiError::Twice {
                    given: (*name).to_owned(),
                });
            }
        }
        for host in &self.hosts {
            let plain = host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-.:_*".contains(c));
            if host.is_empty() || host.len() > 253 || !plain {
                return Err(PkiError::Host {
                    given: shortened(host),
                });
            }
        }
        Ok(all)
    }

    fn parameters(&self, name: &str, role: &str) -> Result<CertificateParams, PkiError> {
        let names: Vec<String> = std::iter::once(name.to_owned())
            .chain(self.hosts.iter().cloned())
            .collect();
        let mut parameters = CertificateParams::new(names)?;
        parameters.distinguished_name = subject(name, role);
        parameters.use_authority_key_identifier_extension = true;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        (parameters.not_before, parameters.not_after) = lifetime();
        Ok(parameters)
    }
}

/// The CA of the folder, or a new one.
fn authority(folder: &Path, issued: &mut Issued) -> Result<Issuer<'static, KeyPair>, PkiError> {
    let pair = Pair::of(folder, "ca");
    if pair.exists()? {
        let certificate = fs::read_to_string(&pair.cert).map_err(|cause| PkiError::File {
            path: pair.cert.clone(),
            cause,
        })?;
        let key = fs::read_to_string(&pair.key).map_err(|cause| PkiError::File {
            path: pair.key.clone(),
            cause,
        })?;
        let key = KeyPair::from_pem(&Zeroizing::new(key))?;
        issued.kept.push(pair.cert);
        return Ok(Issuer::from_ca_cert_pem(&certificate, key)?);
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
    let mut parameters = CertificateParams::default();
    // Two labs' CAs differ in name, or a peer of the other lab would report a bad signature.
    let print = parameters.key_identifier(&key);
    let print: String = print
        .iter()
        .take(4)
        .map(|octet| format!("{octet:02x}"))
        .collect();
    parameters.distinguished_name = subject(&format!("Qloak lab CA {print}"), "ca");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (parameters.not_before, parameters.not_after) = lifetime();
    let certificate = parameters.self_signed(&key)?;
    pair.write(&certificate.pem(), &key, issued)?;
    Ok(Issuer::new(parameters, key))
}

struct Pair {
    cert: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn of(folder: &Path, name: &str) -> Self {
        Self {
            cert: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
        }
    }

    fn exists(&self) -> Result<bool, PkiError> {
        match (self.cert.exists(), self.key.exists()) {
            (true, true) => Ok(true),
            (false, false) => Ok(false),
            (true, false) => Err(PkiError::Half {
                there: self.cert.clone(),
                missing: self.key.clone(),
            }),
            (false, true) => Err(PkiError::Half {
                there: self.key.clone(),
                missing: self.cert.clone(),
            }),
        }
    }

    fn write(self, certificate: &str, key: &KeyPair, issued: &mut Issued) -> Result<(), PkiError> {
        let secret = Zeroizing::new(key.serialize_pem());
        create(&self.key, secret.as_bytes(), 0o600)?;
        create(&self.cert, certificate.as_bytes(), 0o644)?;
        issued.written.extend([self.cert, self.key]);
        Ok(())
    }
}

/// Creates a file with its final mode at once: there is no moment in which others could read it.
fn create(path: &Path, octets: &[u8], mode: u32) -> Result<(), PkiError> {
    let failed = |cause| PkiError::File {
        path: path.to_owned(),
        cause,
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(octets).map_err(failed)
}

fn subject(name: &str, role: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "Qloak");
    subject.push(DnType::OrganizationalUnitName, role);
    subject.push(DnType::CommonName, name);
    subject
}

/// From a day ago, so that a machine whose clock is a little behind accepts it too.
fn lifetime() -> (OffsetDateTime, OffsetDateTime) {
    let now = OffsetDateTime::now_utc();
    (now - Duration::DAY, now + LIFETIME)
}

fn sound(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=limits::NAME_CHARS_MAX).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with('.')
        && !name.eq_ignore_ascii_case("ca")
}

fn shortened(text: &str) -> String {
    text.chars().take(limits::NAME_CHARS_MAX).collect()
}
