//! The protecting thread: client ports -> classify -> mux -> shape -> protect -> line port.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::Thread,
    time::Duration,
};

use qloak_api::{An, ChannelNumber, ClientPort, manage::OutboundCounters};
use qloak_port::{Batch, Port, PortError, Waker, capture::Way};
use qloak_secy::{ChannelRef, Muxed, Outbound, Sa, Station, Usage};
use rtrb::{Consumer, Producer};

use super::{
    Patience,
    fair::Share,
    hand_out,
    inbound::InboundThread,
    news::{OutboundChange, OutboundNews, port_counters},
    pause,
    rest::{NewsTimes, Rest},
    room,
    trunk::{ALL, Trunk},
};
use crate::{capture::witness::Witness, clock::Clock, latency::Stopwatch};

/// An open line frame that is due within this is not slept for: the kernel may be 50 us late.
const AWAKE_NS: u64 = 60_000;

/// Everything the thread holds.
pub(crate) struct OutboundThread {
    pub(crate) secy: Outbound,
    pub(crate) clients: Vec<Entrance>,
    pub(crate) trunks: Vec<Trunk>,
    /// Which of them have a constant rate.
    pub(crate) paced: Vec<usize>,
    /// The trunk of each channel, by its place; none when it is transparent.
    pub(crate) trunk_of: Vec<Option<usize>>,
    /// Line frames on their way out, of one trunk at a time.
    pub(crate) leaving: Batch,
    pub(crate) channels: Vec<Told>,
    /// Where stations of a mesh are, from the inbound half.
    pub(crate) stations: Consumer<Station>,
    pub(crate) line: Box<dyn Port>,
    pub(crate) changes: Consumer<OutboundChange>,
    pub(crate) news: Producer<OutboundNews>,
    pub(crate) spent: Producer<Sa>,
    pub(crate) key_handler: Thread,
    pub(crate) clock: Clock,
    pub(crate) waker: Arc<Waker>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) line_patience: Patience,
    /// Line frames that the line port would not take in time.
    pub(crate) line_dropped: u64,
    pub(crate) witness: Witness,
    pub(crate) stopwatch: Stopwatch,
    pub(crate) news_times: NewsTimes,
    /// Never sleeps.
    pub(crate) busy_poll: bool,
    /// The other half, when one thread runs both. It takes turns with this one, and goes on while this one waits
    /// for room on the line: the far node may wait for the same.
    pub(crate) beside: Option<Box<InboundThread>>,
}

/// A channel, and what was last told of it.
pub(crate) struct Told {
    number: ChannelNumber,
    /// Which of the trunks is the channel's; none when it is transparent.
    trunk: Option<usize>,
    last: Option<(OutboundCounters, Option<An>)>,
}

impl Told {
    /// A channel of which nothing was told.
    pub(crate) fn new(number: ChannelNumber, trunk: Option<usize>) -> Self {
        Self {
            number,
            trunk,
            last: None,
        }
    }
}

/// A client port on its way in.
pub(crate) struct Entrance {
    pub(crate) number: ClientPort,
    pub(crate) to: Destination,
    pub(crate) port: Box<dyn Port>,
    pub(crate) batch: Batch,
    /// When the batch was received.
    pub(crate) came_ns: u64,
    pub(crate) share: Share,
    pub(crate) discarded_closed: u64,
    pub(crate) discarded_oversize: u64,
    /// Of VLANs that no channel carries.
    pub(crate) discarded_vlan: u64,
}

/// Where the frames of a client port go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Destination {
    /// All into one channel. Which of the trunks is the channel's; none when that is transparent.
    Whole {
        channel: ChannelRef,
        trunk: Option<usize>,
    },
    /// Each where its VLAN and its destination lead, all of them aggregated.
    Sorted,
}

impl Destination {
    /// The trunk that has to have room before the port is asked.
    fn trunk(self) -> Option<usize> {
        match self {
            Self::Whole { trunk, .. } => trunk,
            Self::Sorted => None,
        }
    }
}

