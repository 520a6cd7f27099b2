//! Which channel a client's frame goes into. Outbound, first link after the client port.
//!
//! Today a client port belongs to one channel, so this is one look into a table of 64.

use qloak_api::{Carriage, ChannelNumber, ClientPort};

use crate::channel::ChannelConfig;

/// A channel of one half, found once and then used as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRef {
    pub(crate) index: u16,
    /// The channel's number.
    pub number: ChannelNumber,
    /// How it carries client frames.
    pub carriage: Carriage,
}

/// Client port to channel.
pub(crate) struct Classifier {
    by_client: [Option<ChannelRef>; 64],
}

impl Classifier {
    pub(crate) fn new(channels: &[ChannelConfig]) -> Self {
        let mut by_client = [None; 64];
        for (index, channel) in channels.iter().enumerate() {
            let reference = ChannelRef {
                index: index as u16,
                number: channel.number,
                carriage: channel.carriage,
            };
            for client in &channel.clients {
                by_client[usize::from(client.number() - 1)] = Some(reference);
            }
        }
        Self { by_client }
    }

    pub(crate) fn of(&self, client: ClientPort) -> Option<ChannelRef> {
        self.by_client[usize::from(client.number() - 1)]
    }
}

/// Channel number to index: a table that stays in the nearest cache.
pub(crate) struct Numbers {
    by_number: Box<[Option<ChannelRef>]>,
}

impl Numbers {
    pub(crate) fn new(channels: &[ChannelConfig]) -> Self {
        let entries = usize::from(qloak_api::limits::CHANNELS_MAX) + 1;
        let mut by_number = vec![None; entries].into_boxed_slice();
        for (index, channel) in channels.iter().enumerate() {
            by_number[usize::from(channel.number.number())] = Some(ChannelRef {
                index: index as u16,
                number: channel.number,
                carriage: channel.carriage,
            });
        }
        Self { by_number }
    }

    /// By the port part of an SCI, any value.
    pub(crate) fn of(&self, number: u16) -> Option<ChannelRef> {
        self.by_number.get(usize::from(number)).copied().flatten()
    }
}
