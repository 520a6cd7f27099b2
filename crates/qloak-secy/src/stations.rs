//! Behind which channel a station is: what a mesh of more than two nodes learns, so that a frame for one station
//! goes to one node and not to all.
//!
//! ```text
//!   inbound   a client frame came out of channel 7 from station S   -> news, when it is new or old
//!   outbound  the news are kept; a frame for S goes into channel 7, one for an unknown station or for a
//!             group into every channel of the mesh; a frame *from* S on the client port forgets it
//! ```
//!
//! Frames are never passed from one channel to another, so in a full mesh nothing goes round in circles (split
//! horizon). Both tables are bounded: a flood of made-up stations costs copies, no memory. Ageing: IEEE
//! 802.1Q-2022, 8.8.3.

use std::collections::HashMap;

use qloak_api::{ClientPort, MacAddress};

use crate::{ChannelRef, limits};

/// A station of a client port's VLAN.
type Key = (ClientPort, u16, MacAddress);

/// A station was seen behind a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// The client port whose mesh it belongs to.
    pub client: ClientPort,
    /// Its VLAN there.
    pub vlan: u16,
    /// Its address.
    pub address: MacAddress,
    /// The channel that its frame came out of.
    pub channel: ChannelRef,
}

/// Where stations are, and when that was heard last.
pub(crate) struct Stations {
    known: HashMap<Key, (ChannelRef, u64)>,
    /// After this long without a word a station is nowhere.
    forget_ns: u64,
    /// When old ones were last looked for, so that a flood does not make each frame look through all.
    swept_ns: u64,
}

impl Stations {
    /// Everything that it will ever need is allocated here.
    pub(crate) fn new(forget_ns: u64) -> Self {
        Self {
            known: HashMap::with_capacity(limits::STATIONS_MAX * 2),
            forget_ns,
            swept_ns: 0,
        }
    }

    /// Keeps where a station is. True when that is news.
    pub(crate) fn keep(&mut self, station: Station, now_ns: u64) -> bool {
        let key = (station.client, station.vlan, station.address);
        if let Some((channel, since_ns)) = self.known.get_mut(&key) {
            let fresh = now_ns.saturating_sub(*since_ns) < self.forget_ns;
            if *channel == station.channel && fresh {
                return false;
            }
            (*channel, *since_ns) = (station.channel, now_ns);
            return true;
        }
        if self.known.len() >= limits::STATIONS_MAX {
            self.sweep(now_ns);
        }
        let room = self.known.len() < limits::STATIONS_MAX;
        if room {
            self.known.insert(key, (station.channel, now_ns));
        }
        room
    }

    /// The channel behind which a station is.
    pub(crate) fn find(
        &self,
        client: ClientPort,
        vlan: u16,
        address: MacAddress,
        now_ns: u64,
    ) -> Option<ChannelRef> {
        let (channel, since_ns) = self.known.get(&(client, vlan, address))?;
        (now_ns.saturating_sub(*since_ns) < self.forget_ns).then_some(*channel)
    }

    /// A station has moved here.
    pub(crate) fn forget(&mut self, client: ClientPort, vlan: u16, address: MacAddress) {
        self.known.remove(&(client, vlan, address));
    }

    fn sweep(&mut self, now_ns: u64) {
        const PAUSE_NS: u64 = 1_000_000_000;
        if now_ns.saturating_sub(self.swept_ns) >= PAUSE_NS {
            self.swept_ns = now_ns;
            let forget_ns = self.forget_ns;
            self.known
                .retain(|_, (_, since_ns)| now_ns.saturating_sub(*since_ns) < forget_ns);
        }
    }
}

/// A frame's address at an offset: 0 the destination, 6 the source.
pub(crate) fn address(frame: &[u8], offset: usize) -> Option<MacAddress> {
    let octets = frame.get(offset..offset + 6)?;
    octets.try_into().ok().map(MacAddress)
}

/// Whether an address is of a group (IEEE 802-2014, 8.2.2).
pub(crate) fn is_group(address: MacAddress) -> bool {
    address.0[0] & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_api::Carriage;

    const S: u64 = 1_000_000_000;

    fn station(octet: u16, channel: u16) -> Station {
        let [high, low] = octet.to_be_bytes();
        Station {
            client: ClientPort::try_from(1).unwrap(),
            vlan: 7,
            address: MacAddress([2, 0, 0, 0, high, low]),
            channel: ChannelRef {
                index: channel,
                number: (channel + 1).try_into().unwrap(),
                carriage: Carriage::Aggregated,
            },
        }
    }

    #[test]
    fn a_station_is_where_it_spoke_last_and_nowhere_after_a_while() {
        let mut stations = Stations::new(300 * S);
        let find = |stations: &Stations, vlan, now_ns| {
            let seen = station(5, 0);
            stations
                .find(seen.client, vlan, seen.address, now_ns)
                .map(|channel| channel.index)
        };
        assert!(stations.keep(station(5, 1), S) && !stations.keep(station(5, 1), 2 * S));
        assert_eq!(find(&stations, 7, 2 * S), Some(1));
        assert_eq!(
            find(&stations, 8, 2 * S),
            None,
            "another VLAN, another mesh"
        );
        assert!(stations.keep(station(5, 2), 3 * S), "it moved");
        assert_eq!(find(&stations, 7, 302 * S), Some(2));
        assert_eq!(find(&stations, 7, 303 * S), None);
        stations.forget(station(5, 0).client, 7, station(5, 0).address);
        assert_eq!(find(&stations, 7, 4 * S), None);
    }

    #[test]
    fn a_flood_of_stations_finds_the_table_full_and_later_empty() {
        let mut stations = Stations::new(300 * S);
        let all = (0..limits::STATIONS_MAX as u16).map(|octet| station(octet, 1));
        assert!(all.into_iter().all(|seen| stations.keep(seen, S)));
        let capacity = stations.known.capacity();
        assert!(!stations.keep(station(u16::MAX, 1), 2 * S));
        assert!(stations.keep(station(u16::MAX, 1), 400 * S));
        assert_eq!(stations.known.capacity(), capacity);
    }
}
