//! AF_XDP sockets: linux/if_xdp.h, kernel documentation networking/af_xdp.
#![allow(unsafe_code)]

use std::{
    ffi::c_int,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use libc::{SOL_SOCKET, SOL_XDP, xdp_desc, xdp_ring_offset};

use super::{
    option,
    umem::{Consumer, Memory, Producer},
};

/// Most descriptors that one call transmits in copy mode (sockopt 9 of SOL_XDP, Linux 6.18); libc has no
/// name for it.
const XDP_MAX_TX_SKB_BUDGET: c_int = 9;

/// An AF_XDP socket. No call on it waits.
pub(crate) struct XdpSocket {
    socket: OwnedFd,
}

/// Its four rings.
pub(crate) struct Rings {
    pub(crate) fill: Producer<u64>,
    pub(crate) receive: Consumer<xdp_desc>,
    pub(crate) transmit: Producer<xdp_desc>,
    pub(crate) completion: Consumer<u64>,
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl XdpSocket {
    /// A socket that gets nothing until it is bound.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointer is given.
        let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Self { socket })
    }

    /// Tells the kernel where frames lie. It holds the pages until the socket is closed.
    pub(crate) fn register(&self, memory: &Memory, chunk_octets: usize) -> io::Result<()> {
        let (addr, len) = memory.place();
        let region = libc::xdp_umem_reg {
            addr,
            len,
            chunk_size: chunk_octets as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        option::set(self.as_fd(), SOL_XDP, libc::XDP_UMEM_REG, &region)
    }

    /// Makes and maps the rings, each of `entries` entries, a power of two.
    pub(crate) fn rings(&self, entries: u32) -> io::Result<Rings> {
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            option::set(self.as_fd(), SOL_XDP, ring, &entries)?;
        }
        let nowhere = xdp_ring_offset {
            producer: 0,
            consumer: 0,
            desc: 0,
            flags: 0,
        };
        let mut offsets = libc::xdp_mmap_offsets {
            rx: nowhere,
            tx: nowhere,
            fr: nowhere,
            cr: nowhere,
        };
        option::get(self.as_fd(), SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        let socket = self.as_fd();
        let (fill, completion) = (
            libc::XDP_UMEM_PGOFF_FILL_RING as i64,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
        );
        Ok(Rings {
            fill: Producer::new(socket, fill, offsets.fr, entries)?,
            receive: Consumer::new(socket, libc::XDP_PGOFF_RX_RING, offsets.rx, entries)?,
            transmit: Producer::new(socket, libc::XDP_PGOFF_TX_RING, offsets.tx, entries)?,
            completion: Consumer::new(socket, completion, offsets.cr, entries)?,
        })
    }

    /// Lets one call transmit so many frames in copy mode; without it a call transmits 32.
    pub(crate) fn transmit_budget(&self, frames: u32) -> io::Result<()> {
        option::set(self.as_fd(), SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &frames)
    }

    /// Frames are fetched by the thread that asks for them, for up to so many microseconds and frames a call.
    pub(crate) fn busy_poll(&self, microseconds: u32, frames: u32) -> io::Result<()> {
        for (name, value) in [
            (libc::SO_PREFER_BUSY_POLL, 1),
            (libc::SO_BUSY_POLL, microseconds),
            (libc::SO_BUSY_POLL_BUDGET, frames),
        ] {
            option::set(self.as_fd(), SOL_SOCKET, name, &value)?;
        }
        Ok(())
    }

    /// Binds to queue 0 of the interface, with XDP_ZEROCOPY or XDP_COPY and other flags.
    pub(crate) fn bind(&self, interface: c_int, flags: u16) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface as u32,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        let octets = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address lives on and has that many octets.
        let done = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                ptr::from_ref(&address).cast(),
                octets,
            )
        };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Wakes the kernel's receiving half where it sleeps, lets it poll where that is on, and says what is wrong
    /// with the socket.
    pub(crate) fn wake_receive(&self) -> io::Result<()> {
        // SAFETY: there is no room for octets, and none are taken: this is how the kernel is called.
        let done = unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Makes the kernel transmit what lies in the ring.
    pub(crate) fn wake_transmit(&self) -> io::Result<()> {
        // SAFETY: no octets are given: this is how the kernel is called.
        let done = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null(),
                0,
            )
        };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// What the kernel counted since the socket was made. An old kernel leaves the last three at zero.
    pub(crate) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        let mut counted = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        option::get(self.as_fd(), SOL_XDP, libc::XDP_STATISTICS, &mut counted)?;
        Ok(counted)
    }
}
