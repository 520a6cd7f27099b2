//! The texts that tidy reads: path and content, so that the rules can be tried on made-up trees.

use std::{fs, path::Path};

use crate::{
    limits::TIDY_FILE_OCTETS_MAX,
    ui::{Context, Done, Failure},
};

/// Kinds of file that are text of ours.
const KINDS: [&str; 9] = ["rs", "md", "toml", "sh", "py", "cu", "sv", "yang", "svg"];

/// One text.
pub(super) struct Source {
    /// From the root, with slashes.
    pub(super) path: String,
    /// Its lines.
    pub(super) text: String,
}

impl Source {
    /// Whether a person wrote Rust here.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Whether the line, the one before it, or the file as a whole says that it breaks the rule of
    /// `word` on purpose.
    pub(super) fn allows(&self, line: usize, word: &str) -> bool {
        let mark = format!("tidy: allow {word}").to_lowercase();
        if self
            .text
            .to_lowercase()
            .contains(&format!("{mark} in this file"))
        {
            return true;
        }
        self.text
            .lines()
            .skip(line.saturating_sub(2))
            .take(if line > 1 { 2 } else { 1 })
            .any(|text| text.to_lowercase().contains(&mark))
    }
}

/// All texts.
pub(super) struct Sources(Vec<Source>);

impl Sources {
    /// The texts under a root, in order of path.
    pub(super) fn read(root: &Path) -> Done<Self> {
        let mut all = Vec::new();
        walk(root, root, &mut all)?;
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self(all))
    }

    /// A made-up tree.
    #[cfg(test)]
    pub(super) fn made_up(files: &[(&str, &str)]) -> Self {
        let source = |(path, text): &(&str, &str)| Source {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self(files.iter().map(source).collect())
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }

    /// The one at a path, which a rule needs.
    pub(super) fn get(&self, path: &str) -> Done<&Source> {
        self.0
            .iter()
            .find(|source| source.path == path)
            .ok_or_else(|| Failure::new(format!("{path} is missing: tidy reads its rules there")))
    }
}

fn walk(root: &Path, folder: &Path, all: &mut Vec<Source>) -> Done {
    let entries = fs::read_dir(folder).cannot(format_args!("read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // Dot folders (git's, the lab's) and what cargo builds are no texts of ours.
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                walk(root, &path, all)?;
            }
        } else if kind.is_file()
            && path
                .extension()
                .is_some_and(|kind| KINDS.iter().any(|known| kind == *known))
            && entry.metadata()?.len() <= TIDY_FILE_OCTETS_MAX
        {
            let octets = fs::read(&path).cannot(format_args!("read {}", path.display()))?;
            let short = path.strip_prefix(root).unwrap_or(&path);
            all.push(Source {
                path: short.to_string_lossy().replace('\\', "/"),
                text: String::from_utf8_lossy(&octets).into_owned(),
            });
        }
    }
    Ok(())
}
