//! ppoll(2) and eventfd(2).
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
    time::Duration,
};

use crate::limits;

/// Whether one of the descriptors (at most `WAIT_DESCRIPTORS_MAX` are looked at) became readable.
pub(crate) fn readable(descriptors: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    let nothing = libc::pollfd {
        fd: -1,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut asked = [nothing; limits::WAIT_DESCRIPTORS_MAX];
    let mut count = 0;
    for (slot, descriptor) in asked.iter_mut().zip(descriptors) {
        slot.fd = descriptor.as_raw_fd();
        count += 1;
    }
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: `asked` has at least `count` entries and outlives the call, the descriptors are borrowed
    // and so open, and no signal mask is given.
    let ready = unsafe { libc::ppoll(asked.as_mut_ptr(), count, &timeout, ptr::null()) };
    match ready {
        0.. => Ok(ready > 0),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}

/// A descriptor that is readable while its count is not zero.
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is given.
    let event = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

/// Makes an event readable. It fails only when its count is at the top: then it is readable.
pub(crate) fn signal(event: &OwnedFd) {
    let one = 1_u64;
    // SAFETY: eight octets are read from `one`, which has eight.
    unsafe { libc::write(event.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
}

/// Makes an event unreadable. It fails only when it is.
pub(crate) fn reset(event: &OwnedFd) {
    let mut count = 0_u64;
    // SAFETY: eight octets are written to `count`, which has eight.
    unsafe { libc::read(event.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8) };
}

/// A descriptor that is readable while one of those that are added to it is (epoll(7)).
pub(crate) fn any() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is given.
    let any = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if any < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(any) })
}

/// Adds a descriptor; one that is there already stays. One that is closed leaves by itself.
pub(crate) fn add(any: &OwnedFd, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: libc::EPOLLIN as u32,
        u64: 0,
    };
    let (any, descriptor) = (any.as_raw_fd(), descriptor.as_raw_fd());
    // SAFETY: both descriptors are borrowed and so open, and `event` outlives the call, which only reads it.
    let done = unsafe { libc::epoll_ctl(any, libc::EPOLL_CTL_ADD, descriptor, &raw mut event) };
    match done {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            error => Err(error),
        },
    }
}
