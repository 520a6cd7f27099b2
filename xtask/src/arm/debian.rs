//! Debian's Rust compiler and its standard library for Arm, unpacked and not installed.
//!
//! The two are of one version, which they must be. An apt of our own, with its lists and its cache
//! under `target/arm/debian` and Arm among its architectures, fetches them from the sources of this
//! system and checks Debian's signatures; the system's own apt and dpkg are not touched.
//!
//!     apt.conf -> lists -> packages that the system lacks, and the library for Arm -> root -> rustc

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::do_once;
use crate::{
    proc, tree,
    ui::{self, Context, Done, Failure},
};

/// Compiler and library. A stable Debian has a newer compiler under the first name, for its browsers.
const PACKAGES: [(&str, &str); 2] = [
    ("rustc-web", "libstd-rust-web-dev"),
    ("rustc", "libstd-rust-dev"),
];

/// The oldest compiler that builds this workspace.
const VERSION_MIN: &str = env!("CARGO_PKG_RUST_VERSION");

/// The compiler, fetched unless it is here.
pub(super) fn rustc(arm: &Path) -> Done<PathBuf> {
    let folder = arm.join("debian");
    let start = folder.join("rustc");
    if is_unpacked(arm) {
        return Ok(start);
    }
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        if tree::program(program).is_none() || !cfg!(target_arch = "x86_64") {
            return Err(Failure::new(
                "this is no Debian on x86-64, whose compiler would do; what is wanted is \
                 `rustup target add aarch64-unknown-linux-gnu`",
            ));
        }
    }
    let apt = Apt::new(&folder)?;
    ui::line("fetching Debian's Rust compiler and its library for Arm (about 150 MB)");
    do_once(apt.get().arg("update"), "arm apt-get update")?;
    let (compiler, library, version) = apt.newest()?;
    ui::line(format_args!("{compiler} {version}"));
    apt.fetch(compiler, library, &version)?;
    unpack(&folder)?;
    write_start(&folder, &start)?;
    Ok(start)
}

/// Whether an earlier run has fetched it. The script that starts it is written last: where that is,
/// all is.
pub(super) fn is_unpacked(arm: &Path) -> bool {
    arm.join("debian/rustc").is_file()
}

/// An apt with everything of its own but the sources, their keys and what is installed.
struct Apt {
    config: PathBuf,
    archives: PathBuf,
}

impl Apt {
    fn new(folder: &Path) -> Done<Self> {
        let archives = folder.join("cache/archives");
        let lists = folder.join("lists");
        for folder in [&archives, &lists] {
            fs::create_dir_all(folder.join("partial")).cannot("make target/arm/debian")?;
        }
        let config = folder.join("apt.conf");
        let text = format!(
            "APT::Architectures {{\"amd64\"; \"arm64\";}};\n\
             APT::Sandbox::User \"\";\n\
             Dir::State::Lists {lists:?};\n\
             Dir::Cache {:?};\n\
             Acquire::Languages \"none\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             Debug::NoLocking \"true\";\n",
            folder.join("cache")
        );
        fs::write(&config, text).cannot("write target/arm/debian/apt.conf")?;
        Ok(Self { config, archives })
    }

    fn get(&self) -> Command {
        self.program("apt-get")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .env("APT_CONFIG", &self.config)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(&self.archives);
        command
    }

    /// The first pair of packages that is new enough, and its version.
    fn newest(&self) -> Done<(&'static str, &'static str, String)> {
        let mut seen = String::new();
        for (compiler, library) in PACKAGES {
            let mut show = self.program("apt-cache");
            show.args(["show", "--no-all-versions", compiler]);
            // A package that a suite does not have is no error here.
            let text = proc::output(&mut show).unwrap_or_default();
            let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
            let Some(version) = version else { continue };
            if number(version) >= number(VERSION_MIN) {
                return Ok((compiler, library, version.to_owned()));
            }
            seen = format!("{seen} {compiler} {version}");
        }
        Err(Failure::new(format!(
            "the sources of this Debian have no Rust compiler from {VERSION_MIN} on:{seen}"
        )))
    }

    fn fetch(&self, compiler: &str, library: &str, version: &str) -> Done {
        let mut install = self.get();
        install
            .args("install --yes --download-only --no-install-recommends".split(' '))
            .arg(format!("{compiler}={version}"));
        do_once(&mut install, "arm fetch compiler")?;
        // Not `install`: the library's own dependencies are a whole compiler for Arm.
        let mut download = self.get();
        download.args(["download", &format!("{library}:arm64={version}")]);
        do_once(&mut download, "arm fetch library")
    }
}

fn unpack(folder: &Path) -> Done {
    let archives = folder.join("cache/archives");
    for entry in archives.read_dir().cannot("read what apt-get fetched")? {
        let archive = entry?.path();
        if archive.extension().is_some_and(|end| end == "deb") {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("-x").arg(&archive).arg(folder.join("root"));
            do_once(&mut unpack, "arm unpack")?;
        }
    }
    if folder.join("root/usr/bin/rustc").is_file() {
        return fs::remove_dir_all(&archives).cannot("remove the packages that are unpacked");
    }
    Err(Failure::new(
        "Debian's compiler is installed on this system already, so apt-get did not fetch it; with \
         `dpkg --add-architecture arm64` and its library for arm64 it compiles for Arm by itself",
    ))
}

/// A script that starts the compiler with the libraries that lie beside it.
fn write_start(folder: &Path, start: &Path) -> Done {
    let usr = folder.join("root/usr");
    let usr = usr.display();
    let text = format!(
        "#!/bin/sh\n\
         export LD_LIBRARY_PATH=\"{usr}/lib/x86_64-linux-gnu${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n\
         exec \"{usr}/bin/rustc\" \"$@\"\n"
    );
    let unready = folder.join("rustc.new");
    fs::write(&unready, text).cannot("write target/arm/debian/rustc")?;
    fs::set_permissions(&unready, fs::Permissions::from_mode(0o755))?;
    fs::rename(&unready, start).cannot("write target/arm/debian/rustc")
}

/// The first two numbers of a version.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(number("1.96.0+dfsg1-1~deb12u2"), Some((1, 96)));
        assert!(number("1.100.0+dfsg1-1") > number("1.89"));
        assert!(number("1.63.0+dfsg1-2") < number("1.89"));
    }

    #[test]
    fn what_is_no_version_is_older_than_any() {
        assert!(number("") < number("1.0"));
        assert!(number("web") < number("1.0"));
    }
}
