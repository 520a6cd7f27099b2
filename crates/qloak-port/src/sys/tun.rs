//! Making a TAP interface: /dev/net/tun and TUNSETIFF (kernel documentation, networking/tuntap).
#![allow(unsafe_code)]

use std::{
    fs::{File, OpenOptions},
    io, mem,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
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

/// Makes the device the owner of a TAP interface of that name: each read and write is one frame, without
/// anything before it.
pub(crate) fn attach(device: &File, name: Name) -> io::Result<()> {
    // SAFETY: ifreq is plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name = name;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
    // SAFETY: TUNSETIFF takes an ifreq, which lives on.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
