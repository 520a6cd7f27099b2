//! The Linux kernel's own MACsec as the station at the other end: its driver runs in user-mode Linux,
//! and a TAP is the line between it and us.
//!
//! Needs Debian's user-mode-linux, unpacked, and a network namespace of its own; `cargo xtask macsec` brings
//! both and runs this.

mod guest;
mod kernel;
mod network;
mod station;

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use qloak_api::{An, MacAddress};
use qloak_cipher::suite::Suite;
use qloak_secy::Verdict;
use serde_json::Value;

use guest::Guest;
use kernel::Kernel;
use network::{AT_EASE, IN_NEED, Network};
use station::{Sak, Station, Terms};

const OURS: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0a]);
const THEIRS: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0b]);

/// Pings of a flood; one follows the other as long as keys change.
const FLOOD: u64 = 1000;

/// Rekeys under it: each AN serves, and the first ones again.
const REKEYS: u16 = 6;

/// The four suites that the kernel has.
fn all_terms() -> impl Iterator<Item = Terms> {
    ["aes-128-gcm", "aes-256-gcm"]
        .into_iter()
        .flat_map(|name| [false, true].map(|xpn| (name, xpn)))
        .map(|(name, xpn)| Terms {
            suite: Suite::by_name(name).unwrap(),
            xpn,
            replay_window: 32,
        })
}

/// The n-th key of a direction.
fn sak(terms: &Terms, direction: u8, n: u16) -> Sak {
    let [high, low] = n.to_be_bytes();
    let octet = |place: u8| place.wrapping_mul(31) ^ direction ^ low.rotate_left(3) ^ high;
    Sak {
        octets: (0..terms.suite.key_octets as u8).map(octet).collect(),
        salt: std::array::from_fn(|place| octet(place as u8 | 0x80)),
        name: [
            direction, high, low, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ],
    }
}

fn an(number: u16) -> An {
    An::from_low_bits(number as u8)
}

/// The line, and the kernel at its other end.
fn boot() -> Guest {
    let debian = std::env::var_os("QLOAK_UML").expect("`cargo xtask macsec` runs this");
    // What an earlier test of this process left.
    for family in ["all", "default"] {
        let switch = format!("/proc/sys/net/ipv6/conf/{family}/disable_ipv6");
        // A kernel without IPv6 has none to switch off.
        let _ = fs::write(switch, "1");
    }
    for interface in ["line", "mgmt"] {
        let _ = Command::new("ip").args(["link", "del", interface]).output();
    }
    for arguments in [
        "ip link set lo up",
        "ip tuntap add line mode tap",
        "ip link set line mtu 9000 up",
        "ip tuntap add mgmt mode tap",
    ] {
        host(arguments);
    }
    let mut guest = Guest::boot(&PathBuf::from(debian), &["line", "mgmt"]);
    guest.sh(&format!("ip link set vec0 address {THEIRS} mtu 9000 up"));
    println!("Linux {} with its own macsec driver", guest.version());
    guest
}

fn host(line: &str) {
    let mut words = line.split(' ');
    let program = words.next().unwrap();
    let out = Command::new(program).args(words).output().unwrap();
    assert!(out.status.success(), "{line}: {out:?}");
}

/// Both ends under the first keys, joined by addresses 10.1.0.1 (kernel) and 10.1.0.2 (ours).
fn join<'a>(guest: &'a mut Guest, terms: Terms) -> (Kernel<'a>, Station) {
    let station = Station::open("ours", "line", OURS, THEIRS, terms);
    // Nobody asks for an address, so that no frame is counted but the test's own.
    host("ip link set ours address 02:51:4c:00:00:0d");
    host("ip address add 10.1.0.2/24 dev ours");
    host(&format!(
        "ip neigh replace 10.1.0.1 lladdr {THEIRS} dev ours"
    ));
    let mut kernel = Kernel::make(guest, OURS, terms, "10.1.0.1/24");
    kernel.sh("ip neigh replace 10.1.0.2 lladdr 02:51:4c:00:00:0d dev ms0");
    rekey(&mut kernel, &station, terms, 0);
    (kernel, station)
}

