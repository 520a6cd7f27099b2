//! The file as it is written, and the checks that turn it into a [`super::Config`].

mod check;
mod impairment;
mod kernel;
mod line;
mod peer;
mod pipeline;
mod port;

use std::{net::SocketAddr, path::PathBuf};

use qloak_api::{Carriage, ChannelNumber, ClientPort, Limits, MacAddress, SaeId};
use serde::Deserialize;
use toml::Spanned;

use super::CaptureSides;
use impairment::RawImpairment;
use kernel::RawDataplane;
use pipeline::RawPipeline;
use port::RawPort;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    name: SaeId,
    #[serde(default)]
    dataplane: RawDataplane,
    pipeline: Option<Spanned<RawPipeline>>,
    line: RawLine,
    #[serde(default)]
    peer: Vec<RawPeer>,
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
    port: Option<Spanned<RawPort>>,
    #[serde(default)]
    lanes: Vec<Spanned<RawPort>>,
    lane_hold_us: Option<Spanned<u32>>,
    drain_us: Option<Spanned<u32>>,
    address: Spanned<MacAddress>,
    peer_address: Spanned<MacAddress>,
    peer: Spanned<SaeId>,
    #[serde(default = "line_frame_octets")]
    frame_octets_max: Spanned<usize>,
    impairment: Option<Spanned<RawImpairment>>,
}

fn line_frame_octets() -> Spanned<usize> {
    Spanned::new(0..0, 1514)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPeer {
    name: Spanned<SaeId>,
    address: Spanned<MacAddress>,
    kme: Option<RawKme>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClient {
    number: Spanned<ClientPort>,
    weight: Option<Spanned<u8>>,
    port: Spanned<RawPort>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChannel {
    number: Spanned<ChannelNumber>,
    name: Option<String>,
    carriage: Spanned<Carriage>,
    peer: Option<Spanned<SaeId>>,
    clients: Spanned<Vec<ClientPort>>,
    #[serde(default)]
    vlans: Vec<Spanned<u16>>,
    suite: Spanned<String>,
    packet_number_bits: Option<Spanned<u8>>,
    replay_window: Option<Spanned<u64>>,
    limits: Option<Spanned<Limits>>,
    wait_us: Option<Spanned<u16>>,
    constant_rate_bps: Option<Spanned<u64>>,
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
    #[serde(default)]
    capture: CaptureSides,
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
