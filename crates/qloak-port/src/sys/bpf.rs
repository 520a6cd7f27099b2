//! The XDP program of an AF_XDP port, made without a compiler: bpf(2), linux/bpf.h.
//!
//! ```text
//!   r2 = context.rx_queue_index
//!   r1 = the map from queue to socket
//!   r3 = XDP_PASS                            what is returned when the queue has no socket
//!   return bpf_redirect_map(r1, r2, r3)
//! ```
//!
//! It is attached by a link. The kernel takes it off when the link's descriptor is closed, so also when
//! this process dies: no program is ever left behind.
#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_long},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

// Commands of bpf(2).
const MAP_CREATE: c_long = 0;
const MAP_UPDATE: c_long = 2;
const PROGRAM_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;

const MAP_OF_SOCKETS: u32 = 17; // BPF_MAP_TYPE_XSKMAP
const PROGRAM_OF_XDP: u32 = 6; // BPF_PROG_TYPE_XDP
const ATTACH_XDP: u32 = 37; // BPF_XDP
const HAS_FRAGMENTS: u32 = 1 << 5; // BPF_F_XDP_HAS_FRAGS

const XDP_PASS: i32 = 2;
const QUEUE_OFFSET: i16 = 16; // of rx_queue_index in struct xdp_md
const REDIRECT_MAP: i32 = 51; // number of the helper bpf_redirect_map

/// Where in the kernel a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the driver, before there is an sk_buff (XDP_FLAGS_DRV_MODE).
    Driver,
    /// Behind it, for every driver (XDP_FLAGS_SKB_MODE).
    Generic,
}

/// A map from the number of a receive queue to the socket that gets its frames.
pub(crate) struct SocketMap(OwnedFd);

/// The program, loaded.
pub(crate) struct Program(OwnedFd);

/// The program on an interface, until this is dropped.
pub(crate) struct Link {
    _closed_with_it: OwnedFd,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_octets: u32,
    value_octets: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: c_int,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_octets: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[repr(C)]
struct LinkCreate {
    program: c_int,
    interface: c_int,
    attach: u32,
    flags: u32,
}

impl SocketMap {
    /// A map with room for queue 0.
    pub(crate) fn new() -> io::Result<Self> {
        let create = MapCreate {
            kind: MAP_OF_SOCKETS,
            key_octets: 4,
            value_octets: 4,
            entries: 1,
        };
        // SAFETY: the structure is that of the command and holds no pointer.
        let map = unsafe { bpf(MAP_CREATE, &create) }?;
        // SAFETY: the descriptor was just made and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(map) }))
    }

    /// The socket gets the frames of queue 0.
    pub(crate) fn put(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let (queue, socket) = (0_u32, socket.as_raw_fd());
        let update = MapUpdate {
            map: self.0.as_raw_fd(),
            padding: 0,
            key: ptr::from_ref(&queue) as u64,
            value: ptr::from_ref(&socket) as u64,
            flags: 0,
        };
        // SAFETY: the structure is that of the command; key and value live on and have the four octets
        // each that the map was made with.
        unsafe { bpf(MAP_UPDATE, &update) }.map(drop)
    }
}

impl Program {
    /// Loads the program; `fragments` says whether it is to see frames that come in several pieces.
    pub(crate) fn load(map: &SocketMap, fragments: bool) -> io::Result<Self> {
        let instructions = redirect(map.0.as_raw_fd());
        let mut name = [0; 16];
        name[..5].copy_from_slice(b"qloak");
        let load = ProgramLoad {
            kind: PROGRAM_OF_XDP,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            licence: c"Apache-2.0 OR MIT".as_ptr() as u64,
            log_level: 0,
            log_octets: 0,
            log: 0,
            kernel_version: 0,
            flags: if fragments { HAS_FRAGMENTS } else { 0 },
            name,
            interface: 0,
            attach: ATTACH_XDP,
        };
        // SAFETY: the structure is that of the command; the instructions live on and are as many as it
        // says, the licence ends with a zero, and there is no log.
        let program = unsafe { bpf(PROGRAM_LOAD, &load) }?;
        // SAFETY: the descriptor was just made and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(program) }))
    }

    /// Attaches it to the interface of that number in the namespace of the calling thread.
    pub(crate) fn attach(&self, interface: c_int, place: Place) -> io::Result<Link> {
        let create = LinkCreate {
            program: self.0.as_raw_fd(),
            interface,
            attach: ATTACH_XDP,
            flags: match place {
                Place::Generic => 1 << 1,
                Place::Driver => 1 << 2,
            },
        };
        // SAFETY: the structure is that of the command and holds no pointer.
        let link = unsafe { bpf(LINK_CREATE, &create) }?;
        // SAFETY: the descriptor was just made and nobody else has it.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        Ok(Link {
            _closed_with_it: link,
        })
    }
}

/// The instructions of the program.
///
/// ```text
///   operation(8) destination(4) source(4) offset(16) value(32)       (RFC 9669, 3.1; little-endian)
/// ```
fn redirect(map: c_int) -> [u64; 6] {
    let instruction = |operation: u8, destination: u8, source: u8, offset: i16, value: i32| {
        u64::from(operation)
            | u64::from(destination) << 8
            | u64::from(source) << 12
            | u64::from(offset as u16) << 16
            | u64::from(value as u32) << 32
    };
    [
        instruction(0x61, 2, 1, QUEUE_OFFSET, 0), // r2 = 32 bits at r1 + offset
        instruction(0x18, 1, 1, 0, map),          // r1 = map, by its descriptor; takes two
        0,
        instruction(0xb7, 3, 0, 0, XDP_PASS),     // r3 = value
        instruction(0x85, 0, 0, 0, REDIRECT_MAP), // r0 = call
        instruction(0x95, 0, 0, 0, 0),            // return r0
    ]
}

/// # Safety
/// `attributes` must begin as `union bpf_attr` does for the command, and its pointers must hold.
unsafe fn bpf<T>(command: c_long, attributes: &T) -> io::Result<c_int> {
    // SAFETY: the structure lives on and has that many octets; the rest is the caller's promise.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            ptr::from_ref(attributes),
            mem::size_of::<T>(),
        )
    };
    match c_int::try_from(done) {
        Ok(done) if done >= 0 => Ok(done),
        _ => Err(io::Error::last_os_error()),
    }
}
