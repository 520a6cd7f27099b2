//! `cargo xtask test`: everything that must be green before a change is merged, and what CI runs.

use crate::{
    arm, constant_time, demo, disassemble, macsec,
    setup::{self, Need},
    steps::{Did, Steps, cargo},
    tidy, tree,
    ui::Done,
};

/// Format, lints, house rules, tests, peer tests, the Wireshark dissector, the kernel's own MACsec, what the
/// ciphers were compiled to, the cipher on Arm, and the short demo.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Run every step even after one failed.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Leave the peer tests out (they need python with scapy).
    #[arg(long)]
    pub(crate) no_peer: bool,
    /// Leave 64-bit Arm out (the cipher's tests under an emulator: some minutes, and 150 MB the first time).
    #[arg(long)]
    pub(crate) no_arm: bool,
    /// Leave the short demo out.
    #[arg(long)]
    pub(crate) no_demo: bool,
}

/// `cargo xtask test`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut steps = Steps::new(arguments.keep_going);
    all(&mut steps, arguments)?;
    steps.finish()
}

/// The steps, for `ci` too.
pub(crate) fn all(steps: &mut Steps, arguments: &Arguments) -> Done {
    steps.step("setup", || {
        let mut needs = vec![Need::Tshark];
        if !arguments.no_peer {
            needs.push(Need::PeerPython);
        }
        if !arguments.no_demo && tree::is_root() {
            needs.extend(demo::NEEDS);
        }
        setup::ensure(&needs).map(|()| Did::Passed)
    })?;
    steps.command("format", cargo().args(["fmt", "--all", "--check"]))?;
    // A workspace of its own, which the line above does not see.
    steps.command(
        "format of fuzz targets",
        cargo().args("fmt --manifest-path fuzz/Cargo.toml --check".split(' ')),
    )?;
    steps.step("tidy", || tidy::check().map(|()| Did::Passed))?;
    steps.command(
        "clippy",
        cargo().args("clippy --workspace --all-targets --locked -- -D warnings".split(' ')),
    )?;
    // Benchmarks are compiled by clippy; running them as tests would only measure.
    steps.command(
        "tests",
        cargo().args("test --workspace --lib --bins --tests --examples --locked".split(' ')),
    )?;
    steps.command(
        "doc tests",
        cargo().args("test --workspace --doc --locked".split(' ')),
    )?;
    if arguments.no_peer {
        steps.step("peer tests", || Ok(Did::Skipped("--no-peer".into())))?;
    } else {
        // Asked for by its name, not its package: for one package alone cargo would build all anew.
        steps.command(
            "peer tests",
            cargo()
                .args("test --workspace --locked --test peer -- --ignored".split(' '))
                .env("QLOAK_PEER_PYTHON", tree::venv_python()),
        )?;
    }
    // What tshark makes of our frames; the set-up above has installed it.
    steps.command(
        "dissector",
        cargo().args("test --workspace --locked --test dissector -- --ignored".split(' ')),
    )?;
    constant_time::step(steps)?;
    macsec::step(steps)?;
    if cfg!(target_arch = "x86_64") {
        steps.step("disassembly", || {
            disassemble::run(&disassemble::Arguments::default()).map(|()| Did::Passed)
        })?;
    }
    if arguments.no_arm {
        steps.step("arm", || Ok(Did::Skipped("--no-arm".into())))?;
    } else {
        let arm = arm::Arguments {
            if_possible: true,
            keep_going: arguments.keep_going,
            ..Default::default()
        };
        arm::all(steps, &arm)?;
    }
    if arguments.no_demo {
        return steps.step("demo", || Ok(Did::Skipped("--no-demo".into())));
    }
    steps.step("demo", || {
        demo::run(&demo::Arguments::quick()).map(|()| Did::Passed)
    })
}
