//! `cargo xtask bench`: measurements. Each one is a program of the crate that it measures; here are
//! only their names, so that a person need not know where they live.

use clap::Subcommand;

use crate::{
    steps::cargo,
    tree,
    ui::{Context, Done, Failure},
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
}

/// `cargo xtask bench`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let What::Line { quick, json } = arguments.what;
    let mut command = cargo();
    command
        .args("bench -p qloak-secy --bench line --locked --".split(' '))
        .current_dir(tree::root());
    if quick {
        command.arg("--quick");
    }
    if json {
        command.arg("--json");
    }
    let status = command.status().cannot("start cargo")?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("the benchmark ended with {status}")))
    }
}
