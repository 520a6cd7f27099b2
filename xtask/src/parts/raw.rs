//! A packet socket on the demo's line: sees every line frame of both directions and can put one on.
//!
//! The only unsafe code of xtask; ARCHITECTURE.md names this file. The kernel is asked in its own
//! terms, with `libc`, for four things: a socket, its binding to an interface, its filter, its buffer.
//! Receiving and sending go through `File`, which needs no unsafe: `read` on a packet socket gives one
//! frame, `write` puts one on the interface that it is bound to.
#![allow(unsafe_code)]

use std::{
    ffi::CString,
    fs::File,
    io::{self, Read, Write},
    mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    time::Duration,
};

/// EtherType of Qloak's key agreement; the filter always lets it pass.
const AGREEMENT: u32 = 0x88B5;

/// Octets that the kernel may hold for us: some thousand frames, while we write the last ones away.
const RECEIVE_BUFFER_OCTETS: libc::c_int = 8 << 20;

/// A packet socket bound to one interface.
pub(super) struct Line {
    socket: File,
}

impl Line {
    /// Opens one on an interface of this namespace. It listens to key agreement frames only, until
    /// [`Line::listen`] says otherwise.
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: `name` is a C string that lives through the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = libc::c_int::try_from(index).unwrap_or(0);
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // No protocol yet: nothing arrives before filter and binding are in place.
        // SAFETY: socket takes three numbers and touches no memory of ours.
        let descriptor =
            unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened above and nobody else owns it.
        let socket = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let line = Self { socket };
        line.listen(false)?;
        line.set(libc::SO_RCVBUF, &RECEIVE_BUFFER_OCTETS)?;
        line.set(libc::SO_RCVTIMEO, &timeval(Duration::from_millis(50)))?;
        // SAFETY: sockaddr_ll is plain numbers; all zero is a valid one.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the address is a sockaddr_ll of the length given and lives through the call.
        let bound = unsafe {
            libc::bind(
                line.socket.as_raw_fd(),
                (&raw const address).cast(),
                mem::size_of_val(&address) as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(line)
    }

    /// Chooses what the kernel hands over: every frame, or key agreement frames only. The choice is
    /// made by a filter in the kernel, so that frames nobody wants cost almost nothing.
    pub(super) fn listen(&self, everything: bool) -> io::Result<()> {
        let step = |code: u32, jt, jf, k| libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        };
        let other = if everything { u32::MAX } else { 0 };
        let mut program = [
            step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, 12),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, AGREEMENT),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, other),
        ];
        let filter = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // The kernel copies the program before the call returns.
        self.set(libc::SO_ATTACH_FILTER, &filter)
    }

    /// The next frame into `room`, or none within a twentieth of a second.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.socket.read(room) {
            Ok(octets) => Ok(Some(octets)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a frame on the line, as if the node at this end had sent it.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.write(frame).map(drop)
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of one value that lives through the call, and
        // the kernel only reads it.
        let done = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const *value).cast(),
                mem::size_of::<T>() as libc::socklen_t,
            )
        };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

fn timeval(time: Duration) -> libc::timeval {
    libc::timeval {
        tv_sec: time.as_secs().cast_signed(),
        tv_usec: time.subsec_micros().into(),
    }
}
