//! `cargo xtask constant-time`: whether the ciphers take the same steps whatever the secret.
//!
//! The work is done by a program of its own, `proof/`; here it is built as the product is, and for the
//! taint check valgrind runs it, with its reports in a log and the list of jumps that a verdict may make.

use std::{ffi::OsString, path::PathBuf, process::Command};

use clap::Subcommand;

use crate::{
    limits::STEP_TIME_MAX,
    proc,
    setup::{self, Need},
    steps::{Did, Steps, cargo},
    tree,
    ui::{Context, Done, Failure},
};

/// Whether the ciphers take the same steps whatever the secret.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    way: Way,
}

#[derive(Subcommand)]
enum Way {
    /// Follow secrets to every branch and address, under valgrind; see `--help` behind it.
    #[command(disable_help_flag = true)]
    Taint(Options),
    /// Time two classes of secrets and compare; see `--help` behind it. A report, no test.
    #[command(disable_help_flag = true)]
    Statistics(Options),
}

#[derive(clap::Args)]
struct Options {
    /// Handed on.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    options: Vec<OsString>,
}

/// `cargo xtask constant-time`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let (mut command, more) = match &arguments.way {
        Way::Taint(Options { options }) => {
            setup::ensure(&[Need::Valgrind])?;
            let mut command = taint(&program(&["qloak-proof"])?)?;
            command.args(options);
            (
                command,
                "; what valgrind saw stands in .lab/log/valgrind.log",
            )
        }
        Way::Statistics(Options { options }) => {
            let mut command = Command::new(program(&["qloak-proof"])?);
            command.arg("statistics").args(options);
            (command, "")
        }
    };
    let status = command.status().cannot("start the check")?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("the check ended with {status}{more}")))
    }
}

/// The taint check of every suite and level, as a step of `test`.
pub(crate) fn step(steps: &mut Steps) -> Done {
    if cfg!(not(target_arch = "x86_64")) {
        let why = "it talks to valgrind in instructions of x86-64";
        return steps.step("taint", || Ok(Did::Skipped(why.into())));
    }
    let mut command = None;
    steps.step("taint setup", || {
        setup::ensure(&[Need::Valgrind])?;
        // Together with the product, which the demo builds anyway: what both need is then built once.
        command = Some(taint(&program(&["qloak-proof", "qloak"])?)?);
        Ok(Did::Passed)
    })?;
    match &mut command {
        Some(command) => steps.command("taint", command),
        None => Ok(()),
    }
}

/// Builds packages, the program's among them, and says where it is.
fn program(packages: &[&str]) -> Done<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let log = tree::log("build-proof").cannot("make the folder for logs")?;
    let mut build = cargo();
    build
        .args(["build", "--release", "--locked"])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .current_dir(tree::root());
    proc::run(
        &mut build,
        "building the check (release)",
        &log,
        STEP_TIME_MAX,
    )?;
    Ok(tree::root().join(target).join("release/constant-time"))
}

/// The program under valgrind.
fn taint(program: &std::path::Path) -> Done<Command> {
    let log = tree::log("valgrind").cannot("make the folder for logs")?;
    let known = tree::root().join("proof/verdict.supp");
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=memcheck", "--leak-check=no"])
        // Every report, however many: each suite and level counts its own.
        .args(["--error-limit=no", "--num-callers=20"])
        .arg(format!("--suppressions={}", known.display()))
        .arg(format!("--log-file={}", log.display()))
        .arg(program)
        .arg("taint");
    Ok(command)
}
