//! vpncloud with TAP interfaces: in Rust, with AES-GCM of ring, both ends known by a common password.

use super::{End, Get, Peer};
use crate::{lab::programs::Program, ui::Done};

pub(super) const PEER: Peer = Peer {
    name: "vpncloud",
    cipher: "AES-256-GCM",
    // Outer IPv4, UDP, its header and tag, the Ethernet header inside.
    overhead: 80,
    get: &[Get::Cargo {
        name: "vpncloud",
        version: "2.3.0",
        program: "vpncloud",
    }],
    start,
};

fn start(end: &End<'_>) -> Done<Vec<Program>> {
    let interface = end.interface("vpn");
    let (listen, far) = (
        format!("{}:3210", end.line),
        format!("{}:3210", end.far_line),
    );
    let mut daemon = end.daemon(
        "vpncloud",
        &[
            "--device",
            &interface,
            "--type",
            "tap",
            "--mode",
            "switch",
            "--password",
            "bench",
            "--algo",
            "aes256",
            "--listen",
            &listen,
            "--peer",
            &far,
            "--no-port-forwarding",
        ],
    )?;
    end.bring_up(&interface, &mut daemon)?;
    Ok(vec![daemon])
}
