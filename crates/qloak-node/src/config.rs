//! The node's configuration: `RawConfig` is what the file says, `Config` is what holds.
//!
//! Every value is checked once, here. An error names the file, the line, the key and what is allowed;
//! code behind this module trusts its types. Paths are taken relative to the file that names them.

mod kernel;
mod pipeline;
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
pub use pipeline::Pipeline;
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
    /// The threads that carry the frames, if the node does.
    pub pipeline: Pipeline,
    /// How much of the line each client port gets when others want it too, beside them: 1 to 64.
    pub weights: BTreeMap<ClientPort, u8>,
    /// Channels, by number; each client port belongs to exactly one.
    pub channels: Vec<Channel>,
    /// The KME that serves this node.
    pub kme: Kme,
    /// Further far nodes, on a line that more than two nodes share.
    pub further: Vec<Peer>,
    /// Where the management door listens.
    pub manage_listen: SocketAddr,
    /// Which sides an operator may record.
    pub capture: CaptureSides,
    /// The node's certificate.
    pub tls: TlsFiles,
    /// Slots of the key RAM.
    pub key_ram_slots: u32,
    /// Outbound keys kept ready.
    pub key_ram_fill: u32,
    /// Unauthenticated suites that may be used.
    pub hazmat: Vec<&'static Suite>,
    /// The file that says all this, if it was one.
    pub file: Option<PathBuf>,
}

/// Which sides of a node may be recorded. Only the node's own configuration says so: client frames in the clear are
/// what the node is there to hide, and the controller must not be able to ask for them on its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureSides {
    /// None.
    Off,
    /// The line side, which whoever holds the line sees anyway.
    #[default]
    Line,
    /// The client side too.
    Both,
}

/// The protected side.
#[derive(Debug, Clone)]
pub struct Line {
    /// The port, or the lanes that make one port.
    pub lanes: Vec<PortConfig>,
    /// How much later than others a lane may bring a frame.
    pub lane_hold_us: u32,
    /// How long after a rekey the line may still bring frames under the key before.
    pub drain_us: u32,
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
    /// Its far node: 0 is the line's, the others are the further ones in their order.
    pub peer: usize,
    /// Which client ports it carries.
    pub clients: Vec<ClientPort>,
    /// Which VLANs of them; empty: all that no other channel names.
    pub vlans: Vec<u16>,
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
    /// Bits per second on the wire that an aggregated channel makes up, with line frames of one size, whatever
    /// it carries; none when they leave as client frames come.
    pub constant_rate_bps: Option<u64>,
}

/// A far node.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its SAE ID.
    pub name: SaeId,
    /// The address of its line port.
    pub address: MacAddress,
    /// The KME that gives the keys shared with it.
    pub kme: Kme,
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
        let config = Self::parse(&text, &directory).map_err(|error| error.in_file(path))?;
        Ok(Self {
            file: Some(path.to_path_buf()),
            ..config
        })
    }

    /// The far nodes: the line's, then the further ones.
    pub fn peers(&self) -> Vec<Peer> {
        let first = Peer {
            name: self.line.peer.clone(),
            address: self.line.peer_address,
            kme: self.kme.clone(),
        };
        std::iter::once(first)
            .chain(self.further.iter().cloned())
            .collect()
    }

    /// The name of the far node of a channel.
    pub(crate) fn peer(&self, channel: &Channel) -> &SaeId {
        let further = channel.peer.checked_sub(1);
        let further = further.and_then(|index| self.further.get(index));
        further.map_or(&self.line.peer, |peer| &peer.name)
    }

    /// The address of the line port at the far end of a channel.
    pub(crate) fn peer_address(&self, channel: &Channel) -> MacAddress {
        let further = channel.peer.checked_sub(1);
        let further = further.and_then(|index| self.further.get(index));
        further.map_or(self.line.peer_address, |peer| peer.address)
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
mod tests;
