//! What the outbound thread is made of: an entrance for each client port, a trunk for each aggregated channel.

use std::collections::BTreeSet;

use qloak_api::Carriage;
use qloak_port::{Batch, Sizes};
use qloak_secy::Outbound;

use super::{Ports, sizes};
use crate::{
    Error,
    config::{Channel, Config},
    limits,
    pipeline::{
        fair::Share,
        outbound::{Destination, Entrance, Told},
        trunk::Trunk,
    },
};

/// What the outbound thread is made of.
pub(super) struct OutboundParts {
    pub(super) secy: Outbound,
    pub(super) entrances: Vec<Entrance>,
    pub(super) trunks: Vec<Trunk>,
    pub(super) paced: Vec<usize>,
    pub(super) trunk_of: Vec<Option<usize>>,
    pub(super) leaving: Batch,
    pub(super) told: Vec<Told>,
}

impl OutboundParts {
    pub(super) fn new(config: &Config, ports: &Ports, mut secy: Outbound) -> Result<Self, Error> {
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
            told.push(Told::new(channel.number, trunk));
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
