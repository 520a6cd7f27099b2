//! Which channel a client's frame goes into. Outbound, first link after the client port.
//!
//! ```text
//!   client port --+-- one channel: all that it says             one look into a table of 64
//!                 |
//!                 +-- several: the frame's VLAN finds its group of channels
//!                        one in it:  that one
//!                        several:    a mesh of more than two nodes. The one behind which the station is
//!                                    that is spoken to ([`crate::stations`]), or a copy into each
//! ```
//!
//! Inbound the same table says whether a client frame may come out of the channel that it came in: what one
//! tenant's channel brings never reaches another's VLAN.

use qloak_api::{Carriage, ChannelNumber, ClientPort, limits::CLIENT_PORTS_MAX};

use crate::{channel::ChannelConfig, limits};

/// A channel of one half, found once and then used as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRef {
    pub(crate) index: u16,
    /// The channel's number.
    pub number: ChannelNumber,
    /// How it carries client frames.
    pub carriage: Carriage,
}

impl ChannelRef {
    /// Its place among the channels, as they were given.
    pub fn index(&self) -> usize {
        usize::from(self.index)
    }
}

/// Tag protocol identifiers of a VLAN tag (IEEE 802.1Q-2022, 9.5): customer and service.
const VLAN_TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xA8]];

/// VLAN identifiers, 0 for frames without.
const VLANS: usize = 4096;

/// The VLAN of a frame by its outer tag; 0 when it has none, or one that gives a priority only.
pub fn vlan(frame: &[u8]) -> u16 {
    match frame.get(12..16) {
        Some(&[a, b, high, low]) if VLAN_TAGS.contains(&[a, b]) => {
            u16::from_be_bytes([high, low]) & 0x0FFF
        }
        _ => 0,
    }
}

/// Client port and VLAN to channels.
pub(crate) struct Classifier {
    by_client: Vec<Entry>,
}

/// What a client port belongs to.
enum Entry {
    Nothing,
    /// One channel that takes everything.
    One([ChannelRef; 1]),
    Sorted {
        /// By VLAN, the group of its channels.
        by_vlan: Box<[u16; VLANS]>,
        /// The first is the empty one.
        groups: Vec<Vec<ChannelRef>>,
    },
}

impl Classifier {
    pub(crate) fn new(channels: &[ChannelConfig]) -> Self {
        let entry = |number: u8| {
            let of_client = (0..).zip(channels).filter(|(_, channel)| {
                let mut clients = channel.clients.iter();
                clients.any(|client| client.number() == number)
            });
            Entry::new(&of_client.collect::<Vec<(u16, &ChannelConfig)>>())
        };
        Self {
            by_client: (0..=CLIENT_PORTS_MAX).map(entry).collect(),
        }
    }

    /// The only channel of a client port; none when it has several.
    pub(crate) fn of(&self, client: ClientPort) -> Option<ChannelRef> {
        match &self.by_client[usize::from(client.number())] {
            Entry::One([channel]) => Some(*channel),
            Entry::Nothing | Entry::Sorted { .. } => None,
        }
    }

    /// The channels that a VLAN of a client port belongs to: none, one, or those of a mesh.
    pub(crate) fn group(&self, client: ClientPort, vlan: u16) -> &[ChannelRef] {
        match &self.by_client[usize::from(client.number())] {
            Entry::Nothing => &[],
            Entry::One(channel) => channel,
            Entry::Sorted { by_vlan, groups } => {
                let group = by_vlan[usize::from(vlan) % VLANS];
                groups.get(usize::from(group)).map_or(&[], Vec::as_slice)
            }
        }
    }
}

impl Entry {
    fn new(channels: &[(u16, &ChannelConfig)]) -> Self {
        let reference = |&(index, channel): &(u16, &ChannelConfig)| ChannelRef {
            index,
            number: channel.number,
            carriage: channel.carriage,
        };
        match channels {
            [] => return Self::Nothing,
            [one] if one.1.vlans.is_empty() => return Self::One([reference(one)]),
            _ => {}
        }
        let mut groups: Vec<Vec<ChannelRef>> = vec![Vec::new()];
        let mut by_vlan = Box::new([0; VLANS]);
        for (vlan, place) in (0..).zip(by_vlan.iter_mut()) {
            let named = |channel: &&(u16, &ChannelConfig)| channel.1.vlans.contains(&vlan);
            let rest = |channel: &&(u16, &ChannelConfig)| channel.1.vlans.is_empty();
            let mut group: Vec<ChannelRef> = channels.iter().filter(named).map(reference).collect();
            if group.is_empty() {
                group = channels.iter().filter(rest).map(reference).collect();
            }
            let known = groups.iter().position(|known| *known == group);
            // No more groups than VLANs.
            *place = known.unwrap_or_else(|| {
                groups.push(group);
                groups.len() - 1
            }) as u16;
        }
        Self::Sorted { by_vlan, groups }
    }
}

/// The channels that a client frame goes into.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    channels: [Option<ChannelRef>; limits::MESH_CHANNELS_MAX],
}

impl Route {
    pub(crate) fn of(channels: &[ChannelRef]) -> Self {
        let mut places = [None; limits::MESH_CHANNELS_MAX];
        for (place, channel) in places.iter_mut().zip(channels) {
            *place = Some(*channel);
        }
        Self { channels: places }
    }

    /// The channels; none for a frame of a VLAN that nobody carries.
    pub fn channels(&self) -> impl Iterator<Item = ChannelRef> + use<> {
        self.channels.into_iter().flatten()
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
