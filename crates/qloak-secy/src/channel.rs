//! What a line and its channels are told to be, checked once, and the changes that can be refused.
//!
//! A channel is one SC each way (IEEE 802.1AE-2018, 7.1.2). Its SCI is the address of the line port
//! that transmits, and its number. Parse once, then trust: the halves are built from a sound
//! configuration or not at all.

use qloak_api::{An, Carriage, ChannelNumber, ClientPort, KeyId, Limits, MacAddress};

use crate::limits;

/// A line port and its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineConfig {
    /// Address of this node's line port.
    pub address: MacAddress,
    /// Address of the far node's line port, for channels that name no other.
    pub peer_address: MacAddress,
    /// Longest frame that the line takes, protected, without FCS: 256 to 16 000 octets.
    pub frame_octets_max: usize,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Its number, the same at both ends.
    pub number: ChannelNumber,
    /// The far node's line port, on a line that more than two nodes share; none: the line's.
    pub peer_address: Option<MacAddress>,
    /// How client frames are carried.
    pub carriage: Carriage,
    /// The client ports it carries: exactly one if transparent, 1 to 64 if aggregated.
    pub clients: Vec<ClientPort>,
    /// The VLANs of these client ports that it carries, 1 to 4094; empty: all that no other channel of the
    /// client port names. Empty if transparent.
    pub vlans: Vec<u16>,
    /// 64-bit PNs (the default); else 32-bit.
    pub xpn: bool,
    /// Frames that may arrive out of order; 0 means strictly in order.
    pub replay_window: u64,
    /// How long each SA may encode.
    pub limits: Limits,
}

impl ChannelConfig {
    /// The far node's line port.
    pub fn peer(&self, line: &LineConfig) -> MacAddress {
        self.peer_address.unwrap_or(line.peer_address)
    }
}

/// Why a configuration cannot be: the operator's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Line frame length out of bounds.
    #[error("line frames of {given} octets: 256 to 16000 are allowed")]
    LineFrame {
        /// Octets given.
        given: usize,
    },
    /// One of the two addresses is a group address, or both are the same.
    #[error(
        "line address {address}: the two ends of a line need two different individual addresses"
    )]
    Address {
        /// The address at fault.
        address: MacAddress,
    },
    /// A number given twice.
    #[error("channel {number} is given twice")]
    ChannelTwice {
        /// The channel's number.
        number: ChannelNumber,
    },
    /// A client port in two channels that want the same of its frames, or twice in one.
    #[error(
        "client port {client} is given to channel {number}, but has a channel already: two of them need other VLANs, or other far nodes (a mesh), and both aggregated"
    )]
    ClientTwice {
        /// The client port.
        client: ClientPort,
        /// The second channel.
        number: ChannelNumber,
    },
    /// Too few or too many client ports.
    #[error(
        "channel {number} has {given} client ports: a transparent channel has one, an aggregated one 1 to 64"
    )]
    Clients {
        /// The channel.
        number: ChannelNumber,
        /// Client ports given.
        given: usize,
    },
    /// A VLAN that does not exist, or of a transparent channel.
    #[error(
        "channel {number} carries VLAN {vlan}: an aggregated channel carries VLANs 1 to 4094, a transparent one everything"
    )]
    Vlan {
        /// The channel.
        number: ChannelNumber,
        /// The VLAN.
        vlan: u16,
    },
    /// A mesh of too many channels.
    #[error("client port {client} has a mesh of more than 16 channels")]
    Mesh {
        /// The client port.
        client: ClientPort,
    },
    /// Replay window too large.
    #[error("channel {number} has a replay window of {given} frames: at most 65536 are allowed")]
    ReplayWindow {
        /// The channel.
        number: ChannelNumber,
        /// Frames given.
        given: u64,
    },
    /// A time between rekeys out of bounds.
    #[error("channel {number}: a rekey every {us} us; 100 us to an hour (3600000000) is allowed")]
    RekeyEvery {
        /// The channel.
        number: ChannelNumber,
        /// Microseconds given.
        us: u64,
    },
    /// A limit that is zero or beyond what a suite bears.
    #[error("channel {number}, limit of {what}: {given} is not within 1 to {allowed}")]
    Limit {
        /// The channel.
        number: ChannelNumber,
        /// Which limit.
        what: &'static str,
        /// The value given.
        given: u64,
        /// The greatest value allowed.
        allowed: u64,
    },
}

