//! The door's side of a capture: makes the rings, collects what the witnesses put into them, writes pcapng.
//!
//! ```text
//!   begin:   rings made -> handed to the witnesses -> taken up -> the answer begins
//!   running: rings -> frames in the order of time -> blocks -> queue of the answer       every few milliseconds
//!   end:     a bound is reached, the reader is gone or the node stops -> rings back -> the rest -> statistics
//! ```
//!
//! Frames of different threads are put in the order of time by holding each back for a moment; those of one thread keep
//! their order in any case. Time is read once a batch, so frames of a batch share a stamp.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::body::Bytes;
use qloak_api::{CaptureOrder, Problem, Side};
use qloak_port::{
    Waker,
    capture::{NgWriter, Recorded, Statistics},
};
use rtrb::{Consumer, RingBuffer};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};

use super::witness::{Lead, Recording, Taken, Tally, take_from};
use crate::{clock::Clock, config::CaptureSides, limits};

/// How often the rings are emptied.
const EVERY: Duration = Duration::from_millis(2);

/// How long a frame is held back so that one of another thread that came before it can be put before it.
const HELD_NS: u64 = 5_000_000;

/// How long a thread may take to take up a recording or to hand it back; one that waits for a dead port takes longer.
const TURN_MAX: Duration = Duration::from_millis(200);

/// How often a running capture says what it has dropped.
const STATISTICS_EVERY: Duration = Duration::from_secs(1);

/// Pieces of the answer that wait for the network.
const PIECES_WAITING: usize = 4;

/// A port as a capture names it.
pub(crate) struct Shown {
    /// 0 for the line, else the client port's number.
    pub(crate) port: u8,
    pub(crate) name: String,
    pub(crate) description: String,
}

/// What captures of a node need.
pub(crate) struct Captures {
    pub(crate) node: String,
    pub(crate) ports: Vec<Shown>,
    /// Which sides the node's own configuration allows.
    pub(crate) allowed: CaptureSides,
    /// The file that says so.
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
    /// One capture at a time: who has them has the capture.
    pub(crate) leads: Arc<Mutex<Vec<Threads>>>,
}

/// The lead to a thread's witness, and what wakes the thread.
pub(crate) struct Threads {
    pub(crate) lead: Lead,
    /// None for the thread of the key handler: it looks when it sends a frame, and is not waited for.
    pub(crate) waker: Option<Arc<Waker>>,
}

/// A capture's end of a ring.
struct Source {
    ring: Consumer<u8>,
    tally: Arc<Tally>,
}

impl Captures {
    /// Begins a capture; what it gives is read from the queue.
    ///
    /// # Errors
    /// The node's configuration does not allow it, another capture is running, or the order names a port that is
    /// not there.
    pub(crate) async fn begin(
        &self,
        order: CaptureOrder,
    ) -> Result<mpsc::Receiver<io::Result<Bytes>>, Problem> {
        self.permit(order.side)?;
        let ports = self.chosen(&order)?;
        let mut leads = Arc::clone(&self.leads).try_lock_owned().map_err(|_| {
            Problem::conflict(
                "another capture of this node is running; wait for its end, or end it where it was begun",
            )
        })?;
        let over = Arc::new(AtomicBool::new(false));
        let mut sources = Vec::new();
        for thread in leads.iter_mut() {
            // What came back late, after the last capture.
            while thread.lead.done.pop().is_ok() {}
            let (ring, out) = memory(match thread.waker {
                Some(_) => limits::CAPTURE_RING_OCTETS,
                None => limits::CAPTURE_AGREEMENT_OCTETS,
            });
            let tally = Arc::new(Tally::default());
            let recording = Recording {
                side: order.side,
                client: order.port,
                snap_octets: order.snap_octets as usize,
                ring,
                over: Arc::clone(&over),
                tally: Arc::clone(&tally),
            };
            if thread.lead.orders.push(recording).is_err() {
                over.store(true, Ordering::Relaxed);
                return Err(Problem::conflict(
                    "a thread of the node is held up by a port that takes no frames; try again in a second",
                ));
            }
            sources.push(Source { ring: out, tally });
        }
        in_turn(&mut leads, took_up).await;
        let (queue, answer) = mpsc::channel(PIECES_WAITING);
        let run = Run {
            file: self.head(&order, &ports),
            interfaces: (0..)
                .zip(&ports)
                .map(|(number, port)| (port.port, number))
                .collect(),
            epoch_ns: epoch_ns(&self.clock),
            clock: self.clock,
            stop: Arc::clone(&self.stop),
            order,
            sources,
            held: Vec::new(),
            frames: 0,
            queue,
        };
        tokio::spawn(run.run_out(leads, over));
        Ok(answer)
    }

