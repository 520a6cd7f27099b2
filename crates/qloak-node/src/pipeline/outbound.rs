//! The protecting thread: client ports -> classify -> mux -> shape -> protect -> line port.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use qloak_api::{Carriage, ChannelNumber, ClientPort};
use qloak_port::{Batch, Port, PortError, Waker};
use qloak_secy::{ChannelRef, LineFrames, Muxed, Outbound, Room, Sa};
use rtrb::{Consumer, Producer};

use super::{
    CHANNEL_NEWS_NS, NAP, PORT_NEWS_NS, Patience, SHORT_NAP, hand_out,
    news::{OutboundChange, OutboundNews, port_counters},
    room,
};
use crate::clock::Clock;

/// Everything the thread holds.
pub(crate) struct OutboundThread {
    pub(crate) secy: Outbound,
    pub(crate) clients: Vec<Entrance>,
    pub(crate) trunks: Vec<Trunk>,
    pub(crate) line: Box<dyn Port>,
    pub(crate) changes: Consumer<OutboundChange>,
    pub(crate) news: Producer<OutboundNews>,
    pub(crate) spent: Producer<Sa>,
    pub(crate) clock: Clock,
    pub(crate) waker: Arc<Waker>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) line_patience: Patience,
    /// Line frames that the line port would not take in time.
    pub(crate) line_dropped: u64,
}

/// A client port on its way in.
pub(crate) struct Entrance {
    pub(crate) number: ClientPort,
    pub(crate) channel: ChannelRef,
    pub(crate) port: Box<dyn Port>,
    pub(crate) batch: Batch,
    pub(crate) discarded_closed: u64,
    pub(crate) discarded_oversize: u64,
}

/// An aggregated channel and its line frames under construction.
pub(crate) struct Trunk {
    pub(crate) channel: ChannelRef,
    pub(crate) batch: Batch,
}

impl OutboundThread {
    /// Runs until the node stops.
    ///
    /// # Errors
    /// When a port fails for good: the interface is gone.
    pub(crate) fn run(mut self) -> Result<(), PortError> {
        let mut channel_news_ns = 0;
        let mut port_news_ns = 0;
        while !self.stop.load(Ordering::Relaxed) {
            self.apply_changes();
            let moved = self.round()?;
            let now_ns = self.clock.now_ns();
            if now_ns >= channel_news_ns {
                channel_news_ns = now_ns + CHANNEL_NEWS_NS;
                self.tell_channels();
            }
            if now_ns >= port_news_ns {
                port_news_ns = now_ns + PORT_NEWS_NS;
                self.tell_clients();
            }
            if moved == 0 {
                self.rest()?;
            }
        }
        Ok(())
    }

    /// One batch of each client port through the whole way. Returns how many client frames moved.
    fn round(&mut self) -> Result<usize, PortError> {
        let mut moved = 0;
        for index in 0..self.clients.len() {
            let entrance = &mut self.clients[index];
            moved += entrance.port.receive(&mut entrance.batch)?;
            if entrance.batch.is_empty() {
                continue;
            }
            if !self
                .secy
                .is_open(entrance.channel.number, self.clock.now_ns())
            {
                entrance.discarded_closed += entrance.batch.len() as u64;
                entrance.batch.clear();
                continue;
            }
            match entrance.channel.carriage {
                Carriage::Transparent => self.carry(index)?,
                Carriage::Aggregated => self.mux(index)?,
            }
        }
        for index in 0..self.trunks.len() {
            self.depart(index)?;
        }
        Ok(moved)
    }

    /// Transparent: the client frames themselves become line frames, where they lie.
    fn carry(&mut self, index: usize) -> Result<(), PortError> {
        let now_ns = self.clock.now_ns();
        let entrance = &mut self.clients[index];
        let protected = self.secy.protect(
            entrance.channel,
            entrance.batch.frames_mut().iter_mut().map(room),
            now_ns,
        );
        entrance.discarded_closed += protected.no_sa as u64;
        entrance.discarded_oversize += protected.too_long as u64;
        entrance.batch.retain(|frame| !frame.is_empty());
        let patience = &mut self.line_patience;
        self.line_dropped += hand_out(&mut *self.line, &mut entrance.batch, patience)? as u64;
        Ok(())
    }