/// Why an SA was not installed: the key handler's fault. The SA is dropped, so its key is zeroised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// No such channel.
    #[error("there is no channel {number}")]
    NoChannel {
        /// The number given.
        number: ChannelNumber,
    },
    /// The AN is that of the encoding SA.
    #[error("channel {number}: AN {an} is the encoding SA and cannot be replaced in place")]
    Encoding {
        /// The channel.
        number: ChannelNumber,
        /// The AN.
        an: An,
    },
    /// The key served this channel before: its packet numbers would be used again.
    #[error("channel {number}: key {key_id} was installed before and cannot come again")]
    KeyAgain {
        /// The channel.
        number: ChannelNumber,
        /// The key's name.
        key_id: KeyId,
    },
}

/// Checks a line and its channels.
pub fn check(line: &LineConfig, channels: &[ChannelConfig]) -> Result<(), ConfigError> {
    if !limits::LINE_FRAME_OCTETS.contains(&line.frame_octets_max) {
        return Err(ConfigError::LineFrame {
            given: line.frame_octets_max,
        });
    }
    let others = channels.iter().filter_map(|channel| channel.peer_address);
    if line.address.0[0] & 1 != 0 {
        return Err(ConfigError::Address {
            address: line.address,
        });
    }
    for address in std::iter::once(line.peer_address).chain(others) {
        if address.0[0] & 1 != 0 || line.address == address {
            return Err(ConfigError::Address { address });
        }
    }
    for (index, channel) in channels.iter().enumerate() {
        let number = channel.number;
        if channels[..index].iter().any(|other| other.number == number) {
            return Err(ConfigError::ChannelTwice { number });
        }
        check_shares(line, channel, &channels[..index])?;
        if channel.replay_window > limits::REPLAY_WINDOW_MAX {
            return Err(ConfigError::ReplayWindow {
                number,
                given: channel.replay_window,
            });
        }
        check_limits(number, &channel.limits)?;
    }
    Ok(())
}

fn check_clients(channel: &ChannelConfig) -> Result<(), ConfigError> {
    let number = channel.number;
    let given = channel.clients.len();
    let allowed = match channel.carriage {
        Carriage::Transparent => given == 1,
        Carriage::Aggregated => (1..=64).contains(&given),
    };
    if !allowed {
        return Err(ConfigError::Clients { number, given });
    }
    for (index, &client) in channel.clients.iter().enumerate() {
        if channel.clients[..index].contains(&client) {
            return Err(ConfigError::ClientTwice { client, number });
        }
    }
    let transparent = channel.carriage == Carriage::Transparent;
    let wrong = |vlan: &&u16| transparent || !(1..=4094).contains(*vlan);
    match channel.vlans.iter().find(wrong) {
        Some(&vlan) => Err(ConfigError::Vlan { number, vlan }),
        None => Ok(()),
    }
}

/// Checks the client ports and VLANs of a channel, and whether those before it can have some in common.
pub fn check_shares(
    line: &LineConfig,
    channel: &ChannelConfig,
    before: &[ChannelConfig],
) -> Result<(), ConfigError> {
    check_clients(channel)?;
    let number = channel.number;
    for &client in &channel.clients {
        let sharing = before
            .iter()
            .filter(|other| other.clients.contains(&client));
        let mut mesh = 1;
        for other in sharing {
            let aggregated = |channel: &ChannelConfig| channel.carriage == Carriage::Aggregated;
            if !aggregated(channel) || !aggregated(other) {
                return Err(ConfigError::ClientTwice { client, number });
            }
            let same_vlan = match channel.vlans.as_slice() {
                [] => other.vlans.is_empty(),
                vlans => vlans.iter().any(|vlan| other.vlans.contains(vlan)),
            };
            if same_vlan && channel.peer(line) == other.peer(line) {
                return Err(ConfigError::ClientTwice { client, number });
            }
            mesh += usize::from(same_vlan);
        }
        if mesh > limits::MESH_CHANNELS_MAX {
            return Err(ConfigError::Mesh { client });
        }
    }
    Ok(())
}

/// Checks the limits of a channel's SAs.
pub fn check_limits(number: ChannelNumber, limits: &Limits) -> Result<(), ConfigError> {
    let bounds = [
        ("frames", limits.frames, limits::SA_FRAMES_MAX),
        ("octets", limits.octets, limits::SA_OCTETS_MAX),
        ("seconds", limits.seconds, u64::MAX),
        ("rekey_at_percent", u64::from(limits.rekey_at_percent), 99),
    ];
    for (what, given, allowed) in bounds {
        if given == 0 || given > allowed {
            return Err(ConfigError::Limit {
                number,
                what,
                given,
                allowed,
            });
        }
    }
    if let Some(us) = limits.rekey_every_us
        && !Limits::REKEY_EVERY_US.contains(&us)
    {
        return Err(ConfigError::RekeyEvery { number, us });
    }
    Ok(())
}

