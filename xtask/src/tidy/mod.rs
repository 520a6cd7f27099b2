//! `cargo xtask tidy`: the rules of the house, checked.
//!
//! The rules are read out of the documents that state them: who may import whom and where unsafe may
//! stand out of ARCHITECTURE.md, the words not to say out of GLOSSARY.md. A finding names file and
//! line and says what to do. A line that must break a rule says so beside itself: `tidy: allow <word>`.

mod files;
mod imports;
mod libraries;
mod locks;
mod sources;
mod table;
mod words;

use std::fmt;

use sources::Sources;

use crate::{
    tree,
    ui::{self, Done, Failure},
};

/// Check the rules of the house.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// A rule broken at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// `cargo xtask tidy`.
pub(crate) fn run(_: &Arguments) -> Done {
    check()?;
    ui::line("tidy");
    Ok(())
}

/// All rules over the whole repository; the failure lists every finding.
pub(crate) fn check() -> Done {
    let sources = Sources::read(&tree::root())?;
    let mut findings = Vec::new();
    findings.extend(files::stories(&sources));
    findings.extend(files::sizes(&sources));
    findings.extend(files::marks(&sources));
    findings.extend(files::unsafe_code(&sources)?);
    findings.extend(libraries::check(&sources)?);
    findings.extend(words::check(&sources)?);
    findings.extend(imports::check(&sources, &imports::metadata()?)?);
    findings.extend(locks::check());
    findings.sort();
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Err(Failure::new(format!(
        "tidy has {} findings\n{}",
        lines.len(),
        lines.join("\n")
    )))
}