/// The n-th keys, in the order in which nobody meets a frame under a key that he does not have.
fn rekey(kernel: &mut Kernel<'_>, station: &Station, terms: Terms, n: u16) {
    let (to_kernel, to_us) = (sak(&terms, 1, n), sak(&terms, 2, n));
    kernel.accept(an(n), &to_kernel);
    station.secy().accept(an(n), &to_us);
    station.secy().encode(an(n), &to_kernel);
    kernel.encode(an(n), &to_us);
}

fn forget(kernel: &mut Kernel<'_>, station: &Station, n: u16) {
    kernel.forget_outbound(an(n));
    station.secy().forget_outbound(an(n));
    kernel.forget_inbound(an(n));
    station.secy().forget_inbound(an(n));
}

/// A counter of a node's channel.
fn frames(state: &Value, way: &str, counter: &str) -> Option<u64> {
    state["channels"][0][way]["counters"][counter].as_u64()
}

/// Runs `ping` and waits until as many replies have come as it asked for. The kernel counts them: `ping` itself
/// does not wait for the last ones when a machine stands still for a moment.
fn nothing_lost(mut pings: impl Pings, count: u64, arguments: &str) {
    let before = pings.replies();
    pings.send(&format!("ping -q -c {count} {arguments}"));
    let begun = Instant::now();
    while pings.replies() < before + count {
        let came = pings.replies() - before;
        assert!(begun.elapsed() < PATIENCE, "{came} of {count} replies");
        thread::sleep(Duration::from_millis(50));
    }
}

/// How long replies may be on their way.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where pings leave.
trait Pings {
    fn send(&mut self, line: &str);
    /// The kernel's counters of IP (proc(5), /proc/net/snmp).
    fn counters(&mut self) -> String;

    /// Replies that came.
    fn replies(&mut self) -> u64 {
        let text = self.counters();
        let mut lines = text.lines().filter(|line| line.starts_with("Icmp:"));
        let (names, numbers) = (lines.next().unwrap(), lines.next().unwrap());
        let mut both = names.split(' ').zip(numbers.split(' '));
        let found = both.find(|(name, _)| *name == "InEchoReps").unwrap();
        found.1.parse().unwrap()
    }
}

/// From us.
struct Ours;

impl Pings for Ours {
    fn send(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let out = Command::new(words[0]).args(&words[1..]).output();
        assert!(out.is_ok(), "{line}: {out:?}");
    }

    fn counters(&mut self) -> String {
        fs::read_to_string("/proc/net/snmp").unwrap()
    }
}

