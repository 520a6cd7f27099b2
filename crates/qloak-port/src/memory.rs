//! A wire in memory: two ends in one process, a bounded lane each way.
//!
//! ```text
//!   end A  transmit -> [ filled frames ] -> receive  end B
//!                   <- [ empty frames  ] <-
//! ```
//!
//! Each lane has two rings without locks; frames go one way filled and the other way empty, so that
//! nothing is allocated once the wire stands. A full lane takes no more: that is its back-pressure. A wire whose
//! far end is not open yet keeps what it has room for. The locks around the ends of a lane are never waited for:
//! a handle that finds its twin at the same work gets nothing.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering, fence},
    },
};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    Batch, Counters, End, Kind, MemoryConfig, Port, PortError, Sizes, Waker, counters::Shared,
    limits,
};

/// The wires of this process, by name. A wire is gone when both its ends are.
static WIRES: Mutex<Vec<Weak<Wire>>> = Mutex::new(Vec::new());

/// One end of a wire in memory.
pub(crate) struct MemoryPort {
    end: Arc<Endpoint>,
    octets_max: usize,
}

impl MemoryPort {
    /// Opens one end; the wire is made if its other end has not made it yet.
    pub(crate) fn open(config: &MemoryConfig, sizes: &Sizes) -> Result<Self, PortError> {
        let mut wires = WIRES.lock().unwrap_or_else(PoisonError::into_inner);
        wires.retain(|wire| wire.strong_count() > 0);
        let known = wires
            .iter()
            .filter_map(Weak::upgrade)
            .find(|wire| wire.name == config.wire);
        let wire = match known {
            Some(wire) => wire,
            None => {
                let wire = Arc::new(Wire::new(&config.wire, config.frames, sizes.octets_max)?);
                wires.push(Arc::downgrade(&wire));
                wire
            }
        };
        drop(wires);
        Self::attach(wire, config.end, sizes)
    }

    fn attach(wire: Arc<Wire>, end: End, sizes: &Sizes) -> Result<Self, PortError> {
        if wire.open[end as usize].swap(true, Ordering::AcqRel) {
            return Err(PortError::EndInUse {
                wire: wire.name.clone(),
                end: if end == End::A { 'a' } else { 'b' },
            });
        }
        Ok(Self {
            end: Arc::new(Endpoint {
                wire,
                end,
                counters: Shared::default(),
            }),
            octets_max: sizes.octets_max,
        })
    }
}

/// Both ends of a wire that nothing else in the process can name.
///
/// # Errors
/// When the kernel gives no descriptor. `frames` out of bounds is the nearest that is within.
pub fn pair(name: &str, frames: usize, sizes: &Sizes) -> Result<[Box<dyn Port>; 2], PortError> {
    let frames = frames.clamp(
        *limits::MEMORY_FRAMES_RANGE.start(),
        *limits::MEMORY_FRAMES_RANGE.end(),
    );
    let wire = Arc::new(Wire::new(name, frames, sizes.octets_max)?);
    Ok([
        Box::new(MemoryPort::attach(wire.clone(), End::A, sizes)?),
        Box::new(MemoryPort::attach(wire, End::B, sizes)?),
    ])
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        &self.end.wire.name
    }

    fn kind(&self) -> Kind {
        Kind::Memory
    }

    fn mac(&self) -> Option<[u8; 6]> {
        None
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let lane = self.end.inbound();
        let Ok(mut far) = lane.far.try_lock() else {
            return Ok(0);
        };
        let (mut frames, mut octets, mut malformed) = (0, 0, 0);
        while !batch.is_full() {
            let Ok(frame) = far.filled.pop() else {
                // Asked to be woken first and looked again second, so that a frame that comes
                // between the two is either seen here or wakes us.
                lane.sleep();
                if !far.filled.is_empty() {
                    continue;
                }
                break;
            };
            if (limits::FRAME_OCTETS_MIN..=self.octets_max).contains(&frame.len())
                && batch.push(&frame)
            {
                frames += 1;
                octets += frame.len() as u64;
            } else {
                malformed += 1;
            }
            // The ring of empty frames is as long as there are frames, so it always has room.
            let _ = far.empty.push(frame);
        }
        drop(far);
        self.end.counters.received(frames, octets);
        self.end.counters.malformed(malformed);
        Ok(frames as usize)
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let lane = self.end.outbound();
        let Ok(mut near) = lane.near.try_lock() else {
            return Ok(0);
        };
        let (mut taken, mut octets, mut dropped) = (0, 0, 0);
        for frame in batch.frames() {
            let frame = frame.octets();
            if frame.len() > limits::FRAME_OCTETS_MAX {
                dropped += 1;
                continue;
            }
            let Ok(mut slot) = near.empty.pop() else {
                break;
            };
            slot.clear();
            slot.extend_from_slice(frame);
            // The ring of filled frames is as long as there are frames, so it always has room.
            let _ = near.filled.push(slot);
            taken += 1;
            octets += frame.len() as u64;
        }
        drop(near);
        batch.drop_front((taken + dropped) as usize);
        self.end.counters.transmitted(taken, octets);
        self.end.counters.transmit_dropped(dropped);
        if taken > 0 {
            lane.wake();
        }
        Ok((taken + dropped) as usize)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.end.inbound().waker.descriptor())
    }

    fn counters(&self) -> Counters {
        self.end.counters.read()
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(Self {
            end: self.end.clone(),
            octets_max: self.octets_max,
        }))
    }

    fn finished(&self) -> bool {
        false
    }
}

