//! `cargo xtask bench line`: frames in memory on one core. The program is a bench of `qloak-secy`.

use crate::{steps::cargo, ui::Done};

/// How to look.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Fewer rounds: a look, not a record.
    #[arg(long)]
    quick: bool,
    /// One JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    let mut command = cargo();
    command.args("bench -p qloak-secy --bench line --locked --".split(' '));
    if arguments.quick {
        command.arg("--quick");
    }
    if arguments.json {
        command.arg("--json");
    }
    super::finish(&mut command)
}
