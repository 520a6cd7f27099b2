//! A network of real programs: a node in the guest, whose kernel carries the frames, and one outside that
//! carries them itself; two KMSs with an emulated QKD link give the keys.
//!
//! ```text
//!   guest:    10.1.0.1 secure1 -- vec0 -.- line -- node-b -- TAP 10.1.0.2      outside
//!             node-a 10.78.0.2 -- vec1 -.- mgmt 10.78.0.1   kms-a, kms-b
//! ```

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{guest::Guest, host, station::Terms};

/// How long a thing may take that takes a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the doors are: management of node-a, of node-b, the two KMSs.
const DOORS: [&str; 4] = [
    "10.78.0.2:7443",
    "10.78.0.1:7443",
    "10.78.0.1:7101",
    "10.78.0.1:7102",
];

/// How long an SA lives: by frames and not by time, so that a machine that stands still for a second loses
/// nothing.
pub(crate) struct Life {
    pub(crate) frames: u64,
    pub(crate) rekey_at_percent: u8,
    pub(crate) keys_ready: u32,
}

/// After 200 frames of an SA its successor is agreed, and after 4000 it is over.
pub(crate) const AT_EASE: Life = Life {
    frames: 4000,
    rekey_at_percent: 5,
    keys_ready: 32,
};

/// Few frames, and few keys to go on with.
pub(crate) const IN_NEED: Life = Life {
    frames: 300,
    rekey_at_percent: 90,
    keys_ready: 1,
};

