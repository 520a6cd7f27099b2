//! The way to a controller or a node: who we are, where to go, and what may go wrong on the way.
//!
//! Each option is looked for on the command line, then in the environment (both by clap), then in
//! `$XDG_CONFIG_HOME/qloak/cli.toml`. A door is `https://host:port`, or `NAME=https://host:port` where
//! the certificate carries another name than the host.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use qloak_door::{Client, DoorError, Flow, TlsFiles};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{error::Error, limits};

/// Options for the connection to a controller or a node.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// Folder with ca.pem and the certificates, as `qloak pki init` makes it
    #[arg(long, global = true, value_name = "DIR", env = "QLOAK_PKI")]
    pub(crate) pki: Option<PathBuf>,
    /// Name of the certificate to show: DIR/NAME.pem and DIR/NAME.key
    #[arg(long = "as", global = true, value_name = "NAME", env = "QLOAK_AS")]
    pub(crate) as_name: Option<String>,
    /// The controller's door, such as https://192.0.2.10:9443 or NAME=https://192.0.2.10:9443
    #[arg(long, global = true, value_name = "URL", env = "QLOAK_CONTROLLER")]
    pub(crate) controller: Option<String>,
}

/// What `cli.toml` may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pki: Option<PathBuf>,
    #[serde(rename = "as")]
    as_name: Option<String>,
    controller: Option<String>,
}

/// Whose door it is meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Controller,
    Node,
}

impl Kind {
    fn who(self) -> &'static str {
        match self {
            Self::Controller => "the controller",
            Self::Node => "the node",
        }
    }

    /// Paths that every such door has: whoever does not know them is somebody else.
    fn always_has(self, path: &str) -> bool {
        match self {
            Self::Controller => ["/v1/overview", "/v1/suites"].contains(&path),
            Self::Node => ["/v1/state", "/v1/suites", "/v1/keys"].contains(&path),
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Controller => {
                "this is no controller's door; is it a node's or a KMS's? A node itself is asked with --node, \
                 where a command has it"
            }
            Self::Node => {
                "this is no node's door; is it a KMS's, or the controller's, which --controller names?"
            }
        }
    }
}

/// A door that is known by a name, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    client: Client,
    kind: Kind,
    who: String,
}

impl Connection {
    /// The same, with what the configuration file says where nothing else does.
    pub(crate) fn resolved(&self) -> Result<Self, Error> {
        let Some(path) = config_path() else {
            return Ok(self.clone());
        };
        let file = read_file(&path)?;
        // A path in the file is meant from where the file is.
        let folder = path.parent().unwrap_or(Path::new("."));
        Ok(Self {
            pki: self.pki.clone().or(file.pki.map(|pki| folder.join(pki))),
            as_name: self.as_name.clone().or(file.as_name),
            controller: self.controller.clone().or(file.controller),
        })
    }

    /// The controller.
    pub(crate) fn controller(&self) -> Result<Peer, Error> {
        let all = self.resolved()?;
        let door = all
            .controller
            .clone()
            .ok_or_else(|| not_set("the controller's door", "controller", "QLOAK_CONTROLLER"))?;
        all.peer(Kind::Controller, &door)
    }

    /// A node, by its door.
    pub(crate) fn node(&self, door: &str) -> Result<Peer, Error> {
        self.resolved()?.peer(Kind::Node, door)
    }

    fn peer(&self, kind: Kind, door: &str) -> Result<Peer, Error> {
        let folder = self
            .pki
            .as_ref()
            .ok_or_else(|| not_set("the folder with the certificates", "pki", "QLOAK_PKI"))?;
        let name = self
            .as_name
            .as_ref()
            .ok_or_else(|| not_set("the certificate to show", "as", "QLOAK_AS"))?;
        let files = TlsFiles::in_folder(folder, name);
        let client = match split(door) {
            (Some(expected), url) => Client::expecting(url, expected, &files)?,
            (None, url) => Client::new(url, &files)?,
        };
        Ok(Peer {
            kind,
            who: format!("{} at {}", kind.who(), client.base_url()),
            client: client.with_patience(limits::PATIENCE),
        })
    }
}

impl Peer {
    /// Who that is, for messages and titles.
    pub(crate) fn who(&self) -> &str {
        &self.who
    }

    /// GET a document.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let answer = self.client.get_json(path).await;
        answer.map_err(|error| self.answered(path, error))
    }

    /// PUT a document; whatever comes back.
    pub(crate) async fn put(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<serde_json::Value, Error> {
        let answer = self.client.put_json(path, body).await;
        answer.map_err(|error| self.answered(path, error))
    }

    /// POST a document; the answer comes bit by bit, for as long as `lasts`.
    pub(crate) async fn flow(
        &self,
        path: &str,
        body: &impl Serialize,
        lasts: Duration,
    ) -> Result<Flow, Error> {
        let answer = self.client.post_flow(path, body, lasts).await;
        answer.map_err(|error| self.answered(path, error))
    }

    fn answered(&self, path: &str, error: DoorError) -> Error {
        match error {
            DoorError::Status { status: 404, .. } if self.kind.always_has(path) => {
                Error::OtherDoor {
                    url: self.client.base_url().to_owned(),
                    path: path.to_owned(),
                    hint: self.kind.hint(),
                }
            }
            error => Error::answered(&self.who, error),
        }
    }

    /// POST a document; whatever comes back.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<serde_json::Value, Error> {
        let answer = self.client.post_json(path, body).await;
        answer.map_err(|error| self.answered(path, error))
    }
}

/// Whether a text is a door and no mere name.
pub(crate) fn is_door(text: &str) -> bool {
    text.contains("://")
}

/// The expected name, if there is one, and the URL.
fn split(door: &str) -> (Option<&str>, &str) {
    match door.split_once('=') {
        Some((name, url)) if !name.contains("://") => (Some(name), url),
        _ => (None, door),
    }
}

fn config_path() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("qloak").join("cli.toml"))
}

fn read_file(path: &Path) -> Result<File, Error> {
    match std::fs::metadata(path) {
        Err(_) => return Ok(File::default()),
        Ok(found) if found.len() > limits::CONFIG_OCTETS_MAX => {
            return Err(Error::file(path, "too large for a configuration"));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, error))?;
    toml::from_str(&text)
        .map_err(|error| Error::file(path, format!("{error}\nallowed are: pki, as, controller")))
}

fn not_set(what: &'static str, option: &'static str, variable: &'static str) -> Error {
    let file = config_path().map_or("cli.toml".into(), |path| path.display().to_string());
    Error::NotSet {
        what,
        option,
        variable,
        file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_may_name_the_certificate_it_shows() {
        assert_eq!(split("https://a:1"), (None, "https://a:1"));
        assert_eq!(split("node-a=https://a:1"), (Some("node-a"), "https://a:1"));
        assert_eq!(split("https://a:1/?x=y"), (None, "https://a:1/?x=y"));
        assert!(is_door("https://a:1") && !is_door("node-a"));
    }
}
