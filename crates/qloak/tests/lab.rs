//! The commands against real programs: two nodes over a memory wire, two KMSs, a controller, all of them
//! processes of this binary on the loopback.

mod common;

use std::{
    fs::{self, File},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use common::{Ended, ended, frame, qloak, run, write_pcap};
use tempfile::TempDir;

/// Long enough that only what never comes is missed, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

struct Lab {
    folder: TempDir,
    controller: String,
    node_b: String,
    kms: String,
    programs: Vec<Child>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

impl Lab {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        run(path, "pki init --dir pki --node node-a --node node-b --kms kms-a --kms kms-b --controller controller --operator admin").well();
        write_pcap(
            &path.join("in.pcap"),
            &(0..50).map(|number| frame(300, number)).collect::<Vec<_>>(),
        );
        let [node_a, node_b, kms_a, kms_b, controller] = free_ports();
        write_site(path, "a", "b", node_a, [kms_a, kms_b]);
        write_site(path, "b", "a", node_b, [kms_b, kms_a]);
        let records = format!(
            "[[node]]\nname = \"node-a\"\nurl = \"https://127.0.0.1:{node_a}\"\n\
             [[node]]\nname = \"node-b\"\nurl = \"https://127.0.0.1:{node_b}\"\n\
             [[kms]]\nkme_id = \"kms-a\"\nurl = \"https://127.0.0.1:{kms_a}\"\n\
             [[link]]\nname = \"metro\"\na = \"node-a\"\nb = \"node-b\"\n"
        );
        let text = format!(
            "[north]\nlisten = \"127.0.0.1:{controller}\"\n{}[store]\nfile = \"controller.sqlite\"\n[poll]\ninterval_ms = 100\n{records}",
            tls("controller")
        );
        fs::write(path.join("controller.toml"), text).unwrap();
        let programs = [
            "kms -c kms-a.toml",
            "kms -c kms-b.toml",
            "node -c node-a.toml -c node-b.toml",
            "controller -c controller.toml",
        ]
        .iter()
        .enumerate()
        .map(|(number, words)| {
            let log = || {
                File::options()
                    .create(true)
                    .append(true)
                    .open(path.join(format!("log-{number}")))
                    .unwrap()
            };
            qloak(path)
                .args(words.split(' '))
                .stdout(Stdio::from(log()))
                .stderr(Stdio::from(log()))
                .spawn()
                .unwrap()
        })
        .collect();
        let lab = Self {
            controller: format!("https://127.0.0.1:{controller}"),
            node_b: format!("https://127.0.0.1:{node_b}"),
            kms: format!("https://127.0.0.1:{kms_a}"),
            folder,
            programs,
        };
        lab.until("both ends of the channel encode", |overview| {
            let ends = overview["channels"][0]["observed"].as_array();
            ends.is_some_and(|ends| {
                ends.len() == 2 && ends.iter().all(|end| end["status"] == "open")
            })
        });
        lab
    }

    /// The operator's command, with its connection from the environment.
    fn command(&self, words: &str) -> Ended {
        let mut command = qloak(self.folder.path());
        command
            .args(words.split_whitespace())
            .env("QLOAK_PKI", "pki")
            .env("QLOAK_AS", "admin")
            .env("QLOAK_CONTROLLER", &self.controller);
        ended(command.output().unwrap())
    }

    fn until(&self, what: &str, done: impl Fn(&serde_json::Value) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let ended = self.command("status --json");
            if ended.code == 0 && done(&serde_json::from_str(&ended.out).unwrap()) {
                return;
            }
            if Instant::now() > end {
                let logs = (0..4).filter_map(|number| {
                    fs::read_to_string(self.folder.path().join(format!("log-{number}"))).ok()
                });
                panic!(
                    "{what}: not seen\n{}\n{}\n{}",
                    ended.out,
                    ended.err,
                    logs.collect::<Vec<_>>().join("\n")
                );
            }
            sleep(Duration::from_millis(50));
        }
    }
}

