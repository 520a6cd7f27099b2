//! Several ports as one: frames are sprayed over its lanes and put back in order at the far end.
//!
//! ```text
//!   transmit   batch -> a part for each lane that the far end hears -> lane 0, lane 1, ...
//!   receive    lane 0, lane 1, ... -> probe? -> order -> batch
//! ```
//!
//! Seeds 002 and 004 carry 100 Gb/s over ten or four lanes of a card; here a lane is any port. Who is heard
//! is found out by probes ([`health`]), who came first by numbers that the caller reads off a frame
//! ([`order`]). Each lane outlives its interface. What a dead lane held is lost with it, as on any line.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{
    Batch, Counters, Impairments, Kind, Port, PortConfig, PortError, Sizes, impair::Clock,
    lasting::open_lasting, limits, monotonic, sys,
};

mod health;
mod order;
#[cfg(test)]
mod tests;

use health::{Health, PROBE_OCTETS, Usable};
use order::Order;

pub use order::OrderOf;

/// Several ports as one.
#[derive(Debug, Clone, PartialEq)]
pub struct LanesConfig {
    /// The lanes, 1 to 16; the far end has as many, in any order.
    pub lanes: Vec<PortConfig>,
    /// Address that probes are sent from.
    pub address: [u8; 6],
    /// Address that probes are sent to.
    pub peer_address: [u8; 6],
    /// How much later than others a lane may bring a frame, in nanoseconds.
    pub hold_ns: u64,
}

/// Opens lanes and makes one port of them; one lane alone is that port.
///
/// # Errors
/// When their number is not 1 to 16, and as [`crate::open`].
pub fn open_lanes(
    config: &LanesConfig,
    sizes: &Sizes,
    order_of: OrderOf,
) -> Result<Box<dyn Port>, PortError> {
    let count = config.lanes.len();
    if !(1..=limits::LANES_MAX).contains(&count) {
        return Err(PortError::Setting {
            setting: "the number of lanes",
            given: count.to_string(),
            allowed: format!("1 to {}", limits::LANES_MAX),
        });
    }
    let opened = config.lanes.iter().map(|lane| open_lasting(lane, sizes));
    let mut lanes = opened.collect::<Result<Vec<_>, _>>()?;
    if count == 1 {
        return Ok(lanes.remove(0));
    }
    join(lanes, config, sizes, order_of, monotonic())
}

/// Makes one port of several that are open.
fn join(
    lanes: Vec<Box<dyn Port>>,
    config: &LanesConfig,
    sizes: &Sizes,
    order_of: OrderOf,
    clock: Clock,
) -> Result<Box<dyn Port>, PortError> {
    let names: Vec<_> = lanes.iter().map(|lane| lane.name()).collect();
    let readable = sys::poll::any().map_err(|error| PortError::Kernel {
        interface: names.join("+"),
        what: "make a descriptor for all lanes",
        error,
    })?;
    let shared = Shared {
        name: names.join("+"),
        addresses: [config.peer_address, config.address],
        usable: Usable::all(lanes.len()),
        receiver: Mutex::new(Receiver {
            health: Health::new(lanes.len()),
            order: Order::new(order_of, lanes.len(), config.hold_ns, *sizes),
            first: 0,
            probe: Batch::with_sizes(1, *sizes),
        }),
        readable,
        clock,
    };
    Ok(Box::new(LanesPort::new(lanes, Arc::new(shared), *sizes)))
}

/// One handle.
struct LanesPort {
    lanes: Vec<Box<dyn Port>>,
    shared: Arc<Shared>,
    /// What is on its way to each lane or from one.
    parts: Vec<Batch>,
    /// Which lane the next batch begins with.
    first: usize,
    sizes: Sizes,
}

/// What the handles share.
struct Shared {
    name: String,
    /// The far end's and ours.
    addresses: [[u8; 6]; 2],
    usable: Usable,
    /// For the handle that receives.
    receiver: Mutex<Receiver>,
    /// Readable when a lane is.
    readable: OwnedFd,
    clock: Clock,
}

/// What only the receiving handle touches.
struct Receiver {
    health: Health,
    order: Order,
    first: usize,
    probe: Batch,
}

impl LanesPort {
    fn new(lanes: Vec<Box<dyn Port>>, shared: Arc<Shared>, sizes: Sizes) -> Self {
        let part = |_| Batch::with_sizes(limits::LANE_BATCH_FRAMES, sizes);
        Self {
            parts: (0..lanes.len()).map(part).collect(),
            lanes,
            shared,
            first: 0,
            sizes,
        }
    }
}

