//! An AF_XDP socket as a port: an existing interface, before the kernel's own stack.
//!
//! ```text
//!   interface -> XDP program -> receive ring -> one frame from its fragments -> finish checksum -> batch
//!                     |   ^------- fill ring <- chunks that were read
//!                     \-> queue without a socket: the stack
//!   batch -> descriptors in chunks -> transmit ring -> interface -> completion ring -> free chunks
//! ```
//!
//! Every frame of the interface is ours: the host's own stack hears nothing while the port is open. How
//! it is opened, mode by mode, stands in `af_xdp/make.rs`; the rings in `sys/umem.rs`.
//!
//! An AF_XDP socket has no virtio header. That a checksum is unfinished `checksum` finds out by itself. What
//! else the far end of a veth leaves to hardware cannot be seen here, and `describe` says so: in skb mode its
//! super-frames are dropped and counted, and the VLAN tags of its VLAN interfaces are lost.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use libc::xdp_desc;

use crate::{
    AfPacketConfig, AfXdpConfig, Batch, Counters, Kind, Port, PortError, Sizes, XdpMode,
    af_packet::AfPacketPort,
    checksum,
    counters::Shared,
    interface, limits,
    sys::{
        bpf::Link,
        packet::PacketSocket,
        umem::{Area, Consumer, Producer},
        xdp::XdpSocket,
    },
};

mod make;

/// Octets of a chunk as the rings count them.
const CHUNK: usize = limits::XDP_CHUNK_OCTETS;

/// An AF_XDP socket as a port.
#[derive(Clone)]
pub(crate) struct AfXdpPort {
    line: Arc<Line>,
}

/// What the handles share.
struct Line {
    /// First, so that the program is gone before its socket is.
    _link: Link,
    socket: XdpSocket,
    /// Asked for the interface; it also holds it in the state of hearing every address.
    asked: PacketSocket,
    name: String,
    mac: [u8; 6],
    mtu: usize,
    index: i32,
    mode: XdpMode,
    /// It is one end of a veth.
    paired: bool,
    busy_poll: bool,
    receiver: Mutex<Receiver>,
    sender: Mutex<Sender>,
    counters: Shared,
    /// The interface was down when it was last seen.
    down: AtomicBool,
}

/// What only the receiving thread touches.
struct Receiver {
    area: Area,
    ring: Consumer<xdp_desc>,
    fill: Producer<u64>,
    octets_max: usize,
}

/// What only the transmitting thread touches.
struct Sender {
    area: Area,
    ring: Producer<xdp_desc>,
    completion: Consumer<u64>,
    /// Chunks that hold no frame.
    free: Vec<u64>,
    octets_max: usize,
}

/// What became of a frame that was to be transmitted.
#[derive(PartialEq, Eq)]
enum Put {
    Queued,
    /// There is no room now.
    Full,
    /// It would never be taken.
    Refused,
}

/// Opens an AF_XDP port, or an AF_PACKET port on the same interface where AF_XDP is refused and the
/// configuration allows that.
pub(crate) fn open(config: &AfXdpConfig, sizes: &Sizes) -> Result<Box<dyn Port>, PortError> {
    match AfXdpPort::open(config, sizes) {
        Err(PortError::Xdp { reason, .. }) if config.fallback => {
            let instead = AfPacketConfig::new(config.interface.clone());
            let port = AfPacketPort::open(&instead, sizes)?;
            Ok(Box::new(port.because(&format!("AF_XDP refused: {reason}"))))
        }
        opened => Ok(Box::new(opened?)),
    }
}

impl AfXdpPort {
    /// Opens a socket in the first mode that works.
    fn open(config: &AfXdpConfig, sizes: &Sizes) -> Result<Self, PortError> {
        let line = interface::within(&config.interface, || make::line(config, sizes))?;
        Ok(Self {
            line: Arc::new(line),
        })
    }

    /// The mode that worked.
    pub(crate) fn mode(&self) -> XdpMode {
        self.line.mode
    }
}

impl Line {
    /// Remembers whether the interface is down, and says so when it is gone.
    fn heed(&self, called: io::Result<()>) -> Result<(), PortError> {
        let Err(error) = called else {
            if self.down.load(Ordering::Relaxed) {
                self.down.store(false, Ordering::Relaxed);
            }
            return Ok(());
        };
        match error.raw_os_error() {
            // EOPNOTSUPP: a kernel before 5.11, which has no such call.
            Some(
                libc::EAGAIN
                | libc::EBUSY
                | libc::ENOBUFS
                | libc::ENOMEM
                | libc::EINTR
                | libc::EOPNOTSUPP,
            ) => Ok(()),
            _ => {
                self.down.store(true, Ordering::Relaxed);
                interface::check(self.asked.as_fd(), &self.name, self.index, error)
            }
        }
    }
}

impl Port for AfXdpPort {
    fn name(&self) -> &str {
        &self.line.name
    }

    fn kind(&self) -> Kind {
        Kind::AfXdp
    }

