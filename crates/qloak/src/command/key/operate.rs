//! The operations of a key handler: `qloak key {rekey,soft-reset,hard-reset,resize,load-outbound,load-inbound}`.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::{Args, Subcommand};
use qloak_api::{ChannelNumber, KeyId, manage::KeyOperation};
use qloak_door::Client;
use serde_json::json;

use crate::{
    command::service,
    connect::{Connection, is_door},
    error::{Error, Outcome},
    output,
};

/// Agree on new keys for a channel, both ways
#[derive(Debug, Args)]
pub(crate) struct Rekey {
    #[command(flatten)]
    connection: Connection,
    /// Name of the link
    link: String,
    /// Number of the channel
    channel: u16,
}

/// Which node is told.
#[derive(Debug, Args)]
pub(crate) struct Target {
    #[command(flatten)]
    connection: Connection,
    /// The node: its name (through the controller), or its door such as https://192.0.2.1:7443 or
    /// NAME=https://192.0.2.1:7443
    #[arg(long, value_name = "NODE")]
    node: String,
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
        #[command(flatten)]
        target: Target,
        /// Do not ask whether that is meant
        #[arg(long)]
        yes: bool,
    },
    /// Change the number of slots of the key RAM; the youngest keys beyond it are zeroised
    Resize {
        #[command(flatten)]
        target: Target,
        /// Slots, 8 to 65536
        #[arg(value_parser = clap::value_parser!(u32).range(8..=65_536))]
        slots: u32,
    },
    /// Take keys at the KME into the outbound half now
    LoadOutbound {
        #[command(flatten)]
        target: Target,
        /// How many
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
    },
    /// Fetch these keys from the KME into the inbound half now
    LoadInbound {
        #[command(flatten)]
        target: Target,
        /// Names of the keys (UUIDs)
        #[arg(required = true, value_name = "KEY_ID")]
        key_ids: Vec<KeyId>,
    },
}

impl Rekey {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let channel = ChannelNumber::try_from(self.channel)
            .map_err(|error| Error::Usage(error.to_string()))?;
        let peer = self.connection.controller()?;
        let path = format!(
            "/v1/links/{}/channels/{channel}/rekey",
            Client::segment(&self.link)
        );
        service::block_on(peer.post(&path, &json!({})))?;
        done(
            json,
            &format!("{} channel {channel}: rekey begun at both ends", self.link),
        )
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
