//! `cargo xtask demo`: the product at work, end to end, in one command.
//!
//! With root: two nodes, two KMSs and a controller as real processes in namespaces, and ten client
//! ports that carry real traffic of the kernel's own stack. Without: the same programs over memory
//! ports, fed from a capture of such traffic. Either way it walks through the same phases, counts every
//! frame at both ends, and fails if one is missing.

mod memory;
mod offline;
mod outside;
mod phases;
mod report;
mod stage;
mod view;

use std::path::PathBuf;

use stage::Stage;

use crate::{
    lab::{config::Place, network},
    setup::{self, Need},
    tree,
    ui::{self, Done, Failure},
};

/// What the demo needs from outside when it makes namespaces.
pub(crate) const NEEDS: [Need; 4] = [Need::Iproute2, Need::Ping, Need::Ethtool, Need::Tshark];

/// Show the product at work.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The short form: under a minute.
    #[arg(long)]
    quick: bool,
    /// Leave programs and namespaces as they are at the end; `cargo xtask lab down` removes them.
    #[arg(long)]
    keep: bool,
    /// Memory ports and captured traffic, also as root.
    #[arg(long)]
    no_root: bool,
    /// Write a small capture of a client port's traffic, both ways, to this file.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show this `qloak` instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

impl Arguments {
    /// The short form.
    pub(crate) fn quick() -> Self {
        Self {
            quick: true,
            keep: false,
            no_root: false,
            record: None,
            binary: None,
        }
    }
}

/// `cargo xtask demo`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    if arguments.no_root || !tree::is_root() {
        return memory::run(arguments.quick, arguments.binary.as_deref());
    }
    setup::ensure(&NEEDS)?;
    if let Some(why) = network::obstacle() {
        ui::note(format!(
            "root, but no network namespaces here ({why}); so without them"
        ));
        return memory::run(arguments.quick, arguments.binary.as_deref());
    }
    ui::head("Qloak demo: two encryptors, ten client ports, keys of an emulated QKD link");
    let mut stage = Stage::build(Place::Namespaces, arguments.binary.as_deref(), |_| Ok(()))?;
    if let Some(file) = &arguments.record {
        stage.record_client(file)?;
    }
    let plan = phases::plan(arguments.quick, Place::Namespaces);
    let rows = phases::walk(&mut stage, &plan);
    stage.view.finish();
    if let Some(mut line) = stage.line.take() {
        line.finish();
    }
    let rows = rows?;
    let mut good = report::show(&rows);
    let record = stage.folder().join("line.pcap");
    match outside::look(&record) {
        Ok(words) => {
            ui::line("tshark sees MACsec on the line:");
            for word in words {
                ui::line(format!("  {word}"));
            }
        }
        Err(failure) => {
            ui::failure(&failure);
            good = false;
        }
    }
    ui::line(format!(
        "line capture, logs and configuration: {}",
        stage.folder().display()
    ));
    if arguments.keep {
        stage.lab.keep();
        ui::note("everything runs on: cargo xtask lab status, cargo xtask lab down");
    }
    if good {
        Ok(())
    } else {
        Err(Failure::new(
            "a frame was lost or a phase failed; see above",
        ))
    }
}