/// From the kernel at the other end.
impl Pings for &mut Kernel<'_> {
    fn send(&mut self, line: &str) {
        self.sh(line);
    }

    fn counters(&mut self) -> String {
        self.sh("busybox cat /proc/net/snmp")
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn the_kernel_and_we_understand_each_other() {
    let mut guest = boot();
    for terms in all_terms() {
        println!("{}, xpn {}", terms.suite.name, terms.xpn);
        let (mut kernel, station) = join(&mut guest, terms);

        // 42 to 91 octets: the secure data are 30 to 79, and SL is needed under 48.
        for size in [0, 1, 17, 18, 19, 49] {
            nothing_lost(&mut kernel, 4, &format!("-i 0.002 -s {size} 10.1.0.2"));
        }
        let [sent, received] = station.secy().short;
        assert!(sent >= 12 && received >= 12, "{sent} {received}");

        // Client frames of 1514 octets, which must not be cut on their way.
        nothing_lost(&mut kernel, 20, "-i 0.002 -M do -s 1472 10.1.0.2");

        let ours = station.secy().counters();
        assert_eq!(ours.1.not_valid + ours.1.no_sa + ours.1.late, 0, "{ours:?}");
        assert_eq!(kernel.counter("InPktsNotValid"), 0);
        assert_eq!(kernel.counter("InPktsOK"), ours.0.protected_frames);
        assert_eq!(kernel.counter("OutPktsEncrypted"), ours.1.ok);

        // Why a node with `dataplane = "kernel-macsec"` offers no other suite.
        assert_ne!(kernel.change_suite(), "0", "docs/adr/0009 wants a new look");
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn keys_change_under_a_flood_of_pings_and_nothing_is_lost() {
    let mut guest = boot();
    for terms in all_terms() {
        let (mut kernel, station) = join(&mut guest, terms);
        let enough = AtomicBool::new(false);
        let pings = thread::scope(|scope| {
            let flood = scope.spawn(|| {
                let mut pings = 0;
                while !enough.load(Ordering::Relaxed) {
                    nothing_lost(Ours, FLOOD, "-f -s 1000 10.1.0.1");
                    pings += FLOOD;
                }
                pings
            });
            for n in 0..REKEYS {
                rekey(&mut kernel, &station, terms, n + 1);
                forget(&mut kernel, &station, n);
            }
            enough.store(true, Ordering::Relaxed);
            flood.join().expect("nothing was lost")
        });
        assert_eq!(station.secy().counters().1.not_valid, 0);
        println!(
            "{}, xpn {}: {REKEYS} rekeys each way in {pings} pings, 0 lost",
            terms.suite.name, terms.xpn
        );
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn a_damaged_frame_and_an_old_one_are_counted_by_both() {
    let mut guest = boot();
    for terms in all_terms() {
        let (mut kernel, station) = join(&mut guest, terms);
        nothing_lost(&mut kernel, 40, "-i 0.002 10.1.0.2");
        let frame = [&THEIRS.0[..], &OURS.0, &[8, 0], &[0; 100]].concat();

        // From us to the kernel: damaged, sound, beyond the window.
        let ok = kernel.counter("InPktsOK");
        let first = station.secy().protect(&frame);
        let mut damaged = station.secy().protect(&frame);
        *damaged.last_mut().unwrap() ^= 1;
        station.secy().put_on_line(&damaged);
        assert_eq!(kernel.counter("InPktsNotValid"), 1);
        assert_eq!(kernel.counter("InPktsOK"), ok);
        // Out of order, but inside the window: both are taken.
        let second = station.secy().protect(&frame);
        station.secy().put_on_line(&second);
        station.secy().put_on_line(&first);
        assert_eq!(kernel.counter("InPktsOK"), ok + 2);
        for _ in 0..=terms.replay_window {
            let frame = station.secy().protect(&frame);
            station.secy().put_on_line(&frame);
        }
        let late = kernel.counter("InPktsLate");
        station.secy().put_on_line(&first);
        assert_eq!(kernel.counter("InPktsLate"), late + 1);

        // From the kernel to us.
        station.secy().hold = true;
        kernel.sh("ping -q -c 40 -i 0.002 -W 0.1 10.1.0.2 || true");
        let held = std::mem::take(&mut station.secy().held);
        assert_eq!(held.len(), 40);
        let before = station.secy().counters().1;
        let mut damaged = held[0].clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(matches!(station.secy().take(&damaged), Verdict::NotValid));
        let mut damaged = held[1].clone();
        damaged[40] ^= 1;
        assert!(matches!(station.secy().take(&damaged), Verdict::NotValid));
        assert!(matches!(station.secy().take(&held[1]), Verdict::Valid(_)));
        assert!(matches!(station.secy().take(&held[0]), Verdict::Valid(_)));
        assert!(matches!(station.secy().take(&held[0]), Verdict::Replayed));
        assert!(matches!(station.secy().take(&held[39]), Verdict::Valid(_)));
        assert!(matches!(station.secy().take(&held[2]), Verdict::Late));
        let after = station.secy().counters().1;
        assert_eq!(after.not_valid, before.not_valid + 2);
        assert_eq!(after.ok, before.ok + 3);
        assert_eq!(after.replayed, before.replayed + 1);
        assert_eq!(after.late, before.late + 1);
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn a_node_programs_the_kernel_and_nothing_is_lost() {
    let binary = std::env::var_os("QLOAK_BINARY").expect("`cargo xtask macsec` runs this");
    let mut network = Network::up(boot(), binary.into());
    for terms in all_terms() {
        network.start_nodes(&terms, &AT_EASE);
        let (a, _) = network.until("both count from here", |_, _| true);
        let rekeys_before = a["channels"][0]["rekeys"].as_u64().unwrap();
        // Some ten rekeys fall into this.
        nothing_lost(Ours, 2000, "-i 0.002 -s 1000 10.1.0.1");

        let (a, b) = network.until("what left one node arrived at the other", |a, b| {
            frames(a, "outbound", "protected_frames") == frames(b, "inbound", "ok")
                && frames(b, "outbound", "protected_frames") == frames(a, "inbound", "ok")
                && frames(a, "outbound", "protected_octets") == frames(b, "inbound", "octets")
                && frames(b, "outbound", "protected_octets") == frames(a, "inbound", "octets")
                && frames(a, "inbound", "ok") >= Some(2000)
        });
        for state in [&a, &b] {
            for wrong in ["late", "not_valid", "no_sa"] {
                assert_eq!(frames(state, "inbound", wrong), Some(0), "{state:#}");
            }
            assert_eq!(
                state["channels"][0]["outbound"]["encoding"]["suite"],
                terms.suite.name
            );
        }
        let rekeys = a["channels"][0]["rekeys"].as_u64().unwrap() - rekeys_before;
        assert!(rekeys >= 4, "{rekeys} rekeys");
        println!(
            "{}, xpn {}: {rekeys} rekeys in 2000 pings, 0 lost",
            terms.suite.name, terms.xpn
        );

        network.stop_nodes();
        let left = network.guest().sh("ip -j macsec show secure1");
        assert!(!left.contains("\"key\""), "an SA outlived the node: {left}");
        // The hosts of the guest go on sending, and nothing of it leaves.
        let (status, _) = network.guest().try_sh("ping -q -c 2 -W 1 10.1.0.2");
        assert_ne!(status, "0");
        let line = network.guest().sh("ip -j -s macsec show secure1");
        assert!(line.contains("\"OutPktsUntagged\":0"), "{line}");
        // Again: the interface is taken as it is, its address included.
        network.start_nodes(&terms, &AT_EASE);
        nothing_lost(Ours, 100, "-i 0.01 -s 1000 10.1.0.1");
        network.stop_nodes();
        network.guest().sh("ip link del secure1");
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn without_a_new_key_the_kernel_sends_nothing() {
    let binary = std::env::var_os("QLOAK_BINARY").expect("`cargo xtask macsec` runs this");
    let mut network = Network::up(boot(), binary.into());
    let terms = all_terms().last().unwrap();
    network.start_nodes(&terms, &IN_NEED);
    nothing_lost(Ours, 100, "-i 0.002 10.1.0.1");
    network.end_kms();
    // More than the keys that are left may protect.
    network
        .guest()
        .sh("ping -q -w 15 -i 0.002 10.1.0.2 || true");
    let (a, _) = network.until("node-a has closed", |a, _| {
        a["channels"][0]["status"] == "closed"
    });
    let shown = network.guest().sh("ip -j macsec show secure1");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let sas = shown[0]["sa_list"].as_array();
    assert!(sas.is_none_or(Vec::is_empty), "{shown:#}");

    let before = a["clients"][0]["discarded_closed"].as_u64().unwrap();
    let (status, _) = network.guest().try_sh("ping -q -w 2 -i 0.1 10.1.0.2");
    assert_ne!(status, "0");
    let (after, _) = network.until("what was not sent is counted", |a, _| {
        a["clients"][0]["discarded_closed"].as_u64() > Some(before)
    });
    assert_eq!(
        frames(&after, "outbound", "protected_frames"),
        frames(&a, "outbound", "protected_frames")
    );
    assert!(
        after["alarms"].to_string().contains("channel-closed"),
        "{after:#}"
    );
}
