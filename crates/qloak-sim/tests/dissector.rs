//! The Wireshark dissector `tools/wireshark/qloak.lua`, as tshark applies it: to golden messages, whose
//! values are written out here, to records, and to everything that two nodes really say to each other.
//!
//! tshark is an external tool: `cargo xtask setup` installs it, `cargo xtask test` runs this.

use std::{fs, path::Path, process::Command};

use qloak_api::Carriage;
use qloak_cipher::suite::Suite;
use qloak_node::key_handler::Command as Order;
use qloak_sim::{Plan, Side, World};
use serde_json::Value;

const ADDRESSES: [u8; 12] = [2, 0x51, 0x4c, 0, 0, 0x0b, 2, 0x51, 0x4c, 0, 0, 0x0a];
/// Before the frame of a kept input of the fuzz target `agreement`: what the fuzzer is to do with it.
const CHOICES: usize = 5;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What tshark makes of frames: for each the tree of one of our two protocols.
fn dissect(protocol: &str, frames: &[Vec<u8>]) -> Vec<Value> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.pcap");
    fs::write(&path, file).unwrap();
    let script = root().join("tools/wireshark/qloak.lua");
    let output = Command::new("tshark")
        .arg(format!("-Xlua_script:{}", script.display()))
        .args(["-T", "json", "--no-duplicate-keys", "-r"])
        .arg(path)
        .output()
        .expect("tshark is here: `cargo xtask setup` installs it");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("Lua Error"), "{text}");
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(all.len(), frames.len());
    all.into_iter()
        .map(|frame| frame["_source"]["layers"][protocol].clone())
        .collect()
}

/// A golden message: the frame of a kept input.
fn golden(name: &str) -> Vec<u8> {
    let path = root().join("fuzz/corpus/agreement").join(name);
    let octets = fs::read(path).unwrap();
    [&ADDRESSES, &octets[CHOICES..]].concat()
}

/// What the dissector holds against a frame.
fn complaint(tree: &Value) -> Option<&str> {
    tree["_ws.expert"]["_ws.expert.message"].as_str()
}

#[test]
#[ignore = "needs tshark; run by `cargo xtask test`"]
fn golden_messages_have_their_values() {
    let names = ["hello", "welcome", "announce", "ready", "refuse", "sync"];
    let trees = dissect("qloak_agreement", &names.map(golden));
    let dots = |octet: &str, count: usize| vec![octet; count].join(":");
    let id = "1d1d1d1d-1d1d-1d1d-1d1d-1d1d1d1d1d1d";
    let suite = "0x0080c20001000004";
    let expected: [&[(&str, &str)]; 6] = [
        &[("type", "1"), ("length", "84"), ("boot", &dots("b0", 16))],
        &[("type", "2"), ("target_boot", &dots("b0", 16))],
        &[
            ("type", "3"),
            ("channel", "1"),
            ("carriage", "1"),
            ("an", "1"),
            ("suite", suite),
            ("sci.address", "02:02:02:02:02:02"),
            ("sci.channel", "514"),
            ("change", "5"),
            ("encoding", "5"),
            ("key_id", id),
            ("ahead", "2"),
        ],
        &[
            ("type", "4"),
            ("channel", "1"),
            ("an", "1"),
            ("change", "5"),
            ("key_id", id),
            ("proof", &dots("99", 32)),
        ],
        &[
            ("type", "5"),
            ("reason", "2"),
            ("change", "5"),
            ("key_id", id),
        ],
        &[
            ("type", "6"),
            ("hears", &dots("07", 8)),
            ("channels", "1"),
            ("an", "2"),
            ("suite", suite),
            ("ahead.key_id", id),
        ],
    ];
    for ((name, tree), expected) in names.iter().zip(&trees).zip(expected) {
        assert_eq!(complaint(tree), None, "{name}");
        let both = [("version", "1"), ("counter", "9"), ("tag", &dots("77", 8))];
        for (field, value) in expected.iter().chain(&both) {
            let found = &tree[format!("qloak_agreement.{field}")];
            assert_eq!(found, value, "{field} of {name}: {tree:#}");
        }
    }
    let ids = trees[2]["qloak_agreement.ahead.key_id"].as_array();
    assert_eq!(ids.map(Vec::len), Some(2));
}

