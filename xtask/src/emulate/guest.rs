//! What runs inside: the script that the kernel starts first, and the files that tests read.
//!
//! The script speaks to the console's reader in lines that begin with a mark. A test finds its crate's
//! folder and `vectors/` under the same paths as outside, because paths were compiled into it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::{cpio::Archive, programs::Program};
use crate::{
    tree,
    ui::{Context, Done},
};

/// What a line of the script's own begins with.
pub(super) const MARK: &str = "@qloak ";

/// Variables of these families reach the tests.
const VARIABLES: [&str; 2] = ["QLOAK_", "PROPTEST_"];

/// The user space of one machine.
pub(super) struct Guest<'a> {
    programs: &'a [Program],
    arguments: &'a [String],
    variables: Vec<(String, String)>,
}

impl<'a> Guest<'a> {
    /// These programs, all with these arguments.
    pub(super) fn new(programs: &'a [Program], arguments: &'a [String]) -> Self {
        let variables = env::vars()
            .filter(|(name, _)| VARIABLES.iter().any(|family| name.starts_with(family)))
            .collect();
        Self {
            programs,
            arguments,
            variables,
        }
    }

    /// How many programs run.
    pub(super) fn programs(&self) -> usize {
        self.programs.len()
    }

    /// The file system, given a busybox.
    pub(super) fn archive(&self, busybox: &Path) -> Done<Vec<u8>> {
        let mut archive = Archive::default();
        for folder in ["proc", "dev", "tmp"] {
            archive.folder(folder);
        }
        archive.file("init", self.script().as_bytes());
        archive.file("bin/busybox", &read(busybox)?);
        for program in self.programs {
            archive.file(&inside(program), &read(&program.path)?);
            archive.folder(&program.folder.display().to_string());
        }
        pack(&mut archive, &tree::root().join("vectors"))?;
        Ok(archive.finish())
    }

    /// `/init`.
    fn script(&self) -> String {
        let mut text = String::from(
            "#!/bin/busybox sh\n\
             alias b=/bin/busybox\n\
             b mount -t proc proc /proc\n\
             b mount -t devtmpfs dev /dev\n\
             b mount -t tmpfs tmp /tmp\n",
        );
        for (name, value) in &self.variables {
            text += &format!("export {name}={}\n", quoted(value));
        }
        text += &format!("echo \"{MARK}cpu $(b grep -m1 ^flags /proc/cpuinfo)\"\n");
        let arguments: String = self
            .arguments
            .iter()
            .map(|a| format!(" {}", quoted(a)))
            .collect();
        for program in self.programs {
            let folder = quoted(&program.folder.display().to_string());
            text += &format!(
                "echo {}\n\
                 cd {folder}\n\
                 CARGO_MANIFEST_DIR={folder} /{} --test-threads=1{arguments}\n\
                 echo \"{MARK}end $?\"\n",
                quoted(&format!("{MARK}begin {}", program.name)),
                inside(program),
            );
        }
        // Power goes off without waiting for the serial line, which has some of the text still before it.
        text += &format!("echo \"{MARK}done $(b cat /proc/uptime)\"\nb sleep 10\nb poweroff -f\n");
        text
    }
}

/// Where a program lies inside.
fn inside(program: &Program) -> String {
    format!("tests/{}", program.name)
}

fn read(path: &Path) -> Done<Vec<u8>> {
    fs::read(path).cannot(format_args!("read {}", path.display()))
}

/// A folder with all below it, under the same path.
fn pack(archive: &mut Archive, folder: &Path) -> Done {
    let entries = folder
        .read_dir()
        .cannot(format_args!("read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            pack(archive, &path)?;
        } else {
            archive.file(&path.display().to_string(), &read(&path)?);
        }
    }
    Ok(())
}

/// A word for the shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_whatever_is_in_it() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
    }

    #[test]
    fn the_script_runs_each_program_in_its_folder_and_marks_its_end() {
        let programs = [Program {
            name: "vectors".to_owned(),
            path: "/outside/vectors-1234".into(),
            folder: "/house/crates/qloak-cipher".into(),
        }];
        let arguments = ["gcm".to_owned()];
        let guest = Guest {
            programs: &programs,
            arguments: &arguments,
            variables: vec![("PROPTEST_CASES".to_owned(), "8".to_owned())],
        };
        let script = guest.script();
        let order = [
            "export PROPTEST_CASES='8'\n",
            "@qloak cpu ",
            "echo '@qloak begin vectors'\n",
            "cd '/house/crates/qloak-cipher'\n",
            "/tests/vectors --test-threads=1 'gcm'\n",
            "@qloak end $?",
            "@qloak done",
            "poweroff -f",
        ];
        let places: Vec<_> = order.iter().map(|part| script.find(part)).collect();
        assert!(places.iter().all(Option::is_some), "{script}");
        assert!(places.is_sorted(), "{script}");
    }
}
