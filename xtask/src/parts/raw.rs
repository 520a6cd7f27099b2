//! A packet socket on the demo's line: sees every line frame of both directions and can put one on.
//!
//! The only unsafe code of xtask; ARCHITECTURE.md names this file. The kernel is asked in its own
//! terms, with `libc`, for five things: a socket, its binding to an interface, its filter, its buffer, and many
//! frames at once with the time at which each came. Receiving and sending one frame goes through `File`, which needs
//! no unsafe: `read` on a packet socket gives one frame, `write` puts one on the interface that it is bound to.
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

/// Frames that are looked at in one call.
const SEEN_AT_ONCE: usize = 64;

/// Octets of a frame that are looked at: both addresses and the EtherType.
const HEAD_OCTETS: usize = 14;

/// Octets that the kernel may hold for an observer: a tenth of a second at a million short frames a second.
const OBSERVE_BUFFER_OCTETS: libc::c_int = 128 << 20;

/// A frame as an observer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Nanoseconds since 1970, by the kernel's stamp.
    pub(super) at_ns: u64,
    /// Octets without FCS.
    pub(super) octets: u32,
    /// A key agreement frame.
    pub(super) agreement: bool,
}

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
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a frame on the line, as if the node at this end had sent it.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.write(frame).map(drop)
    }

    /// From now on only what comes in is heard, each frame with a stamp of the kernel.
    pub(super) fn observe(&self) -> io::Result<()> {
        self.set(libc::SO_RCVBUFFORCE, &OBSERVE_BUFFER_OCTETS)?;
        self.set(libc::SO_TIMESTAMPNS, &1)?;
        self.set_at(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        self.listen(true)
    }

    /// Appends the frames that are there, or none within a twentieth of a second.
    pub(super) fn see(&self, seen: &mut Vec<Seen>) -> io::Result<()> {
        let mut heads = [[0_u8; HEAD_OCTETS]; SEEN_AT_ONCE];
        // Room for a control message with a timespec, aligned as one.
        let mut controls = [[0_u64; 8]; SEEN_AT_ONCE];
        let mut parts = heads.each_mut().map(|head| libc::iovec {
            iov_base: head.as_mut_ptr().cast(),
            iov_len: HEAD_OCTETS,
        });
        // SAFETY: mmsghdr is plain numbers and pointers; all zero is a valid one.
        let mut messages: [libc::mmsghdr; SEEN_AT_ONCE] = unsafe { mem::zeroed() };
        for ((message, part), control) in messages.iter_mut().zip(&mut parts).zip(&mut controls) {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = mem::size_of_val(control);
        }
        // SAFETY: each message points to one part and one control room of the lengths given; all of them live
        // through the call.
        let count = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                SEEN_AT_ONCE as libc::c_uint,
                // The length of the whole frame is told, though the rest of it is not wanted.
                libc::MSG_WAITFORONE | libc::MSG_TRUNC,
                std::ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            return match io::Error::last_os_error() {
                error if is_nothing(&error) => Ok(()),
                error => Err(error),
            };
        };
        for (message, head) in messages.iter().take(count).zip(&heads) {
            let agreement = head.get(12..) == Some(&(AGREEMENT as u16).to_be_bytes());
            seen.extend(stamp(&message.msg_hdr).map(|at_ns| Seen {
                at_ns,
                octets: message.msg_len,
                agreement,
            }));
        }
        Ok(())
    }

    /// Frames that the kernel had no room for since it was asked last.
    pub(super) fn drops(&self) -> io::Result<u32> {
        // SAFETY: tpacket_stats is plain numbers; all zero is a valid one.
        let mut stats: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut octets = mem::size_of_val(&stats) as libc::socklen_t;
        // SAFETY: the pointers are to one value of the length given and to that length; both live through the call.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut octets,
            )
        };
        match done {
            0 => Ok(stats.tp_drops),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        self.set_at(libc::SOL_SOCKET, option, value)
    }

    fn set_at<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of one value that lives through the call, and
        // the kernel only reads it.
        let done = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
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

/// Nothing came in time.
fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The kernel's stamp among the control messages of a received one.
fn stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel wrote the control messages and their length.
    let first = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: a header that CMSG_FIRSTHDR gives lies whole within the control room, which lives.
    let header = unsafe { first.as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: a message of this type carries a timespec; it may stand unaligned.
    let time = unsafe {
        libc::CMSG_DATA(first)
            .cast::<libc::timespec>()
            .read_unaligned()
    };
    Some(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

fn timeval(time: Duration) -> libc::timeval {
    libc::timeval {
        tv_sec: time.as_secs().cast_signed(),
        tv_usec: time.subsec_micros().into(),
    }
}
