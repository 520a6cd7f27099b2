//! Nebula: a mesh whose hosts know each other by certificates; here two hosts and no lighthouse.

use super::{End, Get, Peer, output};
use crate::{
    lab::programs::Program,
    ui::{Context, Done},
};

pub(super) const PEER: Peer = Peer {
    name: "nebula",
    cipher: "AES-256-GCM",
    // Outer IPv4, UDP, its header and tag.
    overhead: 60,
    get: &[
        Get::Go {
            package: "github.com/slackhq/nebula/cmd/nebula@v1.9.7",
            program: "nebula",
        },
        Get::Go {
            package: "github.com/slackhq/nebula/cmd/nebula-cert@v1.9.7",
            program: "nebula-cert",
        },
    ],
    start,
};

fn start(end: &End<'_>) -> Done<Vec<Program>> {
    let path = |letter, name| end.file(letter, name).to_string_lossy().into_owned();
    let (ca, ca_key) = (path('0', "ca.crt"), path('0', "ca.key"));
    if !end.file('0', "ca.crt").is_file() {
        output(
            "nebula-cert",
            &["ca", "-name", "bench", "-out-crt", &ca, "-out-key", &ca_key],
        )?;
    }
    let (cert, key) = (path(end.letter, "host.crt"), path(end.letter, "host.key"));
    let address = format!("{}/24", end.inner);
    let name = end.letter.to_string();
    output(
        "nebula-cert",
        &[
            "sign", "-ca-crt", &ca, "-ca-key", &ca_key, "-name", &name, "-ip", &address,
            "-out-crt", &cert, "-out-key", &key,
        ],
    )?;
    let interface = end.interface("neb");
    let text = format!(
        "pki: {{ca: '{ca}', cert: '{cert}', key: '{key}'}}\n\
         static_host_map: {{'{far}': ['{far_line}:4242']}}\n\
         lighthouse: {{am_lighthouse: false, hosts: []}}\n\
         listen: {{host: '{line}', port: 4242}}\n\
         cipher: aes\n\
         tun: {{dev: '{interface}', mtu: {mtu}, tx_queue: 10000}}\n\
         logging: {{level: warning}}\n\
         firewall:\n  outbound: [{{port: any, proto: any, host: any}}]\n  inbound: [{{port: any, proto: any, host: any}}]\n",
        far = end.far_inner,
        far_line = end.far_line,
        line = end.line,
        mtu = end.mtu,
    );
    let config = end.write("nebula.yml", &text)?;
    let config = config
        .to_str()
        .ok_or("its path is not UTF-8")
        .cannot("name its file")?;
    Ok(vec![end.daemon("nebula", &["-config", config])?])
}
