//! From three PEM files to TLS: the CA that peers must come from, our certificate, our private key.
//!
//! One CA file serves both directions. Every fault of a file is found at start and names the file.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use crate::{Caller, DoorError, limits, verify::ServerVerifier};

/// Where the PEM files of one identity are.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificates of the authorities that a peer's certificate must come from.
    pub ca: PathBuf,
    /// Our certificate, followed by intermediate ones if there are any.
    pub cert: PathBuf,
    /// Our private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// The files of `name` as [`crate::pki`] lays them out in a folder.
    pub fn in_folder(folder: &Path, name: &str) -> Self {
        Self {
            ca: folder.join("ca.pem"),
            cert: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
        }
    }
}

/// The server's side of mutual TLS: HTTP/2 and HTTP/1.1, a certificate of the CA asked of every caller.
///
/// # Errors
/// A file that is missing, no PEM, out of its time, or a key that does not fit the certificate.
pub fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, DoorError> {
    let own = Own::read(files)?;
    let provider = provider();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(own.roots), provider.clone())
            .build()
            .map_err(|error| DoorError::Setup {
                cert: files.ca.clone(),
                reason: error.to_string(),
            })?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(files, error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own.chain, own.key)
        .map_err(|error| setup(files, error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The client's side of mutual TLS. The server must show a certificate of the CA that is made out to
/// `expected` (its common name or a DNS name of it), or, where nothing is expected, to the host of the URL.
///
/// # Errors
/// As [`server_config`].
pub fn client_config(files: &TlsFiles, expected: Option<&str>) -> Result<ClientConfig, DoorError> {
    let own = Own::read(files)?;
    let provider = provider();
    let verifier = ServerVerifier::new(own.roots, expected, provider.clone());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(files, error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(own.chain, own.key)
        .map_err(|error| setup(files, error))
}

/// The common name of our own certificate: who a peer will take us for.
///
/// # Errors
/// A certificate that is missing, no PEM, or whose subject has not exactly one common name.
pub fn certificate_name(files: &TlsFiles) -> Result<String, DoorError> {
    let chain = certificates("certificate", &files.cert)?;
    let name = chain.first().map(|own| Caller::of(own).name);
    name.filter(|name| !name.is_empty())
        .ok_or_else(|| DoorError::NotPem {
            what: "certificate of one name",
            path: files.cert.clone(),
            reason: "its subject has not exactly one common name".to_owned(),
        })
}

/// AWS-LC with X25519MLKEM768 in the first place (rustls feature `prefer-post-quantum`).
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

struct Own {
    roots: RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Own {
    fn read(files: &TlsFiles) -> Result<Self, DoorError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("CA certificate", &files.ca)? {
            roots.add(certificate).map_err(|error| DoorError::NotPem {
                what: "CA certificate",
                path: files.ca.clone(),
                reason: error.to_string(),
            })?;
        }
        let chain = certificates("certificate", &files.cert)?;
        if let Some(first) = chain.first() {
            in_time(&files.cert, first)?;
        }
        let octets = read("private key", &files.key)?;
        let key = PrivateKeyDer::from_pem_slice(&octets).map_err(|error| DoorError::NotPem {
            what: "private key",
            path: files.key.clone(),
            reason: error.to_string(),
        })?;
        warn_if_open(&files.key);
        Ok(Self { roots, chain, key })
    }
}

fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, DoorError> {
    let octets = read(what, path)?;
    let wrong = |reason: String| DoorError::NotPem {
        what,
        path: path.to_owned(),
        reason,
    };
    let found: Vec<_> = CertificateDer::pem_slice_iter(&octets)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("no CERTIFICATE section in it".to_owned()));
    }
    Ok(found)
}

fn read(what: &'static str, path: &Path) -> Result<Zeroizing<Vec<u8>>, DoorError> {
    let failed = |cause| DoorError::File {
        what,
        path: path.to_owned(),
        cause,
    };
    let mut octets = Zeroizing::new(Vec::with_capacity(16 * 1024));
    let file = File::open(path).map_err(failed)?;
    file.take(limits::PEM_OCTETS_MAX)
        .read_to_end(&mut octets)
        .map_err(failed)?;
    Ok(octets)
}

/// An expired certificate is told here, in words, since a peer would only answer with an alert.
fn in_time(path: &Path, certificate: &CertificateDer<'_>) -> Result<(), DoorError> {
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|error| DoorError::NotPem {
            what: "certificate",
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    let validity = parsed.validity();
    let now = time::OffsetDateTime::now_utc();
    let reason = if validity.not_after.to_datetime() < now {
        format!("expired on {}", validity.not_after)
    } else if validity.not_before.to_datetime() > now {
        format!("is valid only from {}", validity.not_before)
    } else {
        return Ok(());
    };
    Err(DoorError::OutOfTime {
        cert: path.to_owned(),
        reason,
    })
}

/// A private key that others may read still works, but somebody should know.
fn warn_if_open(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0) {
            tracing::warn!(
                ?path,
                "this private key can be read by others: chmod 600 it"
            );
        }
    }
}

fn setup(files: &TlsFiles, error: rustls::Error) -> DoorError {
    match error {
        rustls::Error::InconsistentKeys(_) => DoorError::KeyMismatch {
            cert: files.cert.clone(),
            key: files.key.clone(),
        },
        other => DoorError::Setup {
            cert: files.cert.clone(),
            reason: other.to_string(),
        },
    }
}
