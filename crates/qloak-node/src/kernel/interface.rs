//! A macsec interface of the kernel: made or taken, switched to another encoding SA (rtnetlink(7),
//! linux/if_link.h).
//!
//! The interface is a SecY with one transmitting SC. Nothing leaves it until an SA encodes: frames are always
//! protected and encrypted, and what arrives without a valid ICV is dropped (validation "strict"). One that is
//! there is taken when it is the same SecY, because the hosts behind it may have addresses, routes or a bridge
//! on it; what can be set is then set anew.

use std::io;

use qloak_api::{An, Sci};

use super::{
    error::KernelError,
    netlink::{Attributes, Netlink, Request, Table, number, text},
};
use crate::config::MacsecInterface;

const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;

/// Octets of the header of a message about an interface (ifinfomsg).
const HEADER: usize = 16;

/// Its flag that the interface is to be up.
const UP: u32 = 1;

// IFLA_*
const NAME: u16 = 3;
const MTU: u16 = 4;
const LINK: u16 = 5;
const INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const STATISTICS: u16 = 23;

/// IFLA_MACSEC_*
mod data {
    pub(super) const SCI: u16 = 1;
    pub(super) const ICV_OCTETS: u16 = 3;
    pub(super) const SUITE: u16 = 4;
    pub(super) const WINDOW: u16 = 5;
    pub(super) const ENCODING_SA: u16 = 6;
    pub(super) const ENCRYPT: u16 = 7;
    pub(super) const PROTECT: u16 = 8;
    pub(super) const INCLUDE_SCI: u16 = 9;
    pub(super) const REPLAY_PROTECT: u16 = 12;
    pub(super) const VALIDATION: u16 = 13;
    pub(super) const OFFLOAD: u16 = 15;
}

/// Validation: a frame that is not valid is dropped.
const STRICT: u8 = 2;

/// GCM-AES-128 (IEEE 802.1AE-2018, table 14-1), and the number that the kernel tells instead: a misprint of its
/// first version, kept ever since as MACSEC_DEFAULT_CIPHER_ID. It takes both.
const GCM_AES_128: u64 = 0x0080_c200_0100_0001;
const GCM_AES_128_OLD: u64 = 0x0080_0200_0100_0001;

/// What a SecY is made with and cannot be changed afterwards: the driver answers "invalid argument".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) sci: Sci,
    /// IEEE 802.1AE-2018, table 14-1.
    pub(super) suite: u64,
}

/// The kernel's counters of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Statistics {
    pub(super) received_frames: u64,
    pub(super) transmitted_frames: u64,
    pub(super) received_octets: u64,
    pub(super) transmitted_octets: u64,
    /// Frames of its hosts that did not leave, because no SA encodes or none could.
    pub(super) transmit_dropped: u64,
}

/// The kernel's table of interfaces.
pub(super) struct Interfaces {
    netlink: Netlink,
}

/// An interface as the table has it.
struct Entry {
    index: u32,
    link: u32,
    kind: Vec<u8>,
    sci: Option<[u8; 8]>,
    suite: u64,
}

impl Interfaces {
    pub(super) fn open() -> Result<Self, KernelError> {
        let netlink = Netlink::open(Table::Route).map_err(KernelError::at("open netlink"))?;
        Ok(Self { netlink })
    }

    /// The number of an interface that must exist.
    pub(super) fn index(&mut self, name: &str) -> Result<u32, KernelError> {
        match self.entry(name)? {
            Some(entry) => Ok(entry.index),
            None => Err(KernelError::NoInterface(name.to_owned())),
        }
    }

    /// Makes the interface over the line's, or takes the one that is there; gives its number.
    pub(super) fn ready(
        &mut self,
        wanted: &MacsecInterface,
        line: u32,
        identity: Identity,
        window: u32,
    ) -> Result<u32, KernelError> {
        let name = &wanted.name;
        let found = self.entry(name)?;
        if let Some(entry) = &found {
            self.same(name, entry, line, identity)?;
        }
        let index = found.as_ref().map_or(0, |entry| entry.index);
        let flags = if wanted.up { UP } else { 0 };
        let mut request = Request::new(NEW_LINK, &header(index, flags, flags));
        if found.is_none() {
            request = request
                .with(NAME, &text(name))
                .with(LINK, &line.to_ne_bytes());
        }
        if let Some(mtu) = wanted.mtu {
            request = request.with(MTU, &(mtu as u32).to_ne_bytes());
        }
        let request = request.nest(INFO, |info| {
            info.with(INFO_KIND, b"macsec").nest(INFO_DATA, |data| {
                let data = match found {
                    None => made_with(data, identity, wanted),
                    Some(_) => data,
                };
                settings(data, window)
            })
        });
        let done = match found {
            None => self.netlink.create(request),
            Some(_) => self.netlink.order(request),
        };
        done.map_err(|error| KernelError::making(name, wanted.offload, error))?;
        self.index(name)
    }

