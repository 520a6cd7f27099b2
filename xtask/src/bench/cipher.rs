//! `cargo xtask bench cipher`: the ciphers beside other libraries. The program is `bench/cipher`; the peers
//! that are Debian packages are brought here.

use std::ffi::OsString;

use crate::{
    setup::{self, Need},
    steps::cargo,
    ui::{self, Done},
};

/// What the benchmark is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Handed on to the benchmark.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    options: Vec<OsString>,
}

/// The peers of the cipher benchmark that are Debian packages. Test set-up: the benchmark loads them
/// when it runs, and nothing links to them.
const PEERS: [Need; 5] = [
    Need::Peer {
        package: "libssl3",
        file: "libcrypto.so.3",
    },
    Need::Peer {
        package: "libgcrypt20",
        file: "libgcrypt.so.20",
    },
    Need::Peer {
        package: "libbotan-2-19",
        file: "libbotan-2.so.19",
    },
    Need::Peer {
        package: "libnettle8",
        file: "libnettle.so.8",
    },
    // Last, because it exists for x86 alone.
    Need::Peer {
        package: "libipsec-mb1",
        file: "libIPSec_MB.so.1",
    },
];

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    let options = &arguments.options;
    let alone = ["--no-peers", "--help", "-h"];
    let wants_peers = !options
        .iter()
        .any(|option| alone.iter().any(|word| option == word));
    // Without its packages the benchmark runs all the same and names who is absent.
    let peers = PEERS.len() - usize::from(cfg!(not(target_arch = "x86_64")));
    if wants_peers && let Err(missing) = setup::ensure(&PEERS[..peers]) {
        ui::note(&missing);
    }
    let mut command = cargo();
    command
        .args("run --release -p qloak-bench --bin cipher --locked --".split(' '))
        .args(options);
    super::finish(&mut command)
}