/// Ports that nobody has; all are held until all are known, so that they differ.
fn free_ports() -> [u16; 5] {
    let held = [(); 5].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

fn tls(name: &str) -> String {
    format!("[tls]\nca = \"pki/ca.pem\"\ncert = \"pki/{name}.pem\"\nkey = \"pki/{name}.key\"\n")
}

/// The configurations of the node and the KMS at one end.
fn write_site(path: &Path, here: &str, there: &str, door: u16, [kms, far_kms]: [u16; 2]) {
    let node = format!(
        "name = \"node-{here}\"\n\
         [line]\nport = {{ kind = \"memory\", wire = \"line\", end = \"{here}\" }}\n\
         address = \"02:51:4c:00:00:0{here}\"\npeer_address = \"02:51:4c:00:00:0{there}\"\n\
         peer = \"node-{there}\"\nframe_octets_max = 9014\n\
         [[client]]\nnumber = 1\nport = {{ kind = \"pcap\", read = \"in.pcap\", pace = 500.0, repeat = 1000000 }}\n\
         [[channel]]\nnumber = 1\nname = \"trunk\"\ncarriage = \"aggregated\"\nclients = [1]\nsuite = \"aes-256-gcm\"\n\
         [kme]\nurl = \"https://127.0.0.1:{kms}\"\nidentity = \"kms-{here}\"\n\
         [manage]\nlisten = \"127.0.0.1:{door}\"\n{}{}",
        if here == "b" {
            "capture = \"both\"\n"
        } else {
            ""
        },
        tls(&format!("node-{here}"))
    );
    fs::write(path.join(format!("node-{here}.toml")), node).unwrap();
    let link = match here {
        "a" => {
            "role = \"alice\"\nemulated = { length_km = 0.5, loss_db = 5.0, rate_factor = 1000.0 }\n"
        }
        _ => "role = \"bob\"\n",
    };
    let kms = format!(
        "kme_id = \"kms-{here}\"\nlisten = \"127.0.0.1:{kms}\"\nsaes = [\"node-{here}\"]\n{}\
         [ledger]\nfile = \"kms-{here}.sqlite\"\nkek = \"kms-{here}.kek\"\n\
         [[link]]\nname = \"metro\"\npeer = \"kms-{there}\"\npeer_url = \"https://127.0.0.1:{far_kms}\"\n\
         peer_saes = [\"node-{there}\"]\n{link}",
        tls(&format!("kms-{here}"))
    );
    fs::write(path.join(format!("kms-{here}.toml")), kms).unwrap();
}

/// One lab for all: it takes seconds to come up.
#[test]
fn an_operator_sees_and_changes_a_running_network() {
    let lab = Lab::start();
    status(&lab);
    suites(&lab);
    keys(&lab);
    top(&lab);
    capture(&lab);
    faults(&lab);
}

fn status(lab: &Lab) {
    let text = lab.command("status").well();
    for words in [
        "As seen by the controller at https://127.0.0.1:",
        "node-a",
        "node-b",
        "kms-a",
        "metro: node-a - node-b",
        "1 trunk",
        "aggregated",
        "open",
        "emulated",
    ] {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
    let node = lab
        .command(&format!("status --json --node {}", lab.node_b))
        .json();
    assert_eq!(node["node"], "node-b");
    let one = lab.command("status --node node-a").well();
    assert!(one.contains("node-a") && !one.contains("https://127.0.0.1:0"));
    lab.command("status --node node-x").fails(
        5,
        &[
            "there is no node \"node-x\"",
            "did you mean node-a or node-b?",
        ],
    );
}

/// The words of a pcapng file: magic, and the frames that lie in it.
fn frames_in(path: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(8)), (0x0a0d_0d0a, 0x1a2b_3c4d));
    let (mut at, mut frames) = (0, Vec::new());
    while at < file.len() {
        if word(at) == 6 {
            frames.push(file[at + 28..at + 28 + word(at + 20) as usize].to_vec());
        }
        at += word(at + 4) as usize;
    }
    assert_eq!(at, file.len(), "whole blocks");
    frames
}

