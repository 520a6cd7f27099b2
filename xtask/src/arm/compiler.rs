//! A Rust compiler that has the standard library for Arm.
//!
//! The compiler that is here, if it has it or rustup brings it. If not (no rustup, or its servers
//! cannot be reached), Debian's compiler, unpacked beside the build. Once it is there, rustup is not asked again.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    process::Command,
};

use super::{TARGET, debian};
use crate::{
    limits::RUSTUP_TIME_MAX,
    proc, tree,
    ui::{self, Context, Done, Failure},
};

/// A compiler, and where it comes from.
pub(super) struct Compiler {
    rustc: PathBuf,
    origin: &'static str,
}

impl Compiler {
    /// The first that there is. `debian`: do not ask rustup.
    pub(super) fn find(debian: bool, folder: &Path) -> Done<Self> {
        if !debian {
            let here = Self {
                rustc: env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from),
                origin: "the one of this project",
            };
            let ask_rustup = !debian::is_unpacked(folder);
            if here.has_library() || ask_rustup && here.has_after_rustup() {
                return Ok(here);
            }
        }
        let unpacked = Self {
            rustc: debian::rustc(folder)?,
            origin: "Debian's, unpacked under target/arm",
        };
        if unpacked.has_library() {
            return Ok(unpacked);
        }
        Err(Failure::new(format!(
            "{} does not start, or finds no standard library for {TARGET}; remove target/arm/debian \
             to fetch it anew",
            unpacked.rustc.display()
        )))
    }

    pub(super) fn rustc(&self) -> &Path {
        &self.rustc
    }

    /// Whether the standard library for Arm lies where this compiler looks for it.
    fn has_library(&self) -> bool {
        let mut ask = Command::new(&self.rustc);
        ask.args(["--print", "target-libdir", "--target", TARGET]);
        let Ok(folder) = proc::output(&mut ask) else {
            return false;
        };
        let Ok(entries) = Path::new(folder.trim()).read_dir() else {
            return false;
        };
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
    }

    fn has_after_rustup(&self) -> bool {
        match add_by_rustup() {
            Ok(()) => self.has_library(),
            Err(failure) => {
                ui::note(failure);
                false
            }
        }
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = proc::output(Command::new(&self.rustc).arg("--version"));
        let version = version.unwrap_or_default();
        write!(f, "{} ({})", version.trim(), self.origin)
    }
}

fn add_by_rustup() -> Done {
    let Some(rustup) = tree::program("rustup") else {
        return Err(Failure::new(
            "there is no rustup here to bring Rust's standard library for Arm; trying Debian",
        ));
    };
    let text = "rustup target add";
    ui::line(format_args!(
        "{text} {TARGET}: Rust's standard library for Arm"
    ));
    let log = tree::log(text).cannot("make the folder for logs")?;
    let mut add = Command::new(rustup);
    add.args(["target", "add", TARGET]);
    proc::run(&mut add, text, &log, RUSTUP_TIME_MAX).map_err(|_| {
        Failure::new(format!(
            "rustup cannot bring the standard library for Arm from here (why: {}); trying Debian",
            log.display()
        ))
    })?;
    Ok(())
}
