//! `cargo xtask arm`: the cipher's tests on another kind of CPU, on this machine.
//!
//! Compiles qloak-cipher for 64-bit Arm and runs its tests under qemu-user, which emulates the CPU and
//! hands system calls to this kernel: on a CPU with AES and PMULL, and on one that says it has neither.
//! Answers are checked there, never speed; and that the kernels for Arm hold Arm's own instructions. Where
//! Arm cannot be compiled for, that is said with the reason, and nothing is reported as passed.

mod compiler;
mod debian;
mod instructions;

use std::{env, fs, path::PathBuf, process::Command};

use crate::{
    emulate::programs,
    limits::STEP_TIME_MAX,
    proc,
    setup::{self, Need},
    steps::{Did, Steps, cargo},
    tree,
    ui::{self, Context, Done, Failure},
};
use compiler::Compiler;

/// What rustc calls 64-bit Arm under Linux.
const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The C compiler for it, which links Rust's programs too.
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// Where Debian keeps the C library for it.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// The crate whose tests are run.
const PACKAGE: &str = "qloak-cipher";
/// Random cases of a test, unless the caller's environment says how many: each takes a hundred times as long here.
const CASES: (&str, &str) = ("PROPTEST_CASES", "8");

/// Tests of the cipher for 64-bit Arm, under an emulator.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Take Debian's compiler at once, without asking rustup for the standard library.
    #[arg(long)]
    pub(crate) debian: bool,
    /// Leave Arm out, and say why, where this machine cannot compile for it.
    #[arg(long)]
    pub(crate) if_possible: bool,
    /// Run every step even after one failed.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// `cargo xtask arm`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut steps = Steps::new(arguments.keep_going);
    all(&mut steps, arguments)?;
    steps.finish()
}

/// The steps, for other commands too.
pub(crate) fn all(steps: &mut Steps, arguments: &Arguments) -> Done {
    let mut ready = None;
    steps.step("arm setup", || match Arm::prepare(arguments) {
        Ok(arm) => {
            ready = Some(arm);
            Ok(Did::Passed)
        }
        Err(failure) => {
            proc::check_interrupt()?;
            if !arguments.if_possible {
                return Err(failure);
            }
            let failure = failure.to_string();
            let why = failure.lines().next().unwrap_or_default();
            Ok(Did::Skipped(format!("nothing was run on Arm: {why}")))
        }
    })?;
    let Some(arm) = ready else { return Ok(()) };
    steps.command("arm build", arm.tests(Cpu::Aes).arg("--no-run"))?;
    steps.step("arm instructions", || {
        ui::line(instructions::check(&arm.unit_tests()?)?);
        Ok(Did::Passed)
    })?;
    for cpu in [Cpu::Aes, Cpu::NoAes] {
        ui::line(format_args!("{}: {}", cpu.name(), cpu.story()));
        steps.command(cpu.name(), arm.tests(cpu).arg("--no-fail-fast"))?;
    }
    Ok(())
}

/// An emulated CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cpu {
    Aes,
    NoAes,
}

impl Cpu {
    fn name(self) -> &'static str {
        match self {
            Self::Aes => "arm tests with AES",
            Self::NoAes => "arm tests without AES",
        }
    }

    /// What runs there.
    fn story(self) -> &'static str {
        match self {
            Self::Aes => "all tests of the cipher under qemu-user, at the levels armv8 and soft",
            Self::NoAes => "the same on a CPU that says it has no AES, at the level soft alone",
        }
    }

    /// What `arm/probe.rs` says on it.
    fn probe(self) -> &'static str {
        match self {
            Self::Aes => "aarch64 aes=true pmull=true",
            Self::NoAes => "aarch64 aes=false pmull=false",
        }
    }
}

/// All that it takes.
struct Arm {
    compiler: Compiler,
    emulator: PathBuf,
    folder: PathBuf,
}

