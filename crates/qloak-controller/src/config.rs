//! The controller's configuration: `RawConfig` is what the file says, `Config` is what holds.
//!
//! Every value is checked once, here; code behind it trusts its types. An error names the file, the
//! line, the key and what is allowed. Records of nodes, KMSs and links obey the same rules as those
//! that come by REST (`topology`), so that there is one place that says what a link may be.

use std::{
    fmt,
    io::Read,
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use qloak_api::{
    SaeId,
    control::{KmsRecord, LinkRecord, NodeRecord},
};
use qloak_door::TlsFiles;
use serde::Deserialize;
use toml::Spanned;

use crate::{Error, limits, topology::Topology};

/// A controller's configuration, valid by construction.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the north door listens.
    pub listen: SocketAddr,
    /// The controller's certificate.
    pub tls: TlsFiles,
    /// The database file.
    pub store: PathBuf,
    /// Between two looks at a node or KMS.
    pub poll_interval: Duration,
    /// The plain reading door, loopback only.
    pub dashboard: Option<SocketAddr>,
    /// Nodes, KMSs and links that are there after each start.
    pub seed: Topology,
}

impl Config {
    /// Reads and checks a configuration file; relative paths are taken from its folder.
    ///
    /// # Errors
    /// [`Error::Config`] with the file, the line, the key and what is allowed.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let directory = path.parent().unwrap_or(Path::new(""));
        read_bounded(path)
            .and_then(|text| Self::parse(&text, directory))
            .map_err(|fault| Error::Config {
                path: path.to_path_buf(),
                fault,
            })
    }

    /// Checks the text of a configuration.
    ///
    /// # Errors
    /// As [`Config::read`], without the file's name.
    pub fn parse(text: &str, directory: &Path) -> Result<Self, ConfigFault> {
        let raw: RawConfig =
            toml::from_str(text).map_err(|error| ConfigFault::from_toml(text, &error))?;
        raw.check(text, directory)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    north: RawNorth,
    tls: RawTls,
    store: RawStore,
    #[serde(default)]
    poll: RawPoll,
    dashboard: Option<RawDashboard>,
    #[serde(default)]
    node: Vec<RawNode>,
    #[serde(default)]
    kms: Vec<RawKms>,
    #[serde(default)]
    link: Vec<RawLink>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNorth {
    listen: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStore {
    file: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPoll {
    interval_ms: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDashboard {
    listen: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNode {
    name: Spanned<SaeId>,
    url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKms {
    kme_id: Spanned<String>,
    url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    name: Spanned<String>,
    a: SaeId,
    b: SaeId,
}

impl RawConfig {
    fn check(self, text: &str, directory: &Path) -> Result<Config, ConfigFault> {
        let seed = self.seed(text)?;
        Ok(Config {
            listen: address(text, &self.north.listen, "north.listen")?,
            tls: TlsFiles {
                ca: directory.join(self.tls.ca),
                cert: directory.join(self.tls.cert),
                key: directory.join(self.tls.key),
            },
            store: directory.join(self.store.file),
            poll_interval: poll_interval(text, self.poll.interval_ms)?,
            dashboard: self.dashboard.map(|raw| raw.check(text)).transpose()?,
            seed,
        })
    }

    fn seed(&self, text: &str) -> Result<Topology, ConfigFault> {
        let mut seed = Topology::default();
        for raw in &self.node {
            let record = NodeRecord {
                name: raw.name.get_ref().clone(),
                url: raw.url.clone(),
            };
            let span = raw.name.span();
            seed.add_node(record)
                .map_err(|fault| at(text, &span, "node", fault))?;
        }
        for raw in &self.kms {
            let record = KmsRecord {
                kme_id: raw.kme_id.get_ref().clone(),
                url: raw.url.clone(),
            };
            let span = raw.kme_id.span();
            seed.add_kms(record)
                .map_err(|fault| at(text, &span, "kms", fault))?;
        }
        for raw in &self.link {
            let record = LinkRecord {
                name: raw.name.get_ref().clone(),
                a: raw.a.clone(),
                b: raw.b.clone(),
            };
            let span = raw.name.span();
            seed.add_link(record)
                .map_err(|fault| at(text, &span, "link", fault))?;
        }
        Ok(seed)
    }
}

impl RawDashboard {
    fn check(self, text: &str) -> Result<SocketAddr, ConfigFault> {
        let listen = address(text, &self.listen, "dashboard.listen")?;
        if listen.ip().is_loopback() {
            Ok(listen)
        } else {
            let what = format!(
                "{} is no loopback address; this door has no TLS and knows no caller, so only 127.0.0.1 \
                 and [::1] are allowed (from elsewhere use [north] with a client certificate)",
                listen.ip()
            );
            Err(at(text, &self.listen.span(), "dashboard.listen", what))
        }
    }
}

fn poll_interval(text: &str, raw: Option<Spanned<u64>>) -> Result<Duration, ConfigFault> {
    let allowed = limits::POLL_INTERVAL_MS_MIN..=limits::POLL_INTERVAL_MS_MAX;
    match raw {
        None => Ok(Duration::from_millis(500)),
        Some(ms) if allowed.contains(ms.get_ref()) => Ok(Duration::from_millis(ms.into_inner())),
        Some(ms) => {
            let what = format!(
                "{} is given, {} to {} is allowed",
                ms.get_ref(),
                allowed.start(),
                allowed.end()
            );
            Err(at(text, &ms.span(), "poll.interval_ms", what))
        }
    }
}

fn address(text: &str, raw: &Spanned<String>, key: &str) -> Result<SocketAddr, ConfigFault> {
    raw.get_ref().parse().map_err(|_| {
        let what = format!(
            "{:?} is no address and port such as 127.0.0.1:9443 or [::1]:9443",
            raw.get_ref()
        );
        at(text, &raw.span(), key, what)
    })
}

fn at(text: &str, span: &Range<usize>, key: &str, what: impl fmt::Display) -> ConfigFault {
    ConfigFault {
        line: Some(line_of(text, span)),
        key: Some(key.to_owned()),
        what: what.to_string(),
    }
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    1 + text
        .bytes()
        .take(span.start)
        .filter(|octet| *octet == b'\n')
        .count()
}

/// What is wrong in a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    line: Option<usize>,
    key: Option<String>,
    what: String,
}

impl ConfigFault {
    /// Of the file as a whole.
    fn whole(what: String) -> Self {
        Self {
            line: None,
            key: None,
            what,
        }
    }

    /// What the reader of TOML says; it names no key, so the key is read off the line.
    fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, &span));
        let words = line.and_then(|line| text.lines().nth(line - 1));
        let key = words.and_then(|words| words.split_once('='));
        Self {
            line,
            key: key.map(|(key, _)| key.trim().to_owned()),
            what: error.message().to_owned(),
        }
    }
}

/// Goes on where the name of the file ends: `, line N, key `k`: ...`.
impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key `{key}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

fn read_bounded(path: &Path) -> Result<String, ConfigFault> {
    let unreadable = |error: std::io::Error| ConfigFault::whole(format!("cannot be read: {error}"));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(limits::CONFIG_OCTETS_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > limits::CONFIG_OCTETS_MAX {
        return Err(ConfigFault::whole(format!(
            "is longer than {} octets",
            limits::CONFIG_OCTETS_MAX
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../controller.example.toml");

    fn refused(from: &str, to: &str) -> String {
        assert!(
            EXAMPLE.contains(from),
            "the example no longer holds {from:?}"
        );
        Config::parse(&EXAMPLE.replacen(from, to, 1), Path::new(""))
            .expect_err("must be refused")
            .to_string()
    }

    fn line(of: &str) -> String {
        let before = EXAMPLE.split(of).next().expect("there");
        format!("line {}", 1 + before.matches('\n').count())
    }

    #[test]
    fn the_example_is_valid() {
        let config = Config::parse(EXAMPLE, Path::new("/etc/qloak")).expect("valid");
        assert_eq!(config.tls.ca, Path::new("/etc/qloak/pki/ca.pem"));
        assert_eq!(config.store, Path::new("/etc/qloak/controller.sqlite"));
        assert_eq!(config.seed.nodes.len(), 2);
        assert_eq!(config.seed.kms.len(), 2);
        assert_eq!(config.seed.links.len(), 1);
    }

    #[test]
    fn an_error_names_line_key_and_what_is_allowed() {
        for (from, to, words) in [
            (
                "interval_ms = 500",
                "interval_ms = 5",
                &["poll.interval_ms", "50 to 60000"][..],
            ),
            (
                "interval_ms = 500",
                "interval = 500",
                &["interval", "interval_ms"],
            ),
            ("interval_ms = 500", "interval_ms = \"soon\"", &["u64"]),
            (
                "listen = \"127.0.0.1:9443\"",
                "listen = \"here\"",
                &["north.listen", "127.0.0.1:9443"],
            ),
            (
                "listen = \"127.0.0.1:8080\"",
                "listen = \"0.0.0.0:8080\"",
                &["dashboard.listen", "loopback"],
            ),
            (
                "listen = \"127.0.0.1:8080\"",
                "listen = \"192.0.2.1:80\"",
                &["dashboard.listen", "loopback"],
            ),
            ("name = \"node-b\"", "name = \"\"", &["SAE ID"]),
            ("b = \"node-b\"", "c = \"node-b\"", &["`c`"]),
        ] {
            let text = refused(from, to);
            assert!(text.contains(&line(from)), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn records_obey_the_rules_of_the_topology() {
        let text = refused("b = \"node-b\"", "b = \"node-c\"");
        assert!(
            text.contains("node-c") && text.contains(&line("name = \"metro\"")),
            "{text}"
        );
        let text = refused("name = \"node-b\"", "name = \"node-a\"");
        assert!(text.contains("node-a"), "{text}");
        let text = refused("https://127.0.0.1:7444", "http://127.0.0.1:7444");
        assert!(text.contains("https://"), "{text}");
    }

    #[test]
    fn a_file_that_is_no_configuration_is_refused() {
        assert!(Config::parse("\u{1}", Path::new("")).is_err());
        assert!(
            Config::parse("", Path::new(""))
                .unwrap_err()
                .to_string()
                .contains("north")
        );
        let missing = Config::read(Path::new("no/such/controller.toml")).unwrap_err();
        let text = missing.to_string();
        assert!(
            text.starts_with("the configuration no/such/controller.toml: cannot be read"),
            "{text}"
        );
    }
}
