//! The validating thread: line port -> validate -> demux -> client ports.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::Thread,
};

use qloak_api::{
    An, ChannelNumber, ClientPort,
    manage::{InboundCounters, StrayCounters},
};
use qloak_port::{Batch, Port, PortError, Waker, capture::Way};
use qloak_secy::{Inbound, Sa, Station, Verdict};
use rtrb::{Consumer, Producer};

use super::{
    Patience, hand_out,
    news::{ControlFrame, InboundChange, InboundNews, port_counters, port_impairments},
    pause,
    rest::{NewsTimes, Rest},
    room,
};
use crate::{capture::witness::Witness, clock::Clock, latency::Stopwatch, limits};

/// Everything that validating needs, in a thread of its own or beside the protecting half.
pub(crate) struct InboundThread {
    pub(crate) secy: Inbound,
    pub(crate) line: Box<dyn Port>,
    pub(crate) batch: Batch,
    pub(crate) verdicts: [Verdict; limits::BATCH_FRAMES],
    pub(crate) exits: Vec<Exit>,
    pub(crate) channels: Vec<Told>,
    pub(crate) changes: Consumer<InboundChange>,
    pub(crate) news: Producer<InboundNews>,
    pub(crate) control: Producer<ControlFrame>,
    /// Where stations of a mesh are, for the outbound half.
    pub(crate) stations: Producer<Station>,
    pub(crate) spent: Producer<Sa>,
    pub(crate) key_handler: Thread,
    pub(crate) clock: Clock,
    pub(crate) waker: Arc<Waker>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) news_times: NewsTimes,
    /// Never sleeps.
    pub(crate) busy_poll: bool,
    /// Agreement frames longer than any that exists.
    pub(crate) oversized_agreement: u64,
    pub(crate) witness: Witness,
    pub(crate) stopwatch: Stopwatch,
}

/// A channel, and what was last told of it.
pub(crate) struct Told {
    number: ChannelNumber,
    last: Option<(InboundCounters, [u64; An::COUNT])>,
}

impl Told {
    /// A channel of which nothing was told.
    pub(crate) fn new(number: ChannelNumber) -> Self {
        Self { number, last: None }
    }
}

/// A client port on its way out.
pub(crate) struct Exit {
    pub(crate) number: ClientPort,
    pub(crate) port: Box<dyn Port>,
    pub(crate) batch: Batch,
    pub(crate) patience: Patience,
    /// Client frames that the port would not take in time.
    pub(crate) dropped: u64,
}

impl InboundThread {
    /// Runs until the node stops.
    ///
    /// # Errors
    /// When a port fails for good: the interface is gone.
    pub(crate) fn run(mut self) -> Result<(), PortError> {
        while !self.stop.load(Ordering::Relaxed) {
            if !self.turn()? && !self.busy_poll {
                self.rest()?;
            }
        }
        Ok(())
    }

    /// A batch through the whole way, changes and news. Returns whether frames moved.
    pub(super) fn turn(&mut self) -> Result<bool, PortError> {
        let moved = self.line.receive(&mut self.batch)? > 0;
        // Between receive and validate: the far node uses a new SA as soon as it reads that we are
        // ready, so a frame under it may be in this very batch, and the SA is then in the ring.
        self.apply_changes();
        self.witness.look();
        let (mut came_ns, mut delivered) = (0, 0);
        if moved {
            came_ns = self.clock.now_ns();
            self.witness.line(Way::Received, self.batch.frames());
            let frames = self.batch.frames_mut().iter_mut().map(room);
            self.secy.validate(frames, &mut self.verdicts);
            delivered = self.sort_out()?;
            self.tell_heard();
            self.tell_stations();
            self.news_times.happened();
        }
        let now_ns = self.clock.now_ns();
        if delivered > 0 {
            let took_ns = now_ns.saturating_sub(came_ns);
            self.stopwatch.record(took_ns, delivered);
        }
        if self.news_times.channels(now_ns) {
            self.tell_channels();
        }
        if self.news_times.ports(now_ns) {
            self.tell_ports();
        }
        Ok(moved)
    }

