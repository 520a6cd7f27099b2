//! The checks of `dataplane = "kernel-macsec"`: what the kernel cannot do is refused here, before anything
//! is opened.

use std::{collections::BTreeMap, ops::Range};

use qloak_api::Carriage;
use serde::Deserialize;

use super::{RawChannel, RawClient, RawLine, RawPeer};
use crate::config::{ConfigError, KernelMacsec, MacsecInterface};

/// Who carries the frames.
#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawDataplane {
    /// The node's own pipeline.
    #[default]
    UserSpace,
    /// The kernel's macsec driver.
    KernelMacsec,
}

/// The suites that the kernel has, each with 32-bit PNs and with XPN.
const SUITES: [&str; 2] = ["aes-128-gcm", "aes-256-gcm"];

impl RawDataplane {
    /// The kernel's interfaces among the client ports; there are none of the other kind beside them.
    pub(super) fn take_interfaces(
        self,
        text: &str,
        clients: &[RawClient],
    ) -> Result<Option<KernelMacsec>, ConfigError> {
        let is_kernel = self == Self::KernelMacsec;
        let mut interfaces = BTreeMap::new();
        for client in clients {
            let at = |key, what: &str| ConfigError::at(text, client.number.span(), key, what);
            match (client.port.get_ref().macsec(), is_kernel) {
                (None, false) => {}
                (Some(interface), true) => {
                    if client.weight.is_some() {
                        let what = "is for client ports of the node's own; here the kernel shares the line out";
                        return Err(at("client.weight", what));
                    }
                    interfaces.insert(*client.number.get_ref(), interface);
                }
                (Some(_), false) => {
                    let what = "kind = \"macsec\" is an interface of the kernel: it needs dataplane = \"kernel-macsec\"";
                    return Err(at("client.port", what));
                }
                (None, true) => {
                    let what = "with dataplane = \"kernel-macsec\" the client port is the kernel's interface: { kind = \"macsec\", interface = ... }";
                    return Err(at("client.port", what));
                }
            }
        }
        Ok(is_kernel.then_some(KernelMacsec { interfaces }))
    }

    /// Whether the kernel can do what the line and the channels want.
    pub(super) fn check(
        self,
        text: &str,
        line: &RawLine,
        peers: &[RawPeer],
        channels: &[RawChannel],
    ) -> Result<(), ConfigError> {
        if self == Self::UserSpace {
            return Ok(());
        }
        let at =
            |span: Range<usize>, key, what: String| Err(ConfigError::at(text, span, key, what));
        if let Some(impairment) = &line.impairment {
            let what = "is done to frames by the node, which carries none with dataplane = \"kernel-macsec\"; `tc qdisc add dev ... netem` worsens the kernel's";
            return at(impairment.span(), "line.impairment", what.into());
        }
        if let Some(peer) = peers.first() {
            let what = "is for nodes that carry the frames themselves: with dataplane = \"kernel-macsec\" a line has one far node";
            return at(peer.name.span(), "peer", what.into());
        }
        let one_lane = line.port.as_ref().filter(|_| line.lanes.is_empty());
        match one_lane.and_then(|port| port.get_ref().packet_socket()) {
            Some(None) => {}
            Some(Some(namespace)) => {
                let what = format!(
                    "is in namespace {namespace}, and the kernel's interfaces are made in the node's own: run the node there (`ip netns exec {namespace} qloak node ...`)"
                );
                return at(line.address.span(), "line.port", what);
            }
            None => {
                let what = "must be one of kind af-packet with dataplane = \"kernel-macsec\": the node needs the line for agreement frames alone";
                return at(line.address.span(), "line.port", what.into());
            }
        }
        for channel in channels {
            if *channel.carriage.get_ref() != Carriage::Transparent {
                let what = "must be transparent with dataplane = \"kernel-macsec\": MACsec carries each client frame by itself";
                return at(channel.carriage.span(), "channel.carriage", what.into());
            }
            let suite = channel.suite.get_ref();
            if !SUITES.contains(&suite.as_str()) {
                let what = format!(
                    "{suite} is none that the kernel has; with dataplane = \"kernel-macsec\" {} are allowed",
                    SUITES.join(", ")
                );
                return at(channel.suite.span(), "channel.suite", what);
            }
            if *suite != *channels[0].suite.get_ref() {
                let what = "all channels have one suite with dataplane = \"kernel-macsec\": the kernel cannot change an interface's, so the node offers no other";
                return at(channel.suite.span(), "channel.suite", what.into());
            }
        }
        Ok(())
    }
}

impl super::port::RawPort {
    /// The kernel's interface that stands for the port, if one does.
    fn macsec(&self) -> Option<MacsecInterface> {
        match self {
            Self::Macsec {
                interface,
                mtu,
                up,
                offload,
            } => Some(MacsecInterface {
                name: interface.clone(),
                mtu: *mtu,
                up: *up,
                offload: *offload,
            }),
            _ => None,
        }
    }

    /// The namespace of a packet socket, if it is one.
    fn packet_socket(&self) -> Option<Option<&str>> {
        match self {
            Self::AfPacket { namespace, .. } => Some(namespace.as_deref()),
            _ => None,
        }
    }
}