impl Receiver {
    /// Sends a probe on each lane, when it is time.
    fn probe(
        &mut self,
        lanes: &mut [Box<dyn Port>],
        shared: &Shared,
        now_ns: u64,
    ) -> Result<(), PortError> {
        if !self.health.is_due(now_ns) {
            return Ok(());
        }
        let [to, from] = shared.addresses;
        for (number, lane) in lanes.iter_mut().enumerate() {
            let octets: [u8; PROBE_OCTETS] = self.health.probe(to, from, number, now_ns);
            self.probe.clear();
            // One that finds no room, since another thread transmits, is sent the next time.
            if self.probe.push(&octets) {
                lane.transmit(&mut self.probe)?;
            }
        }
        self.health.judge(now_ns, &shared.usable);
        Ok(())
    }
}

impl Port for LanesPort {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn kind(&self) -> Kind {
        Kind::Lanes
    }

    fn describe(&self) -> String {
        let lanes: Vec<_> = self.lanes.iter().map(|lane| lane.describe()).collect();
        let used = self.shared.usable.lanes().count_ones();
        format!("lanes ({used} of {}: {})", lanes.len(), lanes.join(", "))
    }

    fn mac(&self) -> Option<[u8; 6]> {
        self.lanes.first()?.mac()
    }

    fn frame_octets_max(&self) -> Option<usize> {
        self.lanes
            .iter()
            .filter_map(|lane| lane.frame_octets_max())
            .min()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let now_ns = (self.shared.clock)();
        let Ok(mut receiver) = self.shared.receiver.try_lock() else {
            return Ok(0);
        };
        let Receiver {
            health,
            order,
            first,
            ..
        } = &mut *receiver;
        let count = self.lanes.len();
        let mut more = false;
        for lane in (*first..count).chain(0..*first) {
            if !order.has_room(limits::LANE_BATCH_FRAMES) {
                more = true;
                break;
            }
            let part = &mut self.parts[lane];
            part.clear();
            self.lanes[lane].receive(part)?;
            more |= part.is_full();
            part.retain(|frame| !health.heed(frame.octets(), now_ns));
            order.take(lane, part, now_ns);
        }
        *first = (*first + 1) % count;
        if !more {
            order.give_up(now_ns);
        }
        let given = order.give(batch);
        receiver.probe(&mut self.lanes, &self.shared, now_ns)?;
        Ok(given)
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let usable = self.shared.usable.lanes();
        let lanes = usable.count_ones() as usize;
        let (count, frames) = (self.lanes.len(), batch.len());
        let in_turn = (self.first..count).chain(0..self.first);
        self.first = (self.first + 1) % count;
        let mut sent = 0;
        for (turn, lane) in in_turn.filter(|lane| usable & 1 << lane != 0).enumerate() {
            // Its piece of the batch, whole: the far end has the less to put in order.
            let (part, end) = (&mut self.parts[lane], frames * (turn + 1) / lanes);
            part.clear();
            for index in sent..end {
                if !batch.give(index, part) {
                    break;
                }
            }
            let given = part.len();
            let outcome = self.lanes[lane].transmit(part);
            sent += given - part.len();
            // What it had no room for goes back where it was, and nothing overtakes it on another lane: each
            // lane keeps the order, which the far end relies on.
            for (index, frame) in (sent..).zip(part.frames_mut()) {
                std::mem::swap(&mut batch.frames_mut()[index], frame);
            }
            outcome?;
            if sent < end {
                break;
            }
        }
        batch.drop_front(sent);
        Ok(sent)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let receiver = (self.shared.receiver.lock()).unwrap_or_else(PoisonError::into_inner);
        if !receiver.order.is_empty() {
            return None;
        }
        for lane in &self.lanes {
            sys::poll::add(&self.shared.readable, lane.descriptor()?).ok()?;
        }
        Some(self.shared.readable.as_fd())
    }

    /// Probes go out when it is asked for frames.
    fn nap_max(&self) -> Option<Duration> {
        Some(Duration::from_nanos(limits::LANE_PROBE_NS / 2))
    }

    fn impairments(&self) -> Option<Impairments> {
        let all = self.lanes.iter().filter_map(|lane| lane.impairments());
        all.reduce(Impairments::and)
    }

    fn counters(&self) -> Counters {
        let counters = self.lanes.iter().map(|lane| lane.counters());
        counters.fold(Counters::default(), |sum, lane| sum.plus(&lane))
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        let lanes = self.lanes.iter().map(|lane| lane.twin());
        let lanes = lanes.collect::<Result<_, _>>()?;
        Ok(Box::new(Self::new(
            lanes,
            Arc::clone(&self.shared),
            self.sizes,
        )))
    }

    fn finished(&self) -> bool {
        self.lanes.iter().all(|lane| lane.finished())
    }
}
