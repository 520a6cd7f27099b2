//! The checks that turn the file as it is written into a [`Config`], each with its own words.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use qloak_api::{Carriage, ChannelNumber, ClientPort, Limits, MacAddress, SaeId};
use qloak_cipher::suite::{SUITES, Suite};
use qloak_door::TlsFiles;
use qloak_secy::{
    ChannelConfig, LineConfig,
    channel::{self as secy, check_limits, check_shares},
};
use toml::Spanned;

use super::{
    RawChannel, RawConfig, RawKme, RawPolicy, RawTls, line::checked_port, peer,
    pipeline::RawPipeline,
};
use crate::{
    config::{Channel, Config, ConfigError, Kme, Line, beside},
    cores,
    key_handler::limits::FILL_KEYS_DEFAULT,
    limits,
};

impl RawConfig {
    pub(in crate::config) fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::from_toml(text, &error))
    }

    pub(in crate::config) fn check(
        self,
        text: &str,
        directory: &Path,
    ) -> Result<Config, ConfigError> {
        let hazmat = self.policy.allowed(text)?;
        let kernel = self.dataplane.take_interfaces(text, &self.client)?;
        self.dataplane
            .check(text, &self.line, &self.peer, &self.channel)?;
        let usable = cores::usable();
        let pipeline = RawPipeline::check(self.pipeline, text, self.dataplane, usable.as_deref())?;
        let mut numbers = BTreeSet::new();
        let mut clients = BTreeMap::new();
        let mut weights = BTreeMap::new();
        let mut places = self.line.places(text)?;
        for client in self.client {
            let number = *client.number.get_ref();
            let at = client.port.span();
            let place = client.port.get_ref().place();
            if place.is_some_and(|place| !places.insert(place)) {
                let what = format!(
                    "the port of client port {number} is in use by the line or another client port; each needs its own"
                );
                return Err(ConfigError::at(text, at, "client.port", what));
            }
            let weight = ranged(text, client.weight, 1, limits::WEIGHTS, "client.weight")?;
            weights.insert(number, weight);
            let port = checked_port(text, client.port, directory, "client.port")?;
            clients.extend(port.map(|port| (number, port)));
            if !numbers.insert(number) {
                let what = format!("client port {number} is named twice");
                return Err(ConfigError::at(
                    text,
                    client.number.span(),
                    "client.number",
                    what,
                ));
            }
        }
        let tls = self.tls.files(directory);
        if *self.line.peer.get_ref() == self.name {
            let what = "is this node's own name; the far node has another";
            return Err(ConfigError::at(
                text,
                self.line.peer.span(),
                "line.peer",
                what,
            ));
        }
        let drain_span = self.line.drain_us.as_ref().map(Spanned::span);
        let line = self.line.check(text, directory)?;
        let kme = self.kme.check(text, directory, &tls)?;
        let further = peer::check(
            text,
            directory,
            self.peer,
            (&self.name, &line),
            (&kme, &tls),
        )?;
        let mut taken = Taken {
            text,
            clients: &numbers,
            seen_clients: BTreeSet::new(),
            channels: Vec::new(),
            paced: Vec::new(),
            line: LineConfig {
                address: line.address,
                peer_address: line.peer_address,
                frame_octets_max: line.frame_octets_max,
            },
            peers: std::iter::once((line.peer.clone(), line.peer_address))
                .chain(further.iter().map(|peer| (peer.name.clone(), peer.address)))
                .collect(),
        };
        let channels = self
            .channel
            .into_iter()
            .map(|channel| channel.check(&mut taken, &hazmat))
            .collect::<Result<Vec<_>, _>>()?;
        for (index, channel) in channels.iter().enumerate() {
            let same = |other: &&Channel| other.name == channel.name;
            if let Some(other) = channels[..index].iter().find(same) {
                return Err(ConfigError::new(format!(
                    "channels {} and {} are both named {:?}: commands could not tell them apart",
                    other.number, channel.number, channel.name
                )));
            }
        }
        if channels.is_empty() {
            return Err(ConfigError::new(
                "there is no [[channel]]: a node needs one at least",
            ));
        }
        if let Some(idle) = numbers
            .iter()
            .find(|number| !taken.seen_clients.contains(number))
        {
            return Err(ConfigError::new(format!(
                "client port {idle} belongs to no channel: name it in the `clients` of one"
            )));
        }
        let slots = ranged(
            text,
            self.key_ram.slots,
            512,
            limits::KEY_RAM_SLOTS,
            "key_ram.slots",
        )?;
        check_drain(&line, &channels).map_err(|what| {
            ConfigError::at(text, drain_span.unwrap_or_default(), "line.drain_us", what)
        })?;
        Ok(Config {
            name: self.name,
            line,
            kme,
            further,
            clients,
            kernel,
            pipeline,
            weights,
            channels,
            manage_listen: self.manage.listen,
            capture: self.manage.capture,
            tls,
            key_ram_slots: slots,
            key_ram_fill: ranged(
                text,
                self.key_ram.fill,
                FILL_KEYS_DEFAULT,
                limits::KEY_RAM_FILL,
                "key_ram.fill",
            )?,
            hazmat,
            file: None,
        })
    }
}

