//! A lab in one process: a PKI, two nodes that are real HTTPS servers with an invented inside, a KMS,
//! and the controller started from a real configuration file.

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use qloak_api::{
    An, CaptureOrder, Carriage, KeyId, Limits, MacAddress, Problem, Sci, Side, SuiteEntry, SuiteId,
    control::{ChannelView, Intent, Overview},
    kms::KmsState,
    manage::{
        ChannelState, ChannelStatus, InboundState, KeyHandlerState, NodeState, OutboundState,
        PortState, SaState, SetSuite,
    },
};
use qloak_door::{Client, Door, TlsFiles, pki::PkiPlan, server_config};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

/// What a fake node is and was told.
pub(crate) struct Inside {
    pub(crate) state: NodeState,
    pub(crate) suites: Vec<SuiteEntry>,
    /// Commands, in order, such as `suite 1 aes-128-gcm`.
    pub(crate) commands: Vec<String>,
    /// Suites that it offers and yet refuses when told.
    pub(crate) refuses: Vec<String>,
    /// It takes a suite but goes on under the old one.
    pub(crate) lazy: bool,
}

pub(crate) struct FakeNode {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    inside: Arc<Mutex<Inside>>,
    tls: TlsFiles,
    server: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) a: FakeNode,
    pub(crate) b: FakeNode,
    pub(crate) north: SocketAddr,
    pub(crate) dashboard: SocketAddr,
    kms: JoinHandle<()>,
    controller: Mutex<Option<Running>>,
}

type Running = (
    oneshot::Sender<()>,
    JoinHandle<Result<(), qloak_controller::Error>>,
);

impl Lab {
    /// Nodes, KMS and controller up; both nodes seen.
    pub(crate) async fn start() -> Self {
        let lab = Self::without_controller().await;
        lab.start_controller().await;
        lab.until("both nodes are seen", |overview| {
            overview.nodes.len() == 2 && overview.nodes.iter().all(|node| node.reachable)
        })
        .await;
        lab
    }

    pub(crate) async fn without_controller() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = PkiPlan {
            nodes: vec!["node-a".to_owned(), "node-b".to_owned()],
            kms: vec!["kms-a".to_owned()],
            controllers: vec!["controller".to_owned()],
            operators: vec!["alice".to_owned()],
            hosts: vec!["127.0.0.1".to_owned()],
        };
        plan.write(&folder.path().join("pki")).expect("a PKI");
        let pki = folder.path().join("pki");
        let a = FakeNode::start("node-a", TlsFiles::in_folder(&pki, "node-a")).await;
        let b = FakeNode::start("node-b", TlsFiles::in_folder(&pki, "node-b")).await;
        let (kms_address, kms) = fake_kms(&TlsFiles::in_folder(&pki, "kms-a")).await;
        let (north, dashboard) = (free_port(), free_port());
        let config = format!(
            "[north]\nlisten = \"{north}\"\n\
             [tls]\nca = \"pki/ca.pem\"\ncert = \"pki/controller.pem\"\nkey = \"pki/controller.key\"\n\
             [store]\nfile = \"state.sqlite\"\n[poll]\ninterval_ms = 50\n[dashboard]\nlisten = \"{dashboard}\"\n\
             [[node]]\nname = \"node-a\"\nurl = \"https://{}\"\n\
             [[node]]\nname = \"node-b\"\nurl = \"https://{}\"\n\
             [[kms]]\nkme_id = \"kms-a\"\nurl = \"https://{kms_address}\"\n\
             [[link]]\nname = \"metro\"\na = \"node-a\"\nb = \"node-b\"\n",
            a.address, b.address
        );
        std::fs::write(folder.path().join("controller.toml"), config).expect("written");
        Self {
            folder,
            a,
            b,
            north,
            dashboard,
            kms,
            controller: Mutex::new(None),
        }
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("controller.toml")
    }

    pub(crate) async fn start_controller(&self) {
        let (stop, stopped) = oneshot::channel::<()>();
        let config = self.config();
        let task = tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            qloak_controller::run(&config, shutdown).await
        });
        *self.controller.lock().expect("sound") = Some((stop, task));
        let operator = self.as_caller("alice");
        until("the north door answers", || async {
            operator.get_json::<Value>("/v1/caller").await.is_ok()
        })
        .await;
    }

    pub(crate) async fn stop_controller(&self) {
        let running = self.controller.lock().expect("sound").take();
        let (stop, task) = running.expect("it runs");
        let _ = stop.send(());
        task.await.expect("no panic").expect("a clean end");
    }

    /// A client with the certificate of this name.
    pub(crate) fn as_caller(&self, name: &str) -> Client {
        let files = TlsFiles::in_folder(&self.folder.path().join("pki"), name);
        Client::expecting(&format!("https://{}", self.north), "controller", &files)
            .expect("a client")
    }

    /// A request of the operator: status and JSON.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        ask(&self.as_caller("alice"), method, path, body).await
    }

    pub(crate) async fn set(&self, suite: &str) -> (u16, Value) {
        let intent = Intent {
            suite: suite.to_owned(),
            limits: Limits::default(),
        };
        let body = serde_json::to_value(intent).expect("JSON");
        self.ask("PUT", "/v1/links/metro/channels/1/intent", Some(body))
            .await
    }

    pub(crate) async fn channel(&self) -> ChannelView {
        let channels: Vec<ChannelView> = self
            .as_caller("alice")
            .get_json("/v1/links/metro/channels")
            .await
            .expect("channels");
        channels.into_iter().next().expect("channel 1")
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Overview) -> bool) {
        let operator = self.as_caller("alice");
        until(what, || async {
            let overview = operator.get_json::<Overview>("/v1/overview").await;
            overview.is_ok_and(|overview| holds(&overview))
        })
        .await;
    }

    pub(crate) async fn until_converged(&self, suite: &str) {
        self.until("the intent is met", |overview| {
            overview.channels.iter().any(|channel| {
                let wanted = channel
                    .intent
                    .as_ref()
                    .is_some_and(|intent| intent.suite == suite);
                wanted && channel.converged && channel.converged_after_ms.is_some()
            })
        })
        .await;
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.kms.abort();
    }
}

