//! `cargo xtask macsec`: we and the Linux kernel's own MACsec driver, at two ends of a line.
//!
//! Many kernels lack the driver, so it runs in user-mode Linux: Debian's package has a whole kernel as one
//! ordinary program. The package is unpacked under `target/macsec`, not installed, and the tests run in a
//! network namespace of their own that vanishes with them, so that none of it needs root where /dev/net/tun
//! is open to all. Where one of these cannot be had the step says so, and nothing is reported as passed.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    debian, lab, proc,
    setup::{self, Need},
    steps::{Did, Steps, cargo},
    tree,
    ui::{self, Context, Done, Failure},
};

/// The kernel, and the shell and small programs for inside.
const PACKAGES: [&str; 2] = ["user-mode-linux", "busybox-static"];

/// What the tests start.
const NEEDS: [Need; 2] = [Need::Iproute2, Need::Ping];

/// A namespace in which whoever runs it is root.
const OWN_NAMESPACE: &str = "unshare --user --map-root-user --net --mount";

/// Against the Linux kernel's own MACsec, in user-mode Linux.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Take this `qloak` instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// For the test program: a filter, `--skip` and the like.
    #[arg(last = true, value_name = "TEST ARGUMENTS")]
    tests: Vec<String>,
}

/// `cargo xtask macsec`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut steps = Steps::new(false);
    all(&mut steps, false, arguments)?;
    steps.finish()
}

/// The steps in `cargo xtask test`: where they cannot be taken, that is said and no failure.
pub(crate) fn step(steps: &mut Steps) -> Done {
    all(steps, true, &Arguments::default())
}

fn all(steps: &mut Steps, if_possible: bool, arguments: &Arguments) -> Done {
    let mut ready = None;
    steps.step("macsec setup", || match prepare() {
        Ok(kernel) => {
            ready = Some(kernel);
            Ok(Did::Passed)
        }
        Err(failure) => {
            proc::check_interrupt()?;
            if !if_possible {
                return Err(failure);
            }
            let failure = failure.to_string();
            let why = failure.lines().next().unwrap_or_default();
            Ok(Did::Skipped(format!(
                "nothing was run against the kernel's MACsec: {why}"
            )))
        }
    })?;
    let Some(kernel) = ready else { return Ok(()) };
    let binary = match &arguments.binary {
        Some(binary) => {
            fs::canonicalize(binary).cannot(format_args!("find {}", binary.display()))?
        }
        None => lab::build_product()?,
    };
    steps.command(
        "macsec",
        cargo()
            .args("test --workspace --locked --test macsec -- --ignored --nocapture".split(' '))
            .arg("--test-threads=1")
            .args(&arguments.tests)
            .env(
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
                OWN_NAMESPACE,
            )
            .env("QLOAK_UML", kernel)
            .env("QLOAK_BINARY", binary),
    )
}

/// Brings what is missing; gives the folder with the unpacked packages.
fn prepare() -> Done<PathBuf> {
    let usable = cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    ));
    if !usable {
        return Err(Failure::new(
            "user-mode Linux is a program for Linux on x86-64, and this is another machine",
        ));
    }
    let mut words = OWN_NAMESPACE.split(' ').chain(["true"]);
    let mut namespace = Command::new(words.next().unwrap_or_default());
    proc::output(namespace.args(words)).cannot("make a network namespace without root")?;
    fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .cannot("open /dev/net/tun, and the line is a TAP")?;
    setup::ensure(&NEEDS)?;
    let folder = tree::root().join("target/macsec");
    fs::create_dir_all(&folder).cannot("make target/macsec")?;
    let unpacked = folder.join("debian");
    if !unpacked.is_dir() {
        debian::is_here("user-mode Linux and its modules")?;
        ui::line("fetching user-mode Linux from Debian (about 42 MB)");
        debian::unpack(&unpacked, "macsec", || {
            Ok(PACKAGES.map(str::to_owned).into())
        })?;
    }
    Ok(unpacked)
}