fn capture(lab: &Lab) {
    let folder = lab.folder.path();
    let report = lab
        .command(
            "capture node-a --side line --seconds 30 --frames 50 --snap 40 -w line.pcapng --json",
        )
        .json();
    assert_eq!(
        (&report["frames"], &report["complete"]),
        (&50.into(), &true.into()),
        "{report}"
    );
    assert_eq!(report["dropped"], 0, "{report}");
    let line = frames_in(&folder.join("line.pcapng"));
    assert!(line.len() == 50 && line.iter().all(|frame| frame.len() <= 40));
    // Node b's own configuration allows its client side, at its own door too.
    let words = format!(
        "capture node-b={} --side client --port 1 --frames 20 -w client.pcapng",
        lab.node_b
    );
    let said = lab.command(&words);
    assert!(
        said.code == 0 && said.err.contains("20 frames") && said.err.contains("none is missing"),
        "{said:?}"
    );
    let client = frames_in(&folder.join("client.pcapng"));
    let sent: Vec<_> = (0..50).map(|number| frame(300, number)).collect();
    assert!(client.len() == 20 && client.iter().all(|frame| sent.contains(frame)));
    lab.command("capture node-a --side client -w none.pcapng")
        .fails(
            5,
            &[
                "node-a refused",
                "capture = \"both\"",
                "node-a.toml",
                "[manage]",
            ],
        );
    assert!(
        !folder.join("none.pcapng").exists(),
        "what is refused leaves no file"
    );
    lab.command("capture node-a --side line --port 1 -w none.pcapng")
        .fails(2, &["with the client side only"]);
    interrupted(lab);
}

/// Ctrl-C leaves a file of whole blocks.
fn interrupted(lab: &Lab) {
    let file = lab.folder.path().join("cut.pcapng");
    let mut command = qloak(lab.folder.path());
    let child = command
        .args("capture node-a --side line --seconds 60 -w cut.pcapng".split(' '))
        .env("QLOAK_PKI", "pki")
        .env("QLOAK_AS", "admin")
        .env("QLOAK_CONTROLLER", &lab.controller)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + PATIENCE;
    while fs::metadata(&file).map_or(0, |file| file.len()) < 10_000 {
        assert!(Instant::now() < end, "nothing is recorded");
        sleep(Duration::from_millis(20));
    }
    let number = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &number])
            .status()
            .unwrap()
            .success()
    );
    let said = ended(child.wait_with_output().unwrap());
    assert!(
        said.code == 0 && said.err.contains("ended here"),
        "{said:?}"
    );
    assert!(!frames_in(&file).is_empty());
}

fn suites(lab: &Lab) {
    for suite in ["camellia-256-gcm", "serpent-256-ocb", "aes-128-ocb"] {
        let report = lab
            .command(&format!("suite set metro 1 {suite} --wait=60 --json"))
            .json();
        assert_eq!(report["converged"], true, "{report}");
        assert!(report["elapsed_ms"].as_f64().is_some_and(|ms| ms > 0.0));
        lab.until("the suite", |overview| {
            overview["channels"][0]["observed"]
                .as_array()
                .is_some_and(|ends| ends.iter().all(|end| end["encoding_suite"] == suite))
        });
    }
    let text = lab
        .command("suite set metro trunk aes-256-gcm --seconds 900 --wait=60")
        .well();
    assert!(
        text.contains("metro channel 1: aes-256-gcm at both ends after"),
        "{text}"
    );
    // Limits alone; the suite stays, and so does the limit set before.
    let report = lab
        .command("suite set metro trunk --frames 1000000 --json")
        .json();
    assert_eq!(report["intent"]["suite"], "aes-256-gcm");
    assert_eq!(report["intent"]["limits"]["seconds"], 900);
    assert_eq!(report["intent"]["limits"]["frames"], 1_000_000);

    lab.command("suite set metro 1 camelia-256-gcm").fails(
        5,
        &["did you mean camellia-256-gcm", "there are: aes-128-gcm"],
    );
    lab.command("suite set metre 1 aes-256-gcm")
        .fails(5, &["there is no link \"metre\"; did you mean metro?"]);
    lab.command("suite set metro 9 aes-256-gcm")
        .fails(5, &["there is no channel \"9\"", "1, trunk"]);
    lab.command("suite set metro 1 aes-256-ctr")
        .fails(5, &["refuses", "hazmat"]);
    lab.command("suite set metro 1").fails(2, &["<SUITE>"]);
    let there = lab.command("suite list").well();
    assert!(
        there.starts_with("19 authenticated suites of the controller at"),
        "{there}"
    );
    assert!(
        lab.command("suite list --local")
            .well()
            .starts_with("19 authenticated suites of this machine")
    );
    let node = lab
        .command(&format!("suite list --json --node {}", lab.node_b))
        .json();
    assert_eq!(node.as_array().map(Vec::len), Some(31));
}

