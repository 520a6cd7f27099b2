//! The CPU's counter of cycles, by way of the kernel (perf_event_open, man page section 2).
#![allow(unsafe_code)]

use std::{
    fs::File,
    io::Read,
    mem::size_of,
    os::fd::{FromRawFd, RawFd},
};

/// The first published form of the kernel's `perf_event_attr`: 64 octets, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config_1: u64,
}

const HARDWARE: u32 = 0;
const CPU_CYCLES: u64 = 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// Cycles of this thread in user mode.
pub(crate) struct Counter(File);

impl Counter {
    /// None where the kernel or the machine has no such counter for us.
    pub(crate) fn open() -> Option<Self> {
        let attributes = Attributes {
            kind: HARDWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_CYCLES,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        let (this_thread, any_core, no_group, no_flags) = (0, -1, -1, 0_u64);
        // SAFETY: the kernel reads `size` octets at the pointer, which is the size of the value
        // there, and keeps nothing of it.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                any_core,
                no_group,
                no_flags,
            )
        };
        let descriptor = RawFd::try_from(descriptor).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        let counter = Self(unsafe { File::from_raw_fd(descriptor) });
        // Some machines let one open the counter and then never count.
        let before = counter.read();
        (0..10_000_u32).for_each(|n| {
            std::hint::black_box(n);
        });
        (counter.read() > before).then_some(counter)
    }

    /// Cycles since it was opened.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        let mut octets = [0; 8];
        // A counter that was opened can be read; were it not so, all figures would be 0.
        let _ = (&self.0).read_exact(&mut octets);
        u64::from_ne_bytes(octets)
    }
}
