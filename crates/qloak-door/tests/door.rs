//! Real sockets on the loopback: who gets in, who does not, and what each side is told.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{Json, Router, http::StatusCode, routing};
use qloak_door::{
    Caller, Client, Door, DoorError, TlsFiles, client_config, limits, pki::PkiPlan, server_config,
};
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

struct Lab {
    folder: TempDir,
    url: String,
    address: SocketAddr,
    close: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<()>,
}

fn certificates() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = PkiPlan {
        nodes: vec!["node-a".into()],
        kms: vec!["kms-a".into(), "kms-b".into()],
        controllers: vec![],
        operators: vec!["alice".into()],
        hosts: vec!["127.0.0.1".into(), "localhost".into()],
    };
    plan.write(folder.path()).expect("certificates are made");
    folder
}

async fn whoami(caller: Caller) -> Json<serde_json::Value> {
    Json(serde_json::json!({ "name": caller.name, "role": caller.role }))
}

async fn lab() -> Lab {
    lab_with(certificates(), "kms-a").await
}

async fn lab_with(folder: TempDir, server: &str) -> Lab {
    let tls = server_config(&TlsFiles::in_folder(folder.path(), server)).expect("the server's TLS");
    let router = Router::new()
        .route("/whoami", routing::get(whoami))
        .route(
            "/echo",
            routing::post(|body: String| async { body }).put(|body: String| async { body }),
        )
        .route("/text", routing::get(|| async { "this is no JSON" }))
        .route(
            "/busy",
            routing::get(|| async { (StatusCode::SERVICE_UNAVAILABLE, "no\nkeys") }),
        )
        .route(
            "/large",
            routing::get(|| async { vec![b'1'; limits::ANSWER_OCTETS_MAX + 1] }),
        )
        .route(
            "/slow",
            routing::get(|| async { tokio::time::sleep(Duration::from_secs(20)).await }),
        )
        .route(
            "/away",
            routing::get(|| async { axum::response::Redirect::to("https://192.0.2.1/") }),
        );
    let door = Door::bind((Ipv4Addr::LOCALHOST, 0).into(), tls)
        .await
        .expect("a free port");
    let address = door.address();
    let (close, closed) = oneshot::channel();
    let served = tokio::spawn(door.serve(router, async {
        let _ = closed.await;
    }));
    Lab {
        folder,
        url: format!("https://{address}"),
        address,
        close: Some(close),
        served,
    }
}

impl Lab {
    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles::in_folder(self.folder.path(), name)
    }

    fn client(&self, name: &str) -> Client {
        Client::new(&self.url, &self.files(name)).expect("a client")
    }

    async fn ask(&self, client: &Client, path: &str) -> Result<serde_json::Value, DoorError> {
        client.get_json(path).await
    }
}

#[tokio::test]
async fn a_caller_with_a_certificate_is_known_by_name_and_role() {
    let lab = lab().await;
    let node = lab
        .ask(&lab.client("node-a"), "/whoami")
        .await
        .expect("an answer");
    assert_eq!(
        node,
        serde_json::json!({ "name": "node-a", "role": "node" })
    );
    let alice = lab
        .ask(&lab.client("alice"), "/whoami")
        .await
        .expect("an answer");
    assert_eq!(alice["role"], "operator");
    let echo: Vec<u8> = lab
        .client("alice")
        .post_json("/echo", &[1u8, 2, 3])
        .await
        .expect("an answer");
    assert_eq!(echo, [1, 2, 3]);
    let echo: Vec<u8> = lab
        .client("alice")
        .put_json("/echo", &[4u8])
        .await
        .expect("an answer");
    assert_eq!(echo, [4]);
}

#[tokio::test]
async fn the_expected_identity_counts_and_the_address_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let plan = PkiPlan {
        kms: vec!["kms-a".into()],
        nodes: vec!["node-a".into()],
        ..PkiPlan::default()
    };
    plan.write(folder.path()).unwrap();
    // The certificate has no SAN for 127.0.0.1.
    let lab = lab_with(folder, "kms-a").await;
    let named = Client::expecting(&lab.url, "kms-a", &lab.files("node-a")).unwrap();
    assert!(lab.ask(&named, "/whoami").await.is_ok());

    let other = Client::expecting(&lab.url, "kms-b", &lab.files("node-a")).unwrap();
    for client in [lab.client("node-a"), other] {
        let error = lab.ask(&client, "/whoami").await.unwrap_err();
        assert!(
            matches!(error, DoorError::ServerNotTrusted { .. }),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("made out to another name"),
            "{error}"
        );
        assert!(error.never_arrived());
    }
}

