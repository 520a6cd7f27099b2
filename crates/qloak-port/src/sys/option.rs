//! Options of a socket: setsockopt(2) and getsockopt(2), for every kind of socket.
#![allow(unsafe_code)]

use std::{
    ffi::c_int,
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

/// Sets an option.
pub(crate) fn set<T>(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    let octets = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives on and has that many octets, which the kernel only reads.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(value).cast(),
            octets,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Reads an option. `T` is plain data for which every pattern of bits is a value; what the kernel knows
/// nothing of stays as it was.
pub(crate) fn get<T: Copy>(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut octets = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives on and has that many octets, of which the kernel fills at most as many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_mut(value).cast(),
            &mut octets,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
