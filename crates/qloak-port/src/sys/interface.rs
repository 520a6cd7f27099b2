//! Questions to and orders for a network interface: netdevice(7), the ethtool settings that change
//! received frames, and the count of its queues.
#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_int, c_ulong},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use crate::limits;

const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
/// Large receive offload among the flags of ETHTOOL_GFLAGS.
const ETH_FLAG_LRO: u32 = 1 << 15;
/// Taking VLAN tags out of received frames, there too.
const ETH_FLAG_RXVLAN: u32 = 1 << 8;

/// Room for an interface's name, zero behind it.
pub(crate) type Name = [c_char; libc::IFNAMSIZ];

/// An interface by its name, and a socket to ask through.
pub(crate) struct Interface<'a> {
    socket: BorrowedFd<'a>,
    name: Name,
}

/// A socket through which interfaces are asked, in the namespace of the calling thread.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is given.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// The name as the kernel takes it; none when it is empty, too long, or holds what no name may.
pub(crate) fn name(text: &str) -> Option<Name> {
    let sound = (1..=limits::INTERFACE_OCTETS_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|octet| octet.is_ascii_graphic() && !b"/%:".contains(&octet))
        && !matches!(text, "." | "..");
    let mut name = [0; libc::IFNAMSIZ];
    for (slot, octet) in name.iter_mut().zip(text.bytes()) {
        *slot = octet as c_char;
    }
    sound.then_some(name)
}

impl<'a> Interface<'a> {
    pub(crate) fn new(socket: BorrowedFd<'a>, name: Name) -> Self {
        Self { socket, name }
    }

    /// The interface that has a number now; an error when none has.
    pub(crate) fn named_by(socket: BorrowedFd<'a>, index: c_int) -> io::Result<Self> {
        let asking = Self::new(socket, [0; libc::IFNAMSIZ]);
        let mut request = asking.request();
        request.ifr_ifru.ifru_ifindex = index;
        let name = asking.ioctl(libc::SIOCGIFNAME, request)?.ifr_name;
        Ok(Self::new(socket, name))
    }

    /// The kernel's number for it.
    pub(crate) fn index(&self) -> io::Result<c_int> {
        let request = self.ioctl(libc::SIOCGIFINDEX, self.request())?;
        // SAFETY: SIOCGIFINDEX has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Hardware type (ARPHRD) and address.
    pub(crate) fn hardware(&self) -> io::Result<(u16, [u8; 6])> {
        let request = self.ioctl(libc::SIOCGIFHWADDR, self.request())?;
        // SAFETY: SIOCGIFHWADDR has filled this member.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let [a, b, c, d, e, f, ..] = address.sa_data.map(|octet| octet as u8);
        Ok((address.sa_family, [a, b, c, d, e, f]))
    }

    pub(crate) fn is_up(&self) -> io::Result<bool> {
        Ok(self.flags()? & libc::IFF_UP != 0)
    }

    pub(crate) fn set_up(&self) -> io::Result<()> {
        let flags = self.flags()? | libc::IFF_UP;
        let mut request = self.request();
        request.ifr_ifru.ifru_flags = flags as i16;
        self.ioctl(libc::SIOCSIFFLAGS, request).map(drop)
    }

    /// The MTU, octets.
    pub(crate) fn mtu(&self) -> io::Result<usize> {
        let request = self.ioctl(libc::SIOCGIFMTU, self.request())?;
        // SAFETY: SIOCGIFMTU has filled this member.
        let octets = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(usize::try_from(octets).unwrap_or(0))
    }

    /// Sets the MTU, octets.
    pub(crate) fn set_mtu(&self, octets: usize) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_mtu = c_int::try_from(octets).unwrap_or(c_int::MAX);
        self.ioctl(libc::SIOCSIFMTU, request).map(drop)
    }

    /// Switches generic receive offload off; an interface that has none is content.
    pub(crate) fn gro_off(&self) -> io::Result<()> {
        match self.ethtool(ETHTOOL_GGRO, 0) {
            Ok(0) => Ok(()),
            Ok(_) => self.ethtool(ETHTOOL_SGRO, 0).map(drop),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Switches large receive offload off; an interface that has none is content.
    pub(crate) fn lro_off(&self) -> io::Result<()> {
        self.flag_off(ETH_FLAG_LRO)
    }

    /// VLAN tags stay in received frames; an interface that never takes them out is content.
    pub(crate) fn vlan_tags_stay(&self) -> io::Result<()> {
        self.flag_off(ETH_FLAG_RXVLAN)
    }

    /// Count of receive queues; one where the interface does not say.
    pub(crate) fn receive_queues(&self) -> io::Result<u32> {
        // struct ethtool_channels: the command; most of rx, tx, other and combined; as many in use.
        let mut order = [0; 9];
        order[0] = ETHTOOL_GCHANNELS;
        match self.order(&mut order) {
            Ok(()) => Ok((order[5] + order[8]).max(1)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
            Err(error) => Err(error),
        }
    }

    /// Whether it is one end of a pair whose other end is an interface of a host (veth).
    pub(crate) fn is_paired(&self) -> io::Result<bool> {
        // struct ethtool_drvinfo: the command, the driver's name in 32 octets, and more, 196 octets in all.
        let mut order = [0; 49];
        order[0] = ETHTOOL_GDRVINFO;
        match self.order(&mut order) {
            Ok(()) => Ok(order[1].to_ne_bytes() == *b"veth" && order[2] == 0),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn flag_off(&self, flag: u32) -> io::Result<()> {
        match self.ethtool(ETHTOOL_GFLAGS, 0) {
            Ok(flags) if flags & flag == 0 => Ok(()),
            Ok(flags) => self.ethtool(ETHTOOL_SFLAGS, flags & !flag).map(drop),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn flags(&self) -> io::Result<c_int> {
        let request = self.ioctl(libc::SIOCGIFFLAGS, self.request())?;
        // SAFETY: SIOCGIFFLAGS has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_flags }.into())
    }

    fn ethtool(&self, command: u32, value: u32) -> io::Result<u32> {
        // struct ethtool_value: the command and its value, 32 bits each.
        let mut order = [command, value];
        self.order(&mut order)?;
        Ok(order[1])
    }

    /// `order` is the structure of an ethtool command, which comes first in it.
    fn order<const WORDS: usize>(&self, order: &mut [u32; WORDS]) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = order.as_mut_ptr().cast();
        self.ioctl(libc::SIOCETHTOOL, request).map(drop)
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: ifreq is plain data for which all zeroes is a value.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        request.ifr_name = self.name;
        request
    }

    fn ioctl(&self, order: c_ulong, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: every order of this file takes an ifreq, which lives on; where it holds a pointer
        // (`order`) that points to the whole structure of its ethtool command, which lives on too.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), order as _, &raw mut request) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(request)
        }
    }
}
