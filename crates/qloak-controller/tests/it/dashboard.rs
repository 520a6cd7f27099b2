//! The loopback door: the page, its policy, events, and that nothing can be changed there.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::lab::Lab;

async fn raw(door: SocketAddr, method: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(door).await.expect("connected");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("read");
    text
}

#[tokio::test]
async fn the_page_allows_only_its_own_script() {
    let lab = Lab::start().await;
    let page = raw(lab.dashboard, "GET", "/", "localhost:8080").await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let head = page.split("\r\n\r\n").next().expect("a head");
    let nonce = head
        .split("'nonce-")
        .nth(1)
        .and_then(|rest| rest.split('\'').next())
        .expect("a nonce");
    assert!(
        head.contains("default-src 'none'") && !head.contains("unsafe"),
        "{head}"
    );
    assert!(page.contains(&format!("<script nonce=\"{nonce}\">")) && !page.contains("{{nonce}}"));
    // What the policy would block must not be there: inline style, handlers, anything from elsewhere.
    for blocked in [
        " style=",
        " onclick=",
        "javascript:",
        "src=\"http",
        "href=\"http",
        "@import",
        "url(http",
    ] {
        assert!(!page.contains(blocked), "{blocked}");
    }
    let again = raw(lab.dashboard, "GET", "/", "127.0.0.1").await;
    assert!(!again.contains(nonce), "a nonce is used once");
}

#[tokio::test]
async fn it_reads_only_and_only_for_loopback_names() {
    let lab = Lab::start().await;
    let overview = raw(lab.dashboard, "GET", "/v1/overview", "127.0.0.1:1").await;
    assert!(
        overview.starts_with("HTTP/1.1 200") && overview.contains("node-b"),
        "{overview}"
    );
    assert!(
        raw(lab.dashboard, "GET", "/v1/caller", "localhost")
            .await
            .contains("\"may_change\":false")
    );
    for (method, path) in [
        ("PUT", "/v1/links/metro/channels/1/intent"),
        ("POST", "/v1/nodes"),
        ("DELETE", "/v1/nodes/node-a"),
    ] {
        let answer = raw(lab.dashboard, method, path, "localhost").await;
        assert!(
            answer.starts_with("HTTP/1.1 405") || answer.starts_with("HTTP/1.1 404"),
            "{answer}"
        );
    }
    for host in ["evil.example", "192.0.2.1:8080", ""] {
        let answer = raw(lab.dashboard, "GET", "/v1/overview", host).await;
        assert!(
            answer.starts_with("HTTP/1.1 421") && !answer.contains("node-b"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn events_tell_of_changes() {
    let lab = Lab::start().await;
    let mut stream = TcpStream::connect(lab.dashboard).await.expect("connected");
    let request = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut text = String::new();
    let mut told = false;
    let heard = async {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let count = stream.read(&mut chunk).await.expect("read");
            assert!(count > 0, "the stream ended: {text}");
            text.push_str(&String::from_utf8_lossy(&chunk[..count]));
            if !told && text.contains("event: overview") {
                assert!(text.contains("text/event-stream"), "{text}");
                told = true;
                assert_eq!(lab.set("serpent-256-ocb").await.0, 200);
            }
            if text.contains("\"suite_intended\":\"serpent-256-ocb\"") {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(25), heard)
        .await
        .expect("an event");
    // A listener does not keep the controller from stopping.
    lab.stop_controller().await;
}

#[tokio::test]
async fn metrics_can_be_scraped() {
    let lab = Lab::start().await;
    assert_eq!(lab.set("serpent-256-ocb").await.0, 200);
    lab.until_converged("serpent-256-ocb").await;
    let text = raw(lab.dashboard, "GET", "/metrics", "localhost").await;
    for line in [
        "qloak_controller_reachable{peer=\"node-a\"} 1",
        "qloak_controller_converged{link=\"metro\",channel=\"1\"} 1",
        "qloak_controller_pushes_total{outcome=\"taken\"} 2",
        "qloak_controller_convergence_seconds_count 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn half_a_request_does_not_keep_it_from_ending() {
    let lab = Lab::start().await;
    let mut stalled = TcpStream::connect(lab.dashboard).await.expect("connected");
    stalled
        .write_all(b"GET / HTTP/1.1\r\nHost: loc")
        .await
        .expect("written");
    let ended = tokio::time::timeout(std::time::Duration::from_secs(25), lab.stop_controller());
    ended.await.expect("it ends");
}
