//! `cargo xtask fuzz`: made-up batches for the ciphers, every level beside `soft`, `soft` beside
//! RustCrypto.
//!
//! libFuzzer makes the inputs and keeps those that reach new code. It needs a nightly compiler and
//! cargo-fuzz, which is installed under `target/`. What it has learnt lies in `target/fuzz/corpus`,
//! so that a later run goes on from there; an input that failed lies in `target/fuzz/artifacts`.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    proc,
    setup::{self, Need},
    steps::{Steps, cargo},
    tree,
    ui::{Context, Done, Failure},
};

/// Feed the ciphers made-up batches.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long, in minutes, without the build.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Run an input that failed once more, and nothing else.
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
    /// With the address sanitizer: slower, and it sees a write outside of a frame.
    #[arg(long)]
    addresses: bool,
}

/// The only target so far.
const TARGET: &str = "cipher";

/// `cargo xtask fuzz`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    setup::ensure(&[Need::Cxx])?;
    let mut nightly = Command::new("rustc");
    proc::output(nightly.args(["+nightly", "--version"])).map_err(|why| {
        Failure::new(format!(
            "a nightly compiler is needed: `rustup toolchain install nightly --profile minimal` ({why})"
        ))
    })?;
    let folder = target().join("fuzz");
    let mut steps = Steps::new(false);
    let fuzzer = fuzzer(&mut steps)?;
    let fuzz = |what: &str| {
        let mut command = Command::new(&fuzzer);
        command
            // cargo-fuzz calls the cargo of its environment; ours is the stable one that runs us.
            .env_remove("CARGO")
            .env("RUSTUP_TOOLCHAIN", "nightly")
            // As it is shipped: checks of every comparison would double kernels that take minutes to
            // compile, and the property tests run with overflow checks on.
            .args(["fuzz", what, "--release", "--no-trace-compares"])
            .args(["--fuzz-dir", "fuzz", "--target-dir"])
            .arg(folder.join("build"))
            .arg(format!(
                "--sanitizer={}",
                if arguments.addresses {
                    "address"
                } else {
                    "none"
                }
            ))
            .arg(TARGET)
            .current_dir(tree::root());
        command
    };
    steps.command("fuzz build", &mut fuzz("build"))?;
    let mut run = fuzz("run");
    if let Some(input) = &arguments.again {
        run.arg(
            input
                .canonicalize()
                .cannot(format_args!("find {}", input.display()))?,
        );
    } else {
        let corpus = folder.join("corpus");
        fs::create_dir_all(&corpus).cannot("make target/fuzz/corpus")?;
        fs::create_dir_all(folder.join("artifacts")).cannot("make target/fuzz/artifacts")?;
        run.arg(&corpus).arg("--").args([
            format!("-max_total_time={}", arguments.minutes * 60),
            format!("-artifact_prefix={}/", folder.join("artifacts").display()),
            // Room for the largest batch, from the first try on.
            "-max_len=4096".into(),
            "-len_control=0".into(),
            "-print_final_stats=1".into(),
        ]);
    }
    let status = run.status().cannot("start cargo-fuzz")?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "the fuzzer ended with {status}; run the input again with `cargo xtask fuzz --again FILE`"
        )))
    }
}

/// cargo-fuzz: the one in the path, or one of ours.
fn fuzzer(steps: &mut Steps) -> Done<PathBuf> {
    let tools = target().join("tools");
    let own = tools.join("bin/cargo-fuzz");
    if let Some(installed) = tree::program("cargo-fuzz") {
        return Ok(installed);
    }
    if !own.is_file() {
        steps.command(
            "install cargo-fuzz",
            cargo()
                .args("install --locked cargo-fuzz --root".split(' '))
                .arg(&tools),
        )?;
    }
    Ok(own)
}

/// Where cargo builds.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    tree::root().join(target)
}
