//! Doing something in another network namespace: setns(2).
//!
//! A thread of its own enters the namespace and ends afterwards, so no thread of the caller is ever
//! in a namespace that it does not expect. Sockets and TAP devices stay in the one they were made in.
#![allow(unsafe_code)]

use std::{fs::File, io, os::fd::AsRawFd, path::Path, thread};

/// Does `work` in the namespace that the file stands for. Outer error: the namespace.
pub(crate) fn within<T: Send>(file: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let namespace = File::open(file)?;
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // SAFETY: no pointer is given; the descriptor is open. Only this thread is moved.
            if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(work())
        });
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Puts the calling thread into a new, empty namespace; says the thread's number, by which `ip` can
/// name that namespace.
#[cfg(test)]
pub(crate) fn leave() -> io::Result<i32> {
    // SAFETY: no pointer is given. Only this thread is moved.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no pointer is given.
    Ok(unsafe { libc::gettid() })
}
