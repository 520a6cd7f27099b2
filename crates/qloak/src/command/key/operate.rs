//! The operations of a key handler: `qloak key {rekey,soft-reset,hard-reset,resize,load-outbound,load-inbound}`.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::{Args, Subcommand};
use qloak_api::{ChannelNumber, KeyId, control::Overview, manage::KeyOperation};
use qloak_door::Client;
use serde_json::json;

use crate::{
    command::{picture, service},
    connect::{Connection, Peer, is_door},
    error::{Error, Outcome},
    output,
};

/// Agree on new keys for a channel, both ways
#[derive(Debug, Args)]
pub(crate) struct Rekey {
    /// Name of the link
    link: String,
    /// Number or name of the channel
    channel: String,
    // Last: its heading is that of every argument after it.
    #[command(flatten)]
    connection: Connection,
}

/// Which node is told.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The node: its name (through the controller), or its door such as https://192.0.2.1:7443 or
    /// NAME=https://192.0.2.1:7443
    #[arg(long, value_name = "NODE")]
    node: String,
    #[command(flatten)]
    connection: Connection,
}

/// What a key handler can be told.
#[derive(Debug, Subcommand)]
pub(crate) enum Operation {
    /// Forget which keys wait and fetch anew; keys in use go on
    SoftReset {
        #[command(flatten)]
        target: Target,
    },
    /// Zeroise every key, those in use too, and start again: traffic stops until new keys are agreed on
    HardReset {
        /// Do not ask whether that is meant
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Change the number of slots of the key RAM; the youngest keys beyond it are zeroised
    Resize {
        /// Slots, 8 to 65536
        #[arg(value_parser = clap::value_parser!(u32).range(8..=65_536))]
        slots: u32,
        #[command(flatten)]
        target: Target,
    },
    /// Take keys at the KME into the outbound half now
    LoadOutbound {
        /// How many
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        #[command(flatten)]
        target: Target,
    },
    /// Fetch these keys from the KME into the inbound half now
    LoadInbound {
        /// Names of the keys (UUIDs)
        #[arg(required = true, value_name = "KEY_ID")]
        key_ids: Vec<KeyId>,
        #[command(flatten)]
        target: Target,
    },
}

impl Rekey {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let peer = self.connection.controller()?;
        let channel = service::block_on(self.begin(&peer))?;
        done(
            json,
            &format!("{} channel {channel}: rekey begun at both ends", self.link),
        )
    }

    async fn begin(&self, peer: &Peer) -> Result<ChannelNumber, Error> {
        let overview: Overview = peer.get("/v1/overview").await?;
        let channel = picture::channel(&overview, &self.link, &self.channel)?.channel;
        let link = Client::segment(&self.link);
        let path = format!("/v1/links/{link}/channels/{channel}/rekey");
        peer.post(&path, &json!({})).await?;
        Ok(channel)
    }
}

impl Operation {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let (target, operation, words) = self.parts();
        if let Self::HardReset { yes: false, .. } = self {
            confirm(&target.node)?;
        }
        let (peer, path) = if is_door(&target.node) {
            (target.connection.node(&target.node)?, "/v1/keys".to_owned())
        } else {
            let node = Client::segment(&target.node);
            (
                target.connection.controller()?,
                format!("/v1/nodes/{node}/keys"),
            )
        };
        service::block_on(peer.post(&path, &operation))?;
        done(json, &format!("{}: {words}", target.node))
    }

    fn parts(&self) -> (&Target, KeyOperation, String) {
        match self {
            Self::SoftReset { target } => (
                target,
                KeyOperation::SoftReset,
                "waiting keys forgotten, fetching anew".into(),
            ),
            Self::HardReset { target, .. } => (
                target,
                KeyOperation::HardReset,
                "every key zeroised, starting again".into(),
            ),
            Self::Resize { target, slots } => (
                target,
                KeyOperation::Resize { slots: *slots },
                format!("the key RAM has {slots} slots"),
            ),
            Self::LoadOutbound { target, count } => (
                target,
                KeyOperation::LoadOutbound { count: *count },
                format!("asked for {count} outbound keys"),
            ),
            Self::LoadInbound { target, key_ids } => (
                target,
                KeyOperation::LoadInbound {
                    key_ids: key_ids.clone(),
                },
                format!("asked for {} inbound keys", key_ids.len()),
            ),
        }
    }
}

fn done(json: bool, words: &str) -> Result<Outcome, Error> {
    if json {
        output::json(&json!({ "done": words }))?;
    } else {
        output::text_line(words)?;
    }
    Ok(Outcome::Well)
}

/// Asks a person; a script has to say `--yes`.
fn confirm(node: &str) -> Result<(), Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::Usage(
            "hard-reset zeroises every key and stops the traffic of that node for a moment; say --yes if that is meant".into(),
        ));
    }
    let system = |error| Error::System { what: "ask", error };
    anstream::eprint!(
        "Zeroise every key of {node}, those in use too? Its traffic stops for a moment. [y/N] "
    );
    io::stderr().flush().map_err(system)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(system)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Error::Usage("nothing was done".into()))
    }
}
