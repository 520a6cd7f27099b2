//! A packet socket as a port: an existing interface, below the host's own stack.
//!
//! ```text
//!   interface -> ring (TPACKET_V2) ------------------> finish checksum, put VLAN tag back -> batch
//!                  \-> queue (longer than a slot) ---> cut super-frame into frames -------> batch
//!   batch -> sendmmsg -> interface
//! ```
//!
//! Frames for every address are heard, those that this host sends itself are not. Receive offloads of
//! the interface (GRO, LRO) are switched off; what the sender at the far end of a virtual interface left to hardware
//! (checksums, segmentation) is finished here, in `offload`, so that TCP passes without a setting at
//! the far end. The kernel's own stack hears the interface too: give it no address.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::{
    AfPacketConfig, Batch, Counters, Kind, Port, PortError, Sizes,
    counters::Shared,
    interface::{self, Ready, refused},
    limits,
    offload::{VIRTIO_OCTETS, Virtio},
    super_frame::{SuperFrame, put_tag},
    sys::{
        packet::{Hear, PacketSocket}, // tidy: allow packet
        ring::{Ring, Slot},
    },
};

/// A packet socket as a port.
#[derive(Clone)]
pub(crate) struct AfPacketPort {
    line: Arc<Line>,
    /// Why it is here instead of a port of another kind, if it is.
    reason: Option<Arc<str>>,
}

/// What the handles share.
struct Line {
    name: String,
    mac: [u8; 6],
    mtu: usize,
    index: i32,
    receive: PacketSocket,
    transmit: PacketSocket,
    receiver: Mutex<Receiver>,
    counters: Shared,
    /// Frames that the kernel said it dropped; it forgets the number when it is asked.
    drops: AtomicU64,
    /// The interface was down when it was last seen.
    down: AtomicBool,
}

/// What only the receiving thread touches.
struct Receiver {
    ring: Ring,
    octets_max: usize,
    long: SuperFrame,
    /// Nothing was there the last time.
    idle: bool,
}

impl AfPacketPort {
    /// Opens a packet socket on an interface.
    pub(crate) fn open(config: &AfPacketConfig, sizes: &Sizes) -> Result<Self, PortError> {
        let line = interface::within(&config.interface, || make(config, sizes))?;
        Ok(Self {
            line: Arc::new(line),
            reason: None,
        })
    }

    /// The same port, which says why it is here instead of another kind.
    pub(crate) fn because(self, reason: &str) -> Self {
        Self {
            reason: Some(reason.into()),
            ..self
        }
    }
}

/// Everything that is made in the namespace of the calling thread.
fn make(config: &AfPacketConfig, sizes: &Sizes) -> Result<Line, PortError> {
    let name = &config.interface.name;
    let fail = |what| move |error| refused(name, what, error);
    let open = || PacketSocket::new().map_err(fail("open a packet socket"));
    let (receive, transmit) = (open()?, open()?);
    let Ready { index, mac, mtu } = interface::ready(receive.as_fd(), &config.interface)?;
    let hear = match config.ethertype {
        None => {
            interface::receive_offloads_off(receive.as_fd(), name)?;
            Hear::All
        }
        Some(ethertype) => Hear::EtherType(ethertype),
    };
    let ring = (|| {
        receive.version_2()?;
        receive.virtio_header()?;
        receive.copy_long_frames()?;
        receive.ignore_outgoing()?;
        receive.buffers(limits::SOCKET_BUFFER_OCTETS)?;
        transmit.buffers(limits::SOCKET_BUFFER_OCTETS)?;
        Ring::new(&receive, config.ring_octets, sizes.octets_max)
    })()
    .map_err(fail("make a receive ring"))?;
    receive
        .promiscuous(index)
        .map_err(fail("hear every address"))?;
    transmit
        .bind(index, Hear::Nothing)
        .map_err(fail("bind to it"))?;
    // Last, so that the first frame finds everything in place.
    receive.bind(index, hear).map_err(fail("bind to it"))?;
    Ok(Line {
        name: name.clone(),
        mac,
        mtu,
        index,
        receive,
        transmit,
        receiver: Mutex::new(Receiver {
            ring,
            octets_max: sizes.octets_max,
            long: SuperFrame::new(),
            idle: true,
        }),
        counters: Shared::default(),
        drops: AtomicU64::new(0),
        down: AtomicBool::new(false),
    })
}

impl Line {
    /// After the socket said that something is wrong: whether the interface is still there.
    fn check(&self, error: io::Error) -> Result<(), PortError> {
        interface::check(self.receive.as_fd(), &self.name, self.index, error)
    }
}

impl Port for AfPacketPort {
    fn name(&self) -> &str {
        &self.line.name
    }

    fn kind(&self) -> Kind {
        Kind::AfPacket
    }

    fn describe(&self) -> String {
        match &self.reason {
            None => self.kind().as_str().to_owned(),
            Some(reason) => format!("{} ({reason})", self.kind().as_str()),
        }
    }

    fn mac(&self) -> Option<[u8; 6]> {
        Some(self.line.mac)
    }

