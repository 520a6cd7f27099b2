//! `cargo xtask setup`: installs what the other commands need, says what and why.
//!
//! The others call it with only what they need themselves. Where it may not install (no root, no
//! apt-get) it says what is missing and the command that would bring it. Quick when all is there.

use std::{fs, path::Path, process::Command};

use crate::{
    limits::STEP_TIME_MAX,
    proc, tree,
    ui::{self, Context, Done, Failure},
};

/// Install what is missing.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Say what is missing and install nothing.
    #[arg(long)]
    check: bool,
}

/// A tool from outside, with the Debian package that holds it and the reason that we want it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// `ip`.
    Iproute2,
    /// `ping`.
    Ping,
    /// `ethtool`.
    Ethtool,
    /// `tshark`.
    Tshark,
    /// The peer test's python with scapy.
    PeerPython,
    /// The C compiler for Arm.
    ArmCompiler,
    /// The C library for Arm.
    ArmLibraries,
    /// `qemu-aarch64`.
    ArmEmulator,
    /// `g++`.
    Cxx,
    /// `make`.
    Make,
    /// `xorriso`.
    Xorriso,
    /// `valgrind`.
    Valgrind,
    /// A library that the cipher benchmark loads as a peer. Not among those that everybody gets: it
    /// alone needs them.
    Peer {
        /// The Debian package.
        package: &'static str,
        /// The file that it brings.
        file: &'static str,
    },
    /// A program that only a benchmark of the whole product needs.
    Program {
        /// The Debian package.
        package: &'static str,
        /// The program that it brings.
        program: &'static str,
        /// What for.
        why: &'static str,
    },
}

impl Need {
    const ALL: [Self; 12] = [
        Self::Iproute2,
        Self::Ping,
        Self::Ethtool,
        Self::Tshark,
        Self::PeerPython,
        Self::ArmCompiler,
        Self::ArmLibraries,
        Self::ArmEmulator,
        Self::Cxx,
        Self::Make,
        Self::Xorriso,
        Self::Valgrind,
    ];

    fn package(self) -> &'static str {
        match self {
            Self::Iproute2 => "iproute2",
            Self::Ping => "iputils-ping",
            Self::Ethtool => "ethtool",
            Self::Tshark => "tshark",
            Self::PeerPython => "python3-venv",
            Self::ArmCompiler => "gcc-aarch64-linux-gnu",
            Self::ArmLibraries => "libc6-dev-arm64-cross",
            Self::ArmEmulator => "qemu-user",
            Self::Cxx => "g++",
            Self::Make => "make",
            Self::Xorriso => "xorriso",
            Self::Valgrind => "valgrind",
            Self::Peer { package, .. } | Self::Program { package, .. } => package,
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::Iproute2 => "the lab's namespaces and lines",
            Self::Ping => "round trips through the demo's client ports",
            Self::Ethtool => "turning offloads of the lab's line off",
            Self::Tshark => "an outside view of the line: is it MACsec?",
            Self::PeerPython => "scapy, the foreign MACsec station of the peer test",
            Self::ArmCompiler => "compiling and linking for 64-bit Arm",
            Self::ArmLibraries => "the C library of programs for 64-bit Arm",
            Self::ArmEmulator => "running them here",
            Self::Cxx | Self::Make => "building the emulator of CPUs that this machine is not",
            Self::Xorriso => "the disc that the emulated machine boots",
            Self::Valgrind => "following secrets through the ciphers",
            Self::Peer { .. } => "a peer of the cipher benchmark",
            Self::Program { why, .. } => why,
        }
    }

    /// Whether the package's program is here; the packages of the virtual environment come after.
    fn program_is_here(self) -> bool {
        match self {
            Self::Iproute2 => tree::program("ip").is_some(),
            Self::Ping => tree::program("ping").is_some(),
            Self::Ethtool => tree::program("ethtool").is_some(),
            Self::Tshark => tree::program("tshark").is_some(),
            Self::ArmCompiler => tree::program("aarch64-linux-gnu-gcc").is_some(),
            Self::ArmLibraries => Path::new("/usr/aarch64-linux-gnu/lib/libc.so.6").is_file(),
            Self::ArmEmulator => tree::program("qemu-aarch64").is_some(),
            Self::Cxx => tree::program("g++").is_some(),
            Self::Make => tree::program("make").is_some(),
            Self::Xorriso => tree::program("xorriso").is_some(),
            Self::Valgrind => tree::program("valgrind").is_some(),
            Self::Peer { file, .. } => tree::has_library(file),
            Self::Program { program, .. } => tree::program(program).is_some(),
            Self::PeerPython => {
                venv_is_current()
                    || Command::new("python3")
                        .args(["-c", "import venv, ensurepip"])
                        .output()
                        .is_ok_and(|out| out.status.success())
            }
        }
    }
}

