//! The file as it is written, and the checks that turn it into a [`super::Config`].

mod check;

use std::{net::SocketAddr, path::PathBuf};

use qloak_api::{Carriage, ChannelNumber, ClientPort, Limits, MacAddress, SaeId};
use qloak_port::limits::MEMORY_FRAMES_RANGE;
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    name: SaeId,
    line: RawLine,
    #[serde(default)]
    client: Vec<RawClient>,
    #[serde(default)]
    channel: Vec<RawChannel>,
    kme: RawKme,
    manage: RawManage,
    tls: RawTls,
    #[serde(default)]
    key_ram: RawKeyRam,
    #[serde(default)]
    policy: RawPolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    port: RawPort,
    address: Spanned<MacAddress>,
    peer_address: Spanned<MacAddress>,
    peer: Spanned<SaeId>,
    #[serde(default = "line_frame_octets")]
    frame_octets_max: Spanned<usize>,
}

fn line_frame_octets() -> Spanned<usize> {
    Spanned::new(0..0, 1514)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClient {
    number: Spanned<ClientPort>,
    weight: Option<Spanned<u8>>,
    port: RawPort,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum RawPort {
    Memory {
        wire: String,
        end: MemoryEnd,
        frames: Option<WireFrames>,
    },
    Pcap {
        read: Option<PathBuf>,
        write: Option<PathBuf>,
        #[serde(default)]
        repeat: u64,
        pace: Option<RawPace>,
    },
    Tap {
        interface: String,
        namespace: Option<String>,
        mtu: Option<usize>,
        #[serde(default = "yes")]
        up: bool,
    },
    AfPacket {
        interface: String,
        namespace: Option<String>,
        mtu: Option<usize>,
        #[serde(default = "yes")]
        up: bool,
        ring_octets: Option<usize>,
    },
}

/// Frames that a wire in memory holds each way. Checked here, since a port's table does not tell its
/// values' places.
#[derive(Deserialize, Clone, Copy)]
#[serde(try_from = "usize")]
struct WireFrames(usize);

impl TryFrom<usize> for WireFrames {
    type Error = String;

    fn try_from(frames: usize) -> Result<Self, String> {
        let allowed = MEMORY_FRAMES_RANGE;
        if allowed.contains(&frames) {
            return Ok(Self(frames));
        }
        Err(format!(
            "frames: {frames} is given, {} to {} is allowed",
            allowed.start(),
            allowed.end()
        ))
    }
}

/// `"captured"`, or frames per second.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawPace {
    Named(NamedPace),
    FramesPerSecond(f64),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NamedPace {
    Captured,
    Unpaced,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum MemoryEnd {
    A,
    B,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChannel {
    number: Spanned<ChannelNumber>,
    name: Option<String>,
    carriage: Spanned<Carriage>,
    clients: Spanned<Vec<ClientPort>>,
    suite: Spanned<String>,
    packet_number_bits: Option<Spanned<u8>>,
    replay_window: Option<Spanned<u64>>,
    limits: Option<Spanned<Limits>>,
    wait_us: Option<Spanned<u16>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKme {
    url: Spanned<String>,
    identity: Option<String>,
    keys_per_request: Option<Spanned<u32>>,
    tls: Option<RawTls>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManage {
    listen: SocketAddr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawKeyRam {
    slots: Option<Spanned<u32>>,
    fill: Option<Spanned<u32>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    #[serde(default)]
    hazmat: Vec<Spanned<String>>,
}