impl Arm {
    fn prepare(arguments: &Arguments) -> Done<Self> {
        if cfg!(target_arch = "aarch64") {
            return Err(Failure::new(
                "this machine is an Arm itself; `cargo test -p qloak-cipher` runs there as it is",
            ));
        }
        setup::ensure(&[Need::ArmCompiler, Need::ArmLibraries, Need::ArmEmulator])?;
        let folder = tree::root().join("target/arm");
        fs::create_dir_all(&folder).cannot("make target/arm")?;
        let arm = Self {
            compiler: Compiler::find(arguments.debian, &folder)?,
            emulator: tree::program("qemu-aarch64")
                .ok_or_else(|| Failure::new("qemu-user was installed without qemu-aarch64"))?,
            folder,
        };
        ui::line(format_args!("compiler for Arm: {}", arm.compiler));
        arm.make_cpus()?;
        Ok(arm)
    }

    /// Makes the CPU without AES, and sees that each CPU is what its name says.
    fn make_cpus(&self) -> Done {
        let sources = tree::root().join("xtask/arm");
        let mut without = Command::new(LINKER);
        without.args(["-O2", "-shared", "-fPIC", "-o"]);
        without.arg(self.no_aes()).arg(sources.join("no_aes.c"));
        proc::output(&mut without)?;
        let probe = self.folder.join("probe");
        let mut compile = Command::new(self.compiler.rustc());
        compile.args(["--edition", "2024", "--target", TARGET, "-C"]);
        compile.arg(format!("linker={LINKER}"));
        compile.arg("-o").arg(&probe).arg(sources.join("probe.rs"));
        proc::output(&mut compile)?;
        for cpu in [Cpu::Aes, Cpu::NoAes] {
            let runner = self.runner(cpu);
            let said = proc::output(Command::new(&runner[0]).args(&runner[1..]).arg(&probe))?;
            if said.trim() != cpu.probe() {
                return Err(Failure::new(format!(
                    "the emulated CPU of \"{}\" says `{}` and not `{}`",
                    cpu.name(),
                    said.trim(),
                    cpu.probe()
                )));
            }
        }
        Ok(())
    }

    fn no_aes(&self) -> PathBuf {
        self.folder.join("no_aes.so")
    }

    /// The emulator and its arguments, before those of the program that it runs.
    fn runner(&self, cpu: Cpu) -> Vec<String> {
        let mut words = vec![self.emulator.display().to_string()];
        words.extend(["-L", LIBRARIES, "-cpu", "max"].map(str::to_owned));
        if cpu == Cpu::NoAes {
            words.push("-E".to_owned());
            words.push(format!("LD_PRELOAD={}", self.no_aes().display()));
        }
        words
    }

    /// Cargo on the cipher's tests, compiled for Arm and run by the emulator.
    fn tests(&self, cpu: Cpu) -> Command {
        let mut cargo = cargo();
        cargo
            .args(["test", "-p", PACKAGE, "--lib", "--tests", "--locked"])
            .args(["--target", TARGET, "--target-dir"])
            .arg(self.folder.join("build"))
            // As TOML, so that a path with a space stays one word.
            .arg("--config")
            .arg(format!("target.{TARGET}.runner={:?}", self.runner(cpu)))
            .arg("--config")
            .arg(format!("target.{TARGET}.linker={LINKER:?}"))
            .env("RUSTC", self.compiler.rustc())
            .env(format!("CC_{}", TARGET.replace('-', "_")), LINKER);
        if env::var_os(CASES.0).is_none() {
            cargo.env(CASES.0, CASES.1);
        }
        cargo
    }

    /// The program of the crate's unit tests, which is built.
    fn unit_tests(&self) -> Done<PathBuf> {
        let mut list = self.tests(Cpu::Aes);
        list.args(["--no-run", "--message-format=json", "--quiet"])
            .current_dir(tree::root());
        programs::listed(&proc::output(&mut list)?)
            .into_iter()
            .find(|program| program.name.starts_with("lib-"))
            .map(|program| program.path)
            .ok_or_else(|| Failure::new(format!("{PACKAGE} has no unit tests for Arm")))
    }
}

/// A step of the preparation that is one program, with its output in a log.
fn do_once(command: &mut Command, text: &str) -> Done {
    let log = tree::log(text).cannot("make the folder for logs")?;
    proc::run(command, text, &log, STEP_TIME_MAX).map(|_| ())
}