    /// Aggregated: the client frames become records of the channel's line frames.
    fn mux(&mut self, index: usize) -> Result<(), PortError> {
        let Some(trunk) = self
            .trunks
            .iter()
            .position(|trunk| trunk.channel == self.clients[index].channel)
        else {
            return Ok(());
        };
        let mut next = 0;
        while next < self.clients[index].batch.len() {
            let now_ns = self.clock.now_ns();
            let entrance = &mut self.clients[index];
            let frame = entrance.batch.frames()[next].octets();
            let line = &mut Lines(&mut self.trunks[trunk].batch);
            match self
                .secy
                .mux(entrance.channel, entrance.number, frame, line, now_ns)
            {
                Muxed::LineFull if !self.trunks[trunk].batch.is_empty() => {
                    self.depart(trunk)?;
                    continue;
                }
                Muxed::Taken => {}
                Muxed::NoSa => entrance.discarded_closed += 1,
                Muxed::TooLong | Muxed::LineFull => entrance.discarded_oversize += 1,
                Muxed::Runt => {}
            }
            next += 1;
        }
        self.clients[index].batch.clear();
        Ok(())
    }

    /// The line frames of a channel leave: shape, protect, transmit.
    fn depart(&mut self, index: usize) -> Result<(), PortError> {
        let trunk = &mut self.trunks[index];
        let leaving = self.secy.shape(trunk.channel, trunk.batch.len());
        if leaving == 0 {
            return Ok(());
        }
        let now_ns = self.clock.now_ns();
        let frames = trunk.batch.frames_mut().iter_mut().take(leaving).map(room);
        self.secy.protect(trunk.channel, frames, now_ns);
        trunk.batch.retain(|frame| !frame.is_empty());
        let patience = &mut self.line_patience;
        self.line_dropped += hand_out(&mut *self.line, &mut trunk.batch, patience)? as u64;
        Ok(())
    }

    fn apply_changes(&mut self) {
        while let Ok(change) = self.changes.pop() {
            let spent = match change {
                OutboundChange::Install { channel, an, sa } => {
                    if let Err(error) = self.secy.install(channel, an, *sa) {
                        tracing::error!(%channel, %an, %error, "the SA was not installed");
                    }
                    None
                }
                OutboundChange::Encode { channel, an } => {
                    if !self.secy.encode(channel, an, self.clock.now_ns()) {
                        tracing::error!(%channel, %an, "no such SA to encode with");
                    }
                    None
                }
                OutboundChange::Retire { channel, an } => self.secy.retire(channel, an),
                OutboundChange::Close { channel } => {
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

    fn tell_channels(&mut self) {
        let mut last: Option<ChannelNumber> = None;
        for entrance in &self.clients {
            let channel = entrance.channel.number;
            // Client ports of one channel stand together, so this tells of each channel once.
            if last.replace(channel) == Some(channel) {
                continue;
            }
            let counters = self.secy.counters(channel).unwrap_or_default();
            // News that find no room are told again the next time.
            let _ = self.news.push(OutboundNews::Channel {
                channel,
                usage: self.secy.usage(channel),
                counters,
            });
        }
    }

    fn tell_clients(&mut self) {
        for entrance in &self.clients {
            let _ = self.news.push(OutboundNews::Client {
                client: entrance.number,
                counters: port_counters(entrance.port.counters()),
                discarded_closed: entrance.discarded_closed + self.secy.refused(entrance.number),
                discarded_oversize: entrance.discarded_oversize,
            });
        }
        let _ = self.news.push(OutboundNews::LineDropped(self.line_dropped));
    }

    /// Nothing moved: sleeps until a frame or a change comes, a millisecond at most.
    fn rest(&self) -> Result<(), PortError> {
        let mut descriptors: Vec<BorrowedFd<'_>> = Vec::with_capacity(self.clients.len() + 1);
        descriptors.extend(
            self.clients
                .iter()
                .filter_map(|entrance| entrance.port.descriptor()),
        );
        let all = descriptors.len() == self.clients.len();
        descriptors.push(self.waker.descriptor());
        qloak_port::wait(&descriptors, if all { NAP } else { SHORT_NAP })?;
        // What was pushed before the wake is popped after this; a later wake ends the next rest.
        self.waker.clear();
        Ok(())
    }
}

/// A batch of line frames as the mux sees it.
struct Lines<'a>(&'a mut Batch);

impl LineFrames for Lines<'_> {
    fn free(&self) -> usize {
        self.0.spare()
    }

    fn begin(&mut self) -> Option<Room<'_>> {
        self.0.extend().map(room)
    }

    fn last(&mut self) -> Option<Room<'_>> {
        self.0.frames_mut().last_mut().map(room)
    }
}
