//! One node put together: ports opened, threads started, doors opened; and taken apart again.
//!
//! ```text
//!   thread      holds                                        wakes for
//!   outbound    client ports, Outbound, line (transmit)      client frames, changes
//!   inbound     line (receive), Inbound, client ports        line frames, changes
//!   both        what these two hold, with one thread         what these two wake for
//!   keys        KeyHandler, line (agreement)                 agreement frames, letters, time
//!   tokio       management door, client of the KME           the network
//! ```

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use qloak_api::{
    Carriage,
    manage::{ClientState, PortCounters, PortState},
};
use qloak_cipher::{level::Level, suite::Suite};
use qloak_door::Door;
use qloak_port::{Batch, LanesConfig, Port, PortConfig, Sizes, Waker};
use qloak_secy::{ChannelConfig, Inbound, LineConfig, Outbound, Verdict};

use crate::{
    Error,
    clock::Clock,
    config::{Config, Pipeline},
    cores, kernel,
    key_handler::{
        AgreeChannel, KeyHandler, KeyHandlerConfig, Timings, plane::LineOutlet, source::Source,
    },
    library, limits,
    pipeline::{
        Patience,
        fair::Share,
        inbound::{self, Exit, InboundThread},
        outbound::{self, Entrance, OutboundThread},
        rest::NewsTimes,
        trunk::Trunk,
    },
};

pub(crate) mod key_side;

use key_side::{KeySide, Plane};

/// How long each suite is measured at start.
const MEASURE_FOR: Duration = Duration::from_millis(5);

/// A running node.
pub(crate) struct Node {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) threads: Vec<JoinHandle<Result<(), Error>>>,
    pub(crate) door: Door,
    pub(crate) routes: axum::Router,
}

/// The ports of a node, each handle for one thread.
struct Ports {
    line: Box<dyn Port>,
    clients: Vec<(qloak_api::ClientPort, Box<dyn Port>)>,
}

impl Node {
    /// Opens the ports, tests the suites, starts the threads and listens. Must be called in a tokio
    /// runtime, where the client of the KME then lives.
    ///
    /// # Errors
    /// A port that cannot be opened, a certificate that cannot be used, an address that is taken.
    pub(crate) async fn start(config: Config, level: Level) -> Result<Self, Error> {
        let library = library::library(level, &config.hazmat, MEASURE_FOR);
        let offered: Vec<_> = library
            .iter()
            .filter(|entry| entry.offered)
            .filter_map(|entry| qloak_cipher::suite::Suite::by_name(&entry.name))
            .collect();
        if let Some(channel) = config
            .channels
            .iter()
            .find(|channel| !offered.iter().any(|suite| suite.name == channel.suite.name))
        {
            return Err(Error::SuiteFailed {
                channel: channel.number,
                suite: channel.suite.name,
            });
        }
        let certificate = qloak_door::certificate_name(&config.tls)?;
        if certificate != config.name.as_str() {
            return Err(Error::OtherCertificate {
                file: config.tls.cert.display().to_string(),
                certificate,
                name: config.name.to_string(),
            });
        }
        let door = Door::bind(
            config.manage_listen,
            qloak_door::server_config(&config.tls)?,
        )
        .await?;
        let source = Source::new(&config.kme, config.line.peer.clone())?;
        let side = KeySide {
            config,
            level,
            library,
            door,
            source,
            clock: Clock::started_now(),
            stop: Arc::default(),
        };
        match side.config.kernel.clone() {
            Some(kernel) => kernel::wiring::start(side, &kernel),
            None => Self::carry(side, offered),
        }
    }