/// What earlier channels took already.
struct Taken<'a> {
    text: &'a str,
    clients: &'a BTreeSet<ClientPort>,
    seen_clients: BTreeSet<ClientPort>,
    /// Those that were checked, as the SecY has them.
    channels: Vec<ChannelConfig>,
    /// Which of them have a constant rate.
    paced: Vec<bool>,
    line: LineConfig,
    peers: Vec<(SaeId, MacAddress)>,
}

impl RawChannel {
    fn check(
        self,
        taken: &mut Taken<'_>,
        hazmat: &[&'static Suite],
    ) -> Result<Channel, ConfigError> {
        let text = taken.text;
        let number = *self.number.get_ref();
        if taken.channels.iter().any(|other| other.number == number) {
            return Err(ConfigError::at(
                text,
                self.number.span(),
                "channel.number",
                format!("channel {number} is named twice"),
            ));
        }
        let at_clients =
            |what: String| ConfigError::at(text, self.clients.span(), "channel.clients", what);
        let carriage = *self.carriage.get_ref();
        match (carriage, self.clients.get_ref().len()) {
            (_, 0) => {
                return Err(at_clients(
                    "is empty: a channel carries one client port at least".into(),
                ));
            }
            (Carriage::Transparent, 2..) => {
                return Err(at_clients(
                    "a transparent channel carries one client port; use `aggregated` for more"
                        .into(),
                ));
            }
            _ => {}
        }
        for client in self.clients.get_ref() {
            if !taken.clients.contains(client) {
                return Err(at_clients(format!(
                    "there is no [[client]] for client port {client}"
                )));
            }
            taken.seen_clients.insert(*client);
        }
        let peer = peer::of_channel(text, self.peer.as_ref(), &taken.peers)?;
        let suite = known_suite(text, &self.suite, "channel.suite", false)?;
        if suite.hazmat && !hazmat.iter().any(|allowed| allowed.name == suite.name) {
            let what = format!(
                "{} does not authenticate; name it in policy.hazmat too if you really mean it",
                suite.name
            );
            return Err(ConfigError::at(
                text,
                self.suite.span(),
                "channel.suite",
                what,
            ));
        }
        let xpn = match &self.packet_number_bits {
            None => true,
            Some(bits) => match (bits.get_ref(), suite.id_pn32) {
                (64, _) => true,
                (32, Some(_)) => false,
                (32, None) => {
                    let what = format!(
                        "32 is for GCM-AES-128 and -256 only; {} uses 64",
                        suite.name
                    );
                    return Err(ConfigError::at(
                        text,
                        bits.span(),
                        "channel.packet_number_bits",
                        what,
                    ));
                }
                _ => {
                    return Err(ConfigError::at(
                        text,
                        bits.span(),
                        "channel.packet_number_bits",
                        "32 or 64 is allowed",
                    ));
                }
            },
        };
        let replay_window = ranged(
            text,
            self.replay_window,
            1024,
            0..=limits::REPLAY_WINDOW_MAX,
            "channel.replay_window",
        )?;
        let aggregated = carriage == Carriage::Aggregated;
        let constant_rate_bps = checked_rate(text, self.constant_rate_bps, aggregated)?;
        let waits = aggregated && constant_rate_bps.is_none();
        if let Some(wait) = self.wait_us.as_ref().filter(|_| !waits) {
            return Err(ConfigError::at(
                text,
                wait.span(),
                "channel.wait_us",
                "is for aggregated channels without a constant rate: a transparent one sends each client frame at once, and one of constant rate at its own times",
            ));
        }
        let wait_us = ranged(
            text,
            self.wait_us,
            if waits { limits::WAIT_US_DEFAULT } else { 0 },
            limits::WAIT_US,
            "channel.wait_us",
        )?;
        let limits = checked_limits(text, number, self.limits)?;
        let as_secy = ChannelConfig {
            number,
            peer_address: taken.peers.get(peer).map(|(_, address)| *address),
            carriage,
            clients: self.clients.get_ref().clone(),
            vlans: self.vlans.iter().map(|vlan| *vlan.get_ref()).collect(),
            xpn,
            replay_window,
            limits,
        };
        if let Err(error) = check_shares(&taken.line, &as_secy, &taken.channels) {
            let (key, span) = match (&error, self.vlans.first()) {
                (secy::ConfigError::Vlan { .. }, Some(vlan)) => ("channel.vlans", vlan.span()),
                _ => ("channel.clients", self.clients.span()),
            };
            return Err(ConfigError::at(text, span, key, error.to_string()));
        }
        let paced = constant_rate_bps.is_some();
        let at_once = |channel: &ChannelConfig| {
            let mut clients = channel.clients.iter();
            clients.any(|client| as_secy.clients.contains(client))
        };
        let mut others = taken.channels.iter().zip(&taken.paced);
        let held_up = others.any(|(other, other_paced)| (paced || *other_paced) && at_once(other));
        if held_up || (paced && !as_secy.vlans.is_empty()) {
            let what = "is for channels that have their client ports for themselves: one that waits for its beat would hold up the others";
            let span = self.clients.span();
            return Err(ConfigError::at(
                text,
                span,
                "channel.constant_rate_bps",
                what,
            ));
        }
        taken.paced.push(paced);
        taken.channels.push(as_secy.clone());
        Ok(Channel {
            number,
            name: self.name.unwrap_or_else(|| format!("channel-{number}")),
            carriage,
            peer,
            clients: as_secy.clients,
            vlans: as_secy.vlans,
            suite,
            xpn,
            replay_window,
            limits,
            wait_us,
            constant_rate_bps,
        })
    }
}

/// What waits for its beat at a constant rate has to leave long before the SA that sealed it goes.
fn check_drain(line: &Line, channels: &[Channel]) -> Result<(), String> {
    for channel in channels {
        let Some(bps) = channel.constant_rate_bps else {
            continue;
        };
        let bits = limits::CONSTANT_RATE_WAITING * 8 * line.frame_octets_max as u64;
        let least_us = 2 * bits * 1_000_000 / bps;
        if u64::from(line.drain_us) < least_us {
            return Err(format!(
                "{} is given, but frames of channel {} may wait {} us for their beat (constant_rate_bps): twice that is the least",
                line.drain_us,
                channel.number,
                least_us / 2
            ));
        }
    }
    Ok(())
}

fn checked_rate(
    text: &str,
    rate: Option<Spanned<u64>>,
    aggregated: bool,
) -> Result<Option<u64>, ConfigError> {
    const KEY: &str = "channel.constant_rate_bps";
    let Some(rate) = rate else { return Ok(None) };
    if !aggregated {
        let what = "is for aggregated channels; a transparent one shows the size and time of each client frame";
        return Err(ConfigError::at(text, rate.span(), KEY, what));
    }
    let allowed = limits::CONSTANT_RATE_BPS;
    ranged(text, Some(rate), 0, allowed, KEY).map(Some)
}

fn checked_limits(
    text: &str,
    number: ChannelNumber,
    limits: Option<Spanned<Limits>>,
) -> Result<Limits, ConfigError> {
    let Some(limits) = limits else {
        return Ok(Limits::default());
    };
    check_limits(number, limits.get_ref()).map_err(|error| {
        ConfigError::at(text, limits.span(), "channel.limits", error.to_string())
    })?;
    Ok(limits.into_inner())
}

impl RawKme {
    pub(super) fn check(
        self,
        text: &str,
        directory: &Path,
        own: &TlsFiles,
    ) -> Result<Kme, ConfigError> {
        if !self.url.get_ref().starts_with("https://") {
            let what = "must begin with https:// (ETSI GS QKD 014 asks for TLS both ways)";
            return Err(ConfigError::at(text, self.url.span(), "kme.url", what));
        }
        Ok(Kme {
            url: self.url.into_inner(),
            identity: self.identity,
            keys_per_request: ranged(
                text,
                self.keys_per_request,
                4,
                limits::KEYS_PER_REQUEST,
                "kme.keys_per_request",
            )?,
            tls: self
                .tls
                .map_or_else(|| own.clone(), |tls| tls.files(directory)),
        })
    }
}

impl RawTls {
    fn files(self, directory: &Path) -> TlsFiles {
        TlsFiles {
            ca: beside(directory, &self.ca),
            cert: beside(directory, &self.cert),
            key: beside(directory, &self.key),
        }
    }
}

impl RawPolicy {
    fn allowed(&self, text: &str) -> Result<Vec<&'static Suite>, ConfigError> {
        self.hazmat
            .iter()
            .map(|name| known_suite(text, name, "policy.hazmat", true))
            .collect()
    }
}

