//! The crate's test programs, linked statically: inside there is no C library to link to.
//!
//! They are built apart from the usual ones, because other flags would rebuild those each time, and
//! optimised, because an emulated instruction costs a hundred real ones.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{
    limits::STEP_TIME_MAX,
    proc,
    steps::cargo,
    tree,
    ui::{Context, Done, Failure},
};

/// What the guest runs. Named, so that C code of dependencies and procedural macros stay apart.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The name of the test target; `lib-` before it for the unit tests.
    pub(crate) name: String,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// The folder of its crate.
    pub(super) folder: PathBuf,
}

/// Builds the tests of `package`.
pub(super) fn build(package: &str, folder: &Path) -> Done<Vec<Program>> {
    let command = |cargo: &mut Command| {
        cargo
            .args(["test", "--no-run", "--locked", "--lib", "--bins", "--tests"])
            .args(["-p", package, "--target", TARGET])
            .arg("--target-dir")
            .arg(folder.join("build"))
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
            .env("CARGO_PROFILE_DEV_STRIP", "debuginfo")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .current_dir(tree::root());
    };
    let mut build = cargo();
    command(&mut build);
    let log = tree::log("emulate-build").cannot("make the folder for logs")?;
    proc::run(&mut build, "emulate build", &log, STEP_TIME_MAX)?;
    // All is built now; the second call only says where it lies.
    let mut list = cargo();
    command(&mut list);
    list.args(["--message-format=json", "--quiet"])
        .stderr(Stdio::null());
    let programs = listed(&proc::output(&mut list)?);
    if programs.is_empty() {
        return Err(Failure::new(format!(
            "the crate {package} has no test programs"
        )));
    }
    Ok(programs)
}

/// The programs that cargo's messages name.
pub(crate) fn listed(messages: &str) -> Vec<Program> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        manifest_path: Option<PathBuf>,
        executable: Option<PathBuf>,
        target: Option<Target>,
        profile: Option<Profile>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let program = |line: &str| {
        let message: Message = serde_json::from_str(line).ok()?;
        let (target, profile) = (message.target?, message.profile?);
        if message.reason != "compiler-artifact" || !profile.test {
            return None;
        }
        let name = match target.kind.first()?.as_str() {
            "test" => target.name,
            kind => format!("{kind}-{}", target.name),
        };
        Some(Program {
            name,
            path: message.executable?,
            folder: message.manifest_path?.parent()?.to_owned(),
        })
    };
    messages.lines().filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_the_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/h/c/Cargo.toml","executable":null,"target":{"name":"c","kind":["lib"]},"profile":{"test":false}}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/h/c/Cargo.toml","executable":"/t/c-1","target":{"name":"c","kind":["lib"]},"profile":{"test":true}}"#,
            "\nnoise\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/h/c/Cargo.toml","executable":"/t/vectors-2","target":{"name":"vectors","kind":["test"]},"profile":{"test":true}}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let program = |name: &str, path: &str| Program {
            name: name.to_owned(),
            path: path.into(),
            folder: "/h/c".into(),
        };
        assert_eq!(
            listed(messages),
            [
                program("lib-c", "/t/c-1"),
                program("vectors", "/t/vectors-2")
            ]
        );
    }
}
