//! What the lab's authority writes, and what it refuses to write.

use std::fs;

use qloak_door::{
    TlsFiles, client_config, limits,
    pki::{PkiError, PkiPlan},
    server_config,
};

fn plan() -> PkiPlan {
    PkiPlan {
        nodes: vec!["node-a".into(), "node-b".into()],
        kms: vec!["kms-a".into()],
        controllers: vec!["control".into()],
        operators: vec!["alice".into()],
        hosts: vec!["127.0.0.1".into(), "::1".into(), "lab.example".into()],
    }
}

#[test]
fn every_pair_works_and_keys_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let issued = plan().write(folder.path()).unwrap();
    assert_eq!((issued.written.len(), issued.kept.len()), (12, 0));
    for name in ["node-a", "node-b", "kms-a", "control", "alice"] {
        let files = TlsFiles::in_folder(folder.path(), name);
        server_config(&files).unwrap();
        client_config(&files, None).unwrap();
    }
    #[cfg(unix)]
    for path in issued
        .written
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "key"))
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{path:?}"
        );
    }
}

#[test]
fn asking_again_keeps_what_is_there_and_adds_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    plan().write(folder.path()).unwrap();
    let before = fs::read(folder.path().join("node-a.key")).unwrap();
    let mut more = plan();
    more.nodes.push("node-c".into());
    let issued = more.write(folder.path()).unwrap();
    assert_eq!((issued.written.len(), issued.kept.len()), (2, 6));
    assert_eq!(fs::read(folder.path().join("node-a.key")).unwrap(), before);
    server_config(&TlsFiles::in_folder(folder.path(), "node-c")).unwrap();

    fs::remove_file(folder.path().join("ca.key")).unwrap();
    assert!(matches!(
        more.write(folder.path()),
        Err(PkiError::Half { .. })
    ));
}

#[test]
fn names_that_no_file_should_have_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(65);
    for name in [
        "",
        "ca",
        "../up",
        ".hidden",
        "a b",
        "a/b",
        "é",
        long.as_str(),
    ] {
        let plan = PkiPlan {
            nodes: vec!["good".into(), name.into()],
            ..PkiPlan::default()
        };
        let error = plan.write(folder.path()).unwrap_err();
        assert!(matches!(error, PkiError::Name { .. }), "{name}: {error}");
    }
    let twice = PkiPlan {
        nodes: vec!["a".into()],
        kms: vec!["A".into()],
        ..PkiPlan::default()
    };
    assert!(matches!(
        twice.write(folder.path()),
        Err(PkiError::Twice { .. })
    ));
    let host = PkiPlan {
        hosts: vec!["a host".into()],
        ..PkiPlan::default()
    };
    assert!(matches!(
        host.write(folder.path()),
        Err(PkiError::Host { .. })
    ));
    let many = PkiPlan {
        nodes: (0..=limits::CERTIFICATES_MAX)
            .map(|i| format!("n{i}"))
            .collect(),
        ..PkiPlan::default()
    };
    assert!(matches!(
        many.write(folder.path()),
        Err(PkiError::TooMany { .. })
    ));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
