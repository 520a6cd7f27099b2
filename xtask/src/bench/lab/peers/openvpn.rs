//! OpenVPN between two ends with TAP interfaces, AES-256-GCM, each end known by the fingerprint of its own
//! certificate. In user space: there is no kernel module of it in the machines where benchmarks run.

use super::{End, Get, Peer, output};
use crate::{
    lab::programs::Program,
    ui::{Context, Done},
};

pub(super) const PEER: Peer = Peer {
    name: "openvpn",
    cipher: "AES-256-GCM",
    // Outer IPv4, UDP, its header and tag, the Ethernet header inside.
    overhead: 80,
    get: &[
        Get::Debian {
            package: "openvpn",
            program: "openvpn",
        },
        Get::Debian {
            package: "openssl",
            program: "openssl",
        },
    ],
    start,
};

fn start(end: &End<'_>) -> Done<Vec<Program>> {
    let (cert, key) = certificate(end, end.letter)?;
    let (far_cert, _) = certificate(end, end.far_letter)?;
    let fingerprint = output(
        "openssl",
        &[
            "x509",
            "-in",
            &far_cert,
            "-noout",
            "-fingerprint",
            "-sha256",
        ],
    )?;
    let fingerprint = fingerprint.rsplit('=').next().unwrap_or_default();
    let (interface, mtu) = (end.interface("ovp"), end.mtu.to_string());
    let role: &[&str] = match end.letter {
        'a' => &["--tls-client"],
        _ => &["--tls-server", "--dh", "none"],
    };
    let mut arguments = vec![
        "--dev",
        &interface,
        "--dev-type",
        "tap",
        "--proto",
        "udp4",
        "--port",
        "1194",
        "--local",
        end.line,
        "--remote",
        end.far_line,
        "--ifconfig",
        end.inner,
        "255.255.255.0",
        "--cert",
        &cert,
        "--key",
        &key,
        "--peer-fingerprint",
        fingerprint,
        "--data-ciphers",
        "AES-256-GCM",
        "--tun-mtu",
        &mtu,
        "--tun-mtu-max",
        "9100",
        "--mssfix",
        "0",
        "--txqueuelen",
        "10000",
        "--verb",
        "1",
    ];
    arguments.extend(role);
    Ok(vec![end.daemon("openvpn", &arguments)?])
}

/// Certificate and key of an end, made by whoever comes first.
fn certificate(end: &End<'_>, letter: char) -> Done<(String, String)> {
    let text = |name: &str| {
        let path = end.file(letter, name).into_os_string().into_string();
        path.map_err(|_| "its path is not UTF-8")
            .cannot("name its file")
    };
    let (cert, key) = (text("cert.pem")?, text("key.pem")?);
    if !end.file(letter, "cert.pem").is_file() {
        let name = format!("/CN=bench-{letter}");
        output(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                &name,
                "-keyout",
                &key,
                "-out",
                &cert,
            ],
        )?;
    }
    Ok((cert, key))
}