fn known_suite(
    text: &str,
    name: &Spanned<String>,
    key: &'static str,
    hazmat_only: bool,
) -> Result<&'static Suite, ConfigError> {
    let given = name.get_ref();
    let suite = Suite::by_name(given);
    suite
        .filter(|suite| suite.hazmat || !hazmat_only)
        .ok_or_else(|| {
            let names: Vec<_> = SUITES
                .iter()
                .filter(|suite| suite.hazmat == hazmat_only)
                .map(|suite| suite.name)
                .collect();
            let wrong = match suite {
                None => format!("there is no suite {given:?}"),
                Some(_) => format!("{given} authenticates and needs no leave"),
            };
            let what = format!("{wrong}; allowed are {}", names.join(", "));
            ConfigError::at(text, name.span(), key, what)
        })
}

pub(super) fn ranged<T>(
    text: &str,
    value: Option<Spanned<T>>,
    default: T,
    allowed: std::ops::RangeInclusive<T>,
    key: &'static str,
) -> Result<T, ConfigError>
where
    T: PartialOrd + std::fmt::Display,
{
    let Some(value) = value else {
        return Ok(default);
    };
    if allowed.contains(value.get_ref()) {
        return Ok(value.into_inner());
    }
    let what = format!(
        "{} is given, {} to {} is allowed",
        value.get_ref(),
        allowed.start(),
        allowed.end()
    );
    Err(ConfigError::at(text, value.span(), key, what))
}
