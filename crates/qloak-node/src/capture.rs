//! Captures: frames of either side of the node, recorded while they pass, for an operator who wants to see them.
//!
//! ```text
//!   outbound thread  witness --ring--.
//!   inbound thread   witness --ring--+--> recorder (a task of the door) --pcapng--> operator
//!   keys thread      witness --ring--'
//! ```
//!
//! A thread that carries frames has a [`witness::Witness`]. As long as nobody asks, it costs one look a round. When a
//! capture begins, it is handed a ring whose memory was made for it, and puts copies of frames into it; what finds no
//! room is dropped from the capture and counted, and no frame of the data path ever waits. When the capture is over, the
//! ring goes back to where it was made.
//!
//! What always holds: the node's own configuration says which side may be recorded, and no request changes that; one
//! capture runs at a time; a witness sees frames at the ports alone, where there are no keys.

pub(crate) mod recorder;
pub(crate) mod witness;

use std::sync::{Arc, atomic::AtomicBool};

use qloak_port::{Port, Waker};
use tokio::sync::Mutex;

use crate::{clock::Clock, config::Config};
use recorder::{Captures, Shown, Threads};
use witness::{Witness, witness};

/// For programs that take a capture over the network: cuts the stream into whole blocks and counts.
pub use qloak_port::capture::Blocks;

/// One witness for each thread that carries frames.
pub(crate) struct Witnesses {
    pub(crate) outbound: Witness,
    pub(crate) inbound: Witness,
    /// Of the key handler's thread, which sends agreement frames.
    pub(crate) keys: Witness,
}

/// The witnesses of a node, and the captures that they are for. The wakers are those of the outbound and the inbound
/// thread.
pub(crate) fn ready<'a>(
    config: &Config,
    line: &dyn Port,
    clients: impl Iterator<Item = (qloak_api::ClientPort, &'a dyn Port)>,
    clock: Clock,
    stop: &Arc<AtomicBool>,
    wakers: [&Arc<Waker>; 2],
) -> (Witnesses, Captures) {
    let [outbound, inbound] = wakers.map(|waker| (witness(clock), Some(Arc::clone(waker))));
    let keys = (witness(clock), None);
    let mut threads = Vec::new();
    let mut placed = |((witness, lead), waker): ((Witness, witness::Lead), _)| {
        threads.push(Threads { lead, waker });
        witness
    };
    let witnesses = Witnesses {
        outbound: placed(outbound),
        inbound: placed(inbound),
        keys: placed(keys),
    };
    let line = Shown {
        port: 0,
        name: format!("line {}", line.name()),
        description: format!(
            "line port of {}: frames as protected, and key agreement",
            config.name
        ),
    };
    let clients = clients.map(|(number, port)| Shown {
        port: number.number(),
        name: format!("client {number} {}", port.name()),
        description: format!(
            "client port {number} of {}: frames in the clear",
            config.name
        ),
    });
    let captures = Captures {
        node: config.name.to_string(),
        ports: std::iter::once(line).chain(clients).collect(),
        allowed: config.capture,
        config_file: config.file.clone(),
        clock,
        stop: Arc::clone(stop),
        leads: Arc::new(Mutex::new(threads)),
    };
    (witnesses, captures)
}