    /// A node that carries the frames itself.
    fn carry(side: KeySide, offered: Vec<&'static Suite>) -> Result<Self, Error> {
        let (config, clock, stop) = (side.config.clone(), side.clock, Arc::clone(&side.stop));
        let ports = Ports::open(&config)?;
        let wanted = config.line.frame_octets_max;
        if let Some(takes) = ports
            .line
            .frame_octets_max()
            .filter(|takes| *takes < wanted)
        {
            let interface = ports.line.name().to_owned();
            return Err(Error::LineMtu {
                interface,
                wanted,
                takes,
            });
        }
        let core = KeyHandler::new(key_handler(&config, offered))
            .map_err(|refusal| Error::KeyHandler(refusal.to_string()))?;
        let outbound_waker = Arc::new(Waker::new()?);
        let inbound_waker = match config.pipeline.threads {
            1 => Arc::clone(&outbound_waker),
            _ => Arc::new(Waker::new()?),
        };
        let (key_rings, rings) = key_side::rings();
        let (spent_outbound, outbound_spent) = rtrb::RingBuffer::new(limits::SPENT_RING);
        let (spent_inbound, inbound_spent) = rtrb::RingBuffer::new(limits::SPENT_RING);
        let sizes = sizes();
        let running = side.start(Plane {
            core,
            rings: key_rings,
            outlet: Box::new(LineOutlet {
                line: ports.line.twin()?,
                batch: Batch::with_sizes(1, sizes),
            }),
            wakers: [Arc::clone(&outbound_waker), Arc::clone(&inbound_waker)],
            spent: vec![outbound_spent, inbound_spent],
            line: ports.line_state(),
            clients: ports.client_states(&config),
        })?;

        let (line, channels) = secy(&config);
        let outbound = outbound_parts(&config, &ports, Outbound::new(&line, &channels)?, sizes)?;
        let outbound = OutboundThread {
            secy: outbound.0,
            clients: outbound.1,
            trunks: outbound.2,
            channels: outbound.3,
            line: ports.line.twin()?,
            changes: rings.outbound,
            news: rings.outbound_news,
            spent: spent_outbound,
            key_handler: running.thread(),
            clock,
            waker: outbound_waker,
            stop: Arc::clone(&stop),
            line_patience: Patience::default(),
            line_dropped: 0,
            news_times: NewsTimes::default(),
            busy_poll: config.pipeline.busy_poll,
            beside: None,
        };
        let exit = |(number, port): (qloak_api::ClientPort, Box<dyn Port>)| Exit {
            number,
            port,
            batch: Batch::with_sizes(limits::BATCH_FRAMES, sizes),
            patience: Patience::default(),
            dropped: 0,
        };
        let inbound = InboundThread {
            secy: Inbound::new(&line, &channels)?,
            line: ports.line,
            batch: Batch::with_sizes(limits::BATCH_FRAMES, sizes),
            verdicts: [Verdict::NoTag; limits::BATCH_FRAMES],
            exits: ports.clients.into_iter().map(exit).collect(),
            channels: config
                .channels
                .iter()
                .map(|channel| inbound::Told::new(channel.number))
                .collect(),
            changes: rings.inbound,
            news: rings.inbound_news,
            control: rings.control,
            spent: spent_inbound,
            key_handler: running.thread(),
            clock,
            waker: inbound_waker,
            stop: Arc::clone(&stop),
            news_times: NewsTimes::default(),
            busy_poll: config.pipeline.busy_poll,
            oversized_agreement: 0,
        };
        Ok(running.finish(carriers(&config, &stop, outbound, inbound)?))
    }

    /// What tells and stops the node's threads.
    pub(crate) fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Takes the threads out, to be joined after the stop.
    pub(crate) fn into_parts(self) -> (Door, axum::Router, Vec<JoinHandle<Result<(), Error>>>) {
        (self.door, self.routes, self.threads)
    }
}

impl Ports {
    fn open(config: &Config) -> Result<Self, Error> {
        let clients = config
            .clients
            .iter()
            .map(|(number, port)| Ok((*number, opened(port)?)));
        Ok(Self {
            clients: clients.collect::<Result<_, Error>>()?,
            line: opened_line(&config.line)?,
        })
    }

    fn line_state(&self) -> PortState {
        port_state(&*self.line)
    }

    fn client_states(&self, config: &Config) -> Vec<ClientState> {
        let state = |(number, port): &(qloak_api::ClientPort, Box<dyn Port>)| {
            let channel = config
                .channels
                .iter()
                .find(|channel| channel.clients.contains(number))?;
            Some(ClientState {
                number: *number,
                channel: channel.number,
                port: port_state(&**port),
                discarded_closed: 0,
                discarded_oversize: 0,
                delivered_frames: 0,
            })
        };
        self.clients.iter().filter_map(state).collect()
    }
}

/// Opens a port and says what it turned out to be.
pub(crate) fn opened(config: &PortConfig) -> Result<Box<dyn Port>, Error> {
    let port = qloak_port::open_lasting(config, &sizes())?;
    tracing::info!(port = port.name(), kind = port.describe(), "port opened");
    Ok(port)
}

/// Opens the line port, of one lane or several.
pub(crate) fn opened_line(line: &crate::config::Line) -> Result<Box<dyn Port>, Error> {
    let lanes = LanesConfig {
        lanes: line.lanes.clone(),
        address: line.address.0,
        peer_address: line.peer_address.0,
        hold_ns: u64::from(line.lane_hold_us) * 1000,
    };
    let order_of = qloak_secy::sectag::claimed_order;
    let port = qloak_port::open_lanes(&lanes, &sizes(), order_of)?;
    tracing::info!(port = port.name(), kind = port.describe(), "line opened");
    Ok(port)
}

pub(crate) fn port_state(port: &dyn Port) -> PortState {
    PortState {
        name: port.name().to_owned(),
        kind: port.kind().as_str().to_owned(),
        counters: PortCounters::default(),
    }
}

/// Every batch of the node is made alike, so that frames may change hands between them.
pub(crate) fn sizes() -> Sizes {
    Sizes {
        headroom: limits::HEADROOM,
        octets_max: *limits::LINE_FRAME_OCTETS.end(),
        tailroom: limits::TAILROOM,
    }
}

fn secy(config: &Config) -> (LineConfig, Vec<ChannelConfig>) {
    let line = LineConfig {
        address: config.line.address,
        peer_address: config.line.peer_address,
        frame_octets_max: config.line.frame_octets_max,
    };
    let channel = |channel: &crate::config::Channel| ChannelConfig {
        number: channel.number,
        carriage: channel.carriage,
        clients: channel.clients.clone(),
        xpn: channel.xpn,
        replay_window: channel.replay_window,
        limits: channel.limits,
    };
    (line, config.channels.iter().map(channel).collect())
}