#[test]
#[ignore = "needs tshark; run by `cargo xtask test`"]
fn bad_messages_are_told_with_what_is_wrong() {
    let hello = golden("hello");
    let with = |at: usize, octet: u8| {
        let mut frame = hello.clone();
        frame[at] = octet;
        frame
    };
    let bad = [
        (golden("unknown"), "type 7"),
        (golden("count-lies"), "255 channels"),
        (with(14, 2), "version 2"),
        (with(17, 20), "length 20: 52 at least"),
        (with(17, 200), "truncated"),
        (with(17, 83), "16 octets wanted, 15 left"),
        ([&hello[..], &[0; 9]].concat(), ""),
        (hello[..30].to_vec(), "8 octets wanted"),
    ];
    let (mut frames, words): (Vec<_>, Vec<_>) = bad.into_iter().unzip();
    // One octet more than a hello has.
    frames[6][17] += 1;
    let trees = dissect("qloak_agreement", &frames);
    for (tree, words) in trees.iter().zip(words) {
        let complaint = complaint(tree).unwrap_or_else(|| panic!("{words}: {tree:#}"));
        assert!(complaint.contains(words), "{complaint} for {words}");
        assert!(tree["_ws.expert"].get("qloak_agreement.bad").is_some());
    }
}

#[test]
#[ignore = "needs tshark; run by `cargo xtask test`"]
fn all_that_two_nodes_say_has_its_form() {
    let mut plan = Plan::new(7);
    plan.carriage = [Carriage::Aggregated; 2];
    plan.channels = 2;
    let chacha = Suite::by_name("chacha20-poly1305").unwrap();
    plan.offered[1].retain(|suite| suite.id != chacha.id);
    let mut world = World::new(plan);
    world.run_until(500, "both ends open", World::open);
    let order = Order::SetSuite {
        channel: World::channel(2),
        suite: chacha,
    };
    world.command(Side::A, order).unwrap();
    world.run_ms(100);
    let frames: Vec<Vec<u8>> = world.recorded.iter().map(|(_, f)| f.clone()).collect();
    let trees = dissect("qloak_agreement", &frames);
    let mut types = [0; 7];
    for (frame, tree) in frames.iter().zip(&trees) {
        assert_eq!(complaint(tree), None, "{tree:#}");
        let field = |name: &str| tree[format!("qloak_agreement.{name}")].as_str();
        assert_eq!(field("type"), Some(&*frame[15].to_string()));
        let counter = u64::from_be_bytes(frame[26..34].try_into().unwrap());
        assert_eq!(field("counter"), Some(&*counter.to_string()));
        types[usize::from(frame[15])] += 1;
    }
    assert!(types[1..].iter().all(|count| *count > 0), "{types:?}");
}

#[test]
#[ignore = "needs tshark; run by `cargo xtask test`"]
fn records_have_their_values() {
    let frame = [&ADDRESSES[..], &[8, 0], &[0; 46]].concat();
    let line = |records: &[&[u8]]| [&ADDRESSES[..], &[0x88, 0xb6], &records.concat()].concat();
    let sound = line(&[
        &[0xc0, 1, 0, 60],
        &frame,
        &[0x80, 64, 0, 5, 0, 0, 0, 7],
        b"hello",
        &[0x40, 64, 0, 1, 0, 0, 0, 8, 0xee],
        &[0; 9],
    ]);
    let bad: [(&[u8], &str); 6] = [
        (&[0xe0, 1, 0, 1, 1], "flags e0"),
        (&[0xc0, 65, 0, 1, 1], "client port 65"),
        (&[0xc0, 1, 0, 0, 1], "no octets"),
        (&[0xc0, 1, 0, 9, 1], "9 octets wanted, 1 left"),
        (&[0xc0, 1, 0], "4 octets wanted, 3 left"),
        (&[0x80, 1, 0, 1, 0, 0], "2 left"),
    ];
    let mut frames = vec![sound];
    frames.extend(bad.iter().map(|(record, _)| line(&[record])));
    let trees = dissect("qloak_mux", &frames);
    let records = &trees[0]["qloak_mux.record"];
    let field = |at: usize, name: &str| records[at][format!("qloak_mux.{name}")].as_str();
    let clients = [0, 1, 2].map(|at| field(at, "client").unwrap());
    assert_eq!(clients, ["1", "64", "64"]);
    assert_eq!([field(0, "first"), field(0, "last")], [Some("1"); 2]);
    assert_eq!(
        [field(2, "first"), field(2, "last")],
        [Some("0"), Some("1")]
    );
    assert_eq!(
        [field(1, "length"), field(1, "sequence")],
        [Some("5"), Some("7")]
    );
    assert_eq!(field(1, "piece"), Some("68:65:6c:6c:6f"));
    assert_eq!(records[0]["eth"]["eth.type"], "0x0800");
    assert_eq!(trees[0]["qloak_mux.fill"], ["00"; 9].join(":"));
    assert_eq!(complaint(&trees[0]), None);
    for (tree, (_, words)) in trees[1..].iter().zip(bad) {
        let complaint = complaint(tree).unwrap_or_else(|| panic!("{words}: {tree:#}"));
        assert!(complaint.contains(words), "{complaint} for {words}");
    }
}
