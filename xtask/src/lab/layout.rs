//! What a lab is made of: client ports, channels, sizes, keys. One network serves the demo and the
//! benchmarks; what differs between them stands here and nowhere else.

use std::ops::RangeInclusive;

/// The demo's channels: number, name, carriage, first and last client port.
pub(crate) const CHANNELS: [(u16, &str, &str, u8, u8); 3] = [
    (1, "trunk", "aggregated", 1, 8),
    (2, "lease-9", "transparent", 9, 9),
    (3, "lease-10", "transparent", 10, 10),
];

/// The demo's client ports on each side.
pub(crate) const CLIENT_PORTS: u8 = 10;

/// The suite that every channel begins with.
pub(crate) const FIRST_SUITE: &str = "aes-256-gcm";

/// What a lab is made of.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Channels in the order of their client ports.
    pub(crate) channels: Vec<Channel>,
    /// The suite that every channel begins with.
    pub(crate) suite: String,
    /// Suites without authentication that both nodes allow.
    pub(crate) hazmat: Vec<String>,
    /// MTU of the line, octets.
    pub(crate) line_mtu: usize,
    /// How long the line may bring frames under a key that was changed, microseconds; none: as a node takes it.
    pub(crate) drain_us: Option<u32>,
    /// MTU of every client port, octets.
    pub(crate) client_mtu: usize,
    /// Most octets that the hosts' TCP keeps in flight on one connection; none: as the kernel likes.
    pub(crate) tcp_window_octets_max: Option<u32>,
    /// Where keys come from and how many wait.
    pub(crate) keys: Keys,
    /// The threads of each node.
    pub(crate) threads: Threads,
}

/// Threads that carry the frames of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threads {
    /// One for both ways, or one each way.
    pub(crate) count: u8,
    /// They never sleep.
    pub(crate) busy_poll: bool,
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            count: 2,
            busy_poll: false,
        }
    }
}

/// A channel.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    /// Its number.
    pub(crate) number: u16,
    /// Its name.
    pub(crate) name: String,
    /// `transparent` or `aggregated`.
    pub(crate) carriage: &'static str,
    /// Its client ports.
    pub(crate) clients: RangeInclusive<u8>,
    /// Bits per second on the wire, whatever it carries; none: as client frames come.
    pub(crate) constant_rate_bps: Option<u64>,
}

/// Keys of the lab.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// How much faster than the emulated fibre of half a kilometre the link gives keys. Status and metrics
    /// show the factor.
    pub(crate) rate_factor: f64,
    /// Slots of a node's key RAM.
    pub(crate) slots: u32,
    /// Outbound keys that a node keeps ready.
    pub(crate) ahead: u32,
    /// Keys that a node asks for at once.
    pub(crate) at_once: u32,
}

impl Layout {
    /// The demo's: ten client ports on a trunk and two leases.
    pub(crate) fn demo() -> Self {
        let channel =
            |&(number, name, carriage, first, last): &(u16, &str, &'static str, u8, u8)| {
                let clients = first..=last;
                Channel {
                    number,
                    name: name.to_owned(),
                    carriage,
                    clients,
                    constant_rate_bps: None,
                }
            };
        Self {
            channels: CHANNELS.iter().map(channel).collect(),
            suite: FIRST_SUITE.to_owned(),
            hazmat: Vec::new(),
            // A line frame takes six client frames of full size.
            line_mtu: 9100,
            drain_us: None,
            client_mtu: 1500,
            // Ten ports, both ways and all of it on the line at once are 2.5 MiB or 1800 full frames, far
            // less than the queue of each client port holds.
            tcp_window_octets_max: Some(128 * 1024),
            // The demo changes more keys in a minute than a link of half a kilometre gives in an hour.
            keys: Keys {
                rate_factor: 100.0,
                slots: 512,
                ahead: 32,
                at_once: 4,
            },
            threads: Threads::default(),
        }
    }

    /// Client ports on each side: 1 to this one.
    pub(crate) fn client_ports(&self) -> u8 {
        let last = self.channels.iter().map(|channel| *channel.clients.end());
        last.max().unwrap_or(0)
    }
}