/// What the handles of one end share.
struct Endpoint {
    wire: Arc<Wire>,
    end: End,
    counters: Shared,
}

impl Endpoint {
    fn outbound(&self) -> &Lane {
        &self.wire.lanes[self.end as usize]
    }

    fn inbound(&self) -> &Lane {
        &self.wire.lanes[1 - self.end as usize]
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.wire.open[self.end as usize].store(false, Ordering::Release);
    }
}

struct Wire {
    name: String,
    /// Which ends are open, A first.
    open: [AtomicBool; 2],
    /// The lane out of A, then the lane out of B.
    lanes: [Lane; 2],
}

impl Wire {
    fn new(name: &str, frames: usize, octets: usize) -> Result<Self, PortError> {
        Ok(Self {
            name: name.to_owned(),
            open: [AtomicBool::new(false), AtomicBool::new(false)],
            lanes: [
                Lane::new(name, frames, octets)?,
                Lane::new(name, frames, octets)?,
            ],
        })
    }
}

struct Lane {
    near: Mutex<Near>,
    far: Mutex<Far>,
    /// True from when the receiver found the lane empty until it is woken.
    asleep: AtomicBool,
    waker: Waker,
}

struct Near {
    filled: Producer<Vec<u8>>,
    empty: Consumer<Vec<u8>>,
}

struct Far {
    filled: Consumer<Vec<u8>>,
    empty: Producer<Vec<u8>>,
}

impl Lane {
    fn new(name: &str, frames: usize, octets: usize) -> Result<Self, PortError> {
        let (filled_in, filled_out) = RingBuffer::new(frames);
        let (mut empty_in, empty_out) = RingBuffer::new(frames);
        for _ in 0..frames {
            let _ = empty_in.push(Vec::with_capacity(octets));
        }
        Ok(Self {
            near: Mutex::new(Near {
                filled: filled_in,
                empty: empty_out,
            }),
            far: Mutex::new(Far {
                filled: filled_out,
                empty: empty_in,
            }),
            asleep: AtomicBool::new(true),
            waker: Waker::named(name)?,
        })
    }

