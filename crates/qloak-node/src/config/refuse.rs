//! Saying what is wrong with a configuration: the file, the line, the key, what is allowed.

use std::{
    fmt, fs,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
};

use crate::limits;

/// Why a configuration was refused. The configuration is at fault, never the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<PathBuf>,
    line: Option<usize>,
    key: Option<String>,
    what: String,
}

impl ConfigError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            key: None,
            what: what.into(),
        }
    }

    /// At a key, whose value stands at `span` of `text`.
    pub(super) fn at(
        text: &str,
        span: Range<usize>,
        key: &'static str,
        what: impl Into<String>,
    ) -> Self {
        Self {
            file: None,
            line: Some(line_of(text, span.start)),
            key: Some(key.to_owned()),
            what: what.into(),
        }
    }

    /// What the reader of TOML says; it names no key, so the key is read off the line.
    pub(super) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, span.start));
        let words = line.and_then(|line| text.lines().nth(line - 1));
        let key = words
            .and_then(|words| words.split_once('='))
            .map(|(key, _)| key.trim().to_owned());
        Self {
            file: None,
            line,
            key,
            what: error.message().to_owned(),
        }
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_path_buf());
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
    let end = offset.min(text.len());
    text.as_bytes()[..end]
        .iter()
        .filter(|octet| **octet == b'\n')
        .count()
        + 1
}

/// The text of a configuration file, no longer than a configuration can be.
pub(super) fn read_bounded(path: &Path) -> Result<String, ConfigError> {
    let unreadable =
        |error: std::io::Error| ConfigError::new(format!("cannot be read: {error}")).in_file(path);
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(limits::CONFIG_OCTETS_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > limits::CONFIG_OCTETS_MAX {
        return Err(ConfigError::new(format!(
            "is longer than {} octets",
            limits::CONFIG_OCTETS_MAX
        ))
        .in_file(path));
    }
    Ok(text)
}