#[tokio::test]
async fn without_a_certificate_no_request_is_answered() {
    let lab = lab().await;
    let mut config = client_config(&lab.files("node-a"), Some("kms-a")).unwrap();
    config.client_auth_cert_resolver = Arc::new(NoCertificate);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(lab.address).await.unwrap();
    // In TLS 1.3 the client's side of the handshake ends before the server looks at its certificate.
    let mut answer = Vec::new();
    if let Ok(mut tls) = connector
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
    {
        let _ = tls
            .write_all(b"GET /whoami HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        let error = tls.read_to_end(&mut answer).await.unwrap_err();
        assert!(error.to_string().contains("CertificateRequired"), "{error}");
    }
    assert!(answer.is_empty());
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
    fn has_certs(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn the_hybrid_key_exchange_is_used() {
    let lab = lab().await;
    let config = client_config(&lab.files("node-a"), Some("kms-a")).unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(lab.address).await.unwrap();
    let tls = connector
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
        .unwrap();
    let group = tls
        .get_ref()
        .1
        .negotiated_key_exchange_group()
        .unwrap()
        .name();
    assert_eq!(group, rustls::NamedGroup::X25519MLKEM768);
    assert_eq!(
        tls.get_ref().1.protocol_version(),
        Some(rustls::ProtocolVersion::TLSv1_3)
    );
}

#[tokio::test]
async fn a_ca_that_differs_is_told_to_both_sides() {
    let lab = lab().await;
    let strangers = certificates();
    let stranger = TlsFiles::in_folder(strangers.path(), "node-a");
    let error = Client::new(&lab.url, &stranger)
        .unwrap()
        .get_json::<()>("/whoami")
        .await
        .unwrap_err();
    assert!(
        matches!(error, DoorError::ServerNotTrusted { .. }),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("does not come from our CA"),
        "{error}"
    );

    // Trusts the server, but shows a certificate of the other CA.
    let mixed = TlsFiles {
        ca: lab.files("node-a").ca,
        ..stranger
    };
    let error = Client::new(&lab.url, &mixed)
        .unwrap()
        .get_json::<()>("/whoami")
        .await
        .unwrap_err();
    assert!(
        matches!(error, DoorError::CallerRefused { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("one CA"), "{error}");
}

#[tokio::test]
async fn nobody_there_a_mute_server_and_no_tls_are_told_apart() {
    let lab = lab().await;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://{}", free.local_addr().unwrap());
    drop(free);
    let error = Client::new(&url, &lab.files("node-a"))
        .unwrap()
        .get_json::<()>("/")
        .await
        .unwrap_err();
    assert!(matches!(error, DoorError::Unreachable { .. }), "{error:?}");
    assert!(
        error.to_string().contains(&url) && error.never_arrived(),
        "{error}"
    );

    let patient = lab
        .client("node-a")
        .with_patience(Duration::from_millis(50));
    let error = patient.get_json::<()>("/slow").await.unwrap_err();
    assert!(
        matches!(error, DoorError::Timeout { waited_ms: 50, .. }) && !error.never_arrived(),
        "{error:?}"
    );

    let plain = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://{}", plain.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read(&mut [0; 4096]).await;
    });
    let error = Client::new(&url, &lab.files("node-a"))
        .unwrap()
        .get_json::<()>("/")
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("is this an HTTPS port?"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_is_none_is_told() {
    let lab = lab().await;
    let client = lab.client("node-a");
    let error = lab.ask(&client, "/text").await.unwrap_err();
    assert!(matches!(error, DoorError::NotJson { .. }), "{error:?}");
    let error = lab.ask(&client, "/busy").await.unwrap_err();
    assert!(
        matches!(&error, DoorError::Status { status: 503, body, .. } if body == "no\nkeys"),
        "{error:?}"
    );
    assert!(
        error.to_string().ends_with("answered 503: no keys"),
        "{error}"
    );
    assert!(matches!(
        lab.ask(&client, "/nowhere").await.unwrap_err(),
        DoorError::Status { status: 404, .. }
    ));
    assert!(matches!(
        lab.ask(&client, "/away").await.unwrap_err(),
        DoorError::Status { status: 303, .. }
    ));
    assert!(matches!(
        lab.ask(&client, "/large").await.unwrap_err(),
        DoorError::TooLarge { .. }
    ));
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let lab = lab().await;
    let client = lab.client("node-a");
    let fits = client
        .exchange("POST", "/echo", Some(vec![b'a'; 100_000]))
        .await
        .unwrap();
    assert_eq!((fits.status, fits.body.len()), (200, 100_000));
    let body = vec![b'a'; limits::REQUEST_OCTETS_MAX + 1];
    match client.exchange("POST", "/echo", Some(body)).await {
        Ok(reply) => assert_eq!(reply.status, 413),
        Err(error) => assert!(matches!(error, DoorError::Broken { .. }), "{error:?}"),
    }
}

#[tokio::test]
async fn closing_ends_the_door() {
    let mut lab = lab().await;
    let client = lab.client("node-a");
    assert!(lab.ask(&client, "/whoami").await.is_ok());
    lab.close.take().unwrap().send(()).unwrap();
    (&mut lab.served).await.unwrap();
    let error = lab.ask(&client, "/whoami").await.unwrap_err();
    assert!(
        matches!(
            error,
            DoorError::Unreachable { .. } | DoorError::Broken { .. }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_port_in_use_is_told() {
    let lab = lab().await;
    let tls = server_config(&lab.files("kms-a")).unwrap();
    let error = Door::bind(lab.address, tls).await.unwrap_err();
    assert!(
        error.to_string().contains(&lab.address.to_string()),
        "{error}"
    );
}

#[test]
fn segments_are_percent_encoded() {
    assert_eq!(Client::segment("node-a.1_~"), "node-a.1_~");
    assert_eq!(Client::segment("a/b c?%é"), "a%2Fb%20c%3F%25%C3%A9");
}
