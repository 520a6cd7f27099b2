//! The inbound half of a SecY: the state that validates.
//!
//! Owned by one thread. Changes (`install`, `retire`, `close`) come between two batches; the way of a
//! frame itself is in [`crate::validate`] and [`crate::demux`], which are methods of [`Inbound`] too.
//! Up to four SAs of a channel are accepted at once, which is what makes a rekey lossless.
//!
//! IEEE 802.1AE-2018, 10.6 and 10.7.11 to 10.7.15.

use qloak_api::{
    An, Carriage, ChannelNumber, ClientPort, KeyId, MacAddress, Sci,
    manage::{InboundCounters, StrayCounters},
};
use qloak_cipher::Suite;

use crate::{
    ChannelConfig, ChannelRef, ConfigError, InstallError, LineConfig, Sa, Station,
    channel::{self, KeysSeen, client_bit},
    classify::{self, Classifier, Numbers},
    demux::Reassembly,
    limits,
    replay::ReplayWindow,
    stations::{self, Stations},
};

/// The inbound half.
pub struct Inbound {
    numbers: Numbers,
    pub(crate) meshes: Meshes,
    pub(crate) channels: Vec<InboundChannel>,
    pub(crate) strays: StrayCounters,
    /// Room for every SA is reserved when the half is made.
    heard: Vec<(ChannelNumber, An)>,
    installed: u64,
}

/// Which client frames may come out of which channel, and who sent them.
pub(crate) struct Meshes {
    classifier: Classifier,
    stations: Stations,
    /// Room is reserved when the half is made.
    learned: Vec<Station>,
    /// The time as it was told last: stations age in minutes.
    now_ns: u64,
}

impl Meshes {
    /// Whether a client frame may come out of this channel; if so, its sender is learned.
    pub(crate) fn admit(&mut self, channel: ChannelRef, client: ClientPort, frame: &[u8]) -> bool {
        let vlan = classify::vlan(frame);
        let group = self.classifier.group(client, vlan);
        if let [only] = group {
            return *only == channel;
        }
        let admitted = group.contains(&channel);
        let from = stations::address(frame, 6).filter(|from| !stations::is_group(*from));
        if let Some(address) = from.filter(|_| admitted)
            && self.learned.len() < self.learned.capacity()
        {
            let station = Station {
                client,
                vlan,
                address,
                channel,
            };
            if self.stations.keep(station, self.now_ns) {
                self.learned.push(station);
            }
        }
        admitted
    }
}

/// A receiving SC.
pub(crate) struct InboundChannel {
    pub(crate) reference: ChannelRef,
    /// The far node's line port.
    peer: MacAddress,
    pub(crate) xpn: bool,
    /// The client port of a transparent channel.
    pub(crate) client: Option<ClientPort>,
    /// The client ports as a set of bits.
    pub(crate) clients: u64,
    pub(crate) sas: [Place; An::COUNT],
    pub(crate) counters: InboundCounters,
    /// Only an aggregated channel joins pieces.
    pub(crate) reassembly: Option<Reassembly>,
    keys_seen: KeysSeen,
}

/// The place of an AN. The window stays when the SA goes, so that installing allocates nothing.
pub(crate) struct Place {
    pub(crate) window: ReplayWindow,
    pub(crate) sa: Option<InboundSa>,
}

/// A receiving SA.
pub(crate) struct InboundSa {
    pub(crate) sa: Sa,
    pub(crate) frames: u64,
    /// Counts installations: tells this SA from an earlier one in the same place.
    pub(crate) generation: u64,
}

/// An SA that is accepted now.
#[derive(Debug, Clone, Copy)]
pub struct Accepted {
    /// Its association number.
    pub an: An,
    /// Its suite.
    pub suite: &'static Suite,
    /// The name of its key.
    pub key_id: KeyId,
    /// Valid frames so far.
    pub frames: u64,
    /// The lowest PN that is still accepted.
    pub lowest_pn: u64,
}

impl Inbound {
    /// A half without SAs. Everything that a frame will need is allocated here.
    pub fn new(line: &LineConfig, channels: &[ChannelConfig]) -> Result<Self, ConfigError> {
        channel::check(line, channels)?;
        let numbers = Numbers::new(channels);
        let mut states = Vec::with_capacity(channels.len());
        for config in channels {
            let Some(reference) = numbers.of(config.number.number()) else {
                continue;
            };
            let aggregated = config.carriage == Carriage::Aggregated;
            states.push(InboundChannel {
                reference,
                peer: config.peer(line),
                xpn: config.xpn,
                client: config.clients.first().copied().filter(|_| !aggregated),
                clients: config.clients.iter().map(|&c| client_bit(c)).sum(),
                sas: std::array::from_fn(|_| Place {
                    window: ReplayWindow::new(config.replay_window),
                    sa: None,
                }),
                counters: InboundCounters::default(),
                reassembly: aggregated.then(Reassembly::new),
                keys_seen: KeysSeen::new(),
            });
        }
        Ok(Self {
            numbers,
            meshes: Meshes {
                classifier: Classifier::new(channels),
                stations: Stations::new(limits::STATION_NEWS_NS),
                learned: Vec::with_capacity(limits::STATIONS_LEARNED_MAX),
                now_ns: 0,
            },
            heard: Vec::with_capacity(channels.len() * An::COUNT),
            channels: states,
            strays: StrayCounters::default(),
            installed: 0,
        })
    }

