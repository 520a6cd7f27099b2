//! What an AF_XDP socket shares with the kernel: the memory of its frames, and the rings that say whose
//! each place in it is (kernel documentation, networking/af_xdp).
//!
//! ```text
//!   memory   [ chunk | chunk | ... || chunk | chunk | ... ]      each chunk 4096 octets
//!              received frames          transmitted frames        two areas: two threads never meet
//!
//!   fill        we -> kernel   chunks for frames to come          receive  kernel -> we  frames that came
//!   transmit    we -> kernel   frames to go                       completion  kernel -> we  chunks that are free again
//!
//!   ring     producer(u32)  consumer(u32)  flags(u32)  entries, a power of two
//! ```
//!
//! The one who writes entries moves `producer` behind them, the one who reads them moves `consumer`.
#![allow(unsafe_code)]

use std::{
    io,
    marker::PhantomData,
    mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// Memory mapped into this process, until it is dropped.
struct Mapping {
    start: *mut u8,
    octets: usize,
}

// SAFETY: a mapping is not bound to a thread; what is done with its octets is up to its owners.
unsafe impl Send for Mapping {}
// SAFETY: sharing it gives no access by itself; an area or a ring says why its own access is alone.
unsafe impl Sync for Mapping {}

/// One way's part of the memory. Only this value reaches it on our side.
pub(crate) struct Area {
    mapping: Arc<Mapping>,
    /// Where it begins in the memory.
    start: usize,
    octets: usize,
}

/// The memory of an AF_XDP socket.
pub(crate) struct Memory {
    /// For received frames.
    pub(crate) received: Area,
    /// For transmitted frames.
    pub(crate) transmitted: Area,
}

/// What the entries of a ring are.
///
/// # Safety
/// Implemented for what the kernel puts there, for which every pattern of bits is a value.
pub(crate) unsafe trait Entry: Copy {}

// SAFETY: an address, of the fill and completion rings.
unsafe impl Entry for u64 {}
// SAFETY: a descriptor, of the receive and transmit rings: three integers.
unsafe impl Entry for libc::xdp_desc {}

/// A ring, mapped.
struct Ring<T> {
    mapping: Mapping,
    offset: libc::xdp_ring_offset,
    entries: u32,
    kind: PhantomData<T>,
}

/// A ring that we write: fill, transmit.
pub(crate) struct Producer<T> {
    ring: Ring<T>,
    /// The next entry to write.
    next: u32,
    /// Entries that are known to be free.
    free: u32,
}

/// A ring that we read: receive, completion.
pub(crate) struct Consumer<T> {
    ring: Ring<T>,
    /// The next entry to read.
    next: u32,
    /// Entries that are known to be filled.
    ready: u32,
}

impl Memory {
    /// Two areas of that size, which is a whole number of pages.
    pub(crate) fn new(octets_each: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapping = Arc::new(Mapping::new(octets_each * 2, flags, -1, 0)?);
        let area = |start| Area {
            mapping: mapping.clone(),
            start,
            octets: octets_each,
        };
        Ok(Self {
            received: area(0),
            transmitted: area(octets_each),
        })
    }

    /// Where it lies in this process, and its size: as the kernel is told.
    pub(crate) fn place(&self) -> (u64, u64) {
        let mapping = &self.received.mapping;
        (mapping.start as u64, mapping.octets as u64)
    }
}

impl Area {
    /// Addresses of its chunks.
    pub(crate) fn chunks(&self, chunk_octets: usize) -> impl Iterator<Item = u64> + use<> {
        (self.start..self.start + self.octets)
            .step_by(chunk_octets)
            .map(|address| address as u64)
    }

    /// Copies what lies at an address into the whole of `room`. False when it is not in this area.
    #[must_use]
    pub(crate) fn copy_out(&self, address: u64, room: &mut [u8]) -> bool {
        let Some(from) = self.at(address, room.len()) else {
            return false;
        };
        // SAFETY: `at` says that so many octets lie there; `room` is ours alone and no part of the mapping,
        // which nobody else can name. A frame that the kernel has handed over it leaves alone.
        unsafe { ptr::copy_nonoverlapping(from, room.as_mut_ptr(), room.len()) };
        true
    }

    /// Copies octets to an address. False when they do not fit into this area there.
    #[must_use]
    pub(crate) fn copy_in(&mut self, address: u64, octets: &[u8]) -> bool {
        let Some(to) = self.at(address, octets.len()) else {
            return false;
        };
        // SAFETY: `at` says that there is room for so many octets; only this value, lent to us alone, reaches
        // them in this process, and `octets` is no part of the mapping.
        unsafe { ptr::copy_nonoverlapping(octets.as_ptr(), to, octets.len()) };
        true
    }

    fn at(&self, address: u64, octets: usize) -> Option<*mut u8> {
        let address = usize::try_from(address).ok()?;
        let inside = address.checked_sub(self.start)?;
        (inside.checked_add(octets)? <= self.octets).then(|| {
            // SAFETY: the area lies inside the mapping, and the address in the area.
            unsafe { self.mapping.start.add(address) }
        })
    }
}

impl<T: Entry> Producer<T> {
    /// Maps the ring that the kernel has at `page_offset` of the socket.
    pub(crate) fn new(
        socket: BorrowedFd<'_>,
        page_offset: i64,
        offset: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(socket, page_offset, offset, entries)?,
            next: 0,
            free: 0,
        })
    }

    /// Count of entries that may be pushed.
    pub(crate) fn free(&mut self) -> u32 {
        self.free = self.ring.entries - self.waiting();
        self.free
    }

    /// Writes an entry, which the kernel sees after `publish`. False when the ring is full.
    #[must_use]
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.free == 0 && self.free() == 0 {
            return false;
        }
        // SAFETY: the entry at `next` is free: the kernel reads none behind `producer`, and has read the
        // one that was here before.
        unsafe { ptr::write(self.ring.entry(self.next), entry) };
        self.next = self.next.wrapping_add(1);
        self.free -= 1;
        true
    }

    /// Hands what was pushed to the kernel.
    pub(crate) fn publish(&self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Count of entries that were pushed and that the kernel has not taken.
    pub(crate) fn waiting(&self) -> u32 {
        let taken = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(taken).min(self.ring.entries)
    }

    /// Whether the kernel sleeps until it is called (XDP_RING_NEED_WAKEUP).
    pub(crate) fn sleeps(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Entry> Consumer<T> {
    /// Maps the ring that the kernel has at `page_offset` of the socket.
    pub(crate) fn new(
        socket: BorrowedFd<'_>,
        page_offset: i64,
        offset: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(socket, page_offset, offset, entries)?,
            next: 0,
            ready: 0,
        })
    }

    /// The entry that lies `ahead` of the next one, if the kernel has written it.
    pub(crate) fn peek(&mut self, ahead: u32) -> Option<T> {
        if ahead >= self.ready {
            let written = self.ring.producer().load(Ordering::Acquire);
            self.ready = written.wrapping_sub(self.next).min(self.ring.entries);
        }
        (ahead < self.ready).then(|| {
            // SAFETY: the kernel has written this entry (acquired above) and writes it again only after
            // `release`.
            unsafe { ptr::read(self.ring.entry(self.next.wrapping_add(ahead))) }
        })
    }

    /// Takes the next entry.
    pub(crate) fn take(&mut self) -> Option<T> {
        let entry = self.peek(0)?;
        self.next = self.next.wrapping_add(1);
        self.ready -= 1;
        Some(entry)
    }

    /// Gives what was taken back to the kernel, to be written again.
    pub(crate) fn release(&self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

impl<T> Ring<T> {
    fn new(
        socket: BorrowedFd<'_>,
        page_offset: i64,
        offset: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let octets = offset.desc as usize + entries as usize * mem::size_of::<T>();
        let mapping = Mapping::new(octets, libc::MAP_SHARED, socket.as_raw_fd(), page_offset)?;
        Ok(Self {
            mapping,
            offset,
            entries,
            kind: PhantomData,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offset.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offset.consumer)
    }

    fn flags(&self) -> &AtomicU32 {
        self.word(self.offset.flags)
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel said (XDP_MMAP_OFFSETS) that an aligned 32-bit word lies there, before the entries
        // and so inside the mapping; both sides use it as an atomic word.
        unsafe { AtomicU32::from_ptr(self.mapping.start.add(offset as usize).cast()) }
    }

    /// The place of an entry; numbers run on and wrap.
    fn entry(&self, number: u32) -> *mut T {
        let place = (number & (self.entries - 1)) as usize;
        // SAFETY: entries begin at `desc`, aligned, and the mapping was made long enough for all of them;
        // their count is a power of two, so `place` is below it.
        unsafe {
            let first = self
                .mapping
                .start
                .add(self.offset.desc as usize)
                .cast::<T>();
            first.add(place)
        }
    }
}

impl Mapping {
    fn new(octets: usize, flags: i32, descriptor: i32, page_offset: i64) -> io::Result<Self> {
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                octets,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_POPULATE,
                descriptor,
                page_offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
            octets,
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the map that `new` made, of that length, and nothing in it is lent any more. The kernel
        // holds the pages of a registered memory by itself as long as it needs them.
        unsafe { libc::munmap(self.start.cast(), self.octets) };
    }
}
