//! The way of a frame through the node, both ways. Wiring only; the work is in the links.
//!
//! ```text
//! outbound thread   client ports -> classify -> mux -> shape -> protect -> line port
//!                   (transparent channels go from classify straight to protect)
//! inbound thread    line port -> agreement? -> validate -> demux -> client ports
//! one thread        a turn of the one, a turn of the other (`pipeline.threads = 1`)
//! ```
//!
//! What always holds: a thread never waits for a key, a lock, an allocation or the controller. Changes
//! come as messages between two batches; news go out the same way. A channel without a valid SA discards
//! at the entrance and counts. Agreement frames leave the way of data at the first link and have a queue
//! of their own.

pub(crate) mod fair;
pub(crate) mod inbound;
pub(crate) mod news;
pub(crate) mod outbound;
mod pace;
pub(crate) mod rest;
pub(crate) mod trunk;

use qloak_port::{Batch, Frame, Port, PortError};
use qloak_secy::Room;
use std::time::{Duration, Instant};

/// How long a batch may wait for room in a port before what is left of it is dropped and counted.
const PATIENCE: Duration = Duration::from_secs(1);

/// A frame of a batch as the SecY wants it.
fn room(frame: &mut Frame) -> Room<'_> {
    Room::new(&mut frame.storage, &mut frame.range)
}

/// Whether a port is still worth waiting for. One that took nothing for all of [`PATIENCE`] is not, until it
/// takes a frame again: a dead port must not hold up the others batch after batch.
#[derive(Default)]
pub(crate) struct Patience {
    lost: bool,
}

/// Hands a whole batch to a port and empties it. The port's lack of room is passed back to whoever fills
/// it: this way takes no more frames, and the thread does what it can do `meanwhile`. Returns how many frames were
/// dropped after all.
fn hand_out(
    port: &mut dyn Port,
    batch: &mut Batch,
    patience: &mut Patience,
    mut meanwhile: impl FnMut() -> Result<(), PortError>,
) -> Result<usize, PortError> {
    let mut since = None;
    while !batch.is_empty() {
        if port.transmit(batch)? > 0 {
            since = None;
            patience.lost = false;
            continue;
        }
        let begun = *since.get_or_insert_with(Instant::now);
        if patience.lost || begun.elapsed() > PATIENCE {
            patience.lost = true;
            break;
        }
        meanwhile()?;
    }
    let dropped = batch.len();
    batch.clear();
    Ok(dropped)
}

/// Nothing else can be done until a port has room.
fn pause() -> Result<(), PortError> {
    std::thread::sleep(Duration::from_micros(20));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_port::Sizes;

    #[test]
    fn a_dead_port_is_waited_for_once() {
        let sizes = Sizes {
            headroom: 16,
            octets_max: 1514,
            tailroom: 16,
        };
        let [mut near, mut far] =
            qloak_port::pair("dead", 2, &sizes).unwrap_or_else(|e| panic!("{e}"));
        let (mut out, mut back) = (Batch::with_sizes(4, sizes), Batch::with_sizes(4, sizes));
        let mut patience = Patience::default();
        let mut give = |frames: usize| {
            (0..frames).for_each(|_| assert!(out.push(&[0; 60])));
            let begun = Instant::now();
            let dropped = hand_out(&mut *near, &mut out, &mut patience, pause);
            (
                dropped.unwrap_or_else(|e| panic!("{e}")),
                begun.elapsed() >= PATIENCE,
            )
        };
        assert_eq!(give(3), (1, true), "nobody reads at the far end");
        assert_eq!(give(4), (4, false), "the next batch waits for nothing");
        let received = far.receive(&mut back).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(received, 2);
        assert_eq!(give(3), (1, true), "it lives again and is waited for");
    }
}