    fn permit(&self, side: Side) -> Result<(), Problem> {
        let (side, value) = match (self.allowed, side) {
            (CaptureSides::Both, _) | (CaptureSides::Line, Side::Line) => return Ok(()),
            (_, Side::Client) => ("client side, where frames are in the clear", "both"),
            (CaptureSides::Off, Side::Line) => ("line side", "line"),
        };
        let file = match &self.config_file {
            Some(file) => file.display().to_string(),
            None => "the node's configuration".to_owned(),
        };
        Err(Problem::new(
            403,
            "the node's configuration does not allow this",
            format!(
                "{} does not let anybody record its {side}, and no request can change that: whoever runs the node may set capture = {value:?} under [manage] in {file} and start it again",
                self.node
            ),
        ))
    }

    /// The ports that the order is about.
    fn chosen(&self, order: &CaptureOrder) -> Result<Vec<&Shown>, Problem> {
        let of_side = self.ports.iter().filter(|port| match order.side {
            Side::Line => port.port == 0,
            Side::Client => port.port != 0,
        });
        let Some(wanted) = order.port else {
            return Ok(of_side.collect());
        };
        let known: Vec<_> = of_side.collect();
        let found = known.iter().find(|port| port.port == wanted.number());
        found.map(|port| vec![*port]).ok_or_else(|| {
            let numbers: Vec<_> = known.iter().map(|port| port.port.to_string()).collect();
            Problem::not_found(format!(
                "there is no client port {wanted}; this node has {}",
                numbers.join(", ")
            ))
        })
    }

    fn head(&self, order: &CaptureOrder, ports: &[&Shown]) -> NgWriter {
        let application = concat!("qloak ", env!("CARGO_PKG_VERSION"));
        let what = match order.side {
            Side::Client => "client side, in the clear",
            Side::Line => "line side, as protected",
        };
        let mut file = NgWriter::new(application, &format!("{}: {what}", self.node));
        for port in ports {
            file.interface(&port.name, &port.description, order.snap_octets);
        }
        file
    }
}

/// A ring whose memory is there already: a thread of the pipeline must not be the first to touch it.
fn memory(octets: usize) -> (rtrb::Producer<u8>, Consumer<u8>) {
    let (mut ring, mut out) = RingBuffer::new(octets);
    if let Ok(all) = ring.write_chunk(octets) {
        all.commit_all();
    }
    if let Ok(all) = out.read_chunk(octets) {
        all.commit_all();
    }
    (ring, out)
}

/// Waits until the threads that can be woken have done something, for a bounded time.
async fn in_turn(threads: &mut [Threads], done: fn(&mut Threads) -> bool) {
    let begun = Instant::now();
    for thread in threads {
        let Some(waker) = &thread.waker else { continue };
        waker.wake();
        while !done(thread) && begun.elapsed() < TURN_MAX {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }
}

fn took_up(thread: &mut Threads) -> bool {
    thread.lead.orders.slots() == thread.lead.orders.buffer().capacity()
}

fn handed_back(thread: &mut Threads) -> bool {
    thread.lead.done.pop().is_ok()
}

/// Nanoseconds since 1970 when the node's clock began.
fn epoch_ns(clock: &Clock) -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_nanos())
        .unwrap_or(u64::MAX)
        .saturating_sub(clock.now_ns())
}

