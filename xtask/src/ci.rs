//! `cargo xtask ci`: `test`, then what only a merge needs: licences and advisories of outside crates,
//! documentation without a warning, and the short measurement.

use crate::{
    steps::{Did, Steps, cargo},
    test,
    ui::Done,
};

/// What CI runs.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run every step even after one failed.
    #[arg(long)]
    keep_going: bool,
    /// Install cargo-deny when it is absent (some minutes), instead of leaving its check out.
    #[arg(long)]
    deny: bool,
}

/// `cargo xtask ci`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut steps = Steps::new(arguments.keep_going);
    let test = test::Arguments {
        keep_going: arguments.keep_going,
        ..Default::default()
    };
    test::all(&mut steps, &test)?;
    let has_deny = || {
        cargo()
            .args(["deny", "--version"])
            .output()
            .is_ok_and(|out| out.status.success())
    };
    if !has_deny() && arguments.deny {
        steps.command(
            "install cargo-deny",
            cargo().args(["install", "--locked", "cargo-deny"]),
        )?;
    }
    if has_deny() {
        steps.command(
            "licences",
            cargo().args("deny --workspace check bans licenses sources".split(' ')),
        )?;
        advisories(&mut steps)?;
    } else {
        steps.step("licences", || {
            Ok(Did::Skipped(
                "cargo-deny is absent; `cargo xtask ci --deny` installs it".into(),
            ))
        })?;
    }
    steps.command(
        "documentation",
        cargo()
            .args("doc --workspace --no-deps --locked --document-private-items".split(' '))
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    steps.command(
        "bench line",
        cargo()
            .args("bench -p qloak-secy --bench line --locked -- --quick".split(' '))
            .env("CARGO_TERM_PROGRESS_WHEN", "never"),
    )?;
    steps.finish()
}

/// Known holes in outside crates. The list of them is fetched anew each time; without the network
/// nothing can be said, and that is said.
fn advisories(steps: &mut Steps) -> Done {
    let fetched = cargo().args(["deny", "fetch", "db"]).output();
    if fetched.is_ok_and(|out| out.status.success()) {
        return steps.command(
            "advisories",
            cargo().args("deny --workspace check advisories".split(' ')),
        );
    }
    steps.step("advisories", || {
        Ok(Did::Skipped(
            "the list of advisories cannot be fetched from here".into(),
        ))
    })
}