    /// From the next frame on, frames are protected under this SA.
    pub(super) fn encode(&mut self, index: u32, an: An) -> io::Result<()> {
        let request = Request::new(NEW_LINK, &header(index, 0, 0)).nest(INFO, |info| {
            info.with(INFO_KIND, b"macsec").nest(INFO_DATA, |data| {
                data.with(data::ENCODING_SA, &[an.number()])
            })
        });
        self.netlink.order(request)
    }

    /// What went through an interface.
    pub(super) fn statistics(&mut self, index: u32) -> io::Result<Statistics> {
        let mut statistics = Statistics::default();
        let request = Request::new(GET_LINK, &header(index, 0, 0));
        self.netlink.get(request, |link| {
            let octets = Attributes::of(link.get(HEADER..).unwrap_or_default(), STATISTICS);
            let numbers: Vec<u64> = octets
                .unwrap_or_default()
                .chunks_exact(8)
                .map(number)
                .collect();
            // rtnl_link_stats64: received, transmitted, octets of both, errors of both, dropped of both.
            if let [
                rx,
                tx,
                rx_octets,
                tx_octets,
                _,
                tx_errors,
                _,
                tx_dropped,
                ..,
            ] = numbers[..]
            {
                statistics = Statistics {
                    received_frames: rx,
                    transmitted_frames: tx,
                    received_octets: rx_octets,
                    transmitted_octets: tx_octets,
                    transmit_dropped: tx_errors + tx_dropped,
                };
            }
        })?;
        Ok(statistics)
    }

    fn entry(&mut self, name: &str) -> Result<Option<Entry>, KernelError> {
        let mut entry = None;
        let request = Request::new(GET_LINK, &header(0, 0, 0)).with(NAME, &text(name));
        let asked = self.netlink.get(request, |link| entry = Entry::read(link));
        match asked {
            Ok(()) => Ok(entry),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(KernelError::at("look for an interface")(error)),
        }
    }

    fn same(
        &self,
        name: &str,
        entry: &Entry,
        line: u32,
        identity: Identity,
    ) -> Result<(), KernelError> {
        let sci = Some(identity.sci.to_octets());
        let differs = if entry.kind != b"macsec" {
            "it is no macsec interface"
        } else if entry.link != line {
            "it lies over another interface than the line's"
        } else if entry.sci != sci {
            "its SCI is another than line.address and the channel's number"
        } else if entry.suite != identity.suite {
            "it was made for another suite, and the kernel cannot change that"
        } else {
            return Ok(());
        };
        Err(KernelError::Other {
            interface: name.to_owned(),
            differs,
        })
    }
}

impl Entry {
    fn read(link: &[u8]) -> Option<Self> {
        let index = link.get(4..8).map(number)? as u32;
        let attributes = link.get(HEADER..)?;
        let info = Attributes::of(attributes, INFO).unwrap_or_default();
        let data = Attributes::of(info, INFO_DATA).unwrap_or_default();
        let kind = Attributes::of(info, INFO_KIND).unwrap_or_default();
        let kind = kind.strip_suffix(&[0]).unwrap_or(kind);
        Some(Self {
            index,
            link: Attributes::of(attributes, LINK).map_or(0, number) as u32,
            kind: kind.to_vec(),
            sci: Attributes::of(data, data::SCI).and_then(|sci| sci.try_into().ok()),
            suite: match Attributes::of(data, data::SUITE).map_or(0, number) {
                GCM_AES_128_OLD => GCM_AES_128,
                suite => suite,
            },
        })
    }
}

/// What only a new interface can be told.
fn made_with(data: Request, identity: Identity, wanted: &MacsecInterface) -> Request {
    let data = data
        .with(data::SCI, &identity.sci.to_octets())
        .with(data::ICV_OCTETS, &[16])
        .with(data::SUITE, &identity.suite.to_ne_bytes());
    match wanted.offload.code() {
        0 => data,
        code => data.with(data::OFFLOAD, &[code]),
    }
}

/// What an interface that is there is told too.
fn settings(data: Request, window: u32) -> Request {
    data.with(data::PROTECT, &[1])
        .with(data::ENCRYPT, &[1])
        .with(data::INCLUDE_SCI, &[1])
        .with(data::REPLAY_PROTECT, &[1])
        .with(data::WINDOW, &window.to_ne_bytes())
        .with(data::VALIDATION, &[STRICT])
}

/// ifinfomsg: family 1, zero 1, hardware type 2, index 4, flags 4, which of them are meant 4.
fn header(index: u32, flags: u32, mask: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&mask.to_ne_bytes());
    header
}