fn keys(lab: &Lab) {
    let text = lab.command("key status").well();
    assert!(
        text.contains("outbound") && text.contains("inbound") && text.contains("512"),
        "{text}"
    );
    let rekeys = |overview: &serde_json::Value| {
        overview["nodes"][0]["state"]["channels"][0]["rekeys"]
            .as_u64()
            .unwrap_or(0)
    };
    let before = rekeys(&lab.command("status --json").json());
    lab.command("key rekey metro trunk").well();
    lab.command("key rekey metro trnk")
        .fails(5, &["did you mean trunk?"]);
    lab.command("key rekey mtro 1")
        .fails(5, &["did you mean metro?"]);
    lab.until("a rekey", |overview| rekeys(overview) > before);
    let text = lab
        .command(&format!("key resize 64 --node {}", lab.node_b))
        .well();
    assert!(text.contains("64 slots"), "{text}");
    lab.until("64 slots", |overview| {
        overview["nodes"][1]["state"]["key_handler"]["ram_slots"] == 64
    });
    lab.command("key soft-reset --node node-a").well();
    lab.command("key load-outbound 2 --node node-a --json")
        .json();
    lab.command("key hard-reset --node node-b")
        .fails(2, &["--yes"]);
    lab.command("key hard-reset --node node-b --yes").well();
    lab.until("recovery", |overview| {
        let ends = overview["channels"][0]["observed"].as_array();
        ends.is_some_and(|ends| ends.iter().all(|end| end["status"] == "open"))
    });
    lab.command("key resize 4 --node node-a")
        .fails(2, &["8..=65536"]);
    lab.command("key load-inbound hello --node node-a")
        .fails(2, &["a UUID such as"]);
    lab.command("key soft-reset --node node-z")
        .fails(5, &["node-z"]);
}

fn top(lab: &Lab) {
    let text = lab.command("top --once --every 0.5").well();
    assert!(
        text.contains("metro") && text.contains("1 trunk") && text.contains("aes-256-gcm"),
        "{text}"
    );
    let document = lab.command("top --once --every 1 --json").json();
    assert!(
        document["channels"][0]["a_to_b"]["outbound_bps"]
            .as_f64()
            .is_some_and(|bps| bps > 0.0),
        "{document}"
    );
    lab.command("top --every 0").fails(2, &["0.1 to 3600"]);
}

fn faults(lab: &Lab) {
    let path = lab.folder.path();
    // A certificate of another CA, at either end.
    run(path, "pki init --dir other --operator admin").well();
    let url = &lab.controller;
    run(
        path,
        &format!("status --pki other --as admin --controller {url}"),
    )
    .fails(4, &["not trusted", "--pki"]);
    fs::copy(path.join("pki/ca.pem"), path.join("other/ca.pem")).unwrap();
    run(
        path,
        &format!("status --pki other --as admin --controller {url}"),
    )
    .fails(4, &["refuses this caller", "--as"]);
    // A server with another name than the one that was meant.
    run(
        path,
        &format!("status --pki pki --as admin --controller node-a={url}"),
    )
    .fails(4, &["another name"]);
    run(
        path,
        &format!("status --pki pki --as admin --controller controller={url}"),
    )
    .well();
    // A role that may only look.
    run(
        path,
        &format!("status --pki pki --as node-a --controller {url}"),
    )
    .well();
    run(
        path,
        &format!("suite set metro 1 aes-128-gcm --pki pki --as node-a --controller {url}"),
    )
    .fails(5, &["refuses", "operator"]);
    // A node's door is no controller's, nor is a KMS's; nor the other way round.
    for other in [&lab.node_b, &lab.kms] {
        run(
            path,
            &format!("status --pki pki --as admin --controller {other}"),
        )
        .fails(5, &["no controller's door", "--node"]);
    }
    lab.command(&format!("status --node {url}"))
        .fails(5, &["no node's door", "--controller"]);
}
