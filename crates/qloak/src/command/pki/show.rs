//! `qloak pki show`.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use x509_parser::{
    extensions::{GeneralName, ParsedExtension},
    pem::Pem,
    prelude::{FromDer, X509Certificate},
    public_key::PublicKey,
};

use crate::{
    error::{Error, Outcome},
    limits, output,
};

/// Say in words what is in a certificate file
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A PEM file with one or more certificates
    file: PathBuf,
}

/// A certificate in words.
#[derive(Debug, Serialize)]
struct Summary {
    name: String,
    role: String,
    issuer: String,
    self_signed: bool,
    authority: bool,
    valid_from: String,
    valid_until: String,
    days_left: i64,
    good_for: Vec<String>,
    public_key: String,
    serial: String,
    sha256: String,
}

impl Show {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let octets = read(&self.file)?;
        let mut found = Vec::new();
        for pem in Pem::iter_from_buffer(&octets) {
            let pem = pem.map_err(|error| Error::file(&self.file, format!("not PEM: {error}")))?;
            match pem.label.as_str() {
                "CERTIFICATE" => found.push(summary(&self.file, &pem.contents)?),
                label if label.ends_with("PRIVATE KEY") => {
                    return Err(Error::file(
                        &self.file,
                        "holds a private key, which is not shown; the certificate is in the .pem file beside it",
                    ));
                }
                _ => {}
            }
        }
        if found.is_empty() {
            return Err(Error::file(
                &self.file,
                "holds no certificate: no CERTIFICATE section in it",
            ));
        }
        if json {
            output::json(&found)?;
        } else {
            let texts: Vec<_> = found.iter().map(Summary::in_words).collect();
            output::text_line(&texts.join("\n\n"))?;
        }
        let all_valid = found.iter().all(|one| one.days_left >= 0);
        Ok(if all_valid {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }
}

impl Summary {
    fn in_words(&self) -> String {
        let mut table = output::pairs();
        let until = match self.days_left {
            ..0 => output::loud(&format!(
                "{} (expired {} days ago)",
                self.valid_until, -self.days_left
            )),
            days => format!("{} ({days} days left)", self.valid_until),
        };
        let kind = if self.authority {
            "certificate authority"
        } else {
            "certificate"
        };
        for (what, value) in [
            ("role", self.role.clone()),
            (
                "issued by",
                if self.self_signed {
                    "itself".into()
                } else {
                    self.issuer.clone()
                },
            ),
            ("valid from", self.valid_from.clone()),
            ("valid until", until),
            (
                "good for",
                if self.good_for.is_empty() {
                    "-".into()
                } else {
                    self.good_for.join("  ")
                },
            ),
            ("public key", self.public_key.clone()),
            ("serial", self.serial.clone()),
            ("SHA-256", self.sha256.clone()),
        ] {
            table.add_row([what, &value]);
        }
        format!(
            "{} ({kind})\n{}",
            output::title(&self.name),
            output::shown(&table)
        )
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut octets = Vec::new();
    File::open(path)
        .and_then(|file| {
            file.take(limits::CERTIFICATE_OCTETS_MAX)
                .read_to_end(&mut octets)
        })
        .map_err(|error| Error::file(path, error))?;
    Ok(octets)
}

fn summary(path: &Path, der: &[u8]) -> Result<Summary, Error> {
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|error| Error::file(path, format!("holds no X.509 certificate: {error}")))?;
    let subject = certificate.subject();
    let first = |mut names: Box<
        dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>> + '_,
    >| {
        names
            .next()
            .and_then(|name| name.as_str().ok())
            .unwrap_or("-")
            .to_owned()
    };
    let name = first(Box::new(subject.iter_common_name()));
    let role = first(Box::new(subject.iter_organizational_unit()));
    let issuer = first(Box::new(certificate.issuer().iter_common_name()));
    let (from, until) = (
        certificate.validity().not_before.to_datetime(),
        certificate.validity().not_after.to_datetime(),
    );
    let mut good_for = Vec::new();
    for extension in certificate.extensions() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
            good_for.extend(names.general_names.iter().map(host));
        }
    }
    Ok(Summary {
        name,
        role,
        issuer,
        self_signed: certificate.subject() == certificate.issuer(),
        authority: certificate.is_ca(),
        valid_from: from.date().to_string(),
        valid_until: until.date().to_string(),
        days_left: (until - OffsetDateTime::now_utc()).whole_days(),
        good_for,
        public_key: public_key(&certificate),
        serial: certificate.raw_serial_as_string(),
        sha256: hex(&Sha256::digest(der)),
    })
}

fn host(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(octets) => match **octets {
            [a, b, c, d] => std::net::Ipv4Addr::new(a, b, c, d).to_string(),
            _ => <[u8; 16]>::try_from(*octets).map_or_else(
                |_| hex(octets),
                |octets| std::net::Ipv6Addr::from(octets).to_string(),
            ),
        },
        other => other.to_string(),
    }
}

fn public_key(certificate: &X509Certificate<'_>) -> String {
    match certificate.public_key().parsed() {
        Ok(PublicKey::EC(point)) => format!("EC, {} bits", point.key_size()),
        Ok(PublicKey::RSA(key)) => format!("RSA, {} bits", key.key_size()),
        _ => certificate.public_key().algorithm.algorithm.to_id_string(),
    }
}

fn hex(octets: &[u8]) -> String {
    let pairs: Vec<_> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    pairs.join(":")
}
