//! What a thread that carries frames holds: the place where copies for a capture are taken.
//!
//! ```text
//!   ring   { time(8) octets on the wire(4) octets kept(4) port(1) way(1) octets }...
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use qloak_api::{ClientPort, Side, limits::CLIENT_PORTS_MAX};
use qloak_port::{Frame, capture::Way};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::clock::Clock;

/// Octets before those of a frame.
pub(super) const HEAD_OCTETS: usize = 18;

/// Ports that a capture knows: the line is 0, a client port its number.
pub(super) const PORTS: usize = CLIENT_PORTS_MAX as usize + 1;

/// Recordings on their way to a witness or back. One runs at a time; the thread of the key handler takes up those that
/// are over only when it next sends a frame.
const RECORDINGS: usize = 16;

/// A thread's place at which frames can be recorded.
pub(crate) struct Witness {
    orders: Consumer<Recording>,
    done: Producer<Recording>,
    now: Option<Recording>,
    clock: Clock,
}

/// The other end of a [`Witness`]: where recordings are handed in, and come back when they are over.
pub(crate) struct Lead {
    pub(super) orders: Producer<Recording>,
    pub(super) done: Consumer<Recording>,
}

/// What one witness was asked to record, and where to.
pub(super) struct Recording {
    pub(super) side: Side,
    pub(super) client: Option<ClientPort>,
    pub(super) snap_octets: usize,
    pub(super) ring: Producer<u8>,
    /// Set when nobody listens any more.
    pub(super) over: Arc<AtomicBool>,
    pub(super) tally: Arc<Tally>,
}

/// Frames that a witness saw, by port. One thread counts, others read.
pub(super) struct Tally {
    pub(super) passed: [AtomicU64; PORTS],
    pub(super) dropped: [AtomicU64; PORTS],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            passed: [const { AtomicU64::new(0) }; PORTS],
            dropped: [const { AtomicU64::new(0) }; PORTS],
        }
    }
}

/// A witness and the lead to it.
pub(crate) fn witness(clock: Clock) -> (Witness, Lead) {
    let (order, orders) = RingBuffer::new(RECORDINGS);
    let (hand_back, done) = RingBuffer::new(RECORDINGS);
    let witness = Witness {
        orders,
        done: hand_back,
        now: None,
        clock,
    };
    let lead = Lead {
        orders: order,
        done,
    };
    (witness, lead)
}

impl Witness {
    /// Once a round: takes up a recording, or hands it back when it is over.
    pub(crate) fn look(&mut self) {
        loop {
            let over = |recording: &mut Recording| recording.over.load(Ordering::Relaxed);
            if let Some(recording) = self.now.take_if(over)
                && let Err(rtrb::PushError::Full(recording)) = self.done.push(recording)
            {
                // There is room again when the next capture begins.
                self.now = Some(recording);
                return;
            }
            if self.now.is_some() {
                return;
            }
            let Ok(order) = self.orders.pop() else { return };
            self.now = Some(order);
        }
    }

    /// Frames of a client port, as they lie in a batch.
    pub(crate) fn client(&mut self, client: ClientPort, way: Way, frames: &[Frame]) {
        if let Some(recording) = &mut self.now
            && recording.side == Side::Client
            && recording.client.is_none_or(|wanted| wanted == client)
        {
            recording.take(client.number(), way, frames, self.clock.now_ns());
        }
    }

    /// Frames of the line port, as they are on the line.
    pub(crate) fn line(&mut self, way: Way, frames: &[Frame]) {
        if let Some(recording) = &mut self.now
            && recording.side == Side::Line
        {
            recording.take(0, way, frames, self.clock.now_ns());
        }
    }
}

impl Recording {
    fn take(&mut self, port: u8, way: Way, frames: &[Frame], at_ns: u64) {
        let mut dropped = 0;
        for frame in frames {
            let octets = frame.octets();
            let kept = octets.get(..self.snap_octets).unwrap_or(octets);
            if self.ring.slots() < HEAD_OCTETS + kept.len() {
                dropped += 1;
                continue;
            }
            let head = head(at_ns, octets.len(), kept.len(), port, way);
            // There was room for both, and nobody else takes it.
            let _ = self.ring.push_entire_slice(&head);
            let _ = self.ring.push_entire_slice(kept);
        }
        let at = usize::from(port);
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(
                counter.load(Ordering::Relaxed).wrapping_add(more),
                Ordering::Relaxed,
            );
        };
        add(&self.tally.passed[at], frames.len() as u64);
        add(&self.tally.dropped[at], dropped);
    }
}

fn head(at_ns: u64, wire_octets: usize, kept: usize, port: u8, way: Way) -> [u8; HEAD_OCTETS] {
    let mut head = [0; HEAD_OCTETS];
    head[..8].copy_from_slice(&at_ns.to_le_bytes());
    head[8..12].copy_from_slice(&(wire_octets as u32).to_le_bytes());
    head[12..16].copy_from_slice(&(kept as u32).to_le_bytes());
    head[16] = port;
    head[17] = u8::from(way == Way::Transmitted);
    head
}

/// A frame out of the ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) at_ns: u64,
    pub(super) port: u8,
    pub(super) way: Way,
    pub(super) wire_octets: u32,
    pub(super) octets: Vec<u8>,
}

