//! `cargo xtask lab`: the demo's network to play with.
//!
//! `up` starts what the demo starts and leaves it running; the operator's commands then work as in the
//! README, with the certificates of the run.

pub(crate) mod config;
pub(crate) mod count;
pub(crate) mod layout;
pub(crate) mod network;
pub(crate) mod operator;
pub(crate) mod ping;
pub(crate) mod programs;
mod running;
pub(crate) mod state;

pub(crate) use running::{Lab, build_product};

use std::{os::unix::process::CommandExt, process::Command};

use clap::Subcommand;

use crate::{
    proc,
    setup::{self, Need},
    tree,
    ui::{self, Context, Done, Failure},
};
use config::Place;
use layout::Layout;
use network::Space;

/// The demo's network to play with.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Build it and leave it running.
    Up,
    /// What runs in it.
    Status,
    /// A shell in one of its namespaces: a, b, mgmt, hosts-a, hosts-b.
    Shell {
        /// Which.
        space: String,
    },
    /// End everything in it and remove it.
    Down,
}

/// `cargo xtask lab`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    if !tree::is_root() {
        return Err(Failure::new(
            "the lab makes network namespaces: run it as root",
        ));
    }
    setup::ensure(&[Need::Iproute2, Need::Ethtool])?;
    match &arguments.what {
        What::Up => up(),
        What::Status => status(),
        What::Shell { space } => shell(space),
        What::Down => {
            let lock = network::Lock::take()?;
            network::down(&lock);
            ui::line("the lab is down");
            Ok(())
        }
    }
}

fn up() -> Done {
    if network::is_up() {
        return Err(Failure::new(
            "the lab is up already; cargo xtask lab down removes it",
        ));
    }
    let mut lab = Lab::start(Place::Namespaces, &Layout::demo(), None, |_| Ok(()))?;
    lab.until_open(&mut |_, _| {})?;
    lab.keep();
    ui::line(format!(
        "the lab is up; configuration, certificates and logs: {}\n\
         try   cargo xtask lab shell mgmt      then: qloak status\n\
         try   cargo xtask lab shell hosts-a   then: ping 10.77.1.2\n\
         end   cargo xtask lab down",
        lab.folder().display()
    ));
    Ok(())
}

fn status() -> Done {
    if !network::is_up() {
        ui::line("the lab is down");
        return Ok(());
    }
    for space in [
        Space::A,
        Space::B,
        Space::Management,
        Space::HostsA,
        Space::HostsB,
    ] {
        let pids = proc::output(Command::new("ip").args(["netns", "pids", space.name()]))
            .unwrap_or_default();
        ui::head(space.name());
        for pid in pids.split_whitespace() {
            let command =
                std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            ui::line(format!("  {pid:>7}  {}", command.replace('\0', " ")));
        }
    }
    Ok(())
}

fn shell(name: &str) -> Done {
    let space = Space::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Space::ALL
            .iter()
            .filter_map(|space| space.name().strip_prefix("qloak-"))
            .collect();
        Failure::new(format!(
            "there is no namespace {name:?}; there are {}",
            names.join(", ")
        ))
    })?;
    if !network::is_up() {
        return Err(Failure::new("the lab is down; cargo xtask lab up"));
    }
    let folder = tree::lab().join("last");
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let binaries = tree::root().join("target/release");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(binaries).chain(std::env::split_paths(&path)))
        .cannot("set PATH for the shell")?;
    let error = space
        .command(shell)
        .current_dir(folder)
        .env("PATH", path)
        .envs(operator::environment(Place::Namespaces))
        .exec();
    Err(Failure::new(format!("cannot start a shell: {error}")))
}
