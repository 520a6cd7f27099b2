//! The outbound half of a SecY: the state that protects.
//!
//! Owned by one thread. Changes (`install`, `encode`, `retire`, `close`) come between two batches;
//! the way of a frame itself is in [`crate::mux`], [`crate::shape`] and [`crate::protect`], which are
//! methods of [`Outbound`] too. Readers cost a copy of a few words.
//!
//! ```text
//!   AN   0      1      2      3            install: an SA, not used yet
//!      +------+------+------+------+       encode:  frames are now protected under it
//!      |  SA  |  SA  |      |      |       retire:  it leaves and is zeroised
//!      +------+------+------+------+       close:   all leave
//!          ^ encoding
//! ```
//!
//! IEEE 802.1AE-2018, 10.5 and 10.7.10 to 10.7.18.

use qloak_api::{
    An, ChannelNumber, ClientPort, Limits, MacAddress, Sci, limits::CLIENT_PORTS_MAX,
    manage::OutboundCounters,
};

use crate::{
    ChannelConfig, ChannelRef, ConfigError, InstallError, Life, LineConfig, Sa, Station, Usage,
    channel::{self, KeysSeen},
    classify::{self, Classifier, Numbers, Route},
    limits,
    mux::MuxState,
    stations::{self, Stations},
    xpn,
};

/// The outbound half.
pub struct Outbound {
    pub(crate) line: LineConfig,
    classifier: Classifier,
    numbers: Numbers,
    pub(crate) channels: Vec<OutboundChannel>,
    stations: Stations,
    /// Channels whose rekey has become due, not asked for yet.
    pub(crate) due: Vec<ChannelNumber>,
}

/// A transmitting SC.
pub(crate) struct OutboundChannel {
    pub(crate) sci: Sci,
    /// The far node's line port.
    pub(crate) peer: MacAddress,
    pub(crate) xpn: bool,
    pub(crate) transparent: bool,
    pub(crate) limits: Limits,
    pub(crate) sas: [Option<OutboundSa>; An::COUNT],
    pub(crate) encoding: Option<An>,
    pub(crate) counters: OutboundCounters,
    pub(crate) mux: MuxState,
    /// The encoding SA is due for a rekey and is in the list of those that are.
    pub(crate) due: bool,
    /// By client port: frames that had been muxed when their line frame was refused.
    pub(crate) refused: [u64; CLIENT_PORTS_MAX as usize + 1],
    keys_seen: KeysSeen,
}

/// A transmitting SA.
pub(crate) struct OutboundSa {
    pub(crate) sa: Sa,
    pub(crate) usage: Usage,
    /// Set by the first `encode`: its time limit runs from then, whatever follows.
    encoded: bool,
}

impl Outbound {
    /// A half with all channels closed.
    pub fn new(line: &LineConfig, channels: &[ChannelConfig]) -> Result<Self, ConfigError> {
        channel::check(line, channels)?;
        let state = |config: &ChannelConfig| OutboundChannel {
            sci: Sci::new(line.address, config.number),
            peer: config.peer(line),
            xpn: config.xpn,
            transparent: config.carriage == qloak_api::Carriage::Transparent,
            limits: config.limits,
            sas: [const { None }; An::COUNT],
            encoding: None,
            counters: OutboundCounters::default(),
            mux: MuxState::default(),
            due: false,
            refused: [0; CLIENT_PORTS_MAX as usize + 1],
            keys_seen: KeysSeen::new(),
        };
        Ok(Self {
            line: *line,
            classifier: Classifier::new(channels),
            numbers: Numbers::new(channels),
            channels: channels.iter().map(state).collect(),
            stations: Stations::new(limits::STATION_NS),
            due: Vec::with_capacity(channels.len()),
        })
    }

    /// The channel that carries all of a client port; none when it has several.
    pub fn classify(&self, client: ClientPort) -> Option<ChannelRef> {
        self.classifier.of(client)
    }

    /// The channels that a frame of a client port with several goes into. A frame from a station that was behind
    /// a channel says that it is here now.
    pub fn route(&mut self, client: ClientPort, frame: &[u8], now_ns: u64) -> Route {
        let vlan = classify::vlan(frame);
        let group = self.classifier.group(client, vlan);
        if group.len() < 2 {
            return Route::of(group);
        }
        if let Some(from) = stations::address(frame, 6) {
            self.stations.forget(client, vlan, from);
        }
        let to = stations::address(frame, 0).filter(|to| !stations::is_group(*to));
        let there = to.and_then(|to| self.stations.find(client, vlan, to, now_ns));
        match there.filter(|channel| group.contains(channel)) {
            Some(channel) => Route::of(&[channel]),
            None => Route::of(group),
        }
    }

    /// A station was seen behind a channel, as [`crate::Inbound::learn`] says.
    pub fn learn(&mut self, station: Station, now_ns: u64) {
        self.stations.keep(station, now_ns);
    }

    /// A channel by its number.
    pub fn channel(&self, number: ChannelNumber) -> Option<ChannelRef> {
        self.numbers.of(number.number())
    }

