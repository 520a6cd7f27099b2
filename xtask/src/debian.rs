//! Pieces of Debian, fetched and unpacked into a folder and not installed: no root, nothing of the system
//! changes. apt checks the signatures.

use std::{fs, path::Path, process::Command};

use crate::{
    limits::STEP_TIME_MAX,
    proc, tree,
    ui::{self, Context, Done, Failure},
};

/// The programs that do it.
const PROGRAMS: [&str; 3] = ["apt-get", "apt-cache", "dpkg-deb"];

/// Fails where this is no Debian; `what` says what comes from there.
pub(crate) fn is_here(what: &str) -> Done {
    match PROGRAMS.iter().find(|name| tree::program(name).is_none()) {
        None => Ok(()),
        Some(missing) => Err(Failure::new(format!(
            "{missing} is missing: this is no Debian, and {what} come from there. Run it in a container \
             of Debian"
        ))),
    }
}

/// Unpacks packages into `folder`, which is there only when all of them are in it. `names` may ask apt;
/// it is asked again after a look for newer lists.
pub(crate) fn unpack(folder: &Path, step: &str, names: impl Fn() -> Done<Vec<String>>) -> Done {
    if folder.is_dir() {
        return Ok(());
    }
    let archives = folder.with_extension("archives");
    empty(&archives)?;
    let download = || -> Done {
        let mut fetch = apt();
        fetch.arg("download").args(names()?).current_dir(&archives);
        once(&mut fetch, &format!("{step} fetch packages"))
    };
    // The lists of packages may be old or absent: fetch them only when the first try fails.
    if download().is_err() {
        proc::check_interrupt()?;
        if !tree::is_root() {
            ui::note("apt's lists are old; where what follows fails: sudo apt-get update");
        } else {
            once(apt().arg("update"), &format!("{step} apt-get update"))?;
        }
        download()?;
    }
    let unready = folder.with_extension("new");
    empty(&unready)?;
    for archive in archives.read_dir().cannot("read what apt-get fetched")? {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(archive?.path()).arg(&unready);
        once(&mut unpack, &format!("{step} unpack packages"))?;
    }
    fs::remove_dir_all(&archives).cannot("remove the packages that are unpacked")?;
    fs::rename(&unready, folder).cannot("name the unpacked packages")
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["-o", "APT::Sandbox::User="]);
    apt
}

/// An empty folder of this name.
pub(crate) fn empty(folder: &Path) -> Done {
    if folder.exists() {
        fs::remove_dir_all(folder).cannot(format_args!("empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).cannot(format_args!("make {}", folder.display()))
}

/// Runs a program with its output in the log of that name.
pub(crate) fn once(command: &mut Command, name: &str) -> Done {
    let log = tree::log(name).cannot("make the folder for logs")?;
    proc::run(command, name, &log, STEP_TIME_MAX).map(|_| ())
}