impl OutboundThread {
    /// Runs until the node stops.
    ///
    /// # Errors
    /// When a port fails for good: the interface is gone.
    pub(crate) fn run(mut self) -> Result<(), PortError> {
        while !self.stop.load(Ordering::Relaxed) {
            let mut moved = self.turn()?;
            if let Some(inbound) = &mut self.beside {
                moved |= inbound.turn()?;
            }
            if !moved && !self.busy_poll {
                self.rest()?;
            }
        }
        Ok(())
    }

    /// Changes, a round, and news. Returns what the round returns.
    fn turn(&mut self) -> Result<bool, PortError> {
        self.apply_changes();
        self.witness.look();
        let moved = self.round()?;
        self.tell_due();
        let now_ns = self.clock.now_ns();
        if moved {
            self.news_times.happened();
        }
        if self.news_times.channels(now_ns) {
            self.tell_channels();
        }
        if self.news_times.ports(now_ns) {
            self.tell_clients();
        }
        Ok(moved)
    }

    /// One batch of each client port whose turn it is through the whole way. Returns whether client frames
    /// moved, or would have but for their port's debt.
    fn round(&mut self) -> Result<bool, PortError> {
        let mut moved = false;
        for index in 0..self.clients.len() {
            moved |= self.enter(index)?;
            self.beat()?;
        }
        for index in 0..self.trunks.len() {
            self.depart(index, self.clock.now_ns())?;
        }
        Ok(moved)
    }

    /// The same of one client port.
    fn enter(&mut self, index: usize) -> Result<bool, PortError> {
        let entrance = &mut self.clients[index];
        let (to, trunk) = (entrance.to, entrance.to.trunk());
        if trunk.is_some_and(|trunk| !self.trunks[trunk].has_room()) {
            return Ok(false);
        }
        // What found no room in the line frames of a constant rate is still in the batch.
        let now_ns = if entrance.batch.is_empty() {
            if !entrance.share.turn() {
                return Ok(true);
            }
            entrance.port.receive(&mut entrance.batch)?;
            if entrance.batch.is_empty() {
                return Ok(false);
            }
            let octets = entrance.batch.frames().iter().map(qloak_port::Frame::len);
            entrance.share.pay(octets.sum());
            let frames = entrance.batch.frames();
            self.witness.client(entrance.number, Way::Received, frames);
            entrance.came_ns = self.clock.now_ns();
            entrance.came_ns
        } else {
            self.clock.now_ns()
        };
        let Destination::Whole { channel, trunk } = to else {
            self.sort(index)?;
            return Ok(true);
        };
        if !self.secy.is_open(channel.number, now_ns) {
            entrance.discarded_closed += entrance.batch.len() as u64;
            entrance.batch.clear();
            return Ok(true);
        }
        match trunk {
            None => self.carry(index, channel, now_ns)?,
            Some(trunk) => self.mux(index, channel, trunk)?,
        }
        Ok(true)
    }

    /// Transparent: the client frames themselves become line frames, where they lie.
    fn carry(&mut self, index: usize, channel: ChannelRef, now_ns: u64) -> Result<(), PortError> {
        let entrance = &mut self.clients[index];
        let protected = self.secy.protect(
            channel,
            entrance.batch.frames_mut().iter_mut().map(room),
            now_ns,
        );
        entrance.discarded_closed += protected.no_sa as u64;
        entrance.discarded_oversize += protected.too_long as u64;
        entrance.batch.retain(|frame| !frame.is_empty());
        let frames = entrance.batch.len();
        self.witness.line(Way::Transmitted, entrance.batch.frames());
        let patience = &mut self.line_patience;
        let meanwhile = || meanwhile(&mut self.beside);
        let dropped = hand_out(&mut *self.line, &mut entrance.batch, patience, meanwhile)?;
        self.line_dropped += dropped as u64;
        if frames > dropped {
            let took_ns = self.clock.now_ns().saturating_sub(entrance.came_ns);
            self.stopwatch.record(took_ns, (frames - dropped) as u64);
        }
        Ok(())
    }

