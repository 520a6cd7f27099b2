//! `cargo xtask emulate`: a crate's tests on an x86 CPU that this machine does not have.
//!
//! Bochs emulates a whole computer, AVX-512 with VAES, VPCLMULQDQ and GFNI included. A Linux kernel of
//! Debian boots on it with the crate's test programs as its only user space, and what they print comes
//! back over the serial line. Answers are checked there, never speed.
//!
//!     parts -> programs -> image -> machine -> console
//!
//! Everything that is fetched or built lies under `target/emulate`; the system gets a C++ compiler and
//! xorriso where it lacks them, and nothing else.

mod console;
mod cpio;
mod cpu;
mod guest;
mod image;
mod machine;
mod parts;
pub(crate) mod programs;

use std::{fs, path::PathBuf, time::Duration};

pub(crate) use cpu::Cpu;

use crate::{
    limits::EMULATION_MINUTES_MAX,
    proc,
    steps::{Did, Steps},
    tree,
    ui::{self, Context, Done, Failure},
};
use guest::Guest;
use machine::Machine;
use parts::Parts;

/// Tests on an emulated x86 CPU, with AVX-512 and without.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The crate whose tests are run.
    #[arg(long = "crate", value_name = "NAME", default_value = "qloak-cipher")]
    pub(crate) package: String,
    /// The CPU, by the level that it has; several with commas.
    #[arg(
        long = "level",
        value_name = "LEVEL",
        default_value = "vaes512",
        value_delimiter = ','
    )]
    pub(crate) levels: Vec<Cpu>,
    /// Minutes after which a machine that has not finished is stopped.
    #[arg(long, default_value_t = EMULATION_MINUTES_MAX)]
    pub(crate) minutes: u64,
    /// Show no lines of the tests, only what became of them.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Run every step even after one failed.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// For the test programs: a filter, `--skip`, `--ignored` and the like.
    #[arg(last = true, value_name = "TEST ARGUMENTS")]
    pub(crate) tests: Vec<String>,
}

impl Default for Arguments {
    /// What other commands want: the cipher on the highest level, and few words.
    fn default() -> Self {
        Self {
            package: "qloak-cipher".to_owned(),
            levels: vec![Cpu::Vaes512],
            minutes: EMULATION_MINUTES_MAX,
            quiet: true,
            keep_going: false,
            tests: Vec::new(),
        }
    }
}

/// `cargo xtask emulate`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut steps = Steps::new(arguments.keep_going);
    all(&mut steps, arguments)?;
    steps.finish()
}

/// The steps, for other commands too.
pub(crate) fn all(steps: &mut Steps, arguments: &Arguments) -> Done {
    let (mut parts, mut programs) = (None, None);
    steps.step("emulate setup", || {
        parts = Some(Parts::bring(&folder()?)?);
        Ok(Did::Passed)
    })?;
    steps.step("emulate build", || {
        programs = Some(programs::build(&arguments.package, &folder()?)?);
        Ok(Did::Passed)
    })?;
    let (Some(parts), Some(programs)) = (parts, programs) else {
        return Ok(());
    };
    for cpu in &arguments.levels {
        steps.step(&format!("emulated {}", cpu.name()), || {
            let guest = Guest::new(&programs, &arguments.tests);
            on(*cpu, &parts, &guest, arguments).map(|()| Did::Passed)
        })?;
    }
    Ok(())
}

/// One machine, from the making of its disc to its verdict. Its folder stays when it failed.
fn on(cpu: Cpu, parts: &Parts, guest: &Guest<'_>, arguments: &Arguments) -> Done {
    proc::check_interrupt()?;
    let folder = folder()?.join(format!("run-{}-{}", cpu.name(), std::process::id()));
    fs::create_dir_all(&folder).cannot("make a folder for the machine")?;
    let disc = image::make(&folder, parts, guest)?;
    let machine = Machine {
        cpu,
        parts,
        disc: &disc,
        folder: &folder,
        limit: Duration::from_secs(60 * arguments.minutes),
        quiet: arguments.quiet,
    };
    let seen = machine.run()?;
    let verdict = seen.verdict(cpu, guest.programs());
    match verdict {
        Ok(tests) => {
            ui::line(format_args!(
                "{tests} tests passed on a CPU of level {}",
                cpu.name()
            ));
            fs::remove_dir_all(&folder).cannot("remove the machine's folder")
        }
        Err(why) => Err(Failure::new(format!(
            "{why}\nThe last lines of the machine's console:\n{}\nAll of it, and what the emulator \
             says: {}",
            seen.last_lines(),
            folder.display()
        ))),
    }
}

/// `target/emulate`, made.
fn folder() -> Done<PathBuf> {
    let folder = tree::root().join("target/emulate");
    fs::create_dir_all(&folder).cannot("make target/emulate")?;
    Ok(folder)
}
