//! The lab's network: five namespaces, a line, client ports on each side, a management network.
//!
//! ```text
//!  qloak-hosts-a         qloak-a            the line            qloak-b         qloak-hosts-b
//!  10.77.p.1  c1, c2 .. -- node-a line-a ================ line-b node-b -- c1, c2 ..  10.77.p.2
//!                        kms-a   10.78.0.1           10.78.0.2  kms-b
//!                             \                          /
//!                              +---- qloak-mgmt, 10.78.0.10: controller, operator
//! ```
//!
//! What always holds: every name begins with `qloak-`, nothing outside these namespaces is touched, and
//! a lock makes sure that two runs do not share them. Whatever an earlier run left behind under these
//! names (it was killed, or the machine was) is removed before a new one begins.
//!
//! Loss is excluded by construction, not by luck: the windows of TCP are bounded here, and the queues
//! of the interfaces are longer than all windows together.

use std::{
    fs::{self, File},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::layout::Layout;
use crate::{
    proc,
    ui::{Context, Done, Failure},
};

/// One of the lab's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Node A and its KMS.
    A,
    /// Node B and its KMS.
    B,
    /// The controller and the operator.
    Management,
    /// The hosts behind node A's client ports.
    HostsA,
    /// The hosts behind node B's client ports.
    HostsB,
}

impl Space {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::A,
        Self::B,
        Self::Management,
        Self::HostsA,
        Self::HostsB,
    ];

    /// Its name under `/run/netns`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A => "qloak-a",
            Self::B => "qloak-b",
            Self::Management => "qloak-mgmt",
            Self::HostsA => "qloak-hosts-a",
            Self::HostsB => "qloak-hosts-b",
        }
    }

    /// By name, with or without the `qloak-`.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|space| space.name() == name || space.name().strip_prefix("qloak-") == Some(name))
    }

    /// Gives an interface in it an address (`10.0.0.1/24`) and this MTU, and brings it up.
    pub(crate) fn give_address(self, interface: &str, address: &str, mtu: usize) -> Done {
        let (name, mtu) = (self.name(), mtu.to_string());
        // An earlier round may have given it already.
        ip(&["-n", name, "address", "replace", address, "dev", interface])?;
        ip(&["-n", name, "link", "set", interface, "mtu", &mtu, "up"])
    }

    /// Sends what has no other way to an interface.
    pub(crate) fn route_all_to(self, interface: &str) -> Done {
        let name = self.name();
        ip(&["-n", name, "route", "replace", "default", "dev", interface])
    }

    /// Takes the addresses of an interface away.
    pub(crate) fn take_addresses(self, interface: &str) -> Done {
        ip(&["-n", self.name(), "address", "flush", "dev", interface])
    }

    /// A program that will run in it.
    pub(crate) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name()]).arg(program);
        command
    }

    fn exists(self) -> bool {
        fs::exists(format!("/run/netns/{}", self.name())).unwrap_or(false)
    }
}

/// Where the lock lies: the namespaces are the machine's, so their lock is too.
const LOCK: &str = "/run/qloak-lab.lock";

/// Frames that the queue of a client port or of the line holds.
const QUEUE_FRAMES: u32 = 10_000;

/// The right to the lab's names, held as long as this lives.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it, or says who has it.
    pub(crate) fn take() -> Done<Self> {
        let file = File::create(LOCK).cannot(format_args!("open {LOCK}"))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(fs::TryLockError::WouldBlock) => Err(Failure::new(
                "another demo or lab command is running on this machine; wait for it or end it",
            )),
            Err(fs::TryLockError::Error(error)) => {
                Err(Failure::new(format!("cannot lock {LOCK}: {error}")))
            }
        }
    }
}

/// Says that the namespaces are up on purpose: `lab up` or `demo --keep` made them.
const KEPT: &str = "/run/qloak-lab.kept";

/// Marks the namespaces as wanted: the next demo asks before it removes them.
pub(crate) fn keep(_: &Lock) {
    // Without the mark the next demo removes them, which harms nobody.
    let _ = File::create(KEPT);
}

/// Whether someone wants the namespaces that are there.
pub(crate) fn is_kept() -> bool {
    is_up() && fs::exists(KEPT).unwrap_or(false)
}

/// Why no lab can be made here, if that is so. Root inside a container often may not.
pub(crate) fn obstacle() -> Option<String> {
    const PROBE: &str = "qloak-probe";
    if let Err(error) = File::options().read(true).write(true).open("/dev/net/tun") {
        return Some(format!("/dev/net/tun cannot be opened: {error}"));
    }
    let made = ip(&["netns", "add", PROBE]);
    // What was left by a run that was killed in between is removed by the next one here.
    let _ = ip(&["netns", "delete", PROBE]);
    made.err().map(|failure| failure.to_string())
}

/// Whether any of the lab's namespaces is there.
pub(crate) fn is_up() -> bool {
    Space::ALL.into_iter().any(Space::exists)
}

/// Makes the network. On failure nothing of it remains.
pub(crate) fn up(_: &Lock, layout: &Layout) -> Done {
    make(layout).inspect_err(|_| remove())
}

/// Ends what runs in the namespaces and removes them. Quiet about what is gone already.
pub(crate) fn down(_: &Lock) {
    remove();
}