    /// Aggregated: the client frames become records of the channel's line frames.
    fn mux(&mut self, index: usize, channel: ChannelRef, trunk: usize) -> Result<(), PortError> {
        let mut next = 0;
        while next < self.clients[index].batch.len() && self.trunks[trunk].has_room() {
            self.put((index, next), channel, trunk)?;
            next += 1;
        }
        self.clients[index].batch.drop_front(next);
        Ok(())
    }

    /// Of several channels: each client frame becomes a record of the one that it belongs to, or of each of a mesh.
    fn sort(&mut self, index: usize) -> Result<(), PortError> {
        for next in 0..self.clients[index].batch.len() {
            let entrance = &mut self.clients[index];
            let frame = entrance.batch.frames()[next].octets();
            let route = self.secy.route(entrance.number, frame, self.clock.now_ns());
            entrance.discarded_vlan += u64::from(route.channels().next().is_none());
            for channel in route.channels() {
                if let Some(trunk) = self.trunk_of[channel.index()] {
                    self.put((index, next), channel, trunk)?;
                }
            }
        }
        self.clients[index].batch.clear();
        Ok(())
    }

    /// A client frame of an entrance's batch becomes a record of a channel.
    fn put(
        &mut self,
        (index, next): (usize, usize),
        channel: ChannelRef,
        trunk: usize,
    ) -> Result<(), PortError> {
        loop {
            let now_ns = self.clock.now_ns();
            let entrance = &mut self.clients[index];
            let frame = entrance.batch.frames()[next].octets();
            let line = &mut self.trunks[trunk].lines();
            match self.secy.mux(channel, entrance.number, frame, line, now_ns) {
                Muxed::LineFull if self.trunks[trunk].is_begun() => {
                    self.depart(trunk, ALL)?;
                    continue;
                }
                Muxed::Taken => self.trunks[trunk].entered(entrance.came_ns),
                Muxed::Runt => {}
                Muxed::NoSa => entrance.discarded_closed += 1,
                Muxed::TooLong | Muxed::LineFull => entrance.discarded_oversize += 1,
            }
            return Ok(());
        }
    }

    /// Channels of constant rate are looked after more often than others: a busy client port must not move
    /// the times at which their line frames leave.
    fn beat(&mut self) -> Result<(), PortError> {
        for index in 0..self.paced.len() {
            self.depart(self.paced[index], self.clock.now_ns())?;
        }
        Ok(())
    }

    /// The line frames of a channel that are due leave: shape, protect, transmit.
    fn depart(&mut self, index: usize, due_ns: u64) -> Result<(), PortError> {
        let trunk = &mut self.trunks[index];
        trunk.depart(
            &mut self.secy,
            due_ns,
            self.clock.now_ns(),
            &mut self.leaving,
        );
        if self.leaving.is_empty() {
            return Ok(());
        }
        self.news_times.happened();
        self.witness.line(Way::Transmitted, self.leaving.frames());
        let patience = &mut self.line_patience;
        let meanwhile = || meanwhile(&mut self.beside);
        self.line_dropped +=
            hand_out(&mut *self.line, &mut self.leaving, patience, meanwhile)? as u64;
        self.trunks[index].left(self.clock.now_ns(), &self.stopwatch);
        Ok(())
    }

    fn apply_changes(&mut self) {
        while let Ok(station) = self.stations.pop() {
            self.secy.learn(station, self.clock.now_ns());
        }
        while let Ok(change) = self.changes.pop() {
            self.news_times.happened();
            let spent = match change {
                OutboundChange::Install { channel, an, sa } => {
                    if let Err(error) = self.secy.install(channel, an, *sa) {
                        tracing::error!(%channel, %an, %error, "the SA was not installed");
                    }
                    None
                }
                OutboundChange::Encode { channel, an } => {
                    self.settle(channel);
                    if !self.secy.encode(channel, an, self.clock.now_ns()) {
                        tracing::error!(%channel, %an, "no such SA to encode with");
                    }
                    // The far node is told once this is known to be so.
                    self.tell_now(channel);
                    None
                }
                OutboundChange::Retire { channel, an } => {
                    self.settle(channel);
                    self.secy.retire(channel, an)
                }
                OutboundChange::Close { channel } => {
                    self.settle(channel);
                    self.secy.close(channel);
                    None
                }
                OutboundChange::Limits { channel, limits } => {
                    self.secy.set_limits(channel, limits);
                    None
                }
            };
            if let Some(sa) = spent {
                // A full ring gives it back, and it is wiped here.
                let _ = self.spent.push(sa);
            }
        }
    }