    /// Makes the descriptor unreadable until the next frame. The lane must be looked at once more after this.
    fn sleep(&self) {
        self.waker.clear();
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Wakes the receiver if it asked for it.
    fn wake(&self) {
        // The fences of both sides order "frame put in, then asked" against "asleep, then looked":
        // at least one of them sees the other.
        fence(Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PortConfig, open, wait};
    use std::time::Duration;

    const SIZES: Sizes = Sizes {
        headroom: 32,
        octets_max: 1514,
        tailroom: 32,
    };

    fn batch() -> Batch {
        Batch::with_sizes(8, SIZES)
    }

    fn frame(number: u8, octets: usize) -> Vec<u8> {
        let mut frame = vec![number; octets];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame
    }

    #[test]
    fn frames_cross_in_order_and_a_full_lane_takes_no_more() {
        let [mut a, mut b] = pair("test", 5, &SIZES).unwrap();
        let mut out = batch();
        for number in 0..8 {
            assert!(out.push(&frame(number, 60 + usize::from(number))));
        }
        assert_eq!(a.transmit(&mut out).unwrap(), 5);
        assert_eq!(out.len(), 3);
        assert_eq!(out.frames()[0].octets(), frame(5, 65));
        assert_eq!(a.transmit(&mut out).unwrap(), 0);
        let mut into = batch();
        assert_eq!(b.receive(&mut into).unwrap(), 5);
        assert_eq!(a.transmit(&mut out).unwrap(), 3);
        assert_eq!(b.receive(&mut into).unwrap(), 3);
        for (number, got) in (0..).zip(into.frames()) {
            assert_eq!(got.octets(), frame(number, 60 + usize::from(number)));
            assert_eq!(got.range.start, SIZES.headroom);
        }
        assert_eq!(a.counters().transmitted_frames, 8);
        assert_eq!(
            b.counters().received_octets,
            a.counters().transmitted_octets
        );
    }

    #[test]
    fn frames_of_no_sound_length_are_counted() {
        let [mut a, mut b] = pair("test", 8, &SIZES).unwrap();
        let mut out = Batch::new(8, 0, 20_000, 0);
        for octets in [13, 14, 1514, 1515, limits::FRAME_OCTETS_MAX + 1] {
            assert!(out.push(&vec![0; octets]));
        }
        assert_eq!(a.transmit(&mut out).unwrap(), 5);
        assert_eq!(a.counters().transmit_dropped, 1);
        assert_eq!(b.receive(&mut batch()).unwrap(), 2);
        assert_eq!(b.counters().malformed, 2);
    }

    #[test]
    fn two_ports_find_each_other_by_the_name_of_the_wire() {
        let end = |end| PortConfig::Memory(MemoryConfig::new("by-name", end));
        let mut a = open(&end(End::A), &SIZES).unwrap();
        let b = open(&end(End::B), &SIZES).unwrap();
        let mut out = batch();
        assert!(out.push(&frame(1, 60)));
        assert_eq!(b.twin().unwrap().transmit(&mut out).unwrap(), 1);
        assert_eq!(a.receive(&mut batch()).unwrap(), 1);
        let error = open(&end(End::A), &SIZES).err().unwrap();
        assert!(
            error
                .to_string()
                .contains("end a of the memory wire \"by-name\""),
            "{error}"
        );
        drop(a);
        open(&end(End::A), &SIZES).unwrap();
    }

    #[test]
    fn a_waiting_receiver_misses_no_frame() {
        let [mut a, mut b] = pair("test", 4, &SIZES).unwrap();
        let sender = std::thread::spawn(move || {
            let mut out = batch();
            let mut number = 0_u32;
            while number < 20_000 || !out.is_empty() {
                while number < 20_000 && out.push(&[&[0; 14][..], &number.to_be_bytes()].concat()) {
                    number += 1;
                }
                if a.transmit(&mut out).unwrap() == 0 {
                    std::thread::yield_now();
                }
            }
            a
        });
        let mut into = batch();
        let mut expected = 0_u32;
        while expected < 20_000 {
            into.clear();
            if b.receive(&mut into).unwrap() == 0 {
                // Long enough that a wake that is lost is seen as a failure and not as slowness.
                let woken = wait(&[b.descriptor().unwrap()], Duration::from_secs(20)).unwrap();
                assert!(woken, "no wake though {expected} of 20000 frames came");
            }
            for frame in into.frames() {
                assert_eq!(frame.octets()[14..], expected.to_be_bytes());
                expected += 1;
            }
        }
        drop(sender.join().unwrap());
    }
}
