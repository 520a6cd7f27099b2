//! The operator's hand: every command goes through the `qloak` binary, as a person would type it.
//!
//! Commands to the network go to the controller; the state that is counted is asked of each node
//! itself, because the controller's picture is a moment old.

use std::{path::PathBuf, process::Command};

use super::state::Node;
use crate::{
    lab::{
        config::{self, LINK, Place, Site},
        network::Space,
        programs,
    },
    proc,
    ui::{Context, Done},
};

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
    /// `qloak`, at the controller.
    fn at_controller(&self) -> Command {
        self.at(&format!("https://{}", config::controller_door(self.place)))
    }

    /// `qloak`, at some door.
    fn at(&self, url: &str) -> Command {
        let space = (self.place == Place::Namespaces).then_some(Space::Management);
        let mut command = programs::command(space, &self.binary);
        command
            .current_dir(&self.folder)
            .env("QLOAK_URL", url)
            .env("QLOAK_CA", "pki/ca.pem")
            .env("QLOAK_CERT", "pki/operator.pem")
            .env("QLOAK_KEY", "pki/operator.key");
        command
    }

    /// What a node says of itself.
    pub(crate) fn node(&self, site: Site) -> Done<Node> {
        let mut command = self.at(&format!("https://{}", site.node_door(self.place)));
        command.args(["status", "--json"]);
        let text = proc::output(&mut command)?;
        serde_json::from_str(&text).cannot(format_args!("read what {} says of itself", site.node()))
    }

    /// Asks the controller for a suite on a channel of the link, and waits until both ends encode with it.
    pub(crate) fn set_suite(&self, channel: u16, suite: &str) -> Done {
        let channel = channel.to_string();
        let mut command = self.at_controller();
        command.args(["suite", "set", LINK, &channel, suite, "--wait", "--json"]);
        proc::output(&mut command).map(drop)
    }

    /// Asks for a new key on a channel, both ways.
    pub(crate) fn rekey(&self, channel: u16) -> Done {
        let channel = channel.to_string();
        let mut command = self.at_controller();
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
        let mut command = self.at_controller();
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

    /// Lets a node forget the keys that wait.
    pub(crate) fn soft_reset(&self, site: Site) -> Done {
        let mut command = self.at_controller();
        command.args(["key", "soft-reset", &site.node()]);
        proc::output(&mut command).map(drop)
    }
}
