//! The operator's hand: every command goes through the `qloak` binary, as a person would type it.
//!
//! Commands to the network go to the controller; the state that is counted is asked of each node
//! itself, because the controller's picture is a moment old.

use std::{path::PathBuf, process::Command, thread};

use serde::Deserialize;

use super::state::Node;
use crate::{
    lab::{
        config::{self, LINK, Place, Site},
        network::Space,
        programs,
    },
    proc,
    ui::{Context, Done, Failure},
};

/// A suite as `qloak suite list` tells it.
#[derive(Deserialize)]
struct SuiteEntry {
    name: String,
    hazmat: bool,
    offered: bool,
}

/// An operator with the lab's certificates.
pub(crate) struct Operator {
    /// The `qloak` binary.
    pub(crate) binary: PathBuf,
    /// The folder of the run.
    pub(crate) folder: PathBuf,
    /// Where the lab lives.
    pub(crate) place: Place,
}

impl Operator {
    /// `qloak`, with the operator's certificate and the way to the controller.
    fn qloak(&self) -> Command {
        let space = (self.place == Place::Namespaces).then_some(Space::Management);
        let mut command = programs::command(space, &self.binary);
        command
            .current_dir(&self.folder)
            .envs(environment(self.place));
        command
    }

    /// What both nodes say of themselves, asked at once.
    pub(crate) fn nodes(&self) -> Done<(Node, Node)> {
        let (a, b) = thread::scope(|scope| {
            let a = scope.spawn(|| self.node(Site::A));
            let b = self.node(Site::B);
            (a.join(), b)
        });
        let a = a.map_err(|_| Failure::new("asking node-a panicked"))?;
        Ok((a?, b?))
    }

    /// What a node says of itself.
    fn node(&self, site: Site) -> Done<Node> {
        let mut command = self.qloak();
        let door = format!("{}=https://{}", site.node(), site.node_door(self.place));
        command.args(["status", "--node", &door, "--json"]);
        let text = proc::output(&mut command)?;
        serde_json::from_str(&text).cannot(format_args!("read what {} says of itself", site.node()))
    }

    /// Asks the controller for a suite on a channel of the link, and waits until both ends encode with it.
    pub(crate) fn set_suite(&self, channel: u16, suite: &str) -> Done {
        let channel = channel.to_string();
        let mut command = self.qloak();
        command.args(["suite", "set", LINK, &channel, suite, "--wait", "--json"]);
        proc::output(&mut command).map(drop)
    }

    /// The suites that authenticate and are offered, by name.
    pub(crate) fn suites(&self) -> Done<Vec<String>> {
        let mut command = self.qloak();
        command.args(["suite", "list", "--json"]);
        let text = proc::output(&mut command)?;
        let entries: Vec<SuiteEntry> =
            serde_json::from_str(&text).cannot("read what `qloak suite list` says")?;
        let wanted = entries
            .into_iter()
            .filter(|entry| entry.offered && !entry.hazmat);
        Ok(wanted.map(|entry| entry.name).collect())
    }

    /// Asks for a new key on a channel, both ways.
    pub(crate) fn rekey(&self, channel: u16) -> Done {
        let channel = channel.to_string();
        let mut command = self.qloak();
        command.args(["key", "rekey", LINK, &channel]);
        proc::output(&mut command).map(drop)
    }

    /// Bounds the time of every SA of a channel.
    pub(crate) fn set_limit_seconds(
        &self,
        channel: u16,
        seconds: u64,
        rekey_at_percent: u8,
    ) -> Done {
        let (channel, seconds, percent) = (
            channel.to_string(),
            seconds.to_string(),
            rekey_at_percent.to_string(),
        );
        let mut command = self.qloak();
        command.args([
            "suite",
            "set",
            LINK,
            &channel,
            "--seconds",
            &seconds,
            "--rekey-at-percent",
            &percent,
        ]);
        proc::output(&mut command).map(drop)
    }

    /// Replaces each SA of a channel after so many microseconds; 0: when its limits say so.
    pub(crate) fn set_rekey_every(&self, channel: u16, us: u64) -> Done {
        let (channel, us) = (channel.to_string(), us.to_string());
        let mut command = self.qloak();
        command.args(["suite", "set", LINK, &channel, "--rekey-every-us", &us]);
        proc::output(&mut command).map(drop)
    }

    /// Lets a node forget the keys that wait.
    pub(crate) fn soft_reset(&self, site: Site) -> Done {
        let mut command = self.qloak();
        command.args(["key", "soft-reset", "--node", &site.node()]);
        proc::output(&mut command).map(drop)
    }
}

/// How `qloak` finds the controller and whose certificate it shows.
pub(crate) fn environment(place: Place) -> [(&'static str, String); 3] {
    [
        ("QLOAK_PKI", "pki".to_owned()),
        ("QLOAK_AS", "operator".to_owned()),
        (
            "QLOAK_CONTROLLER",
            format!("controller=https://{}", config::controller_door(place)),
        ),
    ]
}
