//! Whether our own certificate is a controller's. With any other one the nodes would refuse every
//! question, and callers would not find who they look for.

use std::path::Path;

use qloak_door::role;
use x509_parser::pem::Pem;

use crate::Error;

/// The door has read the file and found it sound; here only its role counts.
pub(crate) fn check(cert: &Path) -> Result<(), Error> {
    let octets = std::fs::read(cert).map_err(|cause| qloak_door::DoorError::File {
        what: "certificate",
        path: cert.to_owned(),
        cause,
    })?;
    let own = role_of(&octets);
    if own.as_deref() == Some(role::CONTROLLER) {
        Ok(())
    } else {
        Err(Error::Role {
            cert: cert.to_owned(),
            role: own,
        })
    }
}

/// The organisational unit of the first certificate, if it has exactly one.
fn role_of(pem: &[u8]) -> Option<String> {
    let first = Pem::iter_from_buffer(pem)
        .filter_map(Result::ok)
        .find(|section| section.label == "CERTIFICATE")?;
    let certificate = first.parse_x509().ok()?;
    let mut units = certificate.subject().iter_organizational_unit();
    match (units.next(), units.next()) {
        (Some(unit), None) => unit.as_str().ok().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_door::pki::PkiPlan;

    #[test]
    fn only_a_controllers_certificate_will_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = PkiPlan {
            nodes: vec!["node-a".to_owned()],
            controllers: vec!["controller".to_owned()],
            ..Default::default()
        };
        plan.write(folder.path()).expect("a PKI");
        check(&folder.path().join("controller.pem")).expect("its own");
        for (other, words) in [
            ("node-a.pem", "node-a.pem has the role \"node\""),
            ("ca.pem", "ca.pem has the role \"ca\""),
        ] {
            let text = check(&folder.path().join(other)).unwrap_err().to_string();
            assert!(text.contains(words), "{text}");
        }
        assert!(check(&folder.path().join("none.pem")).is_err());
    }
}
