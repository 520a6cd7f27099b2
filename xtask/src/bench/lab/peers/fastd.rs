//! fastd with TAP interfaces and its fastest method that has a name in its manual.

use std::fs;

use super::{End, Get, Peer, output};
use crate::{
    lab::programs::Program,
    ui::{Context, Done, Failure},
};

pub(super) const PEER: Peer = Peer {
    name: "fastd",
    cipher: "salsa2012+umac",
    // Outer IPv4, UDP, its header and tag, the Ethernet header inside.
    overhead: 80,
    get: &[Get::Debian {
        package: "fastd",
        program: "fastd",
    }],
    start,
};

fn start(end: &End<'_>) -> Done<Vec<Program>> {
    let (secret, _) = keys(end, end.letter)?;
    let (_, far_public) = keys(end, end.far_letter)?;
    let interface = end.interface("fas");
    let text = format!(
        "interface \"{interface}\";\nmode tap;\nmethod \"{method}\";\nbind {line}:10000;\nmtu {mtu};\n\
         log level warn;\nsecret \"{secret}\";\n\
         peer \"far\" {{ key \"{far_public}\"; remote {far_line}:10000; }}\n",
        method = PEER.cipher,
        line = end.line,
        far_line = end.far_line,
        mtu = end.mtu,
    );
    let config = end.write("fastd.conf", &text)?;
    let config = config
        .to_str()
        .ok_or("its path is not UTF-8")
        .cannot("name its file")?;
    let mut daemon = end.daemon("fastd", &["-c", config])?;
    end.bring_up(&interface, &mut daemon)?;
    Ok(vec![daemon])
}

/// Secret and public key of an end, made by whoever comes first. fastd prints `Secret: ...` and
/// `Public: ...`.
fn keys(end: &End<'_>, letter: char) -> Done<(String, String)> {
    let path = end.file(letter, "keys");
    if !path.is_file() {
        fs::write(&path, output("fastd", &["--generate-key"])?)
            .cannot(format_args!("write {}", path.display()))?;
    }
    let text = fs::read_to_string(&path).cannot(format_args!("read {}", path.display()))?;
    let find = |label: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(label));
        found
            .map(|key| key.trim().to_owned())
            .ok_or_else(|| Failure::new(format!("fastd --generate-key did not say {label:?}")))
    };
    Ok((find("Secret:")?, find("Public:")?))
}
