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
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use qloak_api::{An, MacAddress};
use qloak_cipher::suite::Suite;
use qloak_secy::Verdict;
use serde_json::Value;

use guest::Guest;
use kernel::Kernel;
use network::Network;
use station::{Sak, Station, Terms};

const OURS: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0a]);
const THEIRS: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0b]);

/// Pings of a flood: so many that several rekeys fall into it.
const FLOOD: u64 = 10_000;

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
    host("ip address add 10.1.0.2/24 dev ours");
    let mut kernel = Kernel::make(guest, OURS, terms, "10.1.0.1/24");
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

fn flood() -> Child {
    Command::new("ping")
        .args([
            "-q",
            "-f",
            "-s",
            "1000",
            "-c",
            &FLOOD.to_string(),
            "10.1.0.1",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Pings from outside, and what `ping` says of them.
fn ping(arguments: &str) -> String {
    let out = Command::new("ping").args(arguments.split(' ')).output();
    String::from_utf8_lossy(&out.unwrap().stdout).into_owned()
}

fn nothing_lost(said: &str) {
    assert!(said.contains(" 0% packet loss"), "{said}"); // tidy: allow packet
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
            nothing_lost(&kernel.ping(&format!("-i 0.002 -c 4 -s {size} 10.1.0.2")));
        }
        let [sent, received] = station.secy().short;
        assert!(sent >= 12 && received >= 12, "{sent} {received}");

        // Client frames of 1514 octets, which must not be cut on their way.
        nothing_lost(&kernel.ping("-i 0.002 -c 20 -M do -s 1472 10.1.0.2"));

        let ours = station.secy().counters();
        assert_eq!(ours.1.not_valid + ours.1.no_sa + ours.1.late, 0, "{ours:?}");
        assert_eq!(kernel.counter("InPktsNotValid"), 0);
        assert_eq!(kernel.counter("InPktsOK"), ours.0.protected_frames);
        assert_eq!(kernel.counter("OutPktsEncrypted"), ours.1.ok);

        // Why a node with `dataplane = "kernel-macsec"` offers no other suite.
        assert_ne!(kernel.change_suite(), "0", "docs/adr/0007 wants a new look");
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn keys_change_under_a_flood_of_pings_and_nothing_is_lost() {
    let mut guest = boot();
    for terms in all_terms() {
        let (mut kernel, station) = join(&mut guest, terms);
        let mut flood = flood();
        let mut rekeys = 0;
        while flood.try_wait().unwrap().is_none() {
            rekey(&mut kernel, &station, terms, rekeys + 1);
            forget(&mut kernel, &station, rekeys);
            rekeys += 1;
        }
        let said = flood.wait_with_output().unwrap();
        nothing_lost(&String::from_utf8_lossy(&said.stdout));
        println!(
            "{}, xpn {}: {rekeys} rekeys each way in {FLOOD} pings",
            terms.suite.name, terms.xpn
        );
        // Each AN served at least once, and the first one again.
        assert!(rekeys >= 4, "{rekeys} rekeys");
        assert_eq!(station.secy().counters().1.not_valid, 0);
    }
}

#[test]
#[ignore = "needs user-mode Linux; `cargo xtask macsec` runs it"]
fn a_damaged_frame_and_an_old_one_are_counted_by_both() {
    let mut guest = boot();
    for terms in all_terms() {
        let (mut kernel, station) = join(&mut guest, terms);
        nothing_lost(&kernel.ping("-i 0.002 -c 40 10.1.0.2"));
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
        kernel.ping("-c 40 -i 0.002 -W 0.1 10.1.0.2 || true");
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
        network.start_nodes(&terms);
        let (a, _) = network.until("both count from here", |_, _| true);
        let rekeys_before = a["channels"][0]["rekeys"].as_u64().unwrap();
        // Some ten rekeys fall into this.
        nothing_lost(&ping("-q -i 0.002 -s 1000 -c 2000 10.1.0.1"));

        let frames = |state: &Value, way: &str, counter: &str| {
            state["channels"][0][way]["counters"][counter].as_u64()
        };
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
        network.start_nodes(&terms);
        nothing_lost(&ping("-q -i 0.01 -s 1000 -c 100 10.1.0.1"));
        network.stop_nodes();
        network.guest().sh("ip link del secure1");
    }
}