    fn describe(&self) -> String {
        let far_end = match (self.line.paired, self.mode()) {
            (false, _) => "",
            (true, XdpMode::Skb) => {
                "; the far end needs `ethtool -K ITS-NAME tso off gso off txvlan off`"
            }
            (true, _) => {
                "; the far end needs `ethtool -K ITS-NAME txvlan off` if it has VLAN interfaces"
            }
        };
        let (kind, mode) = (self.kind().as_str(), self.mode().as_str());
        format!("{kind} ({mode}{far_end})")
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
        receiver.ring.release();
        receiver.fill.publish();
        let sleeps = receiver.fill.sleeps();
        drop(receiver);
        let new = batch.frames().get(before..).unwrap_or_default();
        let octets = new.iter().map(|frame| frame.len() as u64).sum();
        line.counters.received(new.len() as u64, octets);
        if new.is_empty() || sleeps || line.busy_poll {
            line.heed(line.socket.wake_receive())?;
        }
        Ok(new.len())
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let line = &*self.line;
        let Ok(mut sender) = line.sender.try_lock() else {
            return Ok(0);
        };
        sender.reclaim();
        if line.down.load(Ordering::Relaxed) {
            line.heed(line.socket.wake_transmit())?;
        }
        let down = line.down.load(Ordering::Relaxed);
        let (mut done, mut frames, mut octets, mut dropped) = (0, 0_u64, 0, 0);
        for frame in batch.frames() {
            let put = if down {
                Put::Refused
            } else {
                sender.put(frame.octets())
            };
            match put {
                Put::Full => break,
                Put::Refused => dropped += 1,
                Put::Queued => {
                    frames += 1;
                    octets += frame.len() as u64;
                }
            }
            done += 1;
        }
        batch.drop_front(done);
        let mut lost = 0;
        let outcome = sender.flush(line, &mut lost);
        line.counters
            .transmitted(frames.saturating_sub(lost), octets);
        line.counters.transmit_dropped(dropped + lost);
        outcome.map(|()| done)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.line.socket.as_fd())
    }

    fn counters(&self) -> Counters {
        let mut counters = self.line.counters.read();
        if let Ok(kernel) = self.line.socket.statistics() {
            counters.receive_dropped += kernel.rx_dropped + kernel.rx_ring_full;
            counters.transmit_dropped += kernel.tx_invalid_descs;
        }
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
    /// Brings one frame more into the batch, or drops one. False when none is whole.
    fn next(&mut self, line: &Line, batch: &mut Batch) -> bool {
        let mut fragments = 1;
        loop {
            match self.ring.peek(fragments - 1) {
                None => return false,
                Some(last) if last.options & libc::XDP_PKT_CONTD == 0 => break,
                Some(_) => fragments += 1,
            }
        }
        let mut octets = 0;
        let mut sound = true;
        for _ in 0..fragments {
            let Some(fragment) = self.ring.take() else {
                break;
            };
            let end = octets + fragment.len as usize;
            sound = sound
                && batch
                    .spare_octets()
                    .and_then(|room| room.get_mut(octets..end))
                    .is_some_and(|room| self.area.copy_out(fragment.addr, room));
            octets = end;
            // There are as many chunks as the ring has entries, so that there is always room.
            let chunk = fragment.addr - fragment.addr % CHUNK as u64;
            sound &= self.fill.push(chunk);
        }
        sound &= (limits::FRAME_OCTETS_MIN..=self.octets_max).contains(&octets);
        match batch.spare_octets().and_then(|room| room.get_mut(..octets)) {
            Some(frame) if sound => {
                checksum::finish(frame);
                batch.commit(octets);
            }
            _ => line.counters.malformed(1),
        }
        true
    }
}

impl Sender {
    /// Cuts a frame into chunks and writes their descriptors, all or none.
    fn put(&mut self, octets: &[u8]) -> Put {
        // A VLAN tag is not part of the MTU.
        let tag = if octets.get(12..14) == Some(&[0x81, 0x00]) {
            4
        } else {
            0
        };
        if !(limits::FRAME_OCTETS_MIN..=self.octets_max + tag).contains(&octets.len()) {
            return Put::Refused;
        }
        let chunks = octets.len().div_ceil(CHUNK);
        if chunks > self.free.len() || chunks > self.ring.free() as usize {
            return Put::Full;
        }
        for (number, part) in octets.chunks(CHUNK).enumerate() {
            let Some(addr) = self.free.pop() else {
                return Put::Refused;
            };
            let more = number + 1 < chunks;
            let written = self.area.copy_in(addr, part)
                && self.ring.push(xdp_desc {
                    addr,
                    len: part.len() as u32,
                    options: if more { libc::XDP_PKT_CONTD } else { 0 },
                });
            if !written {
                return Put::Refused;
            }
        }
        Put::Queued
    }

    /// Hands what was written to the kernel and calls it until it has taken all of it or takes no more. What
    /// is left it takes at the next call, or when somebody waits for the port. Counts in `lost` what the
    /// interface did not take.
    fn flush(&mut self, line: &Line, lost: &mut u64) -> Result<(), PortError> {
        self.ring.publish();
        let mut waiting = self.ring.waiting();
        let most_calls = waiting + 1;
        for _ in 0..most_calls {
            if waiting == 0 || !self.ring.sleeps() {
                break;
            }
            let called = line.socket.wake_transmit();
            // Where frames are copied, this says that one was taken out of the ring and lost: no carrier, a full
            // queue.
            let took_one = line.mode != XdpMode::ZeroCopy
                && matches!(&called, Err(error) if error.raw_os_error() == Some(libc::EBUSY));
            line.heed(called)?;
            self.reclaim();
            let left = self.ring.waiting();
            if left == waiting && !took_one {
                break;
            }
            *lost += u64::from(took_one);
            waiting = left;
        }
        Ok(())
    }

    /// Takes back the chunks of frames that have gone.
    fn reclaim(&mut self) {
        while let Some(chunk) = self.completion.take() {
            self.free.push(chunk);
        }
        self.completion.release();
    }
}

#[cfg(test)]
mod tests;
