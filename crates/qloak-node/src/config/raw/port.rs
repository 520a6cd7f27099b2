//! The table of a port as it is written, by its kind.

use std::path::{Path, PathBuf};

use qloak_port::{
    AfPacketConfig, AfXdpConfig, BusyPoll, End, InterfaceConfig, MemoryConfig, Pace, PcapConfig,
    PortConfig, TapConfig, XdpMode,
};
use serde::Deserialize;

use crate::config::{Offload, beside};

/// The table of a port, by its kind.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum RawPort {
    Memory {
        wire: String,
        end: MemoryEnd,
        frames: Option<usize>,
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
        #[serde(default = "yes")]
        offload: bool,
    },
    AfXdp {
        interface: String,
        namespace: Option<String>,
        mtu: Option<usize>,
        #[serde(default = "yes")]
        up: bool,
        modes: Option<Vec<RawXdpMode>>,
        frames: Option<usize>,
        busy_poll: Option<RawBusyPoll>,
        #[serde(default = "yes")]
        fallback: bool,
    },
    AfPacket {
        interface: String,
        namespace: Option<String>,
        mtu: Option<usize>,
        #[serde(default = "yes")]
        up: bool,
        ring_octets: Option<usize>,
    },
    /// An interface of the kernel's, with `dataplane = "kernel-macsec"`.
    Macsec {
        interface: String,
        mtu: Option<usize>,
        #[serde(default = "yes")]
        up: bool,
        #[serde(default)]
        offload: Offload,
    },
}

/// `"captured"`, or frames per second.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawPace {
    Named(NamedPace),
    FramesPerSecond(f64),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NamedPace {
    Captured,
    Unpaced,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MemoryEnd {
    A,
    B,
}

/// How an AF_XDP socket meets the driver.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawXdpMode {
    ZeroCopy,
    Native,
    Skb,
}

impl From<RawXdpMode> for XdpMode {
    fn from(mode: RawXdpMode) -> Self {
        match mode {
            RawXdpMode::ZeroCopy => Self::ZeroCopy,
            RawXdpMode::Native => Self::Native,
            RawXdpMode::Skb => Self::Skb,
        }
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBusyPoll {
    microseconds: u32,
    frames: u32,
}

impl From<RawBusyPoll> for BusyPoll {
    fn from(poll: RawBusyPoll) -> Self {
        Self {
            microseconds: poll.microseconds,
            frames: poll.frames,
        }
    }
}

fn yes() -> bool {
    true
}

impl RawPort {
    /// What no other port can have too: an interface, an end of a wire, a file that is written.
    pub(super) fn place(&self) -> Option<String> {
        match self {
            Self::Memory { wire, end, .. } => Some(format!("memory {wire} {}", *end as u8)),
            Self::Pcap { write, .. } => write
                .as_ref()
                .filter(|file| *file != Path::new("/dev/null"))
                .map(|file| format!("file {}", file.display())),
            Self::Tap {
                interface,
                namespace,
                ..
            }
            | Self::AfPacket {
                interface,
                namespace,
                ..
            }
            | Self::AfXdp {
                interface,
                namespace,
                ..
            } => Some(match namespace {
                Some(namespace) => format!("interface {interface} of namespace {namespace}"),
                None => format!("interface {interface}"),
            }),
            Self::Macsec { interface, .. } => Some(format!("interface {interface}")),
        }
    }

    /// What the node opens; nothing for an interface that is the kernel's.
    pub(super) fn config(self, directory: &Path) -> Option<PortConfig> {
        let path = |path: PathBuf| beside(directory, &path);
        Some(match self {
            Self::Memory { wire, end, frames } => {
                let end = match end {
                    MemoryEnd::A => End::A,
                    MemoryEnd::B => End::B,
                };
                let mut config = MemoryConfig::new(wire, end);
                if let Some(frames) = frames {
                    config.frames = frames;
                }
                PortConfig::Memory(config)
            }
            Self::Pcap {
                read,
                write,
                repeat,
                pace,
            } => {
                let pace = match pace {
                    None | Some(RawPace::Named(NamedPace::Unpaced)) => Pace::Unpaced,
                    Some(RawPace::Named(NamedPace::Captured)) => Pace::Captured,
                    Some(RawPace::FramesPerSecond(rate)) => Pace::FramesPerSecond(rate),
                };
                PortConfig::Pcap(PcapConfig {
                    read: read.map(path),
                    write: write.map(path),
                    pace,
                    repeat,
                })
            }
            Self::Tap {
                interface,
                namespace,
                mtu,
                up,
                offload,
            } => PortConfig::Tap(TapConfig {
                interface: InterfaceConfig {
                    name: interface,
                    namespace,
                    mtu,
                    up,
                },
                offload,
            }),
            Self::AfPacket {
                interface,
                namespace,
                mtu,
                up,
                ring_octets,
            } => {
                let mut config = AfPacketConfig::new(InterfaceConfig {
                    name: interface,
                    namespace,
                    mtu,
                    up,
                });
                if let Some(octets) = ring_octets {
                    config.ring_octets = octets;
                }
                PortConfig::AfPacket(config)
            }
            Self::AfXdp {
                interface,
                namespace,
                mtu,
                up,
                modes,
                frames,
                busy_poll,
                fallback,
            } => {
                let mut config = AfXdpConfig::new(InterfaceConfig {
                    name: interface,
                    namespace,
                    mtu,
                    up,
                });
                config.fallback = fallback;
                config.busy_poll = busy_poll.map(BusyPoll::from);
                if let Some(modes) = modes {
                    config.modes = modes.into_iter().map(XdpMode::from).collect();
                }
                if let Some(frames) = frames {
                    config.frames = frames;
                }
                PortConfig::AfXdp(config)
            }
            Self::Macsec { .. } => return None,
        })
    }
}
