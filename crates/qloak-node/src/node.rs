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
    collections::BTreeSet,
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
    Error, capture,
    clock::Clock,
    config::{Channel, Config, Peer, Pipeline},
    cores, kernel,
    key_handler::{
        AgreeChannel, KeyHandlerConfig, Timings, peers::KeyHandlers, plane::LineOutlet,
        source::Source,
    },
    latency::Histogram,
    library, limits,
    pipeline::{
        Patience,
        fair::Share,
        inbound::{self, Exit, InboundThread},
        news::port_impairments,
        outbound::{self, Destination, Entrance, OutboundThread},
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
        let peers = config.peers();
        let sources = peers
            .iter()
            .map(|peer| Source::new(&peer.kme, peer.name.clone()));
        let sources = sources.collect::<Result<_, _>>()?;
        let side = KeySide {
            config,
            level,
            library,
            door,
            sources,
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
        let handlers = key_handlers(&config, offered)?;
        let outbound_waker = Arc::new(Waker::new()?);
        let inbound_waker = match config.pipeline.threads {
            1 => Arc::clone(&outbound_waker),
            _ => Arc::new(Waker::new()?),
        };
        let (key_rings, rings) = key_side::rings();
        let (spent_outbound, outbound_spent) = rtrb::RingBuffer::new(limits::SPENT_RING);
        let (spent_inbound, inbound_spent) = rtrb::RingBuffer::new(limits::SPENT_RING);
        let sizes = sizes();
        let [
            (outbound_stopwatch, outbound_times),
            (inbound_stopwatch, inbound_times),
        ] = [Histogram::new(), Histogram::new()];
        let clients = ports.clients.iter();
        let (witnesses, captures) = capture::ready(
            &config,
            &*ports.line,
            clients.map(|(number, port)| (*number, &**port as &dyn Port)),
            clock,
            &stop,
            [&outbound_waker, &inbound_waker],
        );
        let running = side.start(Plane {
            handlers,
            rings: key_rings,
            outlet: Box::new(LineOutlet {
                line: ports.line.twin()?,
                batch: Batch::with_sizes(1, sizes),
                witness: witnesses.keys,
            }),
            wakers: [Arc::clone(&outbound_waker), Arc::clone(&inbound_waker)],
            spent: vec![outbound_spent, inbound_spent],
            line: ports.line_state(),
            clients: ports.client_states(&config),
            times: Some([outbound_times, inbound_times]),
            captures: Some(captures),
        })?;

        let (line, channels) = secy(&config);
        let (stations_inbound, stations_outbound) = rtrb::RingBuffer::new(limits::STATION_RING);
        let parts = OutboundParts::new(&config, &ports, Outbound::new(&line, &channels)?)?;
        let outbound = OutboundThread {
            secy: parts.secy,
            clients: parts.entrances,
            trunk_of: parts.trunk_of,
            paced: parts.paced,
            leaving: parts.leaving,
            trunks: parts.trunks,
            channels: parts.told,
            stations: stations_outbound,
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
            witness: witnesses.outbound,
            stopwatch: outbound_stopwatch,
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
            stations: stations_inbound,
            spent: spent_inbound,
            key_handler: running.thread(),
            clock,
            waker: inbound_waker,
            stop: Arc::clone(&stop),
            news_times: NewsTimes::default(),
            busy_poll: config.pipeline.busy_poll,
            oversized_agreement: 0,
            witness: witnesses.inbound,
            stopwatch: inbound_stopwatch,
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
                discarded_vlan: 0,
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
        impairments: port.impairments().as_ref().map(port_impairments),
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
    let peers = config.peers();
    let channel = |channel: &Channel| ChannelConfig {
        number: channel.number,
        peer_address: peers.get(channel.peer).map(|peer| peer.address),
        carriage: channel.carriage,
        clients: channel.clients.clone(),
        vlans: channel.vlans.clone(),
        xpn: channel.xpn,
        replay_window: channel.replay_window,
        limits: channel.limits,
    };
    (line, config.channels.iter().map(channel).collect())
}

/// A key handler for each far node.
pub(crate) fn key_handlers(
    config: &Config,
    offered: Vec<&'static Suite>,
) -> Result<KeyHandlers, Error> {
    let peers = config.peers();
    let of_peer = (0..).zip(&peers);
    let configs = of_peer.map(|(index, peer)| key_handler(config, index, peer, offered.clone()));
    let numbers = config.channels.iter().map(|channel| channel.number);
    KeyHandlers::new(configs.collect(), numbers.collect())
        .map_err(|refusal| Error::KeyHandler(refusal.to_string()))
}

fn key_handler(
    config: &Config,
    index: usize,
    peer: &Peer,
    offered: Vec<&'static Suite>,
) -> KeyHandlerConfig {
    let channel = |channel: &Channel| AgreeChannel {
        number: channel.number,
        suite: channel.suite,
        limits: channel.limits,
        xpn: channel.xpn,
        carriage: channel.carriage,
    };
    KeyHandlerConfig {
        address: config.line.address,
        peer_address: peer.address,
        sae_id: config.name.clone(),
        peer_sae_id: peer.name.clone(),
        ram_slots: config.key_ram_slots,
        fill_keys: config.key_ram_fill,
        keys_per_request: peer.kme.keys_per_request,
        channels: config
            .channels
            .iter()
            .filter(|channel| channel.peer == index)
            .map(channel)
            .collect(),
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

/// What the outbound thread is made of.
struct OutboundParts {
    secy: Outbound,
    entrances: Vec<Entrance>,
    trunks: Vec<Trunk>,
    paced: Vec<usize>,
    trunk_of: Vec<Option<usize>>,
    leaving: Batch,
    told: Vec<outbound::Told>,
}

impl OutboundParts {
    fn new(config: &Config, ports: &Ports, mut secy: Outbound) -> Result<Self, Error> {
        // No line frame is longer than the line takes.
        let line_sizes = Sizes {
            octets_max: config.line.frame_octets_max,
            ..sizes()
        };
        let aggregated = |channel: &&Channel| channel.carriage == Carriage::Aggregated;
        let frames = limits::trunk_frames(config.channels.iter().filter(aggregated).count());
        let (mut trunks, mut trunk_of, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for channel in &config.channels {
            let aggregated = channel.carriage == Carriage::Aggregated;
            let reference = secy.channel(channel.number).filter(|_| aggregated);
            let trunk = reference.map(|reference| {
                secy.set_wait(channel.number, u64::from(channel.wait_us) * 1000);
                secy.set_one_size(channel.number, channel.constant_rate_bps.is_some());
                trunks.push(match channel.constant_rate_bps {
                    Some(bps) => {
                        Trunk::paced(reference, line_sizes, bps, config.line.frame_octets_max)
                    }
                    None => Trunk::new(reference, frames, line_sizes),
                });
                trunks.len() - 1
            });
            trunk_of.push(trunk);
            told.push(outbound::Told::new(channel.number, trunk));
        }
        let mut entrances = Vec::new();
        // In the order of their channels.
        let clients = config.channels.iter().flat_map(|channel| &channel.clients);
        let mut seen = BTreeSet::new();
        for client in clients.filter(|client| seen.insert(**client)) {
            let Some((_, port)) = ports.clients.iter().find(|(number, _)| number == client) else {
                continue;
            };
            entrances.push(Entrance {
                number: *client,
                to: match secy.classify(*client) {
                    Some(channel) => Destination::Whole {
                        channel,
                        trunk: trunk_of[channel.index()],
                    },
                    None => Destination::Sorted,
                },
                port: port.twin()?,
                batch: Batch::with_sizes(limits::BATCH_FRAMES, sizes()),
                came_ns: 0,
                share: Share::new(config.weights.get(client).copied().unwrap_or(1)),
                discarded_closed: 0,
                discarded_oversize: 0,
                discarded_vlan: 0,
            });
        }
        let most = trunks.iter().map(Trunk::frames).max().unwrap_or(1);
        let paced = (0..trunks.len()).filter(|&index| trunks[index].is_paced());
        Ok(Self {
            paced: paced.collect(),
            leaving: Batch::with_sizes(most, line_sizes),
            secy,
            entrances,
            trunks,
            trunk_of,
            told,
        })
    }
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
