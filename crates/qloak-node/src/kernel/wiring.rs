//! A node whose frames the kernel carries, put together.
//!
//! ```text
//!   thread      holds                                            wakes for
//!   kernel      netlink, line (agreement frames alone)           agreement frames, changes, time
//!   keys        KeyHandler                                       agreement frames, letters, time
//!   tokio       management door, client of the KME               the network
//! ```

use std::sync::{Arc, atomic::AtomicBool, mpsc};

use arc_swap::ArcSwap;
use qloak_api::{
    SuiteEntry,
    manage::{ClientState, PortCounters, PortState},
};
use qloak_cipher::level::Level;
use qloak_door::Door;
use qloak_port::{Port, PortConfig, Waker};
use qloak_secy::frame::ETHERTYPE_AGREEMENT;

use super::{KernelSa, KernelThread, RingOutlet, Rings};
use crate::{
    Error,
    clock::Clock,
    config::{Config, KernelMacsec},
    key_handler::{
        KeyHandler,
        drive::{Desk, Driver, Sluice},
        source::{self, Source},
    },
    limits,
    manage::{self, Manage},
    node::{self, Node},
    state::Picture,
};

/// Makes the interfaces ready, starts the threads and listens.
pub(crate) fn start(
    config: &Config,
    kernel: &KernelMacsec,
    level: Level,
    library: Vec<SuiteEntry>,
    door: Door,
    source: Source,
) -> Result<Node, Error> {
    // The kernel changes no interface's suite, so nobody may be told that it could.
    let offered = config.channels.iter().map(|channel| channel.suite).take(1);
    let core = KeyHandler::new(node::key_handler(config, offered.collect()))
        .map_err(|refusal| Error::KeyHandler(refusal.to_string()))?;
    let line = agreement_port(config)?;

    let clock = Clock::started_now();
    let stop = Arc::new(AtomicBool::new(false));
    let waker = Arc::new(Waker::new()?);
    let (outbound_changes, changes_outbound) = rtrb::RingBuffer::new(limits::CHANGE_RING);
    let (inbound_changes, changes_inbound) = rtrb::RingBuffer::new(limits::CHANGE_RING);
    let (outbound_news, news_outbound) = rtrb::RingBuffer::new(limits::NEWS_RING);
    let (inbound_news, news_inbound) = rtrb::RingBuffer::new(limits::NEWS_RING);
    let (control_in, control) = rtrb::RingBuffer::new(limits::CONTROL_RING);
    let (agreement, agreement_out) = rtrb::RingBuffer::new(limits::CONTROL_RING);
    let (letters, inbox) = mpsc::sync_channel(limits::COMMANDS_WAITING);
    let (asked, asking) = tokio::sync::mpsc::channel(limits::COMMANDS_WAITING);

    let clients = client_states(config, kernel);
    let picture = Picture::new(config.clone(), node::port_state(&*line), clients);
    let published = Arc::new(ArcSwap::from_pointee(picture.draw(core.state(0), 0)));
    let mut thread = KernelThread::new(
        config,
        kernel,
        line,
        Rings {
            outbound: changes_outbound,
            inbound: changes_inbound,
            outbound_news,
            inbound_news,
            control: control_in,
            agreement: agreement_out,
        },
        clock,
        Arc::clone(&waker),
        Arc::clone(&stop),
    )?;
    let driver: Driver<KernelSa> = Driver {
        core,
        clock,
        level,
        outlet: Box::new(RingOutlet {
            ring: agreement,
            waker: Arc::clone(&waker),
        }),
        inbox,
        source: asked,
        control,
        outbound_news: news_outbound,
        inbound_news: news_inbound,
        outbound: Sluice::new(outbound_changes),
        outbound_waker: Arc::clone(&waker),
        inbound: Sluice::new(inbound_changes),
        inbound_waker: waker,
        unasked: Vec::new(),
        spent: Vec::new(),
        picture,
        published: Arc::clone(&published),
        stop: Arc::clone(&stop),
    };
    let name = &config.name;
    let keys = node::spawn(&format!("{name}-keys"), &stop, move || {
        driver.run();
        Ok(())
    })?;
    thread.key_handler = Some(keys.thread().clone());
    let desk = Desk::new(letters, keys.thread().clone());
    let threads = vec![
        keys,
        node::spawn(&format!("{name}-kernel"), &stop, move || thread.run())?,
    ];
    tokio::spawn(source::run(source, asking, desk.clone()));
    let routes = manage::router(Arc::new(Manage {
        published,
        library,
        desk,
        captures: None,
    }));
    tracing::info!(node = %config.name, manage = %door.address(), channels = config.channels.len(), "node started; the kernel carries the frames");
    Ok(Node {
        stop,
        threads,
        door,
        routes,
    })
}

/// The line for agreement frames alone: its data frames and its offloads are the kernel's business.
fn agreement_port(config: &Config) -> Result<Box<dyn Port>, Error> {
    let mut line = config.line.clone();
    for lane in &mut line.lanes {
        if let PortConfig::AfPacket(port) = lane {
            port.ethertype = Some(ETHERTYPE_AGREEMENT);
        }
    }
    node::opened_line(&line)
}

fn client_states(config: &Config, kernel: &KernelMacsec) -> Vec<ClientState> {
    let state = |channel: &crate::config::Channel| {
        let number = *channel.clients.first()?;
        Some(ClientState {
            number,
            channel: channel.number,
            port: PortState {
                name: kernel.interfaces.get(&number)?.name.clone(),
                kind: "macsec".to_owned(),
                counters: PortCounters::default(),
                impairments: None,
            },
            discarded_closed: 0,
            discarded_oversize: 0,
            delivered_frames: 0,
        })
    };
    config.channels.iter().filter_map(state).collect()
}
