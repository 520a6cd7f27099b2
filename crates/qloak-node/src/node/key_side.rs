//! The side of a node that every data plane has beside it: key handler, client of the KME, management.
//!
//! ```text
//!   management door -- desk --+
//!                             +--> key handler's thread <== rings ==> whoever carries the frames
//!   KME ------------ source --+            |
//!                                          +--> published state
//! ```

use std::{
    sync::{Arc, atomic::AtomicBool, mpsc},
    thread::{JoinHandle, Thread},
};

use arc_swap::ArcSwap;
use qloak_api::{
    SuiteEntry,
    manage::{ClientState, PortState},
};
use qloak_cipher::level::Level;
use qloak_door::Door;
use qloak_port::Waker;
use qloak_secy::Sa;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{Node, spawn};
use crate::{
    Error,
    capture::recorder::Captures,
    clock::Clock,
    config::Config,
    key_handler::{
        drive::{Desk, Driver, Sluice},
        peers::KeyHandlers,
        plane::{Association, Outlet},
        source::{self, Source},
    },
    latency::Histogram,
    limits,
    manage::{self, Manage},
    pipeline::news::{ControlFrame, InboundChange, InboundNews, OutboundChange, OutboundNews},
    state::Picture,
};

/// What stands before any port is opened.
pub(crate) struct KeySide {
    pub(crate) config: Config,
    pub(crate) level: Level,
    pub(crate) library: Vec<SuiteEntry>,
    pub(crate) door: Door,
    /// By peer.
    pub(crate) sources: Vec<Source>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
}

/// The data plane as the key handler meets it.
pub(crate) struct Plane<A> {
    pub(crate) handlers: KeyHandlers,
    pub(crate) rings: KeyRings<A>,
    pub(crate) outlet: Box<dyn Outlet + Send>,
    /// Of the outbound and of the inbound half.
    pub(crate) wakers: [Arc<Waker>; 2],
    pub(crate) spent: Vec<Consumer<Sa>>,
    pub(crate) line: PortState,
    pub(crate) clients: Vec<ClientState>,
    /// Outbound and inbound times of client frames, where the node sees them.
    pub(crate) times: Option<[Arc<Histogram>; 2]>,
    /// Where frames are recorded, where the node sees them.
    pub(crate) captures: Option<Captures>,
}

/// The key handler's ends of the rings.
pub(crate) struct KeyRings<A> {
    outbound: Producer<OutboundChange<A>>,
    inbound: Producer<InboundChange<A>>,
    outbound_news: Consumer<OutboundNews>,
    inbound_news: Consumer<InboundNews>,
    control: Consumer<ControlFrame>,
}

/// The data plane's ends.
pub(crate) struct PlaneRings<A> {
    pub(crate) outbound: Consumer<OutboundChange<A>>,
    pub(crate) inbound: Consumer<InboundChange<A>>,
    pub(crate) outbound_news: Producer<OutboundNews>,
    pub(crate) inbound_news: Producer<InboundNews>,
    /// Agreement frames from the line.
    pub(crate) control: Producer<ControlFrame>,
}

/// Changes one way, news and agreement frames the other.
pub(crate) fn rings<A>() -> (KeyRings<A>, PlaneRings<A>) {
    let (outbound, outbound_changes) = RingBuffer::new(limits::CHANGE_RING);
    let (inbound, inbound_changes) = RingBuffer::new(limits::CHANGE_RING);
    let (tell_outbound, outbound_news) = RingBuffer::new(limits::NEWS_RING);
    let (tell_inbound, inbound_news) = RingBuffer::new(limits::NEWS_RING);
    let (tell_control, control) = RingBuffer::new(limits::CONTROL_RING);
    let keys = KeyRings {
        outbound,
        inbound,
        outbound_news,
        inbound_news,
        control,
    };
    let plane = PlaneRings {
        outbound: outbound_changes,
        inbound: inbound_changes,
        outbound_news: tell_outbound,
        inbound_news: tell_inbound,
        control: tell_control,
    };
    (keys, plane)
}

/// The key handler runs; whoever carries the frames is still to be started.
pub(crate) struct Running {
    side: KeySide,
    keys: JoinHandle<Result<(), Error>>,
    asking: Vec<tokio::sync::mpsc::Receiver<source::Asked>>,
    manage: Manage,
}

impl KeySide {
    /// Starts the key handler beside a data plane.
    pub(crate) fn start<A: Association + Send + 'static>(
        mut self,
        plane: Plane<A>,
    ) -> Result<Running, Error> {
        let (letters, inbox) = mpsc::sync_channel(limits::COMMANDS_WAITING);
        let queues = self.sources.iter();
        let queues = queues.map(|_| tokio::sync::mpsc::channel(limits::COMMANDS_WAITING));
        let (sources, asking) = queues.unzip();
        let picture =
            Picture::new(self.config.clone(), plane.line, plane.clients).with_times(plane.times);
        let first = picture.draw(plane.handlers.state(0), 0);
        let published = Arc::new(ArcSwap::from_pointee(first));
        let [outbound_waker, inbound_waker] = plane.wakers;
        let driver = Driver {
            handlers: plane.handlers,
            clock: self.clock,
            level: self.level,
            outlet: plane.outlet,
            inbox,
            sources,
            control: plane.rings.control,
            outbound_news: plane.rings.outbound_news,
            inbound_news: plane.rings.inbound_news,
            outbound: Sluice::new(plane.rings.outbound),
            outbound_waker,
            inbound: Sluice::new(plane.rings.inbound),
            inbound_waker,
            unasked: Vec::new(),
            spent: plane.spent,
            picture,
            published: Arc::clone(&published),
            stop: Arc::clone(&self.stop),
        };
        let keys = spawn(
            &format!("{}-keys", self.config.name),
            &self.stop,
            move || {
                driver.run();
                Ok(())
            },
        )?;
        let manage = Manage {
            published,
            library: std::mem::take(&mut self.library),
            desk: Desk::new(letters, keys.thread().clone()),
            captures: plane.captures,
        };
        Ok(Running {
            side: self,
            keys,
            asking,
            manage,
        })
    }
}

impl Running {
    /// The key handler's thread, to be woken when something came for it.
    pub(crate) fn thread(&self) -> Thread {
        self.keys.thread().clone()
    }

    /// The node, with the threads that carry its frames.
    pub(crate) fn finish(self, carriers: Vec<JoinHandle<Result<(), Error>>>) -> Node {
        let KeySide {
            config,
            level,
            door,
            sources,
            stop,
            ..
        } = self.side;
        for (peer, (source, asking)) in sources.into_iter().zip(self.asking).enumerate() {
            tokio::spawn(source::run(source, peer, asking, self.manage.desk.clone()));
        }
        tracing::info!(node = %config.name, manage = %door.address(), level = level.name(), channels = config.channels.len(), kernel = config.kernel.is_some(), "node started");
        let mut threads = vec![self.keys];
        threads.extend(carriers);
        Node {
            stop,
            threads,
            door,
            routes: manage::router(Arc::new(self.manage)),
        }
    }
}
