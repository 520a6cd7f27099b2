//! Nodes in one process: real mutual TLS, a KME of the test's own, memory wires.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use qloak_api::{KeyId, manage::NodeState};
use qloak_door::{Caller, Client, Door, TlsFiles, pki::PkiPlan};
use qloak_keys::{Key, etsi014};
use qloak_port::{Batch, End, MemoryConfig, Port, PortConfig, Sizes};
use tokio::{sync::oneshot, task::JoinHandle};

/// How the KME behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mood {
    Good = 0,
    Html = 1,
    ShortKeys = 2,
    Empty = 3,
}

/// A KME that serves all nodes and counts what it is asked.
pub(crate) struct Kme {
    keys: Mutex<HashMap<KeyId, Key>>,
    mood: AtomicU8,
    pub(crate) asked: AtomicU64,
}

impl Kme {
    pub(crate) fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// Listens; where.
    async fn start(mood: Mood, pki: &std::path::Path) -> (Arc<Self>, String) {
        let kme = Arc::new(Self {
            keys: Mutex::default(),
            mood: AtomicU8::new(mood as u8),
            asked: AtomicU64::new(0),
        });
        let routes = Router::new()
            .route("/api/v1/keys/{sae}/status", get(status))
            .route("/api/v1/keys/{sae}/enc_keys", post(enc_keys))
            .route("/api/v1/keys/{sae}/dec_keys", post(dec_keys))
            .with_state(Arc::clone(&kme));
        let tls = qloak_door::server_config(&TlsFiles::in_folder(pki, "kms-a")).expect("tls");
        let door = Door::bind("127.0.0.1:0".parse().expect("an address"), tls)
            .await
            .expect("listens");
        let url = format!("https://{}", door.address());
        tokio::spawn(door.serve(routes, std::future::pending()));
        (kme, url)
    }

    fn mood(&self) -> Mood {
        [Mood::Good, Mood::Html, Mood::ShortKeys, Mood::Empty]
            [self.mood.load(Ordering::SeqCst) as usize]
    }
}