pub(crate) fn key_handler(
    config: &Config,
    offered: Vec<&'static qloak_cipher::suite::Suite>,
) -> KeyHandlerConfig {
    let channel = |channel: &crate::config::Channel| AgreeChannel {
        number: channel.number,
        suite: channel.suite,
        limits: channel.limits,
        xpn: channel.xpn,
        carriage: channel.carriage,
    };
    KeyHandlerConfig {
        address: config.line.address,
        peer_address: config.line.peer_address,
        sae_id: config.name.clone(),
        peer_sae_id: config.line.peer.clone(),
        ram_slots: config.key_ram_slots,
        fill_keys: config.key_ram_fill,
        keys_per_request: config.kme.keys_per_request,
        channels: config.channels.iter().map(channel).collect(),
        offered,
        boot: *uuid::Uuid::new_v4().as_bytes(),
        timings: Timings {
            drain_ns: u64::from(config.line.drain_us) * 1000,
            ..Timings::default()
        },
    }
}

/// Starts the threads that carry the frames: one each way or one for both, each on its core.
fn carriers(
    config: &Config,
    stop: &Arc<AtomicBool>,
    mut outbound: OutboundThread,
    inbound: InboundThread,
) -> Result<Vec<JoinHandle<Result<(), Error>>>, Error> {
    let (name, pipeline) = (&config.name, &config.pipeline);
    for core in &pipeline.cores {
        let far = |line| cores::distance(Path::new("/"), line, *core);
        for words in config.line.lanes.iter().filter_map(far) {
            tracing::warn!("{words}");
        }
    }
    if *pipeline != Pipeline::default() {
        tracing::info!(threads = pipeline.threads, cores = ?pipeline.cores, busy_poll = pipeline.busy_poll, "pipeline");
    }
    let [first, second] = [pipeline.core(0), pipeline.core(1)];
    if pipeline.threads == 1 {
        outbound.beside = Some(Box::new(inbound));
        let both = spawn(&format!("{name}-both"), stop, move || {
            cores::stay_on(first)?;
            outbound.run().map_err(Error::from)
        })?;
        return Ok(vec![both]);
    }
    Ok(vec![
        spawn(&format!("{name}-out"), stop, move || {
            cores::stay_on(first)?;
            outbound.run().map_err(Error::from)
        })?,
        spawn(&format!("{name}-in"), stop, move || {
            cores::stay_on(second)?;
            inbound.run().map_err(Error::from)
        })?,
    ])
}

type OutboundParts = (Outbound, Vec<Entrance>, Vec<Trunk>, Vec<outbound::Told>);

/// The entrances in the order of their channels, and a line batch for each aggregated channel.
fn outbound_parts(
    config: &Config,
    ports: &Ports,
    mut secy: Outbound,
    sizes: Sizes,
) -> Result<OutboundParts, Error> {
    let mut entrances = Vec::new();
    let mut trunks = Vec::new();
    let mut told = Vec::new();
    for channel in &config.channels {
        let Some(reference) = secy.channel(channel.number) else {
            continue;
        };
        let trunk = (channel.carriage == Carriage::Aggregated).then_some(trunks.len());
        if trunk.is_some() {
            secy.set_wait(channel.number, u64::from(channel.wait_us) * 1000);
            secy.set_one_size(channel.number, channel.constant_rate_bps.is_some());
            trunks.push(match channel.constant_rate_bps {
                Some(bps) => Trunk::paced(reference, sizes, bps, config.line.frame_octets_max),
                None => Trunk::new(reference, sizes),
            });
        }
        told.push(outbound::Told::new(channel.number, trunk));
        for (number, port) in ports
            .clients
            .iter()
            .filter(|(number, _)| channel.clients.contains(number))
        {
            entrances.push(Entrance {
                number: *number,
                channel: reference,
                trunk,
                port: port.twin()?,
                batch: Batch::with_sizes(limits::BATCH_FRAMES, sizes),
                share: Share::new(config.weights.get(number).copied().unwrap_or(1)),
                discarded_closed: 0,
                discarded_oversize: 0,
            });
        }
    }
    Ok((secy, entrances, trunks, told))
}

/// A thread that stops the whole node when it ends, by an error or a panic too: a node whose other
/// threads went on would look well and carry nothing.
pub(crate) fn spawn(
    name: &str,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<JoinHandle<Result<(), Error>>, Error> {
    let stop = StopAtEnd(Arc::clone(stop));
    // The kernel keeps 15 octets of a thread's name.
    let named = std::thread::Builder::new().name(name.chars().take(15).collect());
    named
        .spawn(move || {
            let _stop = stop;
            work()
        })
        .map_err(Error::Thread)
}

/// Stops the node when it is dropped, which a panic does as well.
struct StopAtEnd(Arc<AtomicBool>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_stops_the_node() {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = spawn("fault", &stop, || panic!("on purpose")).expect("a thread");
        assert!(thread.join().is_err());
        assert!(stop.load(Ordering::Relaxed));
    }
}
