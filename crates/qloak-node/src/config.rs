//! The node's configuration: `RawConfig` is what the file says, `Config` is what holds.
//!
//! Every value is checked once, here. An error names the file, the line, the key and what is allowed;
//! code behind this module trusts its types. Paths are taken relative to the file that names them.

mod kernel;
mod raw;
mod refuse;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use qloak_api::{Carriage, ChannelNumber, ClientPort, Limits, MacAddress, SaeId};
use qloak_cipher::suite::Suite;
use qloak_door::TlsFiles;
use qloak_port::PortConfig;

pub(crate) use kernel::{KernelMacsec, MacsecInterface, Offload};
pub use refuse::ConfigError;

/// A node's configuration, valid by construction.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node's name: SAE ID and certificate name.
    pub name: SaeId,
    /// The line port.
    pub line: Line,
    /// Client ports that the node opens, by number.
    pub clients: BTreeMap<ClientPort, PortConfig>,
    /// The kernel's interfaces in place of client ports, if it carries the frames.
    pub kernel: Option<KernelMacsec>,
    /// How much of the line each client port gets when others want it too, beside them: 1 to 64.
    pub weights: BTreeMap<ClientPort, u8>,
    /// Channels, by number; each client port belongs to exactly one.
    pub channels: Vec<Channel>,
    /// The KME that serves this node.
    pub kme: Kme,
    /// Where the management door listens.
    pub manage_listen: SocketAddr,
    /// The node's certificate.
    pub tls: TlsFiles,
    /// Slots of the key RAM.
    pub key_ram_slots: u32,
    /// Outbound keys kept ready.
    pub key_ram_fill: u32,
    /// Unauthenticated suites that may be used.
    pub hazmat: Vec<&'static Suite>,
}

/// The protected side.
#[derive(Debug, Clone)]
pub struct Line {
    /// The port.
    pub port: PortConfig,
    /// This node's address on the line.
    pub address: MacAddress,
    /// The far node's.
    pub peer_address: MacAddress,
    /// The far node's SAE ID.
    pub peer: SaeId,
    /// Longest line frame in octets, without FCS.
    pub frame_octets_max: usize,
}

/// One channel.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Its number, equal at both ends.
    pub number: ChannelNumber,
    /// Its name for people.
    pub name: String,
    /// How client frames are carried.
    pub carriage: Carriage,
    /// Which client ports it carries.
    pub clients: Vec<ClientPort>,
    /// The suite to start with.
    pub suite: &'static Suite,
    /// 64-bit packet numbers.
    pub xpn: bool,
    /// Frames of tolerance in the order of arrival.
    pub replay_window: u64,
    /// Limits of each SA.
    pub limits: Limits,
    /// How long a line frame may wait for more client frames, in microseconds; for aggregated channels.
    pub wait_us: u16,
}

/// The key management entity.
#[derive(Debug, Clone)]
pub struct Kme {
    /// Its base URL.
    pub url: String,
    /// The name its certificate must carry, if it is not the URL's host.
    pub identity: Option<String>,
    /// Keys asked for at once.
    pub keys_per_request: u32,
    /// Certificate to show to it.
    pub tls: TlsFiles,
}

impl Config {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] with the file, and where it can be told the line, the key and what is allowed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = refuse::read_bounded(path)?;
        let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self::parse(&text, &directory).map_err(|error| error.in_file(path))
    }

    /// Checks the text of a configuration; relative paths are taken from `directory`.
    ///
    /// # Errors
    /// As [`Config::read`], without the file's name.
    pub fn parse(text: &str, directory: &Path) -> Result<Self, ConfigError> {
        raw::RawConfig::parse(text)?.check(text, directory)
    }
}