    /// Valid frames go out on their client ports, agreement frames to the key handler, the rest nowhere:
    /// the SecY has counted them. Returns how many client frames went out.
    fn sort_out(&mut self) -> Result<u64, PortError> {
        let mut failed = None;
        let mut delivered = 0;
        for (index, verdict) in self.verdicts.iter().enumerate().take(self.batch.len()) {
            match verdict {
                Verdict::Valid(valid) => {
                    let (exits, witness) = (&mut self.exits, &mut self.witness);
                    self.secy.demux(
                        *valid,
                        self.batch.frames()[index].octets(),
                        |client, frame| {
                            let exit = exits.iter_mut().find(|exit| exit.number == client);
                            match exit.map(|exit| exit.take(frame, witness)) {
                                Some(Ok(())) => delivered += 1,
                                Some(Err(error)) => failed = Some(error),
                                None => {}
                            }
                        },
                    );
                }
                Verdict::Agreement => {
                    let octets = self.batch.frames()[index].octets();
                    let Some(frame) = ControlFrame::copy_of(octets) else {
                        self.oversized_agreement += 1;
                        continue;
                    };
                    // A full ring means that the key handler is a quarter of a second behind;
                    // agreement frames are repeated by whoever sent them.
                    let _ = self.control.push(frame);
                    self.key_handler.unpark();
                }
                _ => {}
            }
        }
        self.batch.clear();
        for exit in &mut self.exits {
            exit.flush(&mut self.witness)?;
        }
        failed.map_or(Ok(delivered), Err)
    }

    fn apply_changes(&mut self) {
        while let Ok(change) = self.changes.pop() {
            self.news_times.happened();
            match change {
                InboundChange::Install { channel, an, sa } => {
                    if let Err(error) = self.secy.install(channel, an, *sa) {
                        tracing::error!(%channel, %an, %error, "the SA was not installed");
                    }
                }
                InboundChange::Retire { channel, an } => {
                    if let Some(sa) = self.secy.retire(channel, an) {
                        // A full ring gives it back, and it is wiped here.
                        let _ = self.spent.push(sa);
                    }
                }
            }
        }
    }

    fn tell_stations(&mut self) {
        for station in self.secy.learned(self.clock.now_ns()) {
            // What is not told now is when it is news again; until then frames go to every node.
            let _ = self.stations.push(station);
        }
    }

    fn tell_heard(&mut self) {
        let mut told = false;
        for (channel, an) in self.secy.heard() {
            // A lost word of this kind only keeps an old SA a little longer: the next sync tells again.
            let _ = self.news.push(InboundNews::Heard { channel, an });
            told = true;
        }
        if told {
            self.key_handler.unpark();
        }
    }

    /// What is new of each channel.
    fn tell_channels(&mut self) {
        for told in &mut self.channels {
            let channel = told.number;
            let counters = self.secy.counters(channel).unwrap_or_default();
            let lowest_pn = std::array::from_fn(|index| {
                let an = An::from_low_bits(index as u8);
                self.secy
                    .accepted(channel, an)
                    .map_or(0, |accepted| accepted.lowest_pn)
            });
            let news = InboundNews::Channel {
                channel,
                counters,
                lowest_pn,
            };
            let now = Some((counters, lowest_pn));
            // News that find no room are told the next time.
            if told.last != now && self.news.push(news).is_ok() {
                told.last = now;
            }
        }
    }

    fn tell_ports(&mut self) {
        let counters = port_counters(self.line.counters());
        let _ = self.news.push(InboundNews::Line {
            counters,
            strays: StrayCounters {
                bad_agreement: self.oversized_agreement,
                ..self.secy.strays()
            },
        });
        if let Some(impairments) = self.line.impairments() {
            let impairments = port_impairments(&impairments);
            let _ = self.news.push(InboundNews::Impaired(impairments));
        }
        for exit in &self.exits {
            let _ = self.news.push(InboundNews::ClientDropped {
                client: exit.number,
                frames: exit.dropped,
            });
        }
    }

    /// Nothing moved: sleeps until a frame or a change comes or news are due.
    fn rest(&self) -> Result<(), PortError> {
        let nap = self.news_times.nap(self.clock.now_ns());
        let mut rest = Rest::new(&self.waker, nap);
        rest.port(&*self.line);
        rest.sleep()
    }

    /// The same for whoever has this half beside another.
    pub(super) fn rest_beside<'a>(&'a self, rest: &mut Rest<'a>, now_ns: u64) {
        rest.port(&*self.line);
        rest.no_longer_than(self.news_times.nap(now_ns));
    }
}

impl Exit {
    fn take(&mut self, frame: &[u8], witness: &mut Witness) -> Result<(), PortError> {
        if self.batch.push(frame) {
            return Ok(());
        }
        self.flush(witness)?;
        if !self.batch.push(frame) {
            self.dropped += 1;
        }
        Ok(())
    }

    fn flush(&mut self, witness: &mut Witness) -> Result<(), PortError> {
        if !self.batch.is_empty() {
            let patience = &mut self.patience;
            witness.client(self.number, Way::Transmitted, self.batch.frames());
            self.dropped += hand_out(&mut *self.port, &mut self.batch, patience, pause)? as u64;
        }
        Ok(())
    }
}
