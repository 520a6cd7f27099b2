//! WireGuard in user space, twice: wireguard-go, and boringtun in Rust. Both are told by `wg`, over a socket
//! of the interface's name that all namespaces share.

use super::{End, Get, Peer, output};
use crate::{
    lab::programs::Program,
    proc,
    ui::{Context, Done},
};
use std::{fs, time::Duration};

const TOOLS: Get = Get::Debian {
    package: "wireguard-tools",
    program: "wg",
};

/// The one in Go, with its GSO and GRO.
pub(super) const GO: Peer = Peer {
    name: "wireguard-go",
    cipher: "ChaCha20-Poly1305",
    overhead: OVERHEAD,
    get: &[
        TOOLS,
        Get::Go {
            package: "golang.zx2c4.com/wireguard@v0.0.0-20260522210424-ecfc5a8d5446",
            program: "wireguard",
        },
    ],
    start: |end| {
        let interface = end.interface("wgo");
        let daemon = end.daemon("wireguard", &["-f", &interface])?;
        join(end, &interface, daemon)
    },
};

/// The one in Rust.
pub(super) const BORINGTUN: Peer = Peer {
    name: "boringtun",
    cipher: "ChaCha20-Poly1305",
    overhead: OVERHEAD,
    get: &[
        TOOLS,
        Get::Cargo {
            name: "boringtun-cli",
            version: "0.7.1",
            program: "boringtun-cli",
        },
    ],
    start: |end| {
        let interface = end.interface("bor");
        let arguments = [
            "--foreground",
            "--disable-drop-privileges",
            "-t",
            "2",
            &interface,
        ];
        let daemon = end.daemon("boringtun-cli", &arguments)?;
        join(end, &interface, daemon)
    },
};

/// Outer IPv4, UDP, WireGuard's header and tag.
const OVERHEAD: usize = 60;

/// How long a daemon may take to open its socket.
const SOCKET_TRIES: u32 = 50;

/// Tells a daemon its key and its peer, and gives its interface an address.
fn join(end: &End<'_>, interface: &str, mut daemon: Program) -> Done<Vec<Program>> {
    let key = private_key(end, end.letter)?;
    let far_key = private_key(end, end.far_letter)?;
    let public = format!("wg pubkey < '{}'", far_key.display());
    let public = proc::output(std::process::Command::new("sh").args(["-c", &public]))?;
    let endpoint = format!("{}:51820", end.far_line);
    let mut tries = 0;
    loop {
        daemon.check()?;
        let mut set = end.space.command("wg");
        set.args(["set", interface, "listen-port", "51820", "private-key"])
            .arg(&key)
            .args(["peer", public.trim(), "endpoint", &endpoint])
            .args(["allowed-ips", "10.80.0.0/24"]);
        match proc::output(&mut set) {
            Ok(_) => break,
            Err(failure) if tries == SOCKET_TRIES => return Err(failure),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
        tries += 1;
    }
    end.bring_up(interface, &mut daemon)?;
    Ok(vec![daemon])
}

/// The key of an end, made by whoever comes first.
fn private_key(end: &End<'_>, letter: char) -> Done<std::path::PathBuf> {
    let path = end.file(letter, "key");
    if !path.is_file() {
        fs::write(&path, output("wg", &["genkey"])?)
            .cannot(format_args!("write {}", path.display()))?;
    }
    Ok(path)
}
