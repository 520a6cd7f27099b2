//! Whether what a port is asked to be is possible at all: said before anything is opened, so that a program
//! can refuse its configuration file with the line at fault.

use std::ops::RangeInclusive;

use super::{
    AfPacketConfig, AfXdpConfig, InterfaceConfig, MemoryConfig, Pace, PcapConfig, PortConfig,
};
use crate::{PortError, interface, limits};

impl PortConfig {
    /// Whether every setting is within its bounds; [`crate::open`] begins with this. Whether interfaces and
    /// files are there is not asked.
    ///
    /// # Errors
    /// The setting that is not, and its bounds.
    pub fn check(&self) -> Result<(), PortError> {
        match self {
            Self::Memory(config) => config.check(),
            Self::Pcap(config) => config.check(),
            Self::Tap(config) => config.interface.check(),
            Self::AfPacket(config) => config.check(),
            Self::AfXdp(config) => config.check(),
            Self::Impaired(config) => {
                config.port.check()?;
                config.impairment.check()
            }
        }
    }
}

impl InterfaceConfig {
    fn check(&self) -> Result<(), PortError> {
        interface::name(&self.name)?;
        if let Some(namespace) = &self.namespace
            && (namespace.is_empty()
                || namespace.contains('/')
                || matches!(&**namespace, "." | ".."))
        {
            return Err(PortError::Setting {
                setting: "the name of a network namespace",
                given: format!("{namespace:?}"),
                allowed: "a name that `ip netns` shows".into(),
            });
        }
        match self.mtu {
            Some(mtu) => bounded("an MTU", mtu, &limits::MTU_OCTETS, "octets"),
            None => Ok(()),
        }
    }
}

impl AfPacketConfig {
    fn check(&self) -> Result<(), PortError> {
        self.interface.check()?;
        let allowed = &limits::RING_OCTETS_RANGE;
        bounded("the receive ring", self.ring_octets, allowed, "octets")
    }
}

impl AfXdpConfig {
    fn check(&self) -> Result<(), PortError> {
        self.interface.check()?;
        let allowed = &limits::XDP_FRAMES_RANGE;
        bounded("an AF_XDP ring", self.frames, allowed, "frames")?;
        if !self.frames.is_power_of_two() {
            return Err(PortError::Setting {
                setting: "an AF_XDP ring",
                given: format!("{} frames", self.frames),
                allowed: "a power of two".into(),
            });
        }
        if self.modes.is_empty() {
            return Err(PortError::Setting {
                setting: "the list of XDP modes",
                given: "empty".into(),
                allowed: "zero-copy, native, skb".into(),
            });
        }
        let Some(poll) = self.busy_poll else {
            return Ok(());
        };
        let allowed = &limits::BUSY_POLL_US_RANGE;
        bounded("the time of a busy poll", poll.microseconds, allowed, "us")?;
        let allowed = &limits::BUSY_POLL_FRAMES_RANGE;
        bounded("the budget of a busy poll", poll.frames, allowed, "frames")
    }
}

impl MemoryConfig {
    fn check(&self) -> Result<(), PortError> {
        let allowed = &limits::MEMORY_FRAMES_RANGE;
        bounded(
            "the length of a memory wire",
            self.frames,
            allowed,
            "frames",
        )
    }
}

impl PcapConfig {
    fn check(&self) -> Result<(), PortError> {
        if let Pace::FramesPerSecond(rate) = self.pace {
            let allowed = &limits::PACE_FRAMES_PER_SECOND;
            bounded("the pace of a capture", rate, allowed, "frames per second")?;
        }
        let refused = |given, allowed: &str| {
            Err(PortError::Setting {
                setting: "a pcap port",
                given,
                allowed: allowed.into(),
            })
        };
        match (&self.read, &self.write) {
            (None, None) => refused("without a file".into(), "`read`, `write` or both"),
            (Some(read), Some(write)) if read == write => refused(
                format!("reading and writing {}", read.display()),
                "two files",
            ),
            _ => Ok(()),
        }
    }
}

/// Refuses what is out of its bounds.
pub(crate) fn bounded<T: PartialOrd + std::fmt::Display>(
    setting: &'static str,
    given: T,
    allowed: &RangeInclusive<T>,
    unit: &str,
) -> Result<(), PortError> {
    if allowed.contains(&given) {
        return Ok(());
    }
    let unit = if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    };
    Err(PortError::Setting {
        setting,
        given: format!("{given}{unit}"),
        allowed: format!("{} to {}{unit}", allowed.start(), allowed.end()),
    })
}
