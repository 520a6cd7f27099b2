//! A TAP interface as a port: the host's own stack is the other side.
//!
//! ```text
//!   stack -> read  -> one frame: finish checksum -----------> batch
//!                  -> super-frame of up to 64 KiB: cut it --> batch, the rest with the next `receive`
//!   batch -> coalesce: a run of frames of one flow ---------> writev -> stack
//! ```
//!
//! Before each frame lies a virtio header (IFF_VNET_HDR), and the stack leaves checksums and segmentation to us
//! as far as the kernel can (`offload`), so that bulk data crosses it once in 64 KiB and not frame by frame.
//! Without `offload` each read and write is one finished frame with nothing before it (IFF_NO_PI). The
//! interface goes with the port unless `ip tuntap` made it. It may lie in another network namespace.

use std::{
    fs::File,
    io::{self, IoSlice, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex},
};

use crate::{
    Batch, Counters, Frame, Kind, Port, PortError, Sizes, TapConfig,
    coalesce::Run,
    counters::Shared,
    interface::{self, refused},
    limits,
    offload::VIRTIO_OCTETS,
    super_frame::SuperFrame,
    sys,
};

mod left;

use left::Left;

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
    /// What the kernel leaves to us.
    left: Left,
    /// What only the receiving thread touches. None when no virtio header lies before a frame.
    long: Option<Mutex<SuperFrame>>,
    counters: Shared,
}

impl TapPort {
    /// Makes the interface, or attaches to one that `ip tuntap` made.
    pub(crate) fn open(config: &TapConfig, sizes: &Sizes) -> Result<Self, PortError> {
        let tap = interface::within(&config.interface, || make(config))?;
        Ok(Self {
            tap: Arc::new(tap),
            octets_max: sizes.octets_max,
        })
    }
}

/// Everything that is made in the namespace of the calling thread.
fn make(config: &TapConfig) -> Result<Tap, PortError> {
    let name = &config.interface.name;
    let kernel_name = interface::name(name)?;
    let fail = |what| move |error| refused(name, what, error);
    let device = sys::tun::device().map_err(fail("open /dev/net/tun"))?;
    let header =
        config.offload && sys::tun::knows_header(&device).map_err(fail("ask for its features"))?;
    sys::tun::attach(&device, kernel_name, header).map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => PortError::InUse {
            interface: name.clone(),
        },
        Some(libc::EINVAL) => PortError::NotTap {
            interface: name.clone(),
        },
        _ => refused(name, "make a TAP interface", error),
    })?;
    // One that `ip tuntap` made remembers what an earlier program asked for: all of it is said anew.
    let left = (|| {
        if header {
            sys::tun::header_octets(&device, VIRTIO_OCTETS)?;
            left::settle(|flags| sys::tun::offload(&device, flags))
        } else {
            sys::tun::offload(&device, 0)?;
            Ok(Left::Nothing)
        }
    })()
    .map_err(fail("set its offloads"))?;
    interface::bring_up(&config.interface)?;
    let ask = || {
        let socket = sys::interface::socket()?;
        sys::interface::Interface::new(socket.as_fd(), kernel_name).hardware()
    };
    let (_, mac) = ask().map_err(fail("read its address"))?;
    Ok(Tap {
        name: name.clone(),
        mac,
        device,
        left,
        long: header.then(|| Mutex::new(SuperFrame::new())),
        counters: Shared::default(),
    })
}

impl Tap {
    /// Brings the next frame into the batch, which must not be full, or makes a super-frame the next that is
    /// cut. False when what came is malformed.
    fn next(
        &self,
        long: &mut SuperFrame,
        batch: &mut Batch,
        octets_max: usize,
    ) -> io::Result<bool> {
        if let Some(sound) = long.next(batch, octets_max) {
            return Ok(sound);
        }
        let got = (&self.device).read(long.room())?;
        let Some((virtio, frame)) = long.received(got) else {
            return Ok(false);
        };
        if virtio.is_super() {
            return Ok(long.begin(got, None));
        }
        Ok(
            (limits::FRAME_OCTETS_MIN..=octets_max).contains(&frame.len())
                && virtio.complete(frame, 0)
                && batch.push(frame),
        )
    }

