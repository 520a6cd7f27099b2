//! `cargo xtask bench`: measurements. Each one is a program of the crate that it measures; here are
//! only their names, so that a person need not know where they live.

use std::{ffi::OsString, process::Command};

use clap::Subcommand;

use crate::{
    setup::{self, Need},
    steps::cargo,
    tree,
    ui::{self, Context, Done, Failure},
};

/// Measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Protect and validate in memory on one core: every suite, 64 to 9000 octets and IMIX.
    Line {
        /// Fewer rounds: a look, not a record.
        #[arg(long)]
        quick: bool,
        /// One JSON document instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Every cipher suite at every level of this CPU, beside the libraries that have it; see `--help`
    /// behind it.
    #[command(disable_help_flag = true)]
    Cipher {
        /// Handed on to the benchmark.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "OPTIONS"
        )]
        options: Vec<OsString>,
    },
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

/// `cargo xtask bench`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    match &arguments.what {
        What::Line { quick, json } => line(*quick, *json),
        What::Cipher { options } => cipher(options),
    }
}

fn line(quick: bool, json: bool) -> Done {
    let mut command = cargo();
    command.args("bench -p qloak-secy --bench line --locked --".split(' '));
    if quick {
        command.arg("--quick");
    }
    if json {
        command.arg("--json");
    }
    finish(&mut command)
}

fn cipher(options: &[OsString]) -> Done {
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
    finish(&mut command)
}

fn finish(command: &mut Command) -> Done {
    let status = command
        .current_dir(tree::root())
        .status()
        .cannot("start cargo")?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("the benchmark ended with {status}")))
    }
}
