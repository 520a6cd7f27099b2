//! The only runner: `cargo xtask <command>`.
//!
//! Whatever a person or CI does with this repository goes through here, so that there is one way to
//! do each thing. One file holds one command. Nothing of the product is imported: the product is
//! built and driven from outside, as a user would. Exit status: 0 done, 1 failed, 2 wrong usage.

mod arm;
mod bench;
mod ci;
mod constant_time;
mod debian;
mod demo;
mod disassemble;
mod emulate;
mod fuzz;
mod lab;
mod limits;
mod macsec;
mod parts;
mod pcap;
mod proc;
mod setup;
mod steps;
mod test;
mod tidy;
mod tree;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Qloak's only runner. Begin with `cargo xtask demo`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the product at work: two nodes, two KMSs, a controller and ten client ports.
    Demo(demo::Arguments),
    /// Everything that must be green before a change is merged.
    Test(test::Arguments),
    /// What CI runs: `test`, then licences, documentation and the short measurement.
    Ci(ci::Arguments),
    /// Check the rules of the house: imports, words, stories, unsafe, sizes.
    Tidy(tidy::Arguments),
    /// Tests of the cipher for 64-bit Arm, under an emulator.
    Arm(arm::Arguments),
    /// Tests on an emulated x86 CPU, with AVX-512 and without.
    Emulate(emulate::Arguments),
    /// Against the Linux kernel's own MACsec, in user-mode Linux.
    Macsec(macsec::Arguments),
    /// Look for the wide instructions in the cipher's kernels, and for calls that should not be there.
    Disassemble(disassemble::Arguments),
    /// Whether the ciphers take the same steps whatever the secret: by taint, or by statistics.
    ConstantTime(constant_time::Arguments),
    /// Feed made-up input to the ciphers and to every parser of the data path.
    Fuzz(fuzz::Arguments),
    /// Measure.
    Bench(bench::Arguments),
    /// The demo's network to play with: up, status, shell, down.
    Lab(lab::Arguments),
    /// Install what the other commands need. They call it themselves.
    Setup(setup::Arguments),
    /// Parts of the demo and of the benchmarks that run inside a namespace; not for people.
    #[command(hide = true)]
    Part(parts::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Ci(arguments) => ci::run(&arguments),
        Command::Tidy(arguments) => tidy::run(&arguments),
        Command::Arm(arguments) => arm::run(&arguments),
        Command::Emulate(arguments) => emulate::run(&arguments),
        Command::Macsec(arguments) => macsec::run(&arguments),
        Command::Disassemble(arguments) => disassemble::run(&arguments),
        Command::ConstantTime(arguments) => constant_time::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Setup(arguments) => setup::run(&arguments),
        Command::Part(arguments) => parts::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            ui::failure(&failure);
            ExitCode::FAILURE
        }
    }
}
