//! `cargo xtask fuzz [TARGET]`: made-up input for the ciphers and for every parser of the data path.
//!
//! libFuzzer makes the inputs and keeps those that reach new code. It needs a nightly compiler and
//! cargo-fuzz, which is installed under `target/`. A target is a `[[bin]]` of `fuzz/Cargo.toml`. It begins
//! with what `fuzz/corpus` keeps for it and with what it has learnt in earlier runs, which lies in
//! `target/fuzz/corpus`; an input that failed lies in `target/fuzz/artifacts`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::{
    proc,
    setup::{self, Need},
    steps::{Steps, cargo},
    tree,
    ui::{self, Context, Done, Failure},
};

/// Feed made-up input to the ciphers and the parsers of the data path.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which target; `--list` names them.
    #[arg(default_value = ALL)]
    target: String,
    /// Name the targets, and do nothing else.
    #[arg(long)]
    list: bool,
    /// How long for each target, in seconds, without the build.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// The same in minutes.
    #[arg(long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    minutes: Option<u64>,
    /// Run an input that failed once more, and nothing else.
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
    /// With the address sanitizer: slower, and it sees a write outside of a frame.
    #[arg(long)]
    addresses: bool,
}

/// The word for every target, one after the other.
const ALL: &str = "all";

/// What is read of `fuzz/Cargo.toml`.
#[derive(Deserialize)]
struct Manifest {
    bin: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    path: PathBuf,
}

/// `cargo xtask fuzz`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let targets = targets()?;
    if arguments.list {
        return list(&targets);
    }
    let chosen = choose(&targets, &arguments.target)?;
    let again = match (&arguments.again, &chosen[..]) {
        (Some(input), [_]) => Some(
            input
                .canonicalize()
                .cannot(format_args!("find {}", input.display()))?,
        ),
        (Some(input), _) => {
            return Err(Failure::new(format!(
                "{} is an input of one target: name it, `cargo xtask fuzz TARGET --again FILE`",
                input.display()
            )));
        }
        (None, _) => None,
    };
    setup::ensure(&[Need::Cxx])?;
    let mut nightly = Command::new("rustc");
    proc::output(nightly.args(["+nightly", "--version"])).map_err(|why| {
        Failure::new(format!(
            "a nightly compiler is needed: `rustup toolchain install nightly --profile minimal` ({why})"
        ))
    })?;
    let mut steps = Steps::new(false);
    let fuzzer = fuzzer(&mut steps)?;
    for target in chosen {
        let mut build = fuzz(&fuzzer, "build", target, arguments.addresses);
        steps.command(&format!("fuzz build {target}"), &mut build)?;
        let mut run = fuzz(&fuzzer, "run", target, arguments.addresses);
        match &again {
            Some(input) => _ = run.arg(input),
            None => feed(&mut run, target, arguments)?,
        }
        let status = run.status().cannot("start cargo-fuzz")?;
        if !status.success() {
            return Err(Failure::new(format!(
                "the fuzzer ended with {status}; run the input again with `cargo xtask fuzz {target} --again FILE`"
            )));
        }
    }
    Ok(())
}

/// The targets that there are.
fn targets() -> Done<Vec<Target>> {
    let text =
        fs::read_to_string(tree::root().join("fuzz/Cargo.toml")).cannot("read fuzz/Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&text).cannot("read fuzz/Cargo.toml")?;
    Ok(manifest.bin)
}

/// Each target with the beginning of its story.
fn list(targets: &[Target]) -> Done {
    for target in targets {
        let path = tree::root().join("fuzz").join(&target.path);
        let text = fs::read_to_string(&path).cannot(format_args!("read {}", path.display()))?;
        let story = text.lines().next().unwrap_or_default();
        let story = story.trim_start_matches("//! ");
        let story = story.split([':', ';']).next().unwrap_or_default();
        ui::line(format_args!("{:<10} {story}", target.name));
    }
    Ok(())
}

/// The names of what was asked for.
fn choose<'a>(targets: &'a [Target], asked: &str) -> Done<Vec<&'a str>> {
    let names = || targets.iter().map(|target| target.name.as_str());
    let chosen: Vec<&str> = names()
        .filter(|name| asked == ALL || *name == asked)
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = names().collect();
        return Err(Failure::new(format!(
            "there is no fuzz target \"{asked}\"; there are {}, and \"{ALL}\"",
            names.join(", ")
        )));
    }
    Ok(chosen)
}

/// cargo-fuzz over one target.
fn fuzz(fuzzer: &Path, what: &str, target: &str, addresses: bool) -> Command {
    let sanitizer = if addresses { "address" } else { "none" };
    let mut command = Command::new(fuzzer);
    command
        // cargo-fuzz calls the cargo of its environment; ours is the stable one that runs us.
        .env_remove("CARGO")
        .env("RUSTUP_TOOLCHAIN", "nightly")
        // As it is shipped: checks of every comparison would double kernels that take minutes to
        // compile, and the property tests run with overflow checks on.
        .args(["fuzz", what, "--release", "--no-trace-compares"])
        .args(["--fuzz-dir", "fuzz", "--target-dir"])
        .arg(folder().join("build"))
        .arg(format!("--sanitizer={sanitizer}"))
        .arg(target)
        .current_dir(tree::root());
    command
}

/// What a run begins with, how long it takes and where it leaves what it found.
fn feed(run: &mut Command, target: &str, arguments: &Arguments) -> Done {
    let learnt = folder().join("corpus").join(target);
    let kept = tree::root().join("fuzz/corpus").join(target);
    let artifacts = folder().join("artifacts");
    fs::create_dir_all(&learnt).cannot(format_args!("make {}", learnt.display()))?;
    fs::create_dir_all(&artifacts).cannot(format_args!("make {}", artifacts.display()))?;
    // libFuzzer writes into the first and only reads the others.
    run.arg(learnt);
    if kept.is_dir() {
        run.arg(kept);
    }
    let seconds = arguments
        .minutes
        .map_or(arguments.seconds, |minutes| minutes * 60);
    run.arg("--").args([
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={}/{target}-", artifacts.display()),
        // Room for the largest batch, from the first try on.
        "-max_len=4096".into(),
        "-len_control=0".into(),
        "-print_final_stats=1".into(),
    ]);
    Ok(())
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

/// Where the fuzzer keeps its things.
fn folder() -> PathBuf {
    target().join("fuzz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_all_of_them_or_a_sentence() {
        let target = |name: &str| Target {
            name: name.into(),
            path: PathBuf::new(),
        };
        let targets = [target("cipher"), target("line")];
        assert_eq!(choose(&targets, "line").unwrap(), ["line"]);
        assert_eq!(choose(&targets, "all").unwrap(), ["cipher", "line"]);
        assert_eq!(
            choose(&targets, "lime").unwrap_err().to_string(),
            "there is no fuzz target \"lime\"; there are cipher, line, and \"all\""
        );
    }

    #[test]
    fn every_target_is_there() {
        for target in targets().unwrap() {
            let path = tree::root().join("fuzz").join(&target.path);
            assert!(path.is_file(), "{}", path.display());
        }
    }
}
