//! The lock of the fuzz targets' own workspace, which no other command reads.

use super::Finding;
use crate::{proc, steps::cargo, tree};

const LOCK: &str = "fuzz/Cargo.lock";

/// Whether it names what the manifests ask for.
pub(super) fn check() -> Option<Finding> {
    let mut command = cargo();
    command
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--manifest-path", "fuzz/Cargo.toml"])
        .current_dir(tree::root());
    let text =
        "is older than the manifests: `cargo metadata --manifest-path fuzz/Cargo.toml` renews it";
    proc::output(&mut command)
        .is_err()
        .then(|| Finding::new(LOCK, 1, text))
}