    /// The same without virtio headers: the frame is read to where it stays.
    fn next_plain(&self, batch: &mut Batch, octets_max: usize) -> io::Result<bool> {
        let room = batch.spare_octets().unwrap_or_default();
        let got = (&self.device).read(room)?;
        let sound = (limits::FRAME_OCTETS_MIN..=octets_max).contains(&got);
        if sound {
            batch.commit(got);
        }
        Ok(sound)
    }

    /// Writes the first frames, which are not none, as one if they go together. Says how many these were.
    fn write(&self, frames: &[Frame]) -> (usize, io::Result<usize>) {
        let mut device = &self.device;
        let first = frames.first().map(Frame::octets).unwrap_or_default();
        if self.long.is_none() {
            return (1, device.write(first));
        }
        let run = if self.left.has_super_frames() {
            Run::find(frames)
        } else {
            None
        };
        match run {
            Some(run) => (run.count(), device.write_vectored(&run.parts(frames))),
            None => {
                let parts = [IoSlice::new(&[0; VIRTIO_OCTETS]), IoSlice::new(first)];
                (1, device.write_vectored(&parts))
            }
        }
    }

    fn error(&self, what: &'static str, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::EBADFD | libc::EIO) => PortError::Gone {
                interface: self.name.clone(),
            },
            _ => refused(&self.name, what, error),
        }
    }
}

impl Port for TapPort {
    fn name(&self) -> &str {
        &self.tap.name
    }

    fn kind(&self) -> Kind {
        Kind::Tap
    }

    fn describe(&self) -> String {
        format!("{} ({})", self.kind().as_str(), self.tap.left.as_str())
    }

    fn mac(&self) -> Option<[u8; 6]> {
        Some(self.tap.mac)
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let tap = &*self.tap;
        let mut long = match tap.long.as_ref().map(Mutex::try_lock) {
            None => None,
            Some(Ok(long)) => Some(long),
            Some(Err(_)) => return Ok(0),
        };
        let before = batch.len();
        let mut outcome = Ok(());
        while !batch.is_full() {
            let next = match &mut long {
                Some(long) => tap.next(long, batch, self.octets_max),
                None => tap.next_plain(batch, self.octets_max),
            };
            match next {
                Ok(true) => {}
                Ok(false) => tap.counters.malformed(1),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => break,
                    Some(libc::EINTR) => {}
                    // The frame does not fit the room, and is gone.
                    Some(libc::EFAULT | libc::EINVAL) => tap.counters.malformed(1),
                    _ => {
                        outcome = Err(tap.error("receive", error));
                        break;
                    }
                },
            }
        }
        let new = batch.frames().get(before..).unwrap_or_default();
        let octets = new.iter().map(|frame| frame.len() as u64).sum();
        tap.counters.received(new.len() as u64, octets);
        outcome.map(|()| new.len())
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let tap = &*self.tap;
        let (mut done, mut frames, mut octets) = (0, 0, 0);
        let mut outcome = Ok(());
        while done < batch.len() {
            let rest = batch.frames().get(done..).unwrap_or_default();
            let (count, written) = tap.write(rest);
            match written {
                Ok(_) => {
                    frames += count;
                    let written = rest.iter().take(count);
                    octets += written.map(|frame| frame.len() as u64).sum::<u64>();
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => break,
                    // Too short, too long, or the interface is down: it would never be taken.
                    Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO) => {}
                    _ => {
                        outcome = Err(tap.error("transmit", error));
                        break;
                    }
                },
            }
            done += count;
        }
        batch.drop_front(done);
        tap.counters.transmitted(frames as u64, octets);
        tap.counters.transmit_dropped((done - frames) as u64);
        outcome.map(|()| done)
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
