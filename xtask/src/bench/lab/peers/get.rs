//! Where a peer's programs come from: Debian, or the registries of Go and Rust where Debian has none or an
//! old one. Those are built once, into `.lab/peers`, at a version that is named here.

use std::{path::PathBuf, process::Command, time::Duration};

use crate::{
    proc,
    setup::{self, Need},
    steps::cargo,
    tree,
    ui::{self, Context, Done, Failure},
};

/// A build on two loaded cores; one that takes longer hangs.
const BUILD_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// Where a program comes from.
pub(super) enum Get {
    /// A Debian package.
    Debian {
        package: &'static str,
        program: &'static str,
    },
    /// A package of a Go module, with its version.
    Go {
        package: &'static str,
        program: &'static str,
    },
    /// A Rust crate.
    Cargo {
        name: &'static str,
        version: &'static str,
        program: &'static str,
    },
}

impl Get {
    /// Makes sure that the program is here.
    pub(super) fn obtain(&self) -> Done {
        match *self {
            Self::Debian { package, program } => setup::ensure(&[Need::Program {
                package,
                program,
                why: "a peer of the benchmark of the whole product",
            }]),
            Self::Go { package, program } => {
                if built(program).is_file() {
                    return Ok(());
                }
                let go = tree::program("go").ok_or_else(|| {
                    Failure::new(format!("{package} is built with Go, and go is not in PATH"))
                })?;
                let mut command = Command::new(go);
                command
                    .args(["install", package])
                    .env("GOBIN", folder().join("bin"));
                build(&mut command, program)
            }
            Self::Cargo {
                name,
                version,
                program,
            } => {
                if built(program).is_file() {
                    return Ok(());
                }
                let mut command = cargo();
                command
                    .args(["install", name, "--locked", "--version", version, "--root"])
                    .arg(folder())
                    // Its own: the workspace's would mix its build with ours.
                    .env("CARGO_TARGET_DIR", folder().join("build"));
                build(&mut command, program)
            }
        }
    }
}

/// A program of a peer, wherever it came from.
pub(super) fn find(program: &str) -> Done<PathBuf> {
    let built = built(program);
    if built.is_file() {
        return Ok(built);
    }
    tree::program(program).ok_or_else(|| Failure::new(format!("{program} is not here")))
}

fn folder() -> PathBuf {
    tree::lab().join("peers")
}

fn built(program: &str) -> PathBuf {
    folder().join("bin").join(program)
}

fn build(command: &mut Command, program: &str) -> Done {
    ui::line(format!("building {program}, once"));
    let log = tree::log(program).cannot("make the folder for logs")?;
    std::fs::create_dir_all(folder()).cannot("make .lab/peers")?;
    proc::run(
        command,
        &format!("building {program}"),
        &log,
        BUILD_TIME_MAX,
    )?;
    if built(program).is_file() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "its build ended well and left no {program}; see {}",
            log.display()
        )))
    }
}