fn make(layout: &Layout) -> Done {
    for space in Space::ALL {
        ip(&["netns", "add", space.name()])?;
        // Frames of the kernel's own making (router solicitations, multicast reports) would only blur
        // the counts.
        sysctl(space, "net/ipv6/conf/all/disable_ipv6", "1")?;
        sysctl(space, "net/ipv6/conf/default/disable_ipv6", "1")?;
        ip(&["-n", space.name(), "link", "set", "lo", "up"])?;
    }
    make_line(layout)?;
    make_management()?;
    make_hosts(Space::HostsA, 1, layout)?;
    make_hosts(Space::HostsB, 2, layout)
}

fn make_line(layout: &Layout) -> Done {
    let (a, b) = (Space::A.name(), Space::B.name());
    let mtu = layout.line_mtu.to_string();
    let queue = QUEUE_FRAMES.to_string();
    ip(&[
        "-n",
        a,
        "link",
        "add",
        "line-a",
        "address",
        super::config::ADDRESS_A,
        "mtu",
        &mtu,
        "txqueuelen",
        &queue,
        "type",
        "veth",
        "peer",
        "name",
        "line-b",
        "address",
        super::config::ADDRESS_B,
        "mtu",
        &mtu,
        "txqueuelen",
        &queue,
        "netns",
        b,
    ])?;
    for (space, interface) in [(Space::A, "line-a"), (Space::B, "line-b")] {
        // A line frame is what it is: the kernel shall neither cut nor join any.
        let offloads = [
            "-K", interface, "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off",
        ];
        proc::output(space.command("ethtool").args(offloads))?;
        ip(&["-n", space.name(), "link", "set", interface, "up"])?;
    }
    Ok(())
}

fn make_management() -> Done {
    let centre = Space::Management.name();
    ip(&["-n", centre, "link", "add", "mgmt0", "type", "bridge"])?;
    ip(&[
        "-n",
        centre,
        "address",
        "add",
        "10.78.0.10/24",
        "dev",
        "mgmt0",
    ])?;
    ip(&["-n", centre, "link", "set", "mgmt0", "up"])?;
    for (space, leg, address) in [
        (Space::A, "to-a", "10.78.0.1/24"),
        (Space::B, "to-b", "10.78.0.2/24"),
    ] {
        let name = space.name();
        ip(&[
            "-n", centre, "link", "add", leg, "type", "veth", "peer", "name", "mgmt0", "netns",
            name,
        ])?;
        ip(&["-n", centre, "link", "set", leg, "master", "mgmt0", "up"])?;
        ip(&["-n", name, "address", "add", address, "dev", "mgmt0"])?;
        ip(&["-n", name, "link", "set", "mgmt0", "up"])?;
    }
    Ok(())
}

fn make_hosts(space: Space, host: u8, layout: &Layout) -> Done {
    if let Some(octets) = layout.tcp_window_octets_max {
        let window = format!("4096 65536 {octets}");
        sysctl(space, "net/ipv4/tcp_rmem", &window)?;
        sysctl(space, "net/ipv4/tcp_wmem", &window)?;
    }
    // A connection must not remember that a channel was closed in the phase before.
    sysctl(space, "net/ipv4/tcp_no_metrics_save", "1")?;
    // Kernels before 6.15 do not have this one; TCP then takes some seconds longer to come back.
    let _ = sysctl(space, "net/ipv4/tcp_rto_max_ms", "1000");
    let (queue, mtu) = (QUEUE_FRAMES.to_string(), layout.client_mtu.to_string());
    for port in 1..=layout.client_ports() {
        let name = format!("c{port}");
        ip(&[
            "-n",
            space.name(),
            "tuntap",
            "add",
            "dev",
            &name,
            "mode",
            "tap",
        ])?;
        let address = format!("10.77.{port}.{host}/24");
        ip(&["-n", space.name(), "address", "add", &address, "dev", &name])?;
        ip(&[
            "-n",
            space.name(),
            "link",
            "set",
            &name,
            "txqueuelen",
            &queue,
            "mtu",
            &mtu,
            "up",
        ])?;
    }
    Ok(())
}

fn remove() {
    let spaces: Vec<Space> = Space::ALL
        .into_iter()
        .filter(|space| space.exists())
        .collect();
    // Ask, wait a little, then force: a node told to end zeroises its keys.
    let begin = Instant::now();
    for signal in [Signal::TERM, Signal::KILL] {
        let patience = begin + Duration::from_secs(if signal == Signal::TERM { 2 } else { 4 });
        let mut asked = false;
        while spaces.iter().any(|space| !processes(*space).is_empty()) && Instant::now() < patience
        {
            if !asked || signal == Signal::KILL {
                for pid in spaces.iter().flat_map(|space| processes(*space)) {
                    // It may be gone since we looked; that is what we want.
                    let _ = kill_process(pid, signal);
                }
                asked = true;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    let _ = fs::remove_file(KEPT);
    for space in spaces {
        // What cannot be removed now is tried again before the next run.
        let _ = ip(&["netns", "delete", space.name()]);
    }
}

/// Processes inside a namespace: all of them are the lab's, because the namespace is.
fn processes(space: Space) -> Vec<Pid> {
    let listed = proc::output(Command::new("ip").args(["netns", "pids", space.name()]));
    listed
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn ip(arguments: &[&str]) -> Done {
    proc::output(Command::new("ip").args(arguments)).map(drop)
}

fn sysctl(space: Space, name: &str, value: &str) -> Done {
    let script = format!("echo '{value}' > /proc/sys/{name}");
    proc::output(space.command("sh").args(["-c", &script])).map(drop)
}

/// A counter of an interface, as the kernel keeps it.
pub(crate) fn interface_counters(space: Space) -> Done<String> {
    proc::output(Command::new("ip").args(["-n", space.name(), "-j", "-s", "link", "show"]))
}
