//! The stage of the demo: a lab with a view of it, a hand on its line and traffic that is answered.
//!
//! Dropping a stage ends the parts, then the lab.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::view::View;
use crate::{
    lab::{
        Lab,
        config::{self, Place},
        layout::Layout,
        network::Space,
        programs::Part,
        state::Node,
    },
    ui::{self, Done, NOTE},
};

/// The lab with the demo's traffic.
pub(crate) struct Stage {
    // Fields are dropped in this order.
    pub(crate) line: Option<Part>,
    _answer: Option<Part>,
    client: Option<Part>,
    pub(crate) lab: Lab,
    pub(crate) view: View,
}

impl Stage {
    /// Everything up to the point where all channels are open. `prepare` puts into the folder of the
    /// run what the programs need besides their configuration.
    pub(crate) fn build(
        place: Place,
        binary: Option<&Path>,
        prepare: impl FnOnce(&Path) -> Done,
    ) -> Done<Self> {
        let mut lab = Lab::start(place, &Layout::demo(), binary, prepare)?;
        let begin = Instant::now();
        let mut view = View::new();
        let (mut line, mut answer) = (None, None);
        if place == Place::Namespaces {
            line = Some(record_line(lab.folder())?);
            answer = Some(Part::answer(lab.folder())?);
        }
        lab.until_open(&mut |a, b| view.update(a, b))?;
        let text = format!(
            "two nodes, two KMSs, a controller: all channels open after {}",
            ui::seconds(begin.elapsed())
        );
        view.event(ui::GOOD, &text);
        Ok(Self {
            line,
            _answer: answer,
            client: None,
            lab,
            view,
        })
    }

    /// The folder of this run.
    pub(crate) fn folder(&self) -> &Path {
        self.lab.folder()
    }

    /// Records a client port's traffic to a file, for as long as the stage stands.
    pub(crate) fn record_client(&mut self, file: &Path) -> Done {
        let file = file.to_string_lossy();
        let arguments = ["client", "--interface", "c1", "--record", &*file];
        let folder = self.folder();
        self.client = Some(Part::start("client", Space::HostsA, folder, &arguments)?);
        Ok(())
    }

    /// Both nodes as they are now.
    pub(crate) fn look(&mut self) -> Done<(Node, Node)> {
        self.lab.look(&mut |a, b| self.view.update(a, b))
    }

    /// Looks on for a while.
    pub(crate) fn watch(&mut self, time: Duration) -> Done {
        self.lab.watch(time, &mut |a, b| self.view.update(a, b))
    }

    /// Looks on until something is so; how long it took, or none when it did not come in time.
    pub(crate) fn until(
        &mut self,
        patience: Duration,
        is_so: impl Fn(&Node, &Node) -> bool,
    ) -> Done<Option<Duration>> {
        let view = &mut self.view;
        self.lab
            .until(patience, &mut |a, b| view.update(a, b), is_so)
    }

    /// Waits until nothing is under way: every counter of frames stands still.
    pub(crate) fn drain(&mut self) -> Done<(Node, Node)> {
        let (a, b, still) = self.lab.drain(&mut |a, b| self.view.update(a, b))?;
        if !still {
            self.view
                .event(NOTE, "frames still come though the traffic has ended");
        }
        Ok((a, b))
    }
}

/// The hand on the line.
fn record_line(folder: &Path) -> Done<Part> {
    let record = folder.join("line.pcap");
    let record = record.to_string_lossy();
    let arguments = [
        "line",
        "--interface",
        "line-a",
        "--address",
        config::ADDRESS_A,
        "--record",
        &*record,
    ];
    let part = Part::start("line", Space::A, folder, &arguments)?;
    part.hear(Duration::from_secs(5))?;
    Ok(part)
}
