//! A MACsec station of other people at the other end: scapy opens what we protect, and the reverse.
//!
//! GCM-AES-128 and -256, with 32-bit PNs and with XPN, over the carry of the low half. Python with
//! scapy and cryptography is an external tool: `cargo xtask setup` makes it, `cargo xtask test` names
//! it in `QLOAK_PEER_PYTHON` and runs this.

mod common;

use std::{
    io::Write,
    process::{Command, Stdio},
};

use common::*;
use qloak_api::{Carriage, KeyId, Sci};
use qloak_cipher::{Level, Suite};
use qloak_keys::Key;
use qloak_secy::{ChannelConfig, Sa};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Job {
    sak: String,
    salt: String,
    ssci: u32,
    sci: String,
    an: u8,
    xpn: bool,
    open: Vec<Numbered>,
    protect: Vec<Numbered>,
}

#[derive(Serialize)]
struct Numbered {
    pn: u64,
    frame: String,
}

#[derive(Deserialize)]
struct Answer {
    opened: Vec<String>,
    protected: Vec<String>,
}

fn ask(job: &Job) -> Answer {
    let python = std::env::var_os("QLOAK_PEER_PYTHON")
        .expect("QLOAK_PEER_PYTHON names a Python that has scapy and cryptography");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer/peer.py");
    let mut peer = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python of QLOAK_PEER_PYTHON starts");
    let question = serde_json::to_vec(job).unwrap();
    peer.stdin.take().unwrap().write_all(&question).unwrap();
    let output = peer.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "the peer failed: {}",
        output.status
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Client frames of many lengths, of an EtherType that scapy leaves as it is.
fn client_frames() -> Vec<Vec<u8>> {
    [14, 15, 46, 59, 60, 61, 64, 128, 576, 1500, 1514, 9000]
        .iter()
        .map(|&length| {
            let mut frame = frame(length, length as u64);
            frame[12..14].copy_from_slice(&0x9000_u16.to_be_bytes());
            frame
        })
        .collect()
}

fn meet(suite: &'static Suite, xpn: bool, carriage: Carriage, first_pn: u64) {
    let sak: Vec<u8> = (0..suite.key_octets as u8).map(|n| n ^ 0xc3).collect();
    let salt = *b"qloak, 96bit";
    let sa = |an: u8| {
        let key = Key::from_slice(&sak).unwrap();
        let id = KeyId([an; 16]);
        let sa = Sa::new(suite, Level::Soft, &key, salt, id).unwrap();
        sa.starting_at(first_pn)
    };
    let config = ChannelConfig {
        xpn,
        ..channel(carriage)
    };
    let frames = client_frames();
    let mut link = Link::new(&config, 9100);
    link.outbound.install(number(1), an(2), sa(2)).unwrap();
    assert!(link.outbound.encode(number(1), an(2), 0));
    let with_port: Vec<_> = frames.iter().map(|f| (client(1), f.clone())).collect();
    let line = link.send(&with_port);

    let number_all = |frames: Vec<&[u8]>| -> Vec<Numbered> {
        let frames = frames.into_iter().map(hex).zip(first_pn..);
        frames.map(|(frame, pn)| Numbered { pn, frame }).collect()
    };
    let answer = ask(&Job {
        sak: hex(&sak),
        salt: hex(&salt),
        ssci: 1,
        sci: hex(&Sci::new(A, number(1)).to_octets()),
        an: 2,
        xpn,
        open: number_all(line.iter().map(Stored::octets).collect()),
        protect: number_all(frames.iter().map(Vec::as_slice).collect()),
    });
    let what = format!("{}, xpn {xpn}, {carriage:?}", suite.name);

    // Our frames, opened by the peer.
    assert_eq!(answer.opened.len(), line.len());
    for (opened, line) in answer.opened.iter().zip(&line) {
        let opened = octets(opened);
        assert_eq!(opened.len() + 32, line.octets().len(), "{what}");
        if carriage == Carriage::Aggregated {
            assert_eq!(opened[12..14], [0x88, 0xb6], "{what}");
        }
    }
    if carriage == Carriage::Transparent {
        let opened: Vec<_> = answer.opened.iter().map(|frame| octets(frame)).collect();
        assert_eq!(opened, frames, "{what}");
        // The peer, given the same key and PNs, makes the same octets.
        let ours: Vec<_> = line.iter().map(|line| hex(line.octets())).collect();
        assert_eq!(answer.protected, ours, "{what}");
    }

    // The peer's frames, opened by us.
    let transparent = ChannelConfig {
        xpn,
        ..channel(Carriage::Transparent)
    };
    let mut link = Link::new(&transparent, 9100);
    link.inbound.install(number(1), an(2), sa(2)).unwrap();
    let theirs: Vec<_> = answer
        .protected
        .iter()
        .map(|frame| Stored::of(&octets(frame)))
        .collect();
    assert_eq!(link.receive(&theirs), with_port, "{what}");
}

//= IEEE 802.1AE-2018 9.3, 10.5, 10.6, 14.5 to 14.8
#[test]
#[ignore = "needs Python with scapy: cargo xtask test names it in QLOAK_PEER_PYTHON and runs this"]
fn peer_scapy_opens_our_frames_and_we_open_its() {
    for name in ["aes-128-gcm", "aes-256-gcm"] {
        for carriage in [Carriage::Transparent, Carriage::Aggregated] {
            meet(suite(name), false, carriage, 1);
            meet(suite(name), true, carriage, 1);
            // Over the carry: the low half on the line passes through 0.
            meet(suite(name), true, carriage, (1 << 32) - 5);
            meet(suite(name), true, carriage, 0x0123_4567_ffff_fffe);
        }
    }
}
