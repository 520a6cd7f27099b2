//! The way of a frame through the node, both ways. Wiring only; the work is in the links.
//!
//! ```text
//! outbound thread   client ports -> classify -> mux -> shape -> protect -> line port
//!                   (transparent channels go from classify straight to protect)
//! inbound thread    line port -> agreement? -> validate -> demux -> client ports
//! ```
//!
//! What always holds: a thread never waits for a key, a lock, an allocation or the controller. Changes
//! come as messages between two batches; news go out the same way. A channel without a valid SA discards
//! at the entrance and counts. Agreement frames leave the way of data at the first link and have a queue
//! of their own.

pub(crate) mod inbound;
pub(crate) mod news;
pub(crate) mod outbound;

use qloak_port::{Batch, Frame, Port, PortError};
use qloak_secy::Room;
use std::time::{Duration, Instant};

/// How long a thread sleeps at most when nothing moves; a frame or a change wakes it sooner.
const NAP: Duration = Duration::from_millis(1);

/// The same when a port has no descriptor to wait for and must be asked again.
const SHORT_NAP: Duration = Duration::from_micros(100);

/// How long a batch may wait for room in a port before what is left of it is dropped and counted.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often news of channels go out.
const CHANNEL_NEWS_NS: u64 = 1_000_000;

/// How often news of ports go out.
const PORT_NEWS_NS: u64 = 10_000_000;

/// A frame of a batch as the SecY wants it.
fn room(frame: &mut Frame) -> Room<'_> {
    Room::new(&mut frame.storage, &mut frame.range)
}

/// Hands a whole batch to a port and empties it. The port's lack of room is passed back to whoever fills
/// it: this thread takes no more frames meanwhile. Returns how many frames were dropped after all.
fn hand_out(port: &mut dyn Port, batch: &mut Batch) -> Result<usize, PortError> {
    let mut since = None;
    while !batch.is_empty() {
        if port.transmit(batch)? > 0 {
            since = None;
            continue;
        }
        let begun = *since.get_or_insert_with(Instant::now);
        if begun.elapsed() > PATIENCE {
            break;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    let dropped = batch.len();
    batch.clear();
    Ok(dropped)
}