    /// Puts an SA in place of an AN; it protects nothing until [`Self::encode`]. An SA that was there
    /// and is not the encoding one is dropped.
    pub fn install(&mut self, number: ChannelNumber, an: An, sa: Sa) -> Result<(), InstallError> {
        let state = self
            .state_mut(number)
            .ok_or(InstallError::NoChannel { number })?;
        if state.encoding == Some(an) {
            return Err(InstallError::Encoding { number, an });
        }
        let key_id = sa.key_id();
        if !state.keys_seen.first_time(key_id) {
            return Err(InstallError::KeyAgain { number, key_id });
        }
        let usage = Usage {
            an,
            suite: sa.suite(),
            key_id,
            frames: 0,
            octets: 0,
            encode_since_ns: 0,
            next_pn: sa.first_pn(),
            pn_last: if state.xpn {
                xpn::PN64_LAST
            } else {
                xpn::PN32_LAST
            },
        };
        state.sas[an.index()] = Some(OutboundSa {
            sa,
            usage,
            encoded: false,
        });
        Ok(())
    }

    /// Makes an installed SA the encoding SA from the next frame on. False when there is none of that
    /// AN, or when its limits are reached. The SA that encoded before stays installed.
    pub fn encode(&mut self, number: ChannelNumber, an: An, now_ns: u64) -> bool {
        let Some(state) = self.state_mut(number) else {
            return false;
        };
        let limits = state.limits;
        let Some(sa) = &mut state.sas[an.index()] else {
            return false;
        };
        if !sa.encoded {
            sa.encoded = true;
            sa.usage.encode_since_ns = now_ns;
        }
        if !sa.usage.may_encode(&limits, now_ns) {
            return false;
        }
        state.encoding = Some(an);
        state.due = false;
        true
    }

    /// Takes an SA out. It comes back so that it can be dropped, which zeroises it, on another thread.
    /// When it was the encoding SA the channel is closed.
    pub fn retire(&mut self, number: ChannelNumber, an: An) -> Option<Sa> {
        let state = self.state_mut(number)?;
        if state.encoding == Some(an) {
            state.encoding = None;
        }
        state.sas[an.index()].take().map(|sa| sa.sa)
    }

    /// Takes every SA of a channel out and zeroises it: nothing leaves until the next `encode`.
    pub fn close(&mut self, number: ChannelNumber) {
        if let Some(state) = self.state_mut(number) {
            state.encoding = None;
            state.sas = [const { None }; An::COUNT];
        }
    }

    /// Changes the limits of a channel, of the encoding SA too. False, and nothing changes, when there is
    /// no such channel or [`channel::check_limits`] refuses them.
    pub fn set_limits(&mut self, number: ChannelNumber, limits: Limits) -> bool {
        let sound = channel::check_limits(number, &limits).is_ok();
        let state = self.state_mut(number).filter(|_| sound);
        state.map(|state| state.limits = limits).is_some()
    }

    /// What the encoding SA has used; `None` when the channel has none.
    pub fn usage(&self, number: ChannelNumber) -> Option<Usage> {
        let state = self.state(number)?;
        Some(state.sas[state.encoding?.index()].as_ref()?.usage)
    }

    /// A channel whose encoding SA has just reached the soft share of a limit; each is told once. What comes due
    /// by time alone, without a frame, is not noticed here.
    pub fn take_due(&mut self) -> Option<ChannelNumber> {
        self.due.pop()
    }

    /// Whether frames leave on this channel: it has an encoding SA whose limits are not reached.
    pub fn is_open(&self, number: ChannelNumber, now_ns: u64) -> bool {
        self.state(number)
            .is_some_and(|state| state.may_encode(now_ns))
    }

    /// Counters of a channel.
    pub fn counters(&self, number: ChannelNumber) -> Option<OutboundCounters> {
        Some(self.state(number)?.counters)
    }

    /// How many frames of a client port were muxed and then went down with their line frame, because a
    /// limit was reached between [`Self::mux`] and [`Self::protect`].
    pub fn refused(&self, client: ClientPort) -> u64 {
        let refused = |state: &OutboundChannel| state.refused[usize::from(client.number())];
        self.channels.iter().map(refused).sum()
    }

    fn state(&self, number: ChannelNumber) -> Option<&OutboundChannel> {
        let channel = self.channel(number)?;
        self.channels.get(usize::from(channel.index))
    }

    pub(crate) fn state_mut(&mut self, number: ChannelNumber) -> Option<&mut OutboundChannel> {
        let channel = self.channel(number)?;
        self.channels.get_mut(usize::from(channel.index))
    }
}

impl OutboundChannel {
    /// Whether the encoding SA has reached the soft share of a limit since it was last asked.
    pub(crate) fn comes_due(&mut self, now_ns: u64) -> bool {
        let sa = self.encoding.and_then(|an| self.sas[an.index()].as_ref());
        let comes =
            !self.due && sa.is_some_and(|sa| sa.usage.life(&self.limits, now_ns) != Life::Fresh);
        self.due |= comes;
        comes
    }

    /// Whether the encoding SA may take another frame.
    pub(crate) fn may_encode(&self, now_ns: u64) -> bool {
        self.encoding
            .and_then(|an| self.sas[an.index()].as_ref())
            .is_some_and(|sa| sa.usage.may_encode(&self.limits, now_ns))
    }
}