    /// A channel by its number.
    pub fn channel(&self, number: ChannelNumber) -> Option<ChannelRef> {
        self.numbers.of(number.number())
    }

    /// Accepts frames under an SA from now on. One that was there is dropped.
    pub fn install(&mut self, number: ChannelNumber, an: An, sa: Sa) -> Result<(), InstallError> {
        self.installed += 1;
        let generation = self.installed;
        let state = self
            .state_mut(number)
            .ok_or(InstallError::NoChannel { number })?;
        let key_id = sa.key_id();
        // The same key in a new place would open its old frames a second time.
        if !state.keys_seen.first_time(key_id) {
            return Err(InstallError::KeyAgain { number, key_id });
        }
        let place = &mut state.sas[an.index()];
        place.window.reset(sa.first_pn());
        place.sa = Some(InboundSa {
            sa,
            frames: 0,
            generation,
        });
        self.forget(number, an);
        Ok(())
    }

    /// Takes an SA out: its frames are discarded from now on. It comes back so that it can be dropped,
    /// which zeroises it, on another thread.
    pub fn retire(&mut self, number: ChannelNumber, an: An) -> Option<Sa> {
        self.forget(number, an);
        let state = self.state_mut(number)?;
        state.sas[an.index()].sa.take().map(|sa| sa.sa)
    }

    /// Takes every SA of a channel out and zeroises it.
    pub fn close(&mut self, number: ChannelNumber) {
        self.heard.retain(|(heard, _)| *heard != number);
        if let Some(state) = self.state_mut(number) {
            for place in &mut state.sas {
                place.sa = None;
            }
        }
    }

    /// The SAs whose first valid frame came since this was asked last.
    pub fn heard(&mut self) -> impl Iterator<Item = (ChannelNumber, An)> + '_ {
        self.heard.drain(..)
    }

    /// An SA that is accepted now.
    pub fn accepted(&self, number: ChannelNumber, an: An) -> Option<Accepted> {
        let place = &self.state(number)?.sas[an.index()];
        let sa = place.sa.as_ref()?;
        Some(Accepted {
            an,
            suite: sa.sa.suite(),
            key_id: sa.sa.key_id(),
            frames: sa.frames,
            lowest_pn: place.window.lowest(),
        })
    }

    /// Where senders of client frames are that were delivered since this was asked last, where a client port has a
    /// mesh and that is news; to be told to [`crate::Outbound::learn`].
    pub fn learned(&mut self, now_ns: u64) -> impl Iterator<Item = Station> + '_ {
        self.meshes.now_ns = now_ns;
        self.meshes.learned.drain(..)
    }

    /// Counters of a channel.
    pub fn counters(&self, number: ChannelNumber) -> Option<InboundCounters> {
        Some(self.state(number)?.counters)
    }

    /// Counters of frames that no channel took. `bad_agreement` is the key handler's and stays 0 here.
    pub fn strays(&self) -> StrayCounters {
        self.strays
    }

    /// The channel that an SCI names, if the peer may send on it.
    pub(crate) fn by_sci(&self, sci: Sci) -> Option<&InboundChannel> {
        let channel = self.numbers.of(sci.port)?;
        let state = self.channels.get(usize::from(channel.index))?;
        (state.peer == sci.address).then_some(state)
    }

    /// An SA's first valid frame. The room was reserved: one entry at most for each SA.
    pub(crate) fn hear(&mut self, number: ChannelNumber, an: An) {
        if self.heard.len() < self.heard.capacity() {
            self.heard.push((number, an));
        }
    }

    fn forget(&mut self, number: ChannelNumber, an: An) {
        self.heard.retain(|heard| *heard != (number, an));
    }

    fn state(&self, number: ChannelNumber) -> Option<&InboundChannel> {
        let channel = self.channel(number)?;
        self.channels.get(usize::from(channel.index))
    }

    fn state_mut(&mut self, number: ChannelNumber) -> Option<&mut InboundChannel> {
        let channel = self.channel(number)?;
        self.channels.get_mut(usize::from(channel.index))
    }
}