/// The next frame of a ring, if it is there whole.
pub(super) fn take_from(ring: &mut Consumer<u8>) -> Option<Taken> {
    let mut head = [0; HEAD_OCTETS];
    let chunk = ring.read_chunk(HEAD_OCTETS).ok()?;
    let (front, back) = chunk.as_slices();
    head[..front.len()].copy_from_slice(front);
    head[front.len()..].copy_from_slice(back);
    // Nothing is taken out yet: the octets may still be missing.
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let octets = word(12) as usize;
    if ring.slots() < HEAD_OCTETS + octets {
        return None;
    }
    let mut whole = vec![0; HEAD_OCTETS + octets];
    ring.pop_entire_slice(&mut whole).ok()?;
    Some(Taken {
        at_ns: u64::from(word(4)) << 32 | u64::from(word(0)),
        port: head[16],
        way: if head[17] == 0 {
            Way::Received
        } else {
            Way::Transmitted
        },
        wire_octets: word(8),
        octets: whole.split_off(HEAD_OCTETS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_port::Batch;

    const ONE: u8 = 1;

    fn recording(octets: usize, side: Side, client: Option<u8>) -> (Recording, Consumer<u8>) {
        let (ring, out) = RingBuffer::new(octets);
        let recording = Recording {
            side,
            client: client.and_then(|number| ClientPort::try_from(number).ok()),
            snap_octets: 64,
            ring,
            over: Arc::default(),
            tally: Arc::default(),
        };
        (recording, out)
    }

    fn port(number: u8) -> ClientPort {
        ClientPort::try_from(number).expect("a client port")
    }

    fn batch(frames: usize, octets: usize) -> Batch {
        let mut batch = Batch::new(frames, 16, 1514, 16);
        (0..frames).for_each(|number| assert!(batch.push(&vec![number as u8; octets])));
        batch
    }

    #[test]
    fn a_ring_gives_back_what_it_took_wherever_it_wraps() {
        let (mut recording, mut out) = recording(1000, Side::Client, None);
        for round in 0..100_u64 {
            let batch = batch(4, 60 + round as usize);
            recording.take(ONE, Way::Transmitted, batch.frames(), round);
            for number in 0..4_u8 {
                let taken = take_from(&mut out).expect("a frame");
                assert_eq!(
                    (taken.at_ns, taken.port, taken.way, taken.wire_octets as u64),
                    (round, ONE, Way::Transmitted, 60 + round)
                );
                assert_eq!(taken.octets, vec![number; (60 + round as usize).min(64)]);
            }
            assert_eq!(take_from(&mut out), None);
        }
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_rest_is_whole() {
        let (mut recording, mut out) = recording(5 * (HEAD_OCTETS + 60) + 17, Side::Line, None);
        let batch = batch(8, 60);
        recording.take(0, Way::Received, batch.frames(), 7);
        let count = |of: &[AtomicU64; PORTS]| of[0].load(Ordering::Relaxed);
        assert_eq!(
            (
                count(&recording.tally.passed),
                count(&recording.tally.dropped)
            ),
            (8, 3)
        );
        for number in 0..5_u8 {
            assert_eq!(take_from(&mut out).expect("a frame").octets, [number; 60]);
        }
        assert_eq!(take_from(&mut out), None);
        recording.take(0, Way::Received, &batch.frames()[..2], 8);
        assert_eq!(take_from(&mut out).expect("room again").at_ns, 8);
        assert_eq!(count(&recording.tally.dropped), 3);
    }

    #[test]
    fn a_witness_records_what_was_ordered_and_hands_the_ring_back() {
        let (mut witness, mut lead) = witness(Clock::started_now());
        let frames = batch(3, 60);
        let one = |number: usize| &frames.frames()[number..=number];
        witness.look();
        witness.client(port(2), Way::Received, one(0));
        let (order, mut out) = recording(4096, Side::Client, Some(2));
        let over = Arc::clone(&order.over);
        assert!(lead.orders.push(order).is_ok());
        witness.client(port(2), Way::Received, one(0));
        witness.look();
        witness.client(port(1), Way::Received, one(0));
        witness.line(Way::Received, one(1));
        witness.client(port(2), Way::Received, one(2));
        let taken = take_from(&mut out).expect("the one that was wanted");
        assert_eq!(taken.octets, [2; 60]);
        assert_eq!(take_from(&mut out), None);
        over.store(true, Ordering::Relaxed);
        witness.look();
        witness.client(port(2), Way::Received, one(0));
        assert_eq!(take_from(&mut out), None);
        assert!(lead.done.pop().is_ok(), "the memory is freed elsewhere");
    }

    #[test]
    fn orders_that_are_over_before_they_are_taken_up_are_handed_back() {
        let (mut witness, mut lead) = witness(Clock::started_now());
        for stale in [true, true, false] {
            let (order, _) = recording(64, Side::Line, None);
            order.over.store(stale, Ordering::Relaxed);
            assert!(lead.orders.push(order).is_ok());
        }
        witness.look();
        assert_eq!(lead.done.slots(), 2);
        assert!(witness.now.is_some());
    }
}
