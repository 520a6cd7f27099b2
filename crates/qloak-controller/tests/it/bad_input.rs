//! What others do wrong: nodes that answer nonsense or are someone else, files that are not there.

use qloak_controller::{Error, run};
use qloak_door::TlsFiles;

use crate::lab::{Lab, detail, until};

#[tokio::test]
async fn a_node_behind_the_wrong_url_is_not_believed() {
    let lab = Lab::without_controller().await;
    let config = std::fs::read_to_string(lab.config()).expect("read");
    let swapped = config
        .replace(&lab.a.address.to_string(), "X")
        .replace(&lab.b.address.to_string(), "Y");
    let swapped = swapped
        .replace('X', &lab.b.address.to_string())
        .replace('Y', &lab.a.address.to_string());
    std::fs::write(lab.config(), swapped).expect("written");
    lab.start_controller().await;
    lab.until("the certificate is found to be another's", |overview| {
        let error = overview.nodes[0].error.as_deref().unwrap_or_default();
        !overview.nodes[0].reachable && error.contains("another name")
    })
    .await;
    let (status, problem) = lab.set("camellia-256-gcm").await;
    assert!(
        status == 404 && detail(&problem).contains("none was seen yet"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_node_that_answers_nonsense_is_shown_as_such() {
    let lab = Lab::start().await;
    lab.a.inside().state.node = "node-z".parse().expect("an SAE ID");
    lab.until("the other name is noticed", |overview| {
        overview.nodes[0]
            .error
            .as_ref()
            .is_some_and(|error| error.contains("calls itself node-z"))
    })
    .await;
    {
        let mut inside = lab.a.inside();
        inside.state.node = "node-a".parse().expect("an SAE ID");
        let twice = inside.state.channels[0].clone();
        inside.state.channels.push(twice);
    }
    lab.until("the channel listed twice is noticed", |overview| {
        overview.nodes[0]
            .error
            .as_ref()
            .is_some_and(|error| error.contains("twice"))
    })
    .await;
    lab.a.inside().state.channels.truncate(1);
    lab.until("all is well again", |overview| overview.nodes[0].reachable)
        .await;
}

#[tokio::test]
async fn a_channel_at_one_end_only_cannot_be_steered() {
    let lab = Lab::start().await;
    lab.b.inside().state.channels.clear();
    lab.until("the channel is gone at node-b", |overview| {
        overview.channels[0].observed.len() == 1
    })
    .await;
    let (status, problem) = lab.set("camellia-256-gcm").await;
    assert!(
        status == 409 && detail(&problem).contains("node-b has no channel 1"),
        "{problem}"
    );
    assert!(lab.a.inside().commands.is_empty());
}

#[tokio::test]
async fn a_channel_that_comes_back_is_no_trouble_any_more_and_is_told() {
    let lab = Lab::start().await;
    assert_eq!(lab.set("camellia-256-gcm").await.0, 200);
    lab.until_converged("camellia-256-gcm").await;
    // It comes back as it was told last and without keys yet, or with what its own file says.
    for own in ["camellia-256-gcm", "aes-256-gcm"] {
        let mut channel = lab.b.inside().state.channels.remove(0);
        lab.until("the channel is missed", |overview| {
            let trouble = overview.channels[0].trouble.as_deref();
            trouble == Some("node-b has no channel 1")
        })
        .await;
        channel.suite_intended = own.to_owned();
        channel.outbound.encoding = None;
        lab.b.inside().state.channels.push(channel);
        lab.until("the channel is there", |overview| {
            overview.channels[0].trouble.is_none() && overview.channels[0].observed.len() == 2
        })
        .await;
        until("node-b is told", || async {
            lab.b.suite() == "camellia-256-gcm"
        })
        .await;
    }
    lab.until_converged("camellia-256-gcm").await;
}

#[tokio::test]
async fn it_does_not_start_from_what_is_wrong() {
    let lab = Lab::without_controller().await;
    let good = std::fs::read_to_string(lab.config()).expect("read");
    for (from, to, words) in [
        (
            "interval_ms = 50",
            "interval_ms = 5",
            &[
                "controller.toml, line 10, key `poll.interval_ms`: ",
                "50 to 60000",
            ][..],
        ),
        ("[poll]", "[pol]", &["line 9", "pol", "expected one of"]),
        ("[poll]", "[poll", &["line 9"]),
        ("pki/controller.pem", "pki/nobody.pem", &["nobody.pem"]),
        (
            "pki/controller.pem",
            "pki/alice.pem",
            &["alice.pem", "controller.key"],
        ),
        (
            "pki/controller.pem",
            "controller.toml",
            &["controller.toml"],
        ),
        (
            "file = \"state.sqlite\"",
            "file = \"pki/ca.pem\"",
            &["ca.pem", "not a database"],
        ),
        (
            "file = \"state.sqlite\"",
            "file = \"no/such/folder/x\"",
            &["no/such/folder"],
        ),
    ] {
        assert!(good.contains(from), "{from}");
        std::fs::write(lab.config(), good.replacen(from, to, 1)).expect("written");
        let error = run(&lab.config(), std::future::pending())
            .await
            .expect_err(to);
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let others = good.replace("pki/controller.", "pki/node-a.");
    std::fs::write(lab.config(), others).expect("written");
    let error = run(&lab.config(), std::future::pending())
        .await
        .expect_err("a node's certificate");
    assert!(
        error
            .to_string()
            .contains("node-a.pem has the role \"node\""),
        "{error}"
    );
    let public = good.replace(
        &format!("[dashboard]\nlisten = \"{}\"", lab.dashboard),
        "[dashboard]\nlisten = \"0.0.0.0:0\"",
    );
    std::fs::write(lab.config(), public).expect("written");
    let error = run(&lab.config(), std::future::pending())
        .await
        .expect_err("not loopback");
    assert!(
        matches!(&error, Error::Config { fault, .. } if fault.to_string().contains("loopback")),
        "{error}"
    );
}

#[tokio::test]
async fn ports_in_use_are_named() {
    let lab = Lab::without_controller().await;
    for address in [lab.north, lab.dashboard] {
        let taken = std::net::TcpListener::bind(address).expect("free");
        let error = run(&lab.config(), std::future::pending())
            .await
            .expect_err("in use");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        drop(taken);
    }
}

#[tokio::test]
async fn a_strangers_certificate_gets_no_answer() {
    let lab = Lab::start().await;
    let stranger = tempfile::tempdir().expect("a folder");
    let plan = qloak_door::pki::PkiPlan {
        operators: vec!["alice".to_owned()],
        ..Default::default()
    };
    plan.write(stranger.path()).expect("another PKI");
    // The stranger knows our CA's certificate; that is public.
    let files = TlsFiles {
        ca: lab.folder.path().join("pki/ca.pem"),
        ..TlsFiles::in_folder(stranger.path(), "alice")
    };
    let client =
        qloak_door::Client::expecting(&format!("https://{}", lab.north), "controller", &files)
            .expect("a client");
    assert!(
        client
            .get_json::<serde_json::Value>("/v1/overview")
            .await
            .is_err()
    );
}
