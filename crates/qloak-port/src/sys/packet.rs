//! Packet sockets: packet(7), linux/if_packet.h.
#![allow(unsafe_code)]

use std::{
    ffi::c_int,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use super::option;
use crate::{Frame, limits};

/// Which frames of an interface a socket wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hear {
    Nothing,
    EtherType(u16),
    All,
}

/// A packet socket. No call on it waits.
pub(crate) struct PacketSocket {
    socket: OwnedFd,
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl PacketSocket {
    /// A socket that hears nothing until it is bound.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointer is given.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Self { socket })
    }

    /// Binds to an interface; `hear` says which of its frames are wanted.
    pub(crate) fn bind(&self, index: c_int, hear: Hear) -> io::Result<()> {
        // SAFETY: sockaddr_ll is plain data for which all zeroes is a value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = match hear {
            Hear::Nothing => 0,
            Hear::EtherType(number) => number.to_be(),
            Hear::All => (libc::ETH_P_ALL as u16).to_be(),
        };
        address.sll_ifindex = index;
        let octets = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address lives on and has that many octets.
        let done = unsafe { libc::bind(self.fd(), ptr::from_ref(&address).cast(), octets) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Ring slots as of version 2: nanosecond stamps, VLAN tags.
    pub(crate) fn version_2(&self) -> io::Result<()> {
        self.set(
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as c_int),
        )
    }

    /// A virtio header before each received frame, which says what is left to do with it.
    pub(crate) fn virtio_header(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)
    }

    /// Frames that no ring slot holds are to wait whole in the socket's queue.
    pub(crate) fn copy_long_frames(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)
    }

    /// What the host itself sends through the interface, this program included, is not heard.
    pub(crate) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)
    }

    /// Frames for every address are heard.
    pub(crate) fn promiscuous(&self, index: c_int) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Room for received and sent frames, octets. Above the system's bound it needs CAP_NET_ADMIN, without
    /// which the system's bound is taken.
    pub(crate) fn buffers(&self, octets: usize) -> io::Result<()> {
        let octets = c_int::try_from(octets).unwrap_or(c_int::MAX);
        for (forced, asked) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if self.set(libc::SOL_SOCKET, forced, &octets).is_err() {
                self.set(libc::SOL_SOCKET, asked, &octets)?;
            }
        }
        Ok(())
    }

    /// Asks for a receive ring of `blocks` blocks.
    pub(crate) fn ring(
        &self,
        blocks: usize,
        block_octets: usize,
        slots: usize,
        slot_octets: usize,
    ) -> io::Result<()> {
        let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let request = libc::tpacket_req {
            tp_block_size: u32::try_from(block_octets).map_err(too_large)?,
            tp_block_nr: u32::try_from(blocks).map_err(too_large)?,
            tp_frame_size: u32::try_from(slot_octets).map_err(too_large)?,
            tp_frame_nr: u32::try_from(slots).map_err(too_large)?,
        };
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
    }

    /// Frames dropped since this was last asked.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        let mut stats = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
        Ok(stats.tp_drops.into())
    }

    /// Takes the error that waits at the socket, if one does.
    pub(crate) fn error(&self) -> io::Result<Option<io::Error>> {
        let mut number: c_int = 0;
        self.get(libc::SOL_SOCKET, libc::SO_ERROR, &mut number)?;
        Ok((number != 0).then(|| io::Error::from_raw_os_error(number)))
    }

    /// Takes a frame out of the queue; says how long it was, which may be more than there was room for.
    pub(crate) fn take(&self, room: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `room` lives on and has that many octets.
        let got = unsafe {
            libc::recv(
                self.fd(),
                room.as_mut_ptr().cast(),
                room.len(),
                libc::MSG_TRUNC,
            )
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Sends the first frames, at most [`limits::SEND_FRAMES_MAX`]; says how many. The error is that of
    /// the first frame.
    pub(crate) fn send(&self, frames: &[Frame]) -> io::Result<usize> {
        let mut parts = [libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        }; limits::SEND_FRAMES_MAX];
        // SAFETY: mmsghdr is plain data for which all zeroes is a value.
        let mut messages: [libc::mmsghdr; limits::SEND_FRAMES_MAX] = unsafe { mem::zeroed() };
        let mut count = 0;
        for ((message, part), frame) in messages.iter_mut().zip(&mut parts).zip(frames) {
            let octets = frame.octets();
            part.iov_base = octets.as_ptr().cast_mut().cast();
            part.iov_len = octets.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: `count` messages point to as many parts, and those to frames; all live on. The kernel
        // only reads what an outgoing message points to.
        let sent = unsafe { libc::sendmmsg(self.fd(), messages.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn fd(&self) -> c_int {
        self.socket.as_raw_fd()
    }

    fn set<T>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        option::set(self.as_fd(), level, name, value)
    }

    fn get<T: Copy>(&self, level: c_int, name: c_int, value: &mut T) -> io::Result<()> {
        option::get(self.as_fd(), level, name, value)
    }
}
