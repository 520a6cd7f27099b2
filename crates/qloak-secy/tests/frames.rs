//! The golden line frames of `vectors/frames/`: docs and RTL read them, and this test holds the code
//! to them, both ways. After a wanted change of the line format, `QLOAK_UPDATE=1 cargo test -p
//! qloak-secy --test frames` writes them anew; the diff is reviewed like code.

mod common;

use std::{path::PathBuf, sync::LazyLock};

use common::*;
use qloak_api::{Carriage, ClientPort, KeyId, Sci};
use qloak_cipher::{Level, Suite};
use qloak_keys::Key;
use qloak_secy::{ChannelConfig, Sa};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Document {
    about: String,
    cases: Vec<Case>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Case {
    about: String,
    suite: String,
    suite_id: String,
    carriage: Carriage,
    pn_bits: u8,
    sci: Sci,
    ssci: u32,
    an: u8,
    first_pn: String,
    line_frame_octets_max: usize,
    sak: String,
    salt: String,
    client_frames: Vec<ClientFrame>,
    line_frames: Vec<String>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct ClientFrame {
    client: ClientPort,
    octets: String,
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

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/frames"))
}

/// What each case is made from.
struct Recipe {
    about: &'static str,
    suite: &'static str,
    carriage: Carriage,
    xpn: bool,
    first_pn: u64,
    line_octets: usize,
    frames: &'static [(u8, usize)],
}

const RECIPES: [Recipe; 14] = {
    use Carriage::{Aggregated, Transparent};
    const fn recipe(
        about: &'static str,
        suite: &'static str,
        carriage: Carriage,
        xpn: bool,
        first_pn: u64,
        line_octets: usize,
        frames: &'static [(u8, usize)],
    ) -> Recipe {
        Recipe {
            about,
            suite,
            carriage,
            xpn,
            first_pn,
            line_octets,
            frames,
        }
    }
    const THREE: &[(u8, usize)] = &[(1, 14), (1, 59), (1, 60), (1, 128)];
    const OVER: u64 = (1 << 32) - 2;
    [
        recipe(
            "MACsec, GCM-AES-128, short and long",
            "aes-128-gcm",
            Transparent,
            false,
            1,
            1514,
            THREE,
        ),
        recipe(
            "MACsec, GCM-AES-256, short and long",
            "aes-256-gcm",
            Transparent,
            false,
            1,
            1514,
            THREE,
        ),
        recipe(
            "MACsec, GCM-AES-XPN-128, PN over 2^32",
            "aes-128-gcm",
            Transparent,
            true,
            OVER,
            1514,
            THREE,
        ),
        recipe(
            "MACsec, GCM-AES-XPN-256, PN over 2^32",
            "aes-256-gcm",
            Transparent,
            true,
            OVER,
            1514,
            THREE,
        ),
        recipe(
            "Camellia-256-GCM",
            "camellia-256-gcm",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
        recipe(
            "Serpent-256-GCM",
            "serpent-256-gcm",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
        recipe(
            "AES-128-OCB3",
            "aes-128-ocb",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
        recipe(
            "Camellia-256-OCB3",
            "camellia-256-ocb",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
        recipe(
            "Serpent-256-OCB3",
            "serpent-256-ocb",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
        recipe(
            "ChaCha20-Poly1305",
            "chacha20-poly1305",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
        recipe(
            "three clients in one line frame",
            "aes-256-gcm",
            Aggregated,
            true,
            1,
            1514,
            &[(1, 60), (10, 64), (3, 100)],
        ),
        recipe(
            "a client frame over three line frames, another behind it",
            "aes-256-gcm",
            Aggregated,
            true,
            1,
            256,
            &[(2, 60), (7, 500), (2, 60)],
        ),
        recipe(
            "hazmat: the mux records in the clear, ICV of no octets",
            "plain",
            Aggregated,
            true,
            1,
            256,
            &[(2, 60), (7, 500), (2, 60)],
        ),
        recipe(
            "hazmat: counter mode alone",
            "aes-256-ctr",
            Transparent,
            true,
            1,
            1514,
            THREE,
        ),
    ]
};

fn association(suite: &'static Suite, sak: &[u8], salt: [u8; 12], first_pn: u64) -> Sa {
    let key = Key::from_slice(sak).unwrap();
    Sa::new(suite, Level::Soft, &key, salt, KeyId([1; 16]))
        .unwrap()
        .starting_at(first_pn)
}

fn config(carriage: Carriage, pn_bits: u8) -> ChannelConfig {
    ChannelConfig {
        xpn: pn_bits == 64,
        ..channel(carriage)
    }
}

fn cook(recipe: &Recipe) -> Case {
    let suite = suite(recipe.suite);
    let sak: Vec<u8> = (0..suite.key_octets as u8).collect();
    let salt: [u8; 12] = std::array::from_fn(|n| 0xf0 + n as u8);
    let pn_bits = if recipe.xpn { 64 } else { 32 };
    let config = config(recipe.carriage, pn_bits);
    let mut link = Link::new(&config, recipe.line_octets);
    let sa = association(suite, &sak, salt, recipe.first_pn);
    link.outbound.install(config.number, an(1), sa).unwrap();
    assert!(link.outbound.encode(config.number, an(1), 0));
    let frames: Vec<_> = recipe
        .frames
        .iter()
        .zip(1..)
        .map(|(&(port, length), seed)| (client(port), frame(length, seed)))
        .collect();
    let line = link.send(&frames);
    let id = match suite.id_pn32 {
        Some(id) if !recipe.xpn => id,
        _ => suite.id,
    };
    Case {
        about: recipe.about.into(),
        suite: suite.name.into(),
        suite_id: format!("{id:016x}"),
        carriage: recipe.carriage,
        pn_bits,
        sci: Sci::new(A, config.number),
        ssci: 1,
        an: 1,
        first_pn: format!("{:016x}", recipe.first_pn),
        line_frame_octets_max: recipe.line_octets,
        sak: hex(&sak),
        salt: hex(&salt),
        client_frames: frames
            .iter()
            .map(|(client, frame)| ClientFrame {
                client: *client,
                octets: hex(frame),
            })
            .collect(),
        line_frames: line.iter().map(|line| hex(line.octets())).collect(),
    }
}

/// A classic capture file of every line frame, for tshark and for test benches.
fn capture(cases: &[Case]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    let frames = cases.iter().flat_map(|case| &case.line_frames);
    for (frame, number) in frames.map(|frame| octets(frame)).zip(0_u32..) {
        for word in [0, number, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The document as it stands, written anew first if that was asked for.
fn golden() -> &'static Document {
    static GOLDEN: LazyLock<Document> = LazyLock::new(|| {
        let json = folder().join("frames.json");
        if std::env::var_os("QLOAK_UPDATE").is_some() {
            let document = Document {
                about: "Line frames that Qloak makes from known keys; see README.md.".into(),
                cases: RECIPES.iter().map(cook).collect(),
            };
            let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
            std::fs::write(&json, text).unwrap();
            std::fs::write(folder().join("frames.pcap"), capture(&document.cases)).unwrap();
        }
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap()
    });
    &GOLDEN
}

#[test]
fn protected_frames_are_the_golden_ones() {
    let golden = golden();
    let made: Vec<_> = RECIPES.iter().map(cook).collect();
    for (made, golden) in made.iter().zip(&golden.cases) {
        assert_eq!(made, golden);
    }
    assert_eq!(made.len(), golden.cases.len());
    let pcap = std::fs::read(folder().join("frames.pcap")).unwrap();
    assert!(pcap == capture(&golden.cases), "frames.pcap differs");
}

#[test]
fn golden_frames_open_to_the_client_frames() {
    for case in &golden().cases {
        let config = config(case.carriage, case.pn_bits);
        let mut link = Link::new(&config, case.line_frame_octets_max);
        let first_pn = u64::from_str_radix(&case.first_pn, 16).unwrap();
        let salt = octets(&case.salt).try_into().unwrap();
        let id = u64::from_str_radix(&case.suite_id, 16).unwrap();
        let suite = Suite::by_id(id).unwrap();
        assert_eq!(suite.name, case.suite);
        let sa = association(suite, &octets(&case.sak), salt, first_pn);
        link.inbound
            .install(config.number, an(case.an), sa)
            .unwrap();
        let line: Vec<_> = case
            .line_frames
            .iter()
            .map(|f| Stored::of(&octets(f)))
            .collect();
        let delivered: Vec<_> = link
            .receive(&line)
            .into_iter()
            .map(|(client, frame)| ClientFrame {
                client,
                octets: hex(&frame),
            })
            .collect();
        assert_eq!(delivered, case.client_frames, "{}", case.about);
    }
}