/// The programs outside, and the guest.
pub(crate) struct Network {
    guest: Guest,
    binary: PathBuf,
    folder: tempfile::TempDir,
    kms: Vec<Running>,
    node_b: Option<Running>,
}

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        if asked.is_err() {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

impl Network {
    /// The KMSs run, the nodes not yet.
    pub(crate) fn up(mut guest: Guest, binary: PathBuf) -> Self {
        host("ip address add 10.78.0.1/24 dev mgmt");
        host("ip link set mgmt up");
        guest.sh("ip address add 10.78.0.2/24 dev vec1 && ip link set vec1 up");
        let mut network = Self {
            guest,
            binary,
            folder: tempfile::tempdir().unwrap(),
            kms: Vec::new(),
            node_b: None,
        };
        let made = network
            .qloak("pki init --dir pki --node node-a --node node-b --kms kms-a --kms kms-b --controller controller --operator operator --host 10.78.0.1 --host 10.78.0.2")
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        for site in [Site::A, Site::B] {
            let name = site.kms();
            fs::write(network.path(&format!("{name}.toml")), kms(site)).unwrap();
            let running = network.start(&name, &format!("kms -c {name}.toml"));
            network.kms.push(running);
        }
        network
    }

    /// Starts both nodes and waits until the channel is open.
    pub(crate) fn start_nodes(&mut self, terms: &Terms, life: &Life) {
        fs::write(self.path("node-a.toml"), node(Site::A, terms, life)).unwrap();
        fs::write(self.path("node-b.toml"), node(Site::B, terms, life)).unwrap();
        self.node_b = Some(self.start("node-b", "node -c node-b.toml"));
        let (folder, binary) = (self.folder.path().display(), self.binary.display());
        self.guest.sh(&format!(
            "(cd {folder} && exec {binary} node -c node-a.toml) > /run/node-a.log 2>&1 & echo $! > /run/node-a.pid"
        ));
        let open = |state: &Value| state["channels"][0]["status"] == "open";
        self.until("both nodes are open", |a, b| open(a) && open(b));
        self.guest
            .sh("ip address replace 10.1.0.1/24 dev secure1 && ip link set secure1 up");
        host("ip address replace 10.1.0.2/24 dev ours");
    }

    /// Ends both nodes; what node-a leaves in the kernel stays.
    pub(crate) fn stop_nodes(&mut self) {
        self.node_b = None;
        self.guest
            .sh("kill $(cat /run/node-a.pid) && wait $(cat /run/node-a.pid)");
    }

    /// There are no keys any more but those that the nodes have.
    pub(crate) fn end_kms(&mut self) {
        self.kms.clear();
    }

    /// Something in the guest.
    pub(crate) fn guest(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// What both nodes say of themselves, once it is so.
    pub(crate) fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&Value, &Value) -> bool,
    ) -> (Value, Value) {
        let begun = Instant::now();
        loop {
            let (a, b) = (self.state(Site::A), self.state(Site::B));
            if is_so(&a, &b) {
                return (a, b);
            }
            if begun.elapsed() > PATIENCE {
                let log = self.guest.sh("tail -n 20 /run/node-a.log");
                let other = fs::read_to_string(self.path("node-b.log")).unwrap_or_default();
                panic!("not: {what}\nnode-a {a:#}\n{log}\nnode-b {b:#}\n{other}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// What a node says of itself; nothing while it does not answer.
    fn state(&self, site: Site) -> Value {
        let [a, b, ..] = DOORS;
        let (name, door) = match site {
            Site::A => ("node-a", a),
            Site::B => ("node-b", b),
        };
        let out = self
            .qloak(&format!("status --node {name}=https://{door} --json"))
            .env("QLOAK_PKI", "pki")
            .env("QLOAK_AS", "operator")
            .output()
            .unwrap();
        serde_json::from_slice(&out.stdout).unwrap_or_default()
    }

    fn start(&self, name: &str, arguments: &str) -> Running {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path(&format!("{name}.log")))
            .unwrap();
        let mut command = self.qloak(arguments);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        Running(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn qloak(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments.split(' '))
            .current_dir(self.folder.path());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }
}

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    A,
    B,
}

impl Site {
    fn kms(self) -> String {
        match self {
            Self::A => "kms-a".into(),
            Self::B => "kms-b".into(),
        }
    }
}

/// A node's configuration.
fn node(site: Site, terms: &Terms, life: &Life) -> String {
    let [door_a, door_b, kms_a, kms_b] = DOORS;
    let (name, far, dataplane, line, client, addresses, door, kms) = match site {
        Site::A => (
            "node-a",
            "node-b",
            "dataplane = \"kernel-macsec\"\n",
            "vec0",
            "{ kind = \"macsec\", interface = \"secure1\", mtu = 1500 }",
            ["02:51:4c:00:00:0b", "02:51:4c:00:00:0a"],
            door_a,
            kms_a,
        ),
        Site::B => (
            "node-b",
            "node-a",
            "",
            "line",
            "{ kind = \"tap\", interface = \"ours\", mtu = 1500 }",
            ["02:51:4c:00:00:0a", "02:51:4c:00:00:0b"],
            door_b,
            kms_b,
        ),
    };
    format!(
        "name = \"{name}\"\n{dataplane}\
         [line]\nport = {{ kind = \"af-packet\", interface = \"{line}\" }}\n\
         address = \"{}\"\npeer_address = \"{}\"\npeer = \"{far}\"\nframe_octets_max = 9014\n\
         [[client]]\nnumber = 1\nport = {client}\n\
         [[channel]]\nnumber = 7\ncarriage = \"transparent\"\nclients = [1]\nsuite = \"{}\"\n\
         packet_number_bits = {}\nreplay_window = {}\n\
         limits = {{ frames = {}, octets = 1000000000, seconds = 3600, rekey_at_percent = {} }}\n\
         [key_ram]\nfill = {}\n\
         [kme]\nurl = \"https://{kms}\"\nidentity = \"{}\"\n[manage]\nlisten = \"{door}\"\n{}",
        addresses[0],
        addresses[1],
        terms.suite.name,
        if terms.xpn { 64 } else { 32 },
        terms.replay_window,
        life.frames,
        life.rekey_at_percent,
        life.keys_ready,
        site.kms(),
        tls(name),
    )
}

fn kms(site: Site) -> String {
    let [_, _, kms_a, kms_b] = DOORS;
    let (door, far_door, far, node, far_node, end) = match site {
        Site::A => (
            kms_a,
            kms_b,
            "kms-b",
            "node-a",
            "node-b",
            "role = \"alice\"\nemulated = { length_km = 0.5, loss_db = 5.19, rate_factor = 100.0 }\n",
        ),
        Site::B => (
            kms_b,
            kms_a,
            "kms-a",
            "node-b",
            "node-a",
            "role = \"bob\"\n",
        ),
    };
    let name = site.kms();
    format!(
        "kme_id = \"{name}\"\nlisten = \"{door}\"\nsaes = [\"{node}\"]\n{}\
         [ledger]\nfile = \"{name}.sqlite\"\nkek = \"{name}.kek\"\n\
         [[link]]\nname = \"link\"\npeer = \"{far}\"\npeer_url = \"https://{far_door}\"\n\
         peer_saes = [\"{far_node}\"]\n{end}",
        tls(&name),
    )
}

fn tls(name: &str) -> String {
    format!("[tls]\nca = \"pki/ca.pem\"\ncert = \"pki/{name}.pem\"\nkey = \"pki/{name}.key\"\n")
}
