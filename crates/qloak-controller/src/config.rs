//! The controller's configuration: `RawConfig` is what the file says, `Config` is what holds.
//!
//! Every value is checked once, here; code behind it trusts its types. An error names the file, the
//! line, the key and what is allowed. Records of nodes, KMSs and links obey the same rules as those
//! that come by REST (`topology`), so that there is one place that says what a link may be.

use std::{
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
            .map_err(|what| Error::Config {
                path: path.to_path_buf(),
                what,
            })
    }

    /// Checks the text of a configuration.
    ///
    /// # Errors
    /// As [`Config::read`], in words and without the file's name.
    pub fn parse(text: &str, directory: &Path) -> Result<Self, String> {
        let raw: RawConfig = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, &span));
            format!("line {line}: {}", error.message())
        })?;
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
    fn check(self, text: &str, directory: &Path) -> Result<Config, String> {
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

    fn seed(&self, text: &str) -> Result<Topology, String> {
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
    fn check(self, text: &str) -> Result<SocketAddr, String> {
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

fn poll_interval(text: &str, raw: Option<Spanned<u64>>) -> Result<Duration, String> {
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

fn address(text: &str, raw: &Spanned<String>, key: &str) -> Result<SocketAddr, String> {
    raw.get_ref().parse().map_err(|_| {
        let what = format!(
            "{:?} is no address and port such as 127.0.0.1:9443 or [::1]:9443",
            raw.get_ref()
        );
        at(text, &raw.span(), key, what)
    })
}

fn at(text: &str, span: &Range<usize>, key: &str, what: impl std::fmt::Display) -> String {
    format!("line {}, key `{key}`: {what}", line_of(text, span))
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    1 + text
        .bytes()
        .take(span.start)
        .filter(|octet| *octet == b'\n')
        .count()
}

fn read_bounded(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("the configuration cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(limits::CONFIG_OCTETS_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > limits::CONFIG_OCTETS_MAX {
        return Err(format!(
            "a configuration has at most {} octets",
            limits::CONFIG_OCTETS_MAX
        ));
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
        Config::parse(&EXAMPLE.replacen(from, to, 1), Path::new("")).expect_err("must be refused")
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
                .contains("north")
        );
        let missing = Config::read(Path::new("no/such/controller.toml")).unwrap_err();
        assert!(missing.to_string().contains("no/such/controller.toml"));
    }
}
