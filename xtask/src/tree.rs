//! Where things are: the root of the repository and the folders that the runner writes to.
//!
//! Everything that xtask writes lies under `target/` or `.lab/`, both ignored by git.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// The root of the repository: cargo tells it when it runs us; the binary remembers it otherwise.
pub(crate) fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or(manifest.clone(), Path::to_path_buf)
}

/// `.lab`: runs of the demo, the virtual environment, logs.
pub(crate) fn lab() -> PathBuf {
    root().join(".lab")
}

/// The virtual environment's python.
pub(crate) fn venv_python() -> PathBuf {
    lab().join("venv/bin/python3")
}

/// The log of a step; its folder is made.
pub(crate) fn log(step: &str) -> io::Result<PathBuf> {
    let folder = lab().join("log");
    fs::create_dir_all(&folder)?;
    let name: String = step
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    Ok(folder.join(format!("{name}.log")))
}

/// A program in `PATH` or in the folders where Debian keeps the administrator's programs.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Whether a shared library lies where Debian keeps them.
pub(crate) fn has_library(file: &str) -> bool {
    let folders = ["/usr/lib", "/lib", "/usr/local/lib"].map(PathBuf::from);
    let machines = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let machines = machines.flatten().flatten().map(|entry| entry.path());
    machines
        .chain(folders.iter().cloned())
        .any(|folder| folder.join(file).is_file())
}

/// Whether this process may make namespaces and raw sockets.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