    /// What is begun is sealed under the SA that it was begun under.
    fn settle(&mut self, channel: ChannelNumber) {
        let now_ns = self.clock.now_ns();
        let of_channel = |trunk: &&mut Trunk| trunk.channel.number == channel;
        if let Some(trunk) = self.trunks.iter_mut().find(of_channel) {
            trunk.settle(&mut self.secy, now_ns);
        }
    }

    /// A rekey that has become due is asked for at once.
    fn tell_due(&mut self) {
        while let Some(channel) = self.secy.take_due() {
            self.tell_now(channel);
        }
    }

    fn tell_now(&mut self, channel: ChannelNumber) {
        if let Some(index) = self.channels.iter().position(|told| told.number == channel) {
            self.channels[index].last = None;
            self.tell_channel(index);
        }
        self.key_handler.unpark();
    }

    fn tell_channels(&mut self) {
        (0..self.channels.len()).for_each(|index| self.tell_channel(index));
    }

    /// What is new of a channel.
    fn tell_channel(&mut self, index: usize) {
        let told = &mut self.channels[index];
        let trunk = told.trunk.map(|trunk| &self.trunks[trunk]);
        let counters = OutboundCounters {
            late_frames: trunk.map_or(0, Trunk::late_frames),
            ..self.secy.counters(told.number).unwrap_or_default()
        };
        let usage = self.secy.usage(told.number);
        let now = Some((counters, usage.map(|usage: Usage| usage.an)));
        let news = OutboundNews::Channel {
            channel: told.number,
            usage,
            counters,
        };
        // News that find no room are told the next time.
        if told.last != now && self.news.push(news).is_ok() {
            told.last = now;
        }
    }

    fn tell_clients(&mut self) {
        for entrance in &self.clients {
            let _ = self.news.push(OutboundNews::Client {
                client: entrance.number,
                counters: port_counters(entrance.port.counters()),
                discarded_closed: entrance.discarded_closed + self.secy.refused(entrance.number),
                discarded_oversize: entrance.discarded_oversize,
                discarded_vlan: entrance.discarded_vlan,
            });
        }
        let _ = self.news.push(OutboundNews::LineDropped(self.line_dropped));
    }

    /// Nothing moved: sleeps until a frame or a change comes, or an open line frame or news are due. What is due
    /// soon is waited for awake: the kernel wakes nobody so exactly.
    fn rest(&self) -> Result<(), PortError> {
        let now_ns = self.clock.now_ns();
        let mut rest = Rest::new(&self.waker, self.news_times.nap(now_ns));
        let due_ns = self.trunks.iter();
        let due_ns = due_ns.filter_map(|trunk| trunk.next_ns(&self.secy)).min();
        if let Some(due_ns) = due_ns {
            let due_ns = due_ns.saturating_sub(now_ns);
            if due_ns < AWAKE_NS {
                // Whoever yields on a busy machine comes back too late for a beat, so a beat is waited for.
                if self.paced.is_empty() {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
                return Ok(());
            }
            rest.no_longer_than(Duration::from_nanos(due_ns - AWAKE_NS));
        }
        // A port whose channel has no room is not waited for: it would have something to say all the time.
        let wanted = self.clients.iter().filter(|entrance| {
            let trunk = entrance.to.trunk();
            trunk.is_none_or(|trunk| self.trunks[trunk].has_room())
        });
        wanted.for_each(|entrance| rest.port(&*entrance.port));
        if let Some(inbound) = &self.beside {
            inbound.rest_beside(&mut rest, now_ns);
        }
        rest.sleep()
    }
}

/// What a thread does while the line has no room.
fn meanwhile(beside: &mut Option<Box<InboundThread>>) -> Result<(), PortError> {
    if let Some(inbound) = beside
        && inbound.turn()?
    {
        return Ok(());
    }
    pause()
}