/// `cargo xtask setup`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    if arguments.check {
        for need in Need::ALL {
            let here = need.program_is_here() && (need != Need::PeerPython || venv_is_current());
            let word = if here { "here   " } else { "missing" };
            ui::line(format_args!("{word} {:<21} {}", need.package(), need.why()));
        }
        return Ok(());
    }
    ensure(&Need::ALL)?;
    ui::line("everything is here");
    Ok(())
}

/// Brings what is missing of `needs`, or says how.
pub(crate) fn ensure(needs: &[Need]) -> Done {
    let missing: Vec<Need> = needs
        .iter()
        .copied()
        .filter(|need| !need.program_is_here())
        .collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    if needs.contains(&Need::PeerPython) {
        venv()?;
    }
    Ok(())
}

fn install(missing: &[Need]) -> Done {
    let packages: Vec<&str> = missing.iter().map(|need| need.package()).collect();
    let packages = packages.join(" ");
    let reasons: Vec<String> = missing
        .iter()
        .map(|need| format!("  {:<21} {}", need.package(), need.why()))
        .collect();
    let reasons = reasons.join("\n");
    let by_hand = format!("apt-get install --no-install-recommends {packages}");
    if tree::program("apt-get").is_none() {
        return Err(Failure::new(format!(
            "these are missing:\n{reasons}\nThis is no Debian; install the packages of these names \
             with your own package manager (on Debian: {by_hand})"
        )));
    }
    if !tree::is_root() {
        return Err(Failure::new(format!(
            "these are missing:\n{reasons}\nInstall them with: sudo {by_hand}"
        )));
    }
    ui::line(format_args!("installing Debian packages:\n{reasons}"));
    let apt = |arguments: &str, text: &str| {
        let log = tree::log("setup-apt").cannot("make the folder for logs")?;
        let mut command = Command::new("apt-get");
        command
            .args(arguments.split_whitespace())
            .env("DEBIAN_FRONTEND", "noninteractive");
        proc::run(&mut command, text, &log, STEP_TIME_MAX)
    };
    let install = format!("install --yes --no-install-recommends {packages}");
    // The lists of packages may be old or absent: fetch them only when the first try fails.
    if apt(&install, "apt-get install").is_err() {
        apt("update", "apt-get update")?;
        apt(&install, "apt-get install")?;
    }
    Ok(())
}

/// The file whose equality with `lab/requirements.txt` says that the environment is complete.
fn venv_mark() -> std::path::PathBuf {
    tree::lab().join("venv/qloak-requirements.txt")
}

fn venv_is_current() -> bool {
    let wanted = fs::read(tree::root().join("lab/requirements.txt"));
    let have = fs::read(venv_mark());
    tree::venv_python().is_file()
        && matches!((wanted, have), (Ok(wanted), Ok(have)) if wanted == have)
}

fn venv() -> Done {
    if venv_is_current() {
        return Ok(());
    }
    let folder = tree::lab().join("venv");
    let requirements = tree::root().join("lab/requirements.txt");
    ui::line("making .lab/venv: scapy and cryptography, pinned in lab/requirements.txt");
    fs::create_dir_all(tree::lab()).cannot("make .lab")?;
    let log = tree::log("setup-venv").cannot("make the folder for logs")?;
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&folder);
    proc::run(&mut make, "python3 -m venv", &log, STEP_TIME_MAX)?;
    let mut fill = Command::new(tree::venv_python());
    fill.args(["-m", "pip", "install", "--disable-pip-version-check", "-r"])
        .arg(&requirements);
    proc::run(&mut fill, "pip install", &log, STEP_TIME_MAX)?;
    fs::copy(&requirements, venv_mark()).cannot("mark .lab/venv as complete")?;
    Ok(())
}
