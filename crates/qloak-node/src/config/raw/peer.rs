//! The checks of far nodes beside the line's: a line that more than two nodes share.

use std::path::Path;

use qloak_api::{MacAddress, SaeId};
use qloak_door::TlsFiles;
use toml::Spanned;

use super::RawPeer;
use crate::{
    config::{ConfigError, Kme, Line, Peer},
    limits,
};

/// The further far nodes; `own` is this node's name, `kme` serves those that name no other.
pub(super) fn check(
    text: &str,
    directory: &Path,
    peers: Vec<RawPeer>,
    (own, line): (&SaeId, &Line),
    (kme, tls): (&Kme, &TlsFiles),
) -> Result<Vec<Peer>, ConfigError> {
    if let Some(peer) = peers.get(limits::FURTHER_PEERS_MAX) {
        let what = format!(
            "is one too many: {} further far nodes are allowed",
            limits::FURTHER_PEERS_MAX
        );
        return Err(ConfigError::at(text, peer.name.span(), "peer.name", what));
    }
    if let Some(peer) = peers.first().filter(|_| line.lanes.len() > 1) {
        let what = "cannot be: `lanes` are for a line of two nodes, since each has its own order";
        return Err(ConfigError::at(text, peer.name.span(), "peer", what));
    }
    let mut names = vec![own.clone(), line.peer.clone()];
    let mut addresses = vec![line.address, line.peer_address];
    let mut checked = Vec::new();
    for peer in peers {
        let (name, address) = (peer.name.get_ref(), peer.address.get_ref());
        if names.contains(name) {
            let what = format!("{name} is named already: each node has its own name");
            return Err(ConfigError::at(text, peer.name.span(), "peer.name", what));
        }
        if addresses.contains(address) || address.0[0] & 1 != 0 {
            let what = format!(
                "{address} is a group address or another node's; each line port has one of its own (first octet even)"
            );
            let span = peer.address.span();
            return Err(ConfigError::at(text, span, "peer.address", what));
        }
        names.push(name.clone());
        addresses.push(*address);
        let kme = match peer.kme {
            Some(kme) => kme.check(text, directory, tls)?,
            None => kme.clone(),
        };
        checked.push(Peer {
            name: peer.name.into_inner(),
            address: peer.address.into_inner(),
            kme,
        });
    }
    Ok(checked)
}

/// Which of the far nodes a channel names: the line's when it names none.
pub(super) fn of_channel(
    text: &str,
    named: Option<&Spanned<SaeId>>,
    peers: &[(SaeId, MacAddress)],
) -> Result<usize, ConfigError> {
    let Some(named) = named else { return Ok(0) };
    let known = peers.iter().position(|(name, _)| name == named.get_ref());
    known.ok_or_else(|| {
        let names: Vec<_> = peers.iter().map(|(name, _)| name.as_str()).collect();
        let what = format!(
            "{} is no far node of this one; there are {}",
            named.get_ref(),
            names.join(", ")
        );
        ConfigError::at(text, named.span(), "channel.peer", what)
    })
}