/// The bit of a client port in a set of them.
pub(crate) fn client_bit(client: ClientPort) -> u64 {
    1 << (client.number() - 1)
}

/// The last key IDs of one direction of a channel.
pub(crate) struct KeysSeen {
    ids: Vec<KeyId>,
    oldest: usize,
}

impl KeysSeen {
    pub(crate) fn new() -> Self {
        Self {
            ids: Vec::with_capacity(limits::KEY_IDS_REMEMBERED),
            oldest: 0,
        }
    }

    /// Remembers a key; false when it was there.
    pub(crate) fn first_time(&mut self, key_id: KeyId) -> bool {
        if self.ids.contains(&key_id) {
            return false;
        }
        if self.ids.len() < limits::KEY_IDS_REMEMBERED {
            self.ids.push(key_id);
        } else {
            self.ids[self.oldest] = key_id;
            self.oldest = (self.oldest + 1) % limits::KEY_IDS_REMEMBERED;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> LineConfig {
        LineConfig {
            address: MacAddress([2, 0, 0, 0, 0, 1]),
            peer_address: MacAddress([2, 0, 0, 0, 0, 2]),
            frame_octets_max: 1514,
        }
    }

    fn channel(
        number: u16,
        carriage: Carriage,
        clients: std::ops::RangeInclusive<u8>,
    ) -> ChannelConfig {
        ChannelConfig {
            number: number.try_into().unwrap(),
            peer_address: None,
            carriage,
            clients: clients.map(|client| client.try_into().unwrap()).collect(),
            vlans: Vec::new(),
            xpn: true,
            replay_window: 64,
            limits: Limits::default(),
        }
    }

    #[test]
    fn sound_configurations_pass() {
        let channels = [
            channel(1, Carriage::Aggregated, 1..=10),
            channel(7, Carriage::Transparent, 11..=11),
        ];
        assert_eq!(check(&line(), &channels), Ok(()));
        assert_eq!(
            check(&line(), &[channel(1, Carriage::Aggregated, 1..=64)]),
            Ok(())
        );
    }

    #[test]
    fn each_fault_is_named() {
        use Carriage::{Aggregated, Transparent};
        let say = |line: LineConfig, channels: &[ChannelConfig]| {
            check(&line, channels).unwrap_err().to_string()
        };
        let short = LineConfig {
            frame_octets_max: 255,
            ..line()
        };
        assert_eq!(
            say(short, &[]),
            "line frames of 255 octets: 256 to 16000 are allowed"
        );
        let same = LineConfig {
            peer_address: line().address,
            ..line()
        };
        assert!(say(same, &[]).contains("two different individual addresses"));
        let group = LineConfig {
            peer_address: MacAddress([3, 0, 0, 0, 0, 2]),
            ..line()
        };
        assert!(say(group, &[]).contains("03:00:00:00:00:02"));

        let a = channel(1, Aggregated, 1..=2);
        assert_eq!(
            say(line(), &[a.clone(), channel(1, Transparent, 3..=3)]),
            "channel 1 is given twice"
        );
        assert!(
            say(line(), &[a.clone(), channel(2, Transparent, 2..=2)])
                .contains("client port 2 is given to channel 2")
        );
        assert!(say(line(), &[channel(1, Transparent, 1..=2)]).contains("has 2 client ports"));
        let none = ChannelConfig {
            clients: vec![],
            ..a.clone()
        };
        assert!(say(line(), &[none]).contains("has 0 client ports"));
        let wide = ChannelConfig {
            replay_window: 65_537,
            ..a.clone()
        };
        assert!(say(line(), &[wide]).contains("65537"));
        let zero = ChannelConfig {
            limits: Limits {
                seconds: 0,
                ..a.limits
            },
            ..a.clone()
        };
        assert!(say(line(), &[zero]).contains("limit of seconds: 0"));
        let huge = ChannelConfig {
            limits: Limits {
                octets: 1 << 49,
                ..a.limits
            },
            ..a
        };
        assert!(say(line(), &[huge]).contains("limit of octets"));
    }

    #[test]
    fn a_key_is_remembered_for_a_while() {
        let mut seen = KeysSeen::new();
        for n in 0..=limits::KEY_IDS_REMEMBERED as u8 {
            assert!(seen.first_time(KeyId([n; 16])));
        }
        assert!(!seen.first_time(KeyId([1; 16])));
        assert!(seen.first_time(KeyId([0; 16])), "the oldest is forgotten");
    }
}
