//! Two KMSs on the loopback, as a lab has them: real sockets, real certificates, real ledgers.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::{
    collections::HashMap,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::Mutex,
    time::{Duration, Instant},
};

use qloak_api::{KeyId, kms::KmsState};
use qloak_door::{Client, Reply, TlsFiles, pki::PkiPlan};
use qloak_keys::{NamedKey, etsi014};
use qloak_kms::Config;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

pub(crate) struct Lab {
    pub(crate) folder: TempDir,
    pub(crate) ports: [u16; 2],
    running: [Option<Running>; 2],
    clients: Mutex<HashMap<(usize, String), Client>>,
}

struct Running {
    close: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
pub(crate) const NAMES: [&str; 2] = ["kms-a", "kms-b"];

/// SAE IDs are any text: one of them needs percent-encoding in a path.
pub(crate) const SAES_A: &str = r#"["node-a", "node-a2"]"#;
pub(crate) const SAES_B: &str = r#"["node-b", "node-b2", "node b/3?%ü"]"#;

pub(crate) fn certificates(folder: &Path) {
    let plan = PkiPlan {
        nodes: ["node-a", "node-a2", "node-b", "node-b2", "stranger"]
            .map(str::to_owned)
            .to_vec(),
        kms: ["kms-a", "kms-b", "kms-c"].map(str::to_owned).to_vec(),
        controllers: vec!["control".into()],
        operators: vec!["alice".into()],
        hosts: vec!["127.0.0.1".into()],
    };
    plan.write(folder).expect("certificates");
}

/// Free now; whoever binds it next has it.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}

pub(crate) fn config(folder: &Path, end: usize, ports: [u16; 2], keys: &str) -> Config {
    Config::parse(&config_text(end, ports, keys), folder).expect("a configuration")
}

pub(crate) fn config_text(end: usize, ports: [u16; 2], keys: &str) -> String {
    let (own, peer) = (NAMES[end], NAMES[1 - end]);
    let (saes, peer_saes) = if end == A {
        (SAES_A, SAES_B)
    } else {
        (SAES_B, SAES_A)
    };
    let (own_port, peer_port) = (ports[end], ports[1 - end]);
    let role = match end {
        A => "role = \"alice\"\nemulated = { length_km = 0.5, loss_db = 5.19, rate_factor = 500 }",
        _ => "role = \"bob\"",
    };
    format!(
        "kme_id = \"{own}\"\nlisten = \"127.0.0.1:{own_port}\"\nsaes = {saes}\n\
         [tls]\nca = \"ca.pem\"\ncert = \"{own}.pem\"\nkey = \"{own}.key\"\n\
         [ledger]\nfile = \"{own}.sqlite\"\nkek = \"{own}.kek\"\n\
         [keys]\nstore_max = 256\nadditional_saes_max = 2\nper_request_max = 32\n{keys}\n\
         [[link]]\nname = \"metro\"\npeer = \"{peer}\"\npeer_url = \"https://127.0.0.1:{peer_port}\"\n\
         peer_saes = {peer_saes}\n{role}\n"
    )
}

impl Lab {
    /// Both KMSs, with a store that is filling.
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    pub(crate) async fn start_with(keys: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        certificates(folder.path());
        let mut lab = Self {
            folder,
            ports: free_ports(),
            running: [None, None],
            clients: Mutex::default(),
        };
        // Bob first: alice asks a peer that does not answer only once a second.
        for end in [B, A] {
            lab.run_with(end, keys).await;
        }
        lab
    }

    /// Starts one KMS and waits until it answers.
    pub(crate) async fn run(&mut self, end: usize) {
        self.run_with(end, "").await;
    }

    async fn run_with(&mut self, end: usize, keys: &str) {
        let config = config(self.folder.path(), end, self.ports, keys);
        let (close, closed) = oneshot::channel();
        let served = tokio::spawn(async move {
            let shutdown = async {
                let _ = closed.await;
            };
            qloak_kms::serve(config, shutdown)
                .await
                .expect("the KMS serves");
        });
        self.running[end] = Some(Running { close, served });
        let client = self.client(end, "alice");
        until("the KMS answers", async || {
            client.get_json::<KmsState>("/v1/state").await.is_ok()
        })
        .await;
    }

    /// Stops one KMS and waits until it has let go of its ledger.
    pub(crate) async fn stop(&mut self, end: usize) {
        let Some(Running { close, served }) = self.running[end].take() else {
            return;
        };
        self.clients
            .lock()
            .expect("no test thread panicked here")
            .clear();
        let _ = close.send(());
        served.await.expect("the KMS ends");
        let log = format!("{}.sqlite-wal", NAMES[end]);
        assert!(
            !self.folder.path().join(log).exists(),
            "the ledger is closed"
        );
    }

    /// A client whose connections are used again, as a node's are.
    fn known_client(&self, end: usize, name: &str) -> Client {
        let mut clients = self.clients.lock().expect("no test thread panicked here");
        clients
            .entry((end, name.to_owned()))
            .or_insert_with(|| self.client(end, name))
            .clone()
    }

    /// A client with a connection of its own.
    pub(crate) fn client(&self, end: usize, name: &str) -> Client {
        let files = TlsFiles::in_folder(self.folder.path(), name);
        let url = format!("https://127.0.0.1:{}", self.ports[end]);
        Client::expecting(&url, NAMES[end], &files).expect("a client")
    }

    pub(crate) fn address(&self, end: usize) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports[end]).into()
    }

    pub(crate) async fn state(&self, end: usize) -> KmsState {
        self.known_client(end, "alice")
            .get_json("/v1/state")
            .await
            .expect("a state")
    }

    pub(crate) async fn stored(&self, end: usize) -> u64 {
        self.state(end).await.links[0].stored_key_count
    }

    /// Waits for so many keys at one end.
    pub(crate) async fn wait_for_keys(&self, end: usize, keys: u64) {
        until("keys are stored", async || self.stored(end).await >= keys).await;
    }

    pub(crate) async fn ask(
        &self,
        end: usize,
        name: &str,
        path: &str,
        body: Option<&str>,
    ) -> Reply {
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(|body| body.as_bytes().to_vec());
        self.known_client(end, name)
            .exchange(method, path, body)
            .await
            .expect("an answer")
    }

    pub(crate) async fn set_source(&self, end: usize, enabled: bool) {
        let client = self.known_client(end, "alice");
        let body = serde_json::json!({ "enabled": enabled });
        client
            .post_json::<_, Value>("/v1/links/metro/source", &body)
            .await
            .expect("switched");
    }
}

/// Waits for something to become true; a loaded machine may take its time.
pub(crate) async fn until(what: &str, mut come: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !come().await {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "waited in vain: {what}"
        );
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// The keys of a 200.
pub(crate) fn keys(reply: Reply) -> Vec<NamedKey> {
    assert_eq!(
        reply.status,
        200,
        "{}",
        String::from_utf8_lossy(&reply.body)
    );
    etsi014::parse_container(reply.body).expect("a key container")
}

pub(crate) fn json(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or(Value::Null)
}

pub(crate) fn message(reply: &Reply) -> String {
    json(reply)["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

pub(crate) fn key_ids(keys: &[KeyId]) -> String {
    serde_json::to_string(&etsi014::KeyIds::of(keys.iter().copied())).expect("JSON")
}

/// The octets of every file of a ledger, to look for what must not be there.
pub(crate) fn ledger_octets(folder: &Path, name: &str) -> Vec<u8> {
    ["", "-wal"]
        .iter()
        .flat_map(|end| fs::read(folder.join(format!("{name}.sqlite{end}"))).unwrap_or_default())
        .collect()
}