async fn status(
    State(kme): State<Arc<Kme>>,
    Path(peer): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Response {
    if kme.mood() == Mood::Html {
        return "<html>a proxy</html>".into_response();
    }
    axum::Json(etsi014::Status {
        source_kme_id: "kms-a".into(),
        target_kme_id: "kms-a".into(),
        master_sae_id: caller.name,
        slave_sae_id: peer,
        key_size: 256,
        stored_key_count: 1000,
        max_key_count: 1000,
        max_key_per_request: 2,
        max_key_size: 1024,
        min_key_size: 64,
        max_sae_id_count: 0,
        status_extension: None,
    })
    .into_response()
}

async fn enc_keys(State(kme): State<Arc<Kme>>, body: Bytes) -> Response {
    kme.asked.fetch_add(1, Ordering::SeqCst);
    let octets = match kme.mood() {
        Mood::Html => return "<html>a proxy</html>".into_response(),
        Mood::Empty => {
            let body = r#"{"message":"no keys are left"}"#;
            return (StatusCode::SERVICE_UNAVAILABLE, body).into_response();
        }
        Mood::ShortKeys => 16,
        Mood::Good => 32,
    };
    let request = etsi014::parse_key_request(&body).expect("a request as 014 has it");
    assert!(
        request.number.unwrap_or(1) <= 2,
        "the node asked for more than the KME gives at once"
    );
    let mut made = Vec::new();
    for _ in 0..request.number.unwrap_or(1) {
        let id = KeyId(*uuid::Uuid::new_v4().as_bytes());
        let random = [
            uuid::Uuid::new_v4().into_bytes(),
            uuid::Uuid::new_v4().into_bytes(),
        ]
        .concat();
        made.push((id, Key::from_slice(&random[..octets]).expect("a key")));
    }
    let body = etsi014::write_container(made.iter().map(|(id, key)| (id, key))).to_vec();
    kme.keys.lock().expect("not poisoned").extend(made);
    body.into_response()
}

async fn dec_keys(State(kme): State<Arc<Kme>>, body: Bytes) -> Response {
    kme.asked.fetch_add(1, Ordering::SeqCst);
    let wanted = etsi014::parse_key_ids(&body).expect("a request as 014 has it");
    let mut keys = kme.keys.lock().expect("not poisoned");
    if !wanted.names().all(|id| keys.contains_key(&id)) {
        let body = r#"{"message":"one or more keys specified are not found on KME"}"#;
        return (StatusCode::BAD_REQUEST, body).into_response();
    }
    // Once delivered, it is gone.
    let given: Vec<_> = wanted
        .names()
        .filter_map(|id| keys.remove_entry(&id))
        .collect();
    etsi014::write_container(given.iter().map(|(id, key)| (id, key)))
        .to_vec()
        .into_response()
}

/// Nodes and their KME.
pub(crate) struct Lab {
    pub(crate) kme: Arc<Kme>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) wires: String,
    nodes_named: Vec<char>,
    manage: Vec<String>,
    stop: Option<oneshot::Sender<()>>,
    nodes: Option<JoinHandle<Result<(), qloak_node::Error>>>,
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

impl Lab {
    /// Starts everything. Channel 1 is aggregated over client ports 1 and 2, channel 2 transparent over 3.
    pub(crate) async fn start(mood: Mood) -> Self {
        Self::start_with(mood, 1, "").await
    }

    /// The same with several lanes, or more to say of channel 1 and tables behind it.
    pub(crate) async fn start_with(mood: Mood, lanes: usize, trunk: &str) -> Self {
        Self::start_nodes(mood, "ab", |own, wires| {
            let peer = if own == 'a' { 'b' } else { 'a' };
            let lane = |lane| {
                format!("{{ kind = \"memory\", wire = \"{wires}-line-{lane}\", end = \"{own}\" }}")
            };
            let lanes: Vec<_> = (0..lanes).map(lane).collect();
            let mut text = format!("[line]\nlanes = [{}]\nlane_hold_us = 20000\n", lanes.join(", "));
            text += &line(own, peer);
            text += &(1..=3).map(|number| client(own, number, wires)).collect::<String>();
            text += "[[channel]]\nnumber = 1\nname = \"trunk\"\ncarriage = \"aggregated\"\nclients = [1, 2]\nsuite = \"aes-256-gcm\"\n";
            text += trunk;
            text += "[[channel]]\nnumber = 2\ncarriage = \"transparent\"\nclients = [3]\nsuite = \"camellia-256-gcm\"\n";
            text
        })
        .await
    }

    /// Nodes of one letter each. `more` is what a node's file says beside its name, its KME and its doors; the
    /// second argument begins the names of all wires.
    pub(crate) async fn start_nodes(
        mood: Mood,
        names: &str,
        more: impl Fn(char, &str) -> String,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pki = folder.path().join("pki");
        let plan = PkiPlan {
            nodes: names.chars().map(|name| format!("node-{name}")).collect(),
            kms: vec!["kms-a".into()],
            controllers: vec!["controller".into()],
            operators: vec!["admin".into()],
            hosts: vec!["127.0.0.1".into()],
        };
        plan.write(&pki).expect("certificates");
        let (kme, url) = Kme::start(mood, &pki).await;
        let wires = uuid::Uuid::new_v4().to_string();
        let mut manage = Vec::new();
        for own in names.chars() {
            let port = free_port();
            let text = format!(
                "name = \"node-{own}\"\n[kme]\nurl = \"{url}\"\nidentity = \"kms-a\"\n[manage]\nlisten = \"127.0.0.1:{port}\"\ncapture = \"{}\"\n[tls]\nca = \"pki/ca.pem\"\ncert = \"pki/node-{own}.pem\"\nkey = \"pki/node-{own}.key\"\n[policy]\nhazmat = [\"xor\"]\n{}",
                // What comes out may differ from node to node.
                if own == 'a' { "both" } else { "line" },
                more(own, &wires)
            );
            std::fs::write(folder.path().join(format!("{own}.toml")), text).expect("written");
            manage.push(format!("https://127.0.0.1:{port}"));
        }
        let mut lab = Self {
            kme,
            folder,
            wires,
            nodes_named: names.chars().collect(),
            manage,
            stop: None,
            nodes: None,
        };
        lab.run_nodes();
        lab
    }

    fn run_nodes(&mut self) {
        let files = self.nodes_named.iter().map(|name| format!("{name}.toml"));
        let configs: Vec<PathBuf> = files.map(|name| self.folder.path().join(name)).collect();
        let (stop, stopped) = oneshot::channel::<()>();
        self.nodes = Some(tokio::spawn(async move {
            qloak_node::run_until(&configs, async {
                let _ = stopped.await;
            })
            .await
        }));
        self.stop = Some(stop);
    }

    /// Stops the nodes and starts them again, as a power cut would.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.run_nodes();
    }

    /// Stops the nodes.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(nodes) = self.nodes.take() {
            nodes
                .await
                .expect("no panic")
                .expect("the nodes ended well");
        }
    }

    /// The far side of a client port: what the customer's equipment would hold.
    pub(crate) fn customer(&self, own: &str, client: u8) -> Customer {
        let config = PortConfig::Memory(MemoryConfig::new(
            format!("{}-{own}-{client}", self.wires),
            End::B,
        ));
        Customer::open(&config)
    }

    /// A client of the management door of a node: 0 is the first.
    pub(crate) fn manage(&self, node: usize, who: &str) -> Client {
        let files = TlsFiles::in_folder(&self.folder.path().join("pki"), who);
        let name = format!("node-{}", self.nodes_named[node]);
        Client::expecting(&self.manage[node], &name, &files).expect("a client")
    }

    pub(crate) async fn state(&self, node: usize) -> Option<NodeState> {
        self.manage(node, "admin").get_json("/v1/state").await.ok()
    }

    /// Waits until what a node shows is as wanted; panics with the last state after 20 s.
    pub(crate) async fn until(
        &self,
        node: usize,
        what: &str,
        wanted: impl Fn(&NodeState) -> bool,
    ) -> NodeState {
        let begun = Instant::now();
        let mut last = None;
        while begun.elapsed() < Duration::from_secs(20) {
            if let Some(state) = self.state(node).await {
                if wanted(&state) {
                    return state;
                }
                last = Some(state);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("node {node} never came to: {what}; it shows {last:#?}");
    }

    pub(crate) async fn until_open(&self) {
        for node in 0..self.nodes_named.len() {
            self.until(node, "all channels open", |state| {
                state.channels.iter().all(|channel| {
                    channel.status == qloak_api::manage::ChannelStatus::Open
                        && !channel.inbound.accepted.is_empty()
                })
            })
            .await;
        }
    }
}

/// The address of a node's line port.
pub(crate) fn address(name: char) -> String {
    format!("02:51:4c:00:00:{:02x}", 0x0A + name as u32 - 'a' as u32)
}

/// What `[line]` says of addresses.
pub(crate) fn line(own: char, peer: char) -> String {
    format!(
        "address = \"{}\"\npeer_address = \"{}\"\npeer = \"node-{peer}\"\nframe_octets_max = 1514\n",
        address(own),
        address(peer)
    )
}

/// A client port on a memory wire.
pub(crate) fn client(own: char, number: u8, wires: &str) -> String {
    format!(
        "[[client]]\nnumber = {number}\nport = {{ kind = \"memory\", wire = \"{wires}-{own}-{number}\", end = \"a\" }}\n"
    )
}

/// A customer's equipment on a memory wire.
pub(crate) struct Customer {
    port: Box<dyn Port>,
    batch: Batch,
}

impl Customer {
    fn open(config: &PortConfig) -> Self {
        let sizes = Sizes {
            headroom: 0,
            octets_max: 16_000,
            tailroom: 0,
        };
        Self {
            port: qloak_port::open(config, &sizes).expect("a wire"),
            batch: Batch::with_sizes(64, sizes),
        }
    }

    /// Another hand on the same wire, for another thread.
    pub(crate) fn twin(&self) -> Self {
        Self {
            port: self.port.twin().expect("a wire"),
            batch: Batch::with_sizes(64, self.batch.sizes()),
        }
    }

    /// Hands over one frame; waits for room on the wire.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.batch.clear();
        assert!(self.batch.push(frame));
        let begun = Instant::now();
        while !self.batch.is_empty() {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "the node takes no frames"
            );
            if self.port.transmit(&mut self.batch).expect("the wire holds") == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Everything that has arrived.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            self.batch.clear();
            if self.port.receive(&mut self.batch).expect("the wire holds") == 0 {
                return frames;
            }
            frames.extend(
                self.batch
                    .frames()
                    .iter()
                    .map(|frame| frame.octets().to_vec()),
            );
        }
    }
}

/// A client frame that carries its number.
pub(crate) fn frame(number: u32, octets: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..octets).map(|at| at as u8));
    frame
}
