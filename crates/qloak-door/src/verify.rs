//! Which server certificate is acceptable: issued by our CA, in its time, and made out to the name
//! that was asked for.
//!
//! The public web ties a certificate to the host of a URL. In a lab the URL is an IP address that
//! changes, and what matters is that KMS `kms-a` is `kms-a`: so a client may name the identity that it
//! expects, and then the host does not count. Chain and signatures are always checked by webpki.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use crate::Caller;

#[derive(Debug)]
pub(crate) struct ServerVerifier {
    roots: RootCertStore,
    expected: Option<String>,
    provider: Arc<CryptoProvider>,
}

impl ServerVerifier {
    pub(crate) fn new(
        roots: RootCertStore,
        expected: Option<&str>,
        provider: Arc<CryptoProvider>,
    ) -> Self {
        Self {
            roots,
            expected: expected.map(str::to_owned),
            provider,
        }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        match &self.expected {
            None => verify_server_name(&parsed, server_name)?,
            Some(expected) if is_made_out_to(end_entity, expected) => {}
            Some(_) => return Err(Error::InvalidCertificate(CertificateError::NotValidForName)),
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The common name, letter by letter, or a DNS name, where case does not count.
fn is_made_out_to(certificate: &CertificateDer<'_>, expected: &str) -> bool {
    if Caller::of(certificate).name == expected {
        return true;
    }
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return false;
    };
    let Ok(Some(names)) = parsed.subject_alternative_name() else {
        return false;
    };
    let made_out = |name: &GeneralName<'_>| matches!(name, GeneralName::DNSName(dns) if dns.eq_ignore_ascii_case(expected));
    names.value.general_names.iter().any(made_out)
}