impl FakeNode {
    async fn start(name: &str, tls: TlsFiles) -> Self {
        let node = Self {
            name: name.to_owned(),
            address: free_port(),
            inside: Arc::new(Mutex::new(inside(name))),
            tls,
            server: Mutex::new(None),
        };
        node.up().await;
        node
    }

    pub(crate) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("sound")
    }

    pub(crate) fn suite(&self) -> String {
        self.inside().state.channels[0].suite_intended.clone()
    }

    pub(crate) fn told(&self, command: &str) -> usize {
        self.inside()
            .commands
            .iter()
            .filter(|told| *told == command)
            .count()
    }

    pub(crate) async fn up(&self) {
        let tls = server_config(&self.tls).expect("certificates");
        let door = loop {
            // The port may still be in the hands of the server that has just ended.
            match Door::bind(self.address, tls.clone()).await {
                Ok(door) => break door,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let router = Router::new()
            .route("/v1/state", get(state))
            .route("/v1/suites", get(suites))
            .route("/v1/channels/{number}/suite", put(set_suite))
            .route("/v1/channels/{number}/limits", put(set_limits))
            .route("/v1/channels/{number}/rekey", post(rekey))
            .route("/v1/keys", post(keys))
            .route("/v1/capture", post(capture))
            .with_state(self.inside.clone());
        let task = tokio::spawn(door.serve(router, std::future::pending()));
        *self.server.lock().expect("sound") = Some(task);
    }

    pub(crate) async fn down(&self) {
        let task = self.server.lock().expect("sound").take().expect("it runs");
        task.abort();
        let _ = task.await;
    }
}

pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(25);
    while !holds().await {
        assert!(Instant::now() < deadline, "not in 25 seconds: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let body = body.map(|body| serde_json::to_vec(&body).expect("JSON"));
    let reply = client
        .exchange(method, path, body)
        .await
        .expect("an answer");
    (
        reply.status,
        serde_json::from_slice(&reply.body).unwrap_or(Value::Null),
    )
}

pub(crate) fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap_or_default()
}

pub(crate) fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

pub(crate) fn suite(name: &str, offered: bool) -> SuiteEntry {
    SuiteEntry {
        name: name.to_owned(),
        id: SuiteId(0x0080_c200_0100_0004),
        cipher: "AES-256".to_owned(),
        mode: "GCM".to_owned(),
        key_octets: 32,
        icv_octets: if name == "plain" { 0 } else { 16 },
        hazmat: name == "plain",
        macsec: name.starts_with("aes"),
        backend: "soft".to_owned(),
        self_test_passed: true,
        offered,
        seal_gbps: 8.5,
        about: "A suite of the lab.".to_owned(),
    }
}

fn sa(suite: &str) -> SaState {
    SaState {
        an: An::from_low_bits(1),
        suite: suite.to_owned(),
        key_id: KeyId([7; 16]),
        pn: 1000,
        age_s: 3,
    }
}

fn inside(name: &str) -> Inside {
    let sci = Sci {
        address: MacAddress([2, 0x51, 0x4c, 0, 0, 1]),
        port: 1,
    };
    let channel = ChannelState {
        number: 1.try_into().expect("a channel"),
        name: "trunk".to_owned(),
        peer: if name == "node-a" { "node-b" } else { "node-a" }
            .parse()
            .expect("a name"),
        carriage: Carriage::Aggregated,
        status: ChannelStatus::Open,
        suite_intended: "aes-256-gcm".to_owned(),
        limits: Limits::default(),
        outbound: OutboundState {
            sci,
            encoding: Some(sa("aes-256-gcm")),
            counters: Default::default(),
        },
        inbound: InboundState {
            sci,
            accepted: vec![sa("aes-256-gcm")],
            counters: Default::default(),
        },
        rekeys: 0,
        last_suite_change_ms: None,
    };
    Inside {
        state: NodeState {
            node: name.parse().expect("an SAE ID"),
            version: "0.1.0".to_owned(),
            uptime_s: 100,
            line: PortState::default(),
            clients: Vec::new(),
            channels: vec![channel],
            strays: Default::default(),
            latency: None,
            key_handler: KeyHandlerState {
                ram_slots: 512,
                outbound_keys: 200,
                inbound_keys: 200,
                kme_reachable: true,
                peer_alive: true,
                kme_requests: 10,
                kme_failures: 0,
                forged: 0,
                replayed: 0,
                zeroised: 0,
            },
            alarms: Vec::new(),
            hazmat_allowed: Vec::new(),
        },
        suites: vec![
            suite("aes-256-gcm", true),
            suite("camellia-256-gcm", true),
            suite("serpent-256-ocb", true),
            suite("plain", false),
        ],
        commands: Vec::new(),
        refuses: Vec::new(),
        lazy: false,
    }
}

type Shared = State<Arc<Mutex<Inside>>>;
type Answer = Result<Json<Value>, (StatusCode, Json<Problem>)>;

async fn state(State(inside): Shared) -> Json<NodeState> {
    Json(inside.lock().expect("sound").state.clone())
}

async fn suites(State(inside): Shared) -> Json<Vec<SuiteEntry>> {
    Json(inside.lock().expect("sound").suites.clone())
}

async fn set_suite(
    State(inside): Shared,
    Path(number): Path<u16>,
    Json(told): Json<SetSuite>,
) -> Answer {
    let mut inside = inside.lock().expect("sound");
    inside
        .commands
        .push(format!("suite {number} {}", told.suite));
    if inside.refuses.contains(&told.suite) {
        let problem = Problem::conflict(format!("{} is not to be had here today", told.suite));
        return Err((StatusCode::CONFLICT, Json(problem)));
    }
    let lazy = inside.lazy;
    let channel = &mut inside.state.channels[0];
    channel.suite_intended = told.suite.clone();
    if !lazy {
        channel.outbound.encoding = Some(sa(&told.suite));
    }
    Ok(Json(Value::Null))
}

async fn set_limits(
    State(inside): Shared,
    Path(number): Path<u16>,
    Json(told): Json<Limits>,
) -> Answer {
    let mut inside = inside.lock().expect("sound");
    inside
        .commands
        .push(format!("limits {number} {}", told.seconds));
    inside.state.channels[0].limits = told;
    Ok(Json(Value::Null))
}

async fn rekey(State(inside): Shared, Path(number): Path<u16>) -> StatusCode {
    let mut inside = inside.lock().expect("sound");
    inside.commands.push(format!("rekey {number}"));
    inside.state.channels[0].rekeys += 1;
    StatusCode::NO_CONTENT
}

async fn keys(State(inside): Shared, Json(operation): Json<Value>) -> Answer {
    let mut inside = inside.lock().expect("sound");
    inside.commands.push(format!("keys {operation}"));
    Ok(Json(Value::Null))
}

/// The octets that a capture of a fake node has, each 250 times.
pub(crate) const CAPTURED: [&str; 3] = ["head", "frames", "statistics"];

async fn capture(State(inside): Shared, Json(order): Json<CaptureOrder>) -> Response {
    let told = format!("capture {:?}", order.side);
    inside.lock().expect("sound").commands.push(told);
    if order.side == Side::Client {
        let problem = Problem::new(403, "not allowed", "set capture in node-a.toml");
        return (StatusCode::FORBIDDEN, Json(problem)).into_response();
    }
    let (queue, answer) = mpsc::channel(1);
    tokio::spawn(async move {
        for piece in CAPTURED {
            let _ = queue.send(Ok(piece.repeat(250).into())).await;
        }
        if order.frames == 13 {
            let _ = queue.send(Err(std::io::Error::other("power cut"))).await;
        }
    });
    qloak_door::flowing(answer).into_response()
}

async fn fake_kms(tls: &TlsFiles) -> (SocketAddr, JoinHandle<()>) {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let door = Door::bind(listen, server_config(tls).expect("certificates"))
        .await
        .expect("a port");
    let address = door.address();
    let state = KmsState {
        kme_id: "kms-a".to_owned(),
        version: "0.1.0".to_owned(),
        uptime_s: 1,
        saes: Vec::new(),
        links: Vec::new(),
        alarms: Vec::new(),
    };
    let router = Router::new().route("/v1/state", get(async move || Json(state.clone())));
    (
        address,
        tokio::spawn(door.serve(router, std::future::pending())),
    )
}
