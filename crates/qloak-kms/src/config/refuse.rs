//! Saying what is wrong with a configuration: the file, the line, the key, what is allowed.

use std::{
    fmt, fs, io,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
};

use crate::limits;

/// Why a configuration was refused. The configuration is at fault, never the KMS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<PathBuf>,
    line: Option<usize>,
    key: Option<String>,
    what: String,
}

impl ConfigError {
    /// At a key, whose value stands at `span` of `text`.
    pub(super) fn at(
        text: &str,
        span: Range<usize>,
        key: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            file: None,
            line: Some(line_of(text, span.start)),
            key: Some(key.into()),
            what: what.into(),
        }
    }

    /// What the reader of TOML says; it names no key, so the key is read off the line.
    pub(super) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, span.start));
        // A field that is missing stands on no line, and is named in the message.
        let named = line.filter(|_| !error.message().starts_with("missing field"));
        Self {
            file: None,
            line,
            key: named.and_then(|line| key_on(text, line)),
            what: error.message().to_owned(),
        }
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration")?;
        if let Some(file) = &self.file {
            write!(f, " {}", file.display())?;
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key `{key}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ConfigError {}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|octet| **octet == b'\n').count() + 1
}

/// The key that a line gives a value to, after the name of its table.
fn key_on(text: &str, line: usize) -> Option<String> {
    let plain = |name: &&str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let (key, _) = text.lines().nth(line.checked_sub(1)?)?.split_once('=')?;
    let key = Some(key.trim()).filter(plain)?;
    let table = text.lines().take(line).filter_map(|line| {
        let name = line.trim().strip_prefix('[')?.split(']').next()?;
        Some(name.trim_start_matches('[').trim()).filter(plain)
    });
    Some(match table.last() {
        Some(table) => format!("{table}.{key}"),
        None => key.to_owned(),
    })
}

/// The text of a configuration file, no longer than a configuration can be.
pub(super) fn read_bounded(path: &Path) -> Result<String, ConfigError> {
    let wrong = |what: String| ConfigError {
        file: None,
        line: None,
        key: None,
        what,
    };
    let unreadable = |error: io::Error| wrong(format!("cannot be read: {error}"));
    let mut text = String::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(limits::CONFIG_OCTETS_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > limits::CONFIG_OCTETS_MAX {
        return Err(wrong(format!(
            "is longer than {} octets",
            limits::CONFIG_OCTETS_MAX
        )));
    }
    Ok(text)
}