/// A path of the file as seen from the program's own directory.
fn beside(directory: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() {
        path.to_path_buf()
    } else {
        directory.join(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../node.example.toml");

    fn refused(from: &str, to: &str) -> String {
        assert!(
            EXAMPLE.contains(from),
            "the example no longer holds {from:?}"
        );
        let text = EXAMPLE.replacen(from, to, 1);
        Config::parse(&text, Path::new(""))
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn the_example_is_valid() {
        let config = Config::parse(EXAMPLE, Path::new("/etc/qloak")).expect("valid");
        assert_eq!(config.channels.len(), 2);
        assert_eq!(config.tls.cert, Path::new("/etc/qloak/pki/node-a.pem"));
        assert_eq!(config.key_ram_slots, 512);
    }

    #[test]
    fn an_error_names_line_key_and_what_is_allowed() {
        let text = refused("suite = \"aes-256-gcm\"", "suite = \"aes-256-gmc\"");
        assert!(
            text.contains("line 70")
                && text.contains("channel.suite")
                && text.contains("aes-256-gcm"),
            "{text}"
        );

        let text = refused("frame_octets_max = 9014", "frame_octets_max = 90");
        assert!(
            text.contains("line.frame_octets_max") && text.contains("256 to 16000"),
            "{text}"
        );

        let text = refused("peer = \"node-b\"", "peeer = \"node-b\"");
        assert!(text.contains("peeer"), "{text}");

        let text = refused("clients = [2]", "clients = [1]");
        assert!(
            text.contains("client port 1") && text.contains("twice"),
            "{text}"
        );

        let text = refused("clients = [2]", "clients = [2, 1]");
        assert!(
            text.contains("transparent") && text.contains("one client port"),
            "{text}"
        );

        let text = refused("clients = [2]", "clients = [7]");
        assert!(text.contains("client port 7"), "{text}");

        let text = refused("packet_number_bits = 64", "packet_number_bits = 48");
        assert!(text.contains("32 or 64"), "{text}");

        let text = refused("suite = \"aes-256-gcm\"", "suite = \"plain\"");
        assert!(text.contains("hazmat"), "{text}");

        let text = refused(
            "peer_address = \"02:51:4c:00:00:0b\"",
            "peer_address = \"02:51:4c:00:00:0a\"",
        );
        assert!(text.contains("same"), "{text}");

        let text = refused("peer = \"node-b\"", "peer = \"node-a\"");
        assert!(
            text.contains("line.peer") && text.contains("own name"),
            "{text}"
        );

        let text = refused(
            "address = \"02:51:4c:00:00:0a\"",
            "address = \"03:51:4c:00:00:0a\"",
        );
        assert!(
            text.contains("line.address") && text.contains("group"),
            "{text}"
        );

        let text = refused("interface = \"c2\"", "interface = \"c1\"");
        assert!(
            text.contains("client port 2") && text.contains("its own"),
            "{text}"
        );

        let text = refused("listen = \"127.0.0.1:7443\"", "listen = \"here\"");
        assert!(text.contains("listen"), "{text}");

        let text = refused("url = \"https://", "url = \"http://");
        assert!(text.contains("https"), "{text}");
    }

    #[test]
    fn weights_and_waits_have_bounds_and_defaults() {
        let config = Config::parse(EXAMPLE, Path::new("")).expect("valid");
        assert_eq!(config.channels[0].wait_us, 20);
        assert!(config.weights.values().all(|weight| *weight == 1));

        let number = "number = 2\n# When";
        assert!(EXAMPLE.contains(number));
        let text = EXAMPLE.replacen(number, "number = 2\nweight = 64\n# When", 1);
        let text = text.replacen("clients = [1]", "clients = [1]\nwait_us = 0", 1);
        let config = Config::parse(&text, Path::new("")).expect("valid");
        assert_eq!(config.channels[0].wait_us, 0);
        let weights: Vec<_> = config.weights.into_values().collect();
        assert_eq!(weights, [1, 64]);

        let text = refused(number, "number = 2\nweight = 0\n# When");
        assert!(
            text.contains("client.weight") && text.contains("1 to 64"),
            "{text}"
        );
        let text = refused("clients = [1]", "clients = [1]\nwait_us = 1001");
        assert!(
            text.contains("channel.wait_us") && text.contains("0 to 1000"),
            "{text}"
        );
        let text = refused("clients = [2]", "clients = [2]\nwait_us = 20");
        assert!(
            text.contains("channel.wait_us") && text.contains("aggregated"),
            "{text}"
        );
    }

    #[test]
    fn a_line_can_be_af_xdp_and_impaired() {
        let port = r#"port = { kind = "af-packet", interface = "line-a" }"#;
        assert!(EXAMPLE.contains(port));
        let line = r#"port = { kind = "af-xdp", interface = "line-a", modes = ["skb"], busy_poll = { microseconds = 20, frames = 64 } }
impairment = { seed = 7, transmit = { loss = 0.5, delay_us = 3 }, receive = { loss = { to_bad = 0.1, to_good = 0.2 } } }"#;
        let config = Config::parse(&EXAMPLE.replacen(port, line, 1), Path::new("")).expect("valid");
        let PortConfig::Impaired(line) = config.line.port else {
            panic!("another kind of port")
        };
        let PortConfig::AfXdp(xdp) = &line.port else {
            panic!("another kind of port")
        };
        assert_eq!(xdp.modes, [qloak_port::XdpMode::Skb]);
        assert!(xdp.fallback && xdp.busy_poll.is_some_and(|poll| poll.frames == 64));
        let faults = &line.impairment.transmit;
        assert_eq!(
            faults.loss,
            qloak_port::Loss::Independent { probability: 0.5 }
        );
        assert_eq!(faults.delay.fixed_ns, 3000);
        assert!(matches!(
            line.impairment.receive.loss,
            qloak_port::Loss::Spells(spells) if spells.lost_in_bad == 1.0
        ));

        let text = refused(
            port,
            r#"port = { kind = "af-xdp", interface = "line-a", modes = ["fast"] }"#,
        );
        assert!(
            text.contains("fast") && text.contains("zero-copy"),
            "{text}"
        );
        let text = refused(
            port,
            &format!("{port}\nimpairment = {{ transmit = {{ los = 1 }} }}"),
        );
        assert!(text.contains("los"), "{text}");
        let text = refused(
            port,
            &format!("{port}\nimpairment = {{ transmit = {{ loss = 2 }} }}"),
        );
        assert!(
            text.contains("line.impairment") && text.contains("2") && text.contains("0 to 1"),
            "{text}"
        );
    }

    #[test]
    fn what_is_hazmat_and_what_is_not_is_told_apart() {
        let text = refused("hazmat = []", "hazmat = [\"xorr\"]");
        assert!(
            text.contains("xorr") && text.contains("plain") && !text.contains("gcm"),
            "{text}"
        );
        let text = refused("hazmat = []", "hazmat = [\"aes-256-gcm\"]");
        assert!(text.contains("authenticates"), "{text}");
    }

    #[test]
    fn a_memory_wire_says_how_many_frames_it_holds() {
        let port = r#"port = { kind = "af-packet", interface = "line-a" }"#;
        let memory = |frames: &str| {
            let wire = r#"port = { kind = "memory", wire = "line", end = "a""#;
            EXAMPLE.replacen(port, &format!("{wire}{frames} }}"), 1)
        };
        for (frames, held) in [
            ("", 4096),
            (", frames = 1", 1),
            (", frames = 65536", 65_536),
        ] {
            let config = Config::parse(&memory(frames), Path::new("")).expect("valid");
            let PortConfig::Memory(wire) = config.line.port else {
                panic!("another kind of port")
            };
            assert_eq!(wire.frames, held);
        }
        for given in ["0", "65537"] {
            let text = Config::parse(&memory(&format!(", frames = {given}")), Path::new(""))
                .expect_err("must be refused")
                .to_string();
            assert!(
                text.contains("line 21") && text.contains(given) && text.contains("1 to 65536"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_file_that_is_no_configuration_is_refused() {
        assert!(Config::parse("\u{1}\u{2}", Path::new("")).is_err());
        assert!(Config::parse("", Path::new("")).is_err());
        let missing = Config::read(Path::new("no/such/node.toml")).expect_err("missing");
        assert!(missing.to_string().contains("no/such/node.toml"));
    }
}
