//! The receive ring of a packet socket (kernel documentation, networking/packet_mmap, TPACKET_V2).
//!
//! ```text
//!   block 0  [ slot | slot | ... | rest ]  block 1 [ ... ]          slots never cross a block
//!   slot     [ tpacket2_hdr .. | virtio header (10) | frame ...... ]
//!            ^ tp_status: the kernel's until it says USER, ours until we say KERNEL
//! ```
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    ptr, slice,
    sync::atomic::{AtomicU32, Ordering},
};

use super::packet::PacketSocket;
use crate::offload::VIRTIO_OCTETS;

/// What a slot has before the frame: header, address, alignment, virtio header. (80 octets up to the network
/// header, the virtio header, less the 14 of the Ethernet header.)
const SLOT_HEAD_OCTETS: usize = 96;

/// Octets of a block unless a slot needs more: 64 pages, which the kernel finds in one piece.
const BLOCK_OCTETS: usize = 1 << 18;

/// A receive ring, mapped.
pub(crate) struct Ring {
    map: *mut u8,
    octets: usize,
    block_octets: usize,
    slots_per_block: usize,
    slot_octets: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the map belongs to this value alone on our side, and is not bound to a thread.
unsafe impl Send for Ring {}

/// A frame that the kernel has put into a slot.
pub(crate) struct Slot<'a> {
    /// TP_STATUS bits.
    pub(crate) status: u32,
    /// Length on the wire; more than `octets` when the slot was too small.
    pub(crate) wire_octets: usize,
    /// The virtio header.
    pub(crate) virtio: [u8; VIRTIO_OCTETS],
    /// The VLAN tag that was taken out of the frame, TPID and TCI.
    pub(crate) tag: Option<(u16, u16)>,
    /// The frame, as far as the slot holds it.
    pub(crate) octets: &'a [u8],
}

impl Ring {
    /// Gives the socket a ring of about `octets` with slots for frames of `frame_octets`, and maps it.
    pub(crate) fn new(
        socket: &PacketSocket,
        octets: usize,
        frame_octets: usize,
    ) -> io::Result<Self> {
        let slot_octets = (SLOT_HEAD_OCTETS + frame_octets).next_multiple_of(64);
        let block_octets = BLOCK_OCTETS.max(slot_octets.next_power_of_two());
        let blocks = (octets / block_octets).max(1);
        let slots_per_block = block_octets / slot_octets;
        let slots = blocks * slots_per_block;
        socket.ring(blocks, block_octets, slots, slot_octets)?;
        let octets = blocks * block_octets;
        // SAFETY: a new mapping at a place that the kernel chooses; the length is that of the ring.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                octets,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_fd().as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            map: map.cast(),
            octets,
            block_octets,
            slots_per_block,
            slot_octets,
            slots,
            next: 0,
        })
    }

    /// The next frame, if the kernel has put one there. It is ours until `release`.
    pub(crate) fn peek(&self) -> Option<Slot<'_>> {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours (acquired above), lies inside the map, and begins with this header;
        // slots lie at multiples of 64 octets in a map of whole pages.
        let header = unsafe { ptr::read(self.slot().cast::<libc::tpacket2_hdr>()) };
        // SAFETY: the slot is ours until `release`, which wants `&mut self`; its octets lie inside the map.
        let slot = unsafe { slice::from_raw_parts(self.slot(), self.slot_octets) };
        let start = usize::from(header.tp_mac);
        let octets = slot
            .get(start..start + header.tp_snaplen as usize)
            .unwrap_or_default();
        let mut virtio = [0; VIRTIO_OCTETS];
        if let Some(before) = start
            .checked_sub(VIRTIO_OCTETS)
            .and_then(|at| slot.get(at..start))
        {
            virtio.copy_from_slice(before);
        }
        let tpid = if header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
            0x8100
        } else {
            header.tp_vlan_tpid
        };
        let tagged = header.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
        Some(Slot {
            status: header.tp_status,
            wire_octets: header.tp_len as usize,
            virtio,
            tag: tagged.then_some((tpid, header.tp_vlan_tci)),
            octets,
        })
    }

    /// Gives the slot that `peek` showed back to the kernel and goes to the one after it.
    pub(crate) fn release(&mut self) {
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
    }

    fn slot(&self) -> *mut u8 {
        let (block, place) = (
            self.next / self.slots_per_block,
            self.next % self.slots_per_block,
        );
        // SAFETY: `next` is below `slots`, so that the sum is inside the map.
        unsafe {
            self.map
                .add(block * self.block_octets + place * self.slot_octets)
        }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the slot begins with its 32-bit status, aligned (slots lie at multiples of 64 octets in a map of
        // whole pages), inside the map; both sides use it as an atomic word.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the map that `new` made, of that length, and no slot is lent any more.
        unsafe { libc::munmap(self.map.cast(), self.octets) };
    }
}
