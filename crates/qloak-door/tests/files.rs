//! Faults of certificates and keys in files: told at home, by name, before a peer would only send an alert.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::Router;
use qloak_door::{
    Client, Door, DoorError, TlsFiles, certificate_name, client_config, pki::PkiPlan, server_config,
};
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use tempfile::TempDir;
use time::{Duration as Days, OffsetDateTime};

fn certificates() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = PkiPlan {
        nodes: vec!["node-a".into()],
        kms: vec!["kms-a".into()],
        ..PkiPlan::default()
    };
    plan.write(folder.path()).expect("certificates are made");
    folder
}

#[test]
fn the_name_of_our_own_certificate_is_its_common_name() {
    let folder = certificates();
    for name in ["node-a", "kms-a"] {
        let files = TlsFiles::in_folder(folder.path(), name);
        assert_eq!(certificate_name(&files).unwrap(), name);
    }
    let mut nameless = CertificateParams::default();
    nameless.distinguished_name.remove(DnType::CommonName);
    let key = KeyPair::generate().unwrap();
    let files = TlsFiles {
        cert: folder.path().join("nameless.pem"),
        ..TlsFiles::in_folder(folder.path(), "node-a")
    };
    fs::write(&files.cert, nameless.self_signed(&key).unwrap().pem()).unwrap();
    let told = certificate_name(&files).unwrap_err().to_string();
    assert!(
        told.contains("nameless.pem") && told.contains("common name"),
        "{told}"
    );
}

#[test]
fn faults_of_our_own_files_name_the_file() {
    let folder = certificates();
    let good = TlsFiles::in_folder(folder.path(), "node-a");
    let told = |files: &TlsFiles| server_config(files).unwrap_err().to_string();

    let missing = TlsFiles {
        cert: folder.path().join("none.pem"),
        ..good.clone()
    };
    assert!(told(&missing).contains("none.pem") && told(&missing).contains("pki init"));

    let text = folder.path().join("text.pem");
    fs::write(&text, "not a certificate").unwrap();
    for files in [
        TlsFiles {
            ca: text.clone(),
            ..good.clone()
        },
        TlsFiles {
            cert: text.clone(),
            ..good.clone()
        },
        TlsFiles {
            key: text.clone(),
            ..good.clone()
        },
    ] {
        assert!(
            matches!(server_config(&files), Err(DoorError::NotPem { .. })),
            "{files:?}"
        );
        assert!(told(&files).contains("text.pem"));
    }

    let other = TlsFiles {
        key: folder.path().join("kms-a.key"),
        ..good.clone()
    };
    assert!(matches!(
        server_config(&other),
        Err(DoorError::KeyMismatch { .. })
    ));
    assert!(matches!(
        client_config(&other, None),
        Err(DoorError::KeyMismatch { .. })
    ));

    for url in ["http://127.0.0.1:1", "127.0.0.1:1", "https://a/?q=1", ""] {
        assert!(
            matches!(Client::new(url, &good), Err(DoorError::Url { .. })),
            "{url}"
        );
    }
}

/// Issues a certificate of the folder's CA with a time of its own.
fn issue(
    folder: &Path,
    name: &str,
    from: OffsetDateTime,
    until: OffsetDateTime,
) -> (PathBuf, PathBuf) {
    let ca_key = KeyPair::from_pem(&fs::read_to_string(folder.join("ca.key")).unwrap()).unwrap();
    let ca = Issuer::from_ca_cert_pem(&fs::read_to_string(folder.join("ca.pem")).unwrap(), ca_key)
        .unwrap();
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, name);
    (parameters.not_before, parameters.not_after) = (from, until);
    let (cert_path, key_path) = (
        folder.join(format!("{name}.pem")),
        folder.join(format!("{name}.key")),
    );
    fs::write(&cert_path, parameters.signed_by(&key, &ca).unwrap().pem()).unwrap();
    fs::write(&key_path, key.serialize_pem()).unwrap();
    (cert_path, key_path)
}

#[tokio::test]
async fn an_expired_certificate_is_told_at_home_and_by_the_other_side() {
    let folder = certificates();
    let files = |name: &str| TlsFiles::in_folder(folder.path(), name);
    let now = OffsetDateTime::now_utc();
    let (cert, key) = issue(
        folder.path(),
        "old",
        now - Days::days(9),
        now - Days::days(2),
    );
    let old = files("old");
    let error = server_config(&old).unwrap_err().to_string();
    assert!(
        error.contains("old.pem") && error.contains("expired on"),
        "{error}"
    );
    issue(
        folder.path(),
        "young",
        now + Days::days(2),
        now + Days::days(9),
    );
    let error = server_config(&files("young")).unwrap_err().to_string();
    assert!(error.contains("valid only from"), "{error}");

    // A server that does not look at its own certificate: the client says what is wrong.
    let pem = |path: &Path| fs::read(path).unwrap();
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(&pem(&cert)).unwrap()],
            PrivateKeyDer::from_pem_slice(&pem(&key)).unwrap(),
        )
        .unwrap();
    let door = Door::bind((Ipv4Addr::LOCALHOST, 0).into(), Arc::new(config))
        .await
        .unwrap();
    let url = format!("https://{}", door.address());
    tokio::spawn(door.serve(Router::new(), std::future::pending()));
    let error = Client::new(&url, &files("node-a"))
        .unwrap()
        .get_json::<()>("/")
        .await
        .unwrap_err();
    assert!(
        matches!(error, DoorError::ServerNotTrusted { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("expired"), "{error}");
}
