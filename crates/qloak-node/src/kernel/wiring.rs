//! A node whose frames the kernel carries, put together.
//!
//! ```text
//!   thread      holds                                            wakes for
//!   kernel      netlink, line (agreement frames alone)           agreement frames, changes, time
//!   keys        KeyHandler                                       agreement frames, letters, time
//!   tokio       management door, client of the KME               the network
//! ```

use std::sync::Arc;

use qloak_api::manage::{ClientState, PortCounters, PortState};
use qloak_port::{Port, PortConfig, Waker};
use qloak_secy::frame::ETHERTYPE_AGREEMENT;

use super::{KernelThread, RingOutlet};
use crate::{
    Error,
    config::{Config, KernelMacsec},
    limits,
    node::{
        self, Node,
        key_side::{self, KeySide, Plane},
    },
};

/// Makes the interfaces ready and starts the threads.
pub(crate) fn start(side: KeySide, kernel: &KernelMacsec) -> Result<Node, Error> {
    let (config, stop) = (side.config.clone(), Arc::clone(&side.stop));
    // The kernel changes no interface's suite, so nobody may be told that it could.
    let offered = config.channels.iter().map(|channel| channel.suite).take(1);
    let handlers = node::key_handlers(&config, offered.collect())?;
    let line = agreement_port(&config)?;
    let waker = Arc::new(Waker::new()?);
    let (key_rings, rings) = key_side::rings();
    let (agreement, agreement_out) = rtrb::RingBuffer::new(limits::CONTROL_RING);
    let plane = Plane {
        handlers,
        rings: key_rings,
        outlet: Box::new(RingOutlet {
            ring: agreement,
            waker: Arc::clone(&waker),
        }),
        wakers: [Arc::clone(&waker), Arc::clone(&waker)],
        spent: Vec::new(),
        line: node::port_state(&*line),
        clients: client_states(&config, kernel),
        times: None,
        captures: None,
    };
    let mut thread = KernelThread::new(&side, kernel, line, rings, agreement_out, waker)?;
    let running = side.start(plane)?;
    thread.key_handler = Some(running.thread());
    let carrier = node::spawn(&format!("{}-kernel", config.name), &stop, move || {
        thread.run()
    })?;
    Ok(running.finish(vec![carrier]))
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
            discarded_vlan: 0,
            delivered_frames: 0,
        })
    };
    config.channels.iter().filter_map(state).collect()
}