/// A running capture.
struct Run {
    order: CaptureOrder,
    file: NgWriter,
    /// Number in the file of each port.
    interfaces: BTreeMap<u8, u32>,
    epoch_ns: u64,
    clock: Clock,
    stop: Arc<AtomicBool>,
    sources: Vec<Source>,
    /// Taken out of the rings, not yet written.
    held: Vec<Taken>,
    /// Frames written.
    frames: u64,
    queue: mpsc::Sender<io::Result<Bytes>>,
}

impl Run {
    async fn run_out(mut self, mut leads: OwnedMutexGuard<Vec<Threads>>, over: Arc<AtomicBool>) {
        let end = Instant::now() + Duration::from_secs(self.order.seconds.into());
        let mut told = Instant::now();
        // The head at once: the reader then has a file, and knows that it begins.
        let mut heard = self.send().await;
        while heard && !self.is_full() && Instant::now() < end && !self.stop.load(Ordering::Relaxed)
        {
            tokio::time::sleep(EVERY).await;
            self.collect(self.clock.now_ns().saturating_sub(HELD_NS));
            if told.elapsed() >= STATISTICS_EVERY {
                told = Instant::now();
                self.statistics();
            }
            heard = self.send().await;
        }
        over.store(true, Ordering::Relaxed);
        in_turn(&mut leads, handed_back).await;
        if heard {
            while self.collect(u64::MAX) {
                heard = heard && self.send().await;
            }
            self.statistics();
            self.send().await;
        }
    }

    fn is_full(&self) -> bool {
        self.frames >= self.order.frames
    }

    /// Writes the frames up to this time. Returns whether the rings gave any.
    fn collect(&mut self, until_ns: u64) -> bool {
        let before = self.held.len();
        for source in &mut self.sources {
            let mut octets = 0;
            while octets < limits::CAPTURE_PIECE_OCTETS
                && let Some(taken) = take_from(&mut source.ring)
            {
                octets += taken.octets.len();
                self.held.push(taken);
            }
        }
        let more = self.held.len() > before;
        // Stable: frames of one thread keep their order.
        self.held.sort_by_key(|taken| taken.at_ns);
        let due = self.held.partition_point(|taken| taken.at_ns <= until_ns);
        for taken in self.held.drain(..due) {
            let Some(&interface) = self.interfaces.get(&taken.port) else {
                continue;
            };
            if self.frames == self.order.frames {
                break;
            }
            self.frames += 1;
            self.file.frame(&Recorded {
                interface,
                stamp_ns: self.epoch_ns + taken.at_ns,
                way: taken.way,
                wire_octets: taken.wire_octets,
                octets: &taken.octets,
            });
        }
        more
    }

    fn statistics(&mut self) {
        let stamp_ns = self.epoch_ns + self.clock.now_ns();
        for (&port, &interface) in &self.interfaces {
            let sum = |of: fn(&Tally) -> &[AtomicU64]| -> u64 {
                let all = self.sources.iter().map(|source| of(&source.tally));
                let of_port = all.filter_map(|counters| counters.get(usize::from(port)));
                of_port.map(|counter| counter.load(Ordering::Relaxed)).sum()
            };
            let statistics = Statistics {
                passed: sum(|tally| &tally.passed),
                dropped: sum(|tally| &tally.dropped),
            };
            self.file.statistics(interface, stamp_ns, statistics);
        }
    }

    /// Hands on what is written. Returns whether anybody still reads.
    async fn send(&mut self) -> bool {
        if self.file.is_empty() {
            return !self.queue.is_closed();
        }
        self.queue.send(Ok(self.file.take().into())).await.is_ok()
    }
}
