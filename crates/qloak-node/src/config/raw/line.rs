//! The checks of the line and of every port.

use std::{collections::BTreeSet, path::Path};

use qloak_port::{ImpairedConfig, Impairment, PortConfig};
use toml::Spanned;

use super::{RawLine, check::ranged, port::RawPort};
use crate::{
    config::{ConfigError, Line},
    limits,
};

impl RawLine {
    /// What its lanes take, which nobody else can have.
    pub(super) fn places(&self, text: &str) -> Result<BTreeSet<String>, ConfigError> {
        if self.port.is_some() != self.lanes.is_empty() {
            let what = "has `port` or `lanes`, one of them: `lanes` is a list of ports that are used as one";
            let span = self.address.span();
            return Err(ConfigError::at(text, span, "line", what));
        }
        if self.lanes.len() > limits::LANES_MAX {
            let what = format!(
                "{} are given, up to {} are allowed",
                self.lanes.len(),
                limits::LANES_MAX
            );
            return Err(ConfigError::at(
                text,
                self.lanes[0].span(),
                "line.lanes",
                what,
            ));
        }
        let mut places = BTreeSet::new();
        for lane in self.port.iter().chain(&self.lanes) {
            let Some(place) = lane.get_ref().place() else {
                continue;
            };
            if places.contains(&place) {
                let what = format!("{place} is named twice; each lane needs its own");
                return Err(ConfigError::at(text, lane.span(), "line.lanes", what));
            }
            places.insert(place);
        }
        Ok(places)
    }

    pub(super) fn check(self, text: &str, directory: &Path) -> Result<Line, ConfigError> {
        for (address, span, key) in [
            (self.address.get_ref(), self.address.span(), "line.address"),
            (
                self.peer_address.get_ref(),
                self.peer_address.span(),
                "line.peer_address",
            ),
        ] {
            if address.0[0] & 1 != 0 {
                let what = format!(
                    "{address} is a group address; a line port has one of its own (first octet even)"
                );
                return Err(ConfigError::at(text, span, key, what));
            }
        }
        if self.peer_address.get_ref() == self.address.get_ref() {
            let what = "both ends have the same address; each line port needs its own";
            return Err(ConfigError::at(
                text,
                self.peer_address.span(),
                "line.peer_address",
                what,
            ));
        }
        let octets = ranged(
            text,
            Some(self.frame_octets_max),
            1514,
            limits::LINE_FRAME_OCTETS,
            "line.frame_octets_max",
        )?;
        let ports = self.port.map(|port| ("line.port", port)).into_iter();
        let ports = ports.chain(self.lanes.into_iter().map(|port| ("line.lanes", port)));
        let mut lanes = Vec::new();
        for (key, port) in ports {
            let span = port.span();
            lanes.push(checked_port(text, port, directory, key)?.ok_or_else(|| {
                let what = "is of kind macsec, which is for client ports: it lies over the line's interface";
                ConfigError::at(text, span, key, what)
            })?);
        }
        if let Some(impairment) = self.impairment {
            let span = impairment.span();
            let impairment = Impairment::from(impairment.into_inner());
            impairment.check().map_err(|error| {
                ConfigError::at(text, span, "line.impairment", error.to_string())
            })?;
            // What happens on one lane does not happen on the next.
            let impaired = |(lane, port)| {
                let seed = impairment.seed.wrapping_add(lane);
                let impairment = Impairment {
                    seed,
                    ..impairment.clone()
                };
                PortConfig::Impaired(Box::new(ImpairedConfig { port, impairment }))
            };
            lanes = (0..).zip(lanes).map(impaired).collect();
        }
        let lane_hold_us = ranged(
            text,
            self.lane_hold_us,
            limits::LANE_HOLD_US_DEFAULT,
            limits::LANE_HOLD_US,
            "line.lane_hold_us",
        )?;
        let drain_span = self.drain_us.as_ref().map(Spanned::span);
        let drain_us = ranged(
            text,
            self.drain_us,
            limits::DRAIN_US_DEFAULT,
            limits::DRAIN_US,
            "line.drain_us",
        )?;
        if lanes.len() > 1 && drain_us < 2 * lane_hold_us {
            let what = format!(
                "{drain_us} is given, but a lane may be {lane_hold_us} us late (line.lane_hold_us): twice that is the least"
            );
            let span = drain_span.unwrap_or_default();
            return Err(ConfigError::at(text, span, "line.drain_us", what));
        }
        Ok(Line {
            lanes,
            lane_hold_us,
            drain_us,
            address: self.address.into_inner(),
            peer_address: self.peer_address.into_inner(),
            peer: self.peer.into_inner(),
            frame_octets_max: octets,
        })
    }
}

/// The port that the node opens; none for an interface that is the kernel's.
pub(super) fn checked_port(
    text: &str,
    port: Spanned<RawPort>,
    directory: &Path,
    key: &'static str,
) -> Result<Option<PortConfig>, ConfigError> {
    let span = port.span();
    let port = port.into_inner().config(directory);
    if let Some(port) = &port {
        port.check()
            .map_err(|error| ConfigError::at(text, span, key, error.to_string()))?;
    }
    Ok(port)
}
