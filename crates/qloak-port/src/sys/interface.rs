//! Questions to and orders for a network interface: netdevice(7) and the two ethtool settings that
//! change received frames.
#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_int, c_ulong},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use crate::limits;

const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
/// Large receive offload among the flags of ETHTOOL_GFLAGS.
const ETH_FLAG_LRO: u32 = 1 << 15;

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
        match self.ethtool(ETHTOOL_GFLAGS, 0) {
            Ok(flags) if flags & ETH_FLAG_LRO == 0 => Ok(()),
            Ok(flags) => self
                .ethtool(ETHTOOL_SFLAGS, flags & !ETH_FLAG_LRO)
                .map(drop),
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
        let mut request = self.request();
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut order).cast();
        self.ioctl(libc::SIOCETHTOOL, request)?;
        Ok(order[1])
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: ifreq is plain data for which all zeroes is a value.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        request.ifr_name = self.name;
        request
    }

    fn ioctl(&self, order: c_ulong, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: every order of this file takes an ifreq, which lives on; where it holds a pointer
        // (`ethtool`) that points to eight octets that live on too, as the command wants.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), order as _, &raw mut request) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(request)
        }
    }
}