    fn frame_octets_max(&self) -> Option<usize> {
        Some(self.line.mtu + interface::HEADER_OCTETS)
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let line = &*self.line;
        let Ok(mut receiver) = line.receiver.try_lock() else {
            return Ok(0);
        };
        let before = batch.len();
        while !batch.is_full() && receiver.next(line, batch) {}
        let new = batch.frames().get(before..).unwrap_or_default();
        let was_idle = std::mem::replace(&mut receiver.idle, new.is_empty());
        drop(receiver);
        let octets = new.iter().map(|frame| frame.len() as u64).sum();
        line.counters.received(new.len() as u64, octets);
        if new.is_empty() && was_idle {
            // An error that nobody takes would make every wait end at once. It is still there when a wait has
            // brought nothing: no need to ask behind each batch.
            let waiting = line
                .receive
                .error()
                .map_err(|error| refused(&line.name, "use it", error))?;
            if let Some(error) = waiting {
                line.down.store(true, Ordering::Relaxed);
                line.check(error)?;
            } else if line.down.load(Ordering::Relaxed) {
                // It may have gone away after it went down, which gives no second error.
                line.check(io::Error::from_raw_os_error(libc::ENETDOWN))?;
            }
        } else if !new.is_empty() && line.down.load(Ordering::Relaxed) {
            line.down.store(false, Ordering::Relaxed);
        }
        Ok(new.len())
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let line = &*self.line;
        let (mut done, mut frames, mut octets, mut dropped) = (0, 0, 0, 0);
        let mut outcome = Ok(());
        while done < batch.len() {
            let rest = batch.frames().get(done..).unwrap_or_default();
            match line.transmit.send(rest) {
                Ok(0) => break,
                Ok(sent) => {
                    frames += sent;
                    octets += rest
                        .iter()
                        .take(sent)
                        .map(|frame| frame.len() as u64)
                        .sum::<u64>();
                    done += sent;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => break,
                    // Too long or too short for the interface: it would never be taken.
                    Some(libc::EMSGSIZE | libc::EINVAL) => {
                        dropped += 1;
                        done += 1;
                    }
                    _ => {
                        // Down: the frames are lost as on a line that is cut.
                        outcome = line.check(error);
                        dropped += rest.len();
                        done += rest.len();
                    }
                },
            }
        }
        batch.drop_front(done);
        line.counters.transmitted(frames as u64, octets);
        line.counters.transmit_dropped(dropped as u64);
        outcome.map(|()| done)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.line.receive.as_fd())
    }

    fn counters(&self) -> Counters {
        let drops = self.line.receive.drops().unwrap_or(0);
        let drops = self.line.drops.fetch_add(drops, Ordering::Relaxed) + drops;
        let mut counters = self.line.counters.read();
        counters.receive_dropped += drops;
        counters
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(self.clone()))
    }

    fn finished(&self) -> bool {
        false
    }
}

impl Receiver {
    /// Brings one frame more into the batch, or drops one. False when there is none.
    fn next(&mut self, line: &Line, batch: &mut Batch) -> bool {
        if let Some(sound) = self.long.next(batch, self.octets_max) {
            if !sound {
                line.counters.malformed(1);
            }
            return true;
        }
        let Some(slot) = self.ring.peek() else {
            return false;
        };
        let virtio = Virtio::parse(&slot.virtio);
        if slot.status & libc::TP_STATUS_COPY != 0 {
            let (tag, octets) = (slot.tag, slot.wire_octets);
            self.ring.release();
            self.take_long(line, octets, tag);
        } else if slot.octets.len() < slot.wire_octets {
            // Longer than a slot, and the queue was full.
            line.counters.receive_dropped(1);
            self.ring.release();
        } else if virtio.is_super() {
            // A super-frame so short that a slot holds it.
            if !self.long.take(slot.octets, slot.tag, virtio) {
                line.counters.malformed(1);
            }
            self.ring.release();
        } else {
            if !push_slot(batch, &slot, virtio, self.octets_max) {
                line.counters.malformed(1);
            }
            self.ring.release();
        }
        true
    }

    /// Takes a frame that no slot held out of the queue.
    fn take_long(&mut self, line: &Line, octets: usize, tag: Option<(u16, u16)>) {
        let sound = match line.receive.take(self.long.room()) {
            // Otherwise it is longer than the port's size and no super-frame, or one that cannot be cut.
            Ok(got) if got == VIRTIO_OCTETS + octets => self.long.begin(got, tag),
            _ => false,
        };
        if !sound {
            line.counters.malformed(1);
        }
    }
}

/// Copies a frame from its slot, puts its VLAN tag back and completes its checksum.
fn push_slot(batch: &mut Batch, slot: &Slot<'_>, virtio: Virtio, octets_max: usize) -> bool {
    let shift = if slot.tag.is_some() { 4 } else { 0 };
    let octets = slot.octets.len() + shift;
    if slot.octets.len() < limits::FRAME_OCTETS_MIN || octets > octets_max {
        return false;
    }
    let Some(room) = batch.spare_octets().and_then(|room| room.get_mut(..octets)) else {
        return false;
    };
    match slot.tag {
        None => room.copy_from_slice(slot.octets),
        Some(tag) => {
            let (addresses, rest) = slot.octets.split_at(12);
            room[..12].copy_from_slice(addresses);
            put_tag(room, tag);
            room[16..].copy_from_slice(rest);
        }
    }
    let sound = virtio.complete(room, shift);
    if sound {
        batch.commit(octets);
    }
    sound
}

#[cfg(test)]
mod tests;
