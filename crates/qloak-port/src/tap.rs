//! A TAP interface as a port: the host's own stack is the other side.
//!
//! Each read and write of the device is one frame, without anything before it (IFF_NO_PI, no virtio
//! header): the kernel cuts super-frames and completes checksums before it hands a frame over. The
//! interface goes with the port unless `ip tuntap` made it. It may lie in another network namespace.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use crate::{
    Batch, Counters, Kind, Port, PortError, Sizes, TapConfig,
    counters::Shared,
    interface::{self, refused},
    limits, sys,
};

/// A TAP interface as a port.
#[derive(Clone)]
pub(crate) struct TapPort {
    tap: Arc<Tap>,
    octets_max: usize,
}

/// What the handles share.
struct Tap {
    name: String,
    mac: [u8; 6],
    device: File,
    counters: Shared,
}

impl TapPort {
    /// Makes the interface, or attaches to one that `ip tuntap` made.
    pub(crate) fn open(config: &TapConfig, sizes: &Sizes) -> Result<Self, PortError> {
        let (device, mac) =
            interface::within(&config.interface, config.namespace.as_deref(), || {
                make(config)
            })?;
        Ok(Self {
            tap: Arc::new(Tap {
                name: config.interface.clone(),
                mac,
                device,
                counters: Shared::default(),
            }),
            octets_max: sizes.octets_max,
        })
    }

    fn error(&self, what: &'static str, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::EBADFD | libc::EIO) => PortError::Gone {
                interface: self.tap.name.clone(),
            },
            _ => refused(&self.tap.name, what, error),
        }
    }
}

/// The device and the interface's address, made in the namespace of the calling thread.
fn make(config: &TapConfig) -> Result<(File, [u8; 6]), PortError> {
    let name = &config.interface;
    let kernel_name = interface::name(name)?;
    let device = sys::tun::device().map_err(|error| refused(name, "open /dev/net/tun", error))?;
    sys::tun::attach(&device, kernel_name).map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => PortError::InUse {
            interface: name.clone(),
        },
        Some(libc::EINVAL) => PortError::NotTap {
            interface: name.clone(),
        },
        _ => refused(name, "make a TAP interface", error),
    })?;
    interface::bring_up(name, kernel_name, config.mtu, config.up)?;
    let ask = || {
        let socket = sys::interface::socket()?;
        sys::interface::Interface::new(socket.as_fd(), kernel_name).hardware()
    };
    let (_, mac) = ask().map_err(|error| refused(name, "read its address", error))?;
    Ok((device, mac))
}

impl Port for TapPort {
    fn name(&self) -> &str {
        &self.tap.name
    }

    fn kind(&self) -> Kind {
        Kind::Tap
    }

    fn mac(&self) -> Option<[u8; 6]> {
        Some(self.tap.mac)
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let (mut frames, mut octets) = (0, 0);
        while let Some(room) = batch.spare_octets() {
            match (&self.tap.device).read(room) {
                Ok(length) if (limits::FRAME_OCTETS_MIN..=self.octets_max).contains(&length) => {
                    batch.commit(length);
                    frames += 1;
                    octets += length as u64;
                }
                Ok(_) => self.tap.counters.malformed(1),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => break,
                    Some(libc::EINTR) => {}
                    // The frame does not fit the room, and is gone.
                    Some(libc::EFAULT | libc::EINVAL) => self.tap.counters.malformed(1),
                    _ => return Err(self.error("receive", error)),
                },
            }
        }
        self.tap.counters.received(frames, octets);
        Ok(frames as usize)
    }

    #[expect(
        clippy::unused_io_amount,
        reason = "the device takes a frame whole or not at all"
    )]
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let (mut frames, mut octets, mut dropped) = (0, 0, 0);
        for frame in batch.frames() {
            match (&self.tap.device).write(frame.octets()) {
                Ok(_) => {
                    frames += 1;
                    octets += frame.len() as u64;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => break,
                    // Too short, too long, or the interface is down: it would never be taken.
                    Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO) => dropped += 1,
                    _ => return Err(self.error("transmit", error)),
                },
            }
        }
        batch.drop_front((frames + dropped) as usize);
        self.tap.counters.transmitted(frames, octets);
        self.tap.counters.transmit_dropped(dropped);
        Ok((frames + dropped) as usize)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.device.as_fd())
    }

    fn counters(&self) -> Counters {
        self.tap.counters.read()
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(self.clone()))
    }

    fn finished(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
