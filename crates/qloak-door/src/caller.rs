//! Who is at the door: read once per connection from the verified certificate, handed to handlers.

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The roles that the PKI writes into certificates (organisational unit).
pub mod role {
    /// An encryptor node, an SAE.
    pub const NODE: &str = "node";
    /// A key management system, a KME.
    pub const KMS: &str = "kms";
    /// A controller.
    pub const CONTROLLER: &str = "controller";
    /// A person or a person's tool.
    pub const OPERATOR: &str = "operator";
}

/// Who asks, as its certificate says. As an axum extractor it answers 401 without a body where no
/// TLS connection of this crate stands behind the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The certificate's common name; empty if it has none.
    pub name: String,
    /// The certificate's organisational unit, if it has one: see [`role`].
    pub role: Option<String>,
}

impl Caller {
    /// Whether the caller has one of these roles.
    pub fn has_role(&self, roles: &[&str]) -> bool {
        self.role.as_deref().is_some_and(|own| roles.contains(&own))
    }

    /// Reads name and role; a certificate that TLS has verified but that cannot be read names nobody.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        let nobody = Self {
            name: String::new(),
            role: None,
        };
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
            return nobody;
        };
        let subject = certificate.subject();
        // A name that stands twice is ambiguous: two readers could take two different ones.
        let mut names = subject.iter_common_name();
        let name = match (names.next(), names.next()) {
            (Some(name), None) => name.as_str().unwrap_or_default().to_owned(),
            _ => return nobody,
        };
        let mut units = subject.iter_organizational_unit();
        let role = match (units.next(), units.next()) {
            (Some(unit), None) => unit.as_str().ok().map(str::to_owned),
            _ => None,
        };
        Self { name, role }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or(StatusCode::UNAUTHORIZED)
    }
}
