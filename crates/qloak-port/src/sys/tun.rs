//! Making a TAP interface: /dev/net/tun and its orders (kernel documentation, networking/tuntap; linux/if_tun.h).
#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_uint, c_ulong},
    fs::{File, OpenOptions},
    io, mem,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    ptr,
};

use super::interface::Name;

/// Opens the device that all TAP interfaces come from; no call on it waits.
pub(crate) fn device() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
}

/// Makes the device the owner of a TAP interface of that name: each read and write is one frame, with a
/// virtio header before it or without anything.
pub(crate) fn attach(device: &File, name: Name, header: bool) -> io::Result<()> {
    // SAFETY: ifreq is plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name = name;
    let header = if header { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | header) as i16;
    // SAFETY: TUNSETIFF takes an ifreq, which lives on.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    check(done)
}

/// Whether the kernel can put a virtio header before each frame.
pub(crate) fn knows_header(device: &File) -> io::Result<bool> {
    let mut features: c_uint = 0;
    // SAFETY: TUNGETFEATURES fills an unsigned int, which lives on.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNGETFEATURES, &raw mut features) };
    check(done)?;
    Ok(features & libc::IFF_VNET_HDR as c_uint != 0)
}

/// How many octets the virtio header has.
pub(crate) fn header_octets(device: &File, octets: usize) -> io::Result<()> {
    let octets = c_int::try_from(octets).unwrap_or(c_int::MAX);
    // SAFETY: TUNSETVNETHDRSZ reads an int, which lives on.
    let done = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            libc::TUNSETVNETHDRSZ,
            ptr::from_ref(&octets),
        )
    };
    check(done)
}

/// What the kernel may leave to us: TUN_F flags. EINVAL when it does not know one of them.
pub(crate) fn offload(device: &File, flags: c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes the flags themselves in place of a pointer.
    let done = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            libc::TUNSETOFFLOAD,
            c_ulong::from(flags),
        )
    };
    check(done)
}

/// Lets a UDP socket's stack make datagrams of so many octets out of what is sent at once, which gives
/// super-frames (udp(7), UDP_SEGMENT).
#[cfg(test)]
pub(crate) fn segment(socket: &std::net::UdpSocket, octets: c_int) -> io::Result<()> {
    // SAFETY: the option is an int, which lives on and has that many octets.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            ptr::from_ref(&octets).cast(),
            mem::size_of_val(&octets) as libc::socklen_t,
        )
    };
    check(done)
}

fn check(done: c_int) -> io::Result<()> {
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
