//! The stage of the demo: network, programs and parts, all started here and all ended with it.
//!
//! ```text
//! build -> network -> pki and files -> kms a, b -> node a, b -> controller -> parts -> channels open
//! ```
//!
//! Dropping a stage ends the parts, then the programs, then removes the namespaces: on success, on
//! failure, on Ctrl-C and on panic alike.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::{operator::Operator, state::Node, view::View};
use crate::{
    lab::{
        config::{self, Place, Site},
        network::{self, CLIENT_PORTS, Space},
        programs::{Part, Program},
    },
    limits::STEP_TIME_MAX,
    proc,
    steps::cargo,
    tree,
    ui::{self, Context, Done, Failure, NOTE},
};

/// How long the programs may take from their start until every channel is open: a debug machine under
/// load included.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Folders of earlier runs that stay: some megabytes each.
const RUNS_KEPT: usize = 4;

/// How often the nodes are asked how they are.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Programs that answer a door and hold the demo's traffic.
pub(crate) struct Stage {
    // Fields are dropped in this order.
    pub(crate) line: Option<Part>,
    pub(crate) answer: Option<Part>,
    client: Option<Part>,
    pub(crate) controller: Program,
    pub(crate) nodes: Vec<Program>,
    pub(crate) kms: Vec<Program>,
    pub(crate) operator: Operator,
    pub(crate) view: View,
    pub(crate) place: Place,
    _network: Option<Network>,
}

/// The namespaces, gone with this.
struct Network {
    lock: network::Lock,
    keep: bool,
}

impl Drop for Network {
    fn drop(&mut self) {
        if !self.keep {
            network::down(&self.lock);
        }
    }
}

impl Stage {
    /// Everything up to the point where all channels are open. `prepare` puts into the folder of the
    /// run what the programs need besides their configuration.
    pub(crate) fn build(
        place: Place,
        binary: Option<&Path>,
        prepare: impl FnOnce(&Path) -> Done,
    ) -> Done<Self> {
        proc::interrupt_flag();
        let binary = match binary {
            Some(binary) => {
                fs::canonicalize(binary).cannot(format_args!("find {}", binary.display()))?
            }
            None => build_product()?,
        };
        let network = match place {
            Place::Namespaces => {
                let lock = network::Lock::take()?;
                if network::is_kept() {
                    return Err(Failure::new(
                        "the lab is up and wanted; end it first: cargo xtask lab down",
                    ));
                }
                if network::is_up() {
                    ui::note("removing what an earlier run left behind");
                    network::down(&lock);
                }
                network::up(&lock)?;
                Some(Network { lock, keep: false })
            }
            Place::Memory { .. } => None,
        };
        let folder = run_folder()?;
        prepare(&folder)?;
        let mut stage = Self::describe(place, binary, folder, network);
        stage.start()?;
        Ok(stage)
    }

    /// The folder of this run.
    pub(crate) fn folder(&self) -> &Path {
        &self.operator.folder
    }

    /// Records a client port's traffic to a file, for as long as the stage stands.
    pub(crate) fn record_client(&mut self, file: &Path) -> Done {
        let file = file.to_string_lossy();
        let arguments = ["client", "--interface", "c1", "--record", &*file];
        self.client = Some(Part::start(
            "client",
            Space::HostsA,
            self.folder(),
            &arguments,
        )?);
        Ok(())
    }

    /// Leaves programs and namespaces running when this goes.
    pub(crate) fn keep(&mut self) {
        if let Some(network) = &mut self._network {
            network.keep = true;
            network::keep(&network.lock);
        }
        for program in self.programs() {
            program.release();
        }
    }

    fn describe(place: Place, binary: PathBuf, folder: PathBuf, network: Option<Network>) -> Self {
        let space = |space: Space| (place == Place::Namespaces).then_some(space);
        let program = |name: &str, space| Program::new(name, space, &binary, &folder);
        let nodes = match place {
            Place::Namespaces => Site::BOTH
                .iter()
                .map(|site| {
                    program(&site.node(), space(site.space()))
                        .argument("node")
                        .argument("-c")
                        .argument(format!("{}.toml", site.node()))
                })
                .collect(),
            // Both in one process: a wire in memory does not leave it.
            Place::Memory { .. } => {
                let mut both = program("nodes", None).argument("node");
                for site in Site::BOTH {
                    both = both
                        .argument("-c")
                        .argument(format!("{}.toml", site.node()));
                }
                vec![both]
            }
        };
        let kms = Site::BOTH
            .iter()
            .map(|site| {
                program(&site.kms(), space(site.space()))
                    .argument("kms")
                    .argument("-c")
                    .argument(format!("{}.toml", site.kms()))
            })
            .collect();
        let controller = program("controller", space(Space::Management))
            .argument("controller")
            .argument("-c")
            .argument("controller.toml");
        Self {
            line: None,
            answer: None,
            client: None,
            controller,
            nodes,
            kms,
            operator: Operator {
                binary,
                folder,
                place,
            },
            view: View::new(),
            place,
            _network: network,
        }
    }

    fn start(&mut self) -> Done {
        let begin = Instant::now();
        config::write(self.folder(), self.place)?;
        self.pki()?;
        for program in self.programs() {
            program.start()?;
        }
        if self.place == Place::Namespaces {
            let record = self.folder().join("line.pcap");
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
            self.line = Some(Part::start("line", Space::A, self.folder(), &arguments)?);
            self.answer = Some(Part::start(
                "answer",
                Space::HostsB,
                self.folder(),
                &["answer"],
            )?);
            for part in [&self.line, &self.answer].into_iter().flatten() {
                part.hear(Duration::from_secs(5))?;
            }
        }
        self.until_open(START_PATIENCE)?;
        let text = format!(
            "two nodes, two KMSs, a controller: all channels open after {}",
            ui::seconds(begin.elapsed())
        );
        self.view.event(ui::GOOD, &text);
        Ok(())
    }

    fn pki(&self) -> Done {
        let mut command = Command::new(&self.operator.binary);
        command
            .current_dir(self.folder())
            .args(["pki", "init", "--dir", "pki"]);
        for site in Site::BOTH {
            command.args(["--node", &site.node(), "--kms", &site.kms()]);
        }
        command.args(["--controller", "controller", "--operator", "operator"]);
        for host in config::hosts(self.place) {
            command.args(["--host", host]);
        }
        proc::output(&mut command).map(drop)
    }

    /// All programs, in the order of their start.
    fn programs(&mut self) -> impl Iterator<Item = &mut Program> {
        self.kms
            .iter_mut()
            .chain(&mut self.nodes)
            .chain(std::iter::once(&mut self.controller))
    }

    /// Fails when a program ended by itself or somebody asked us to stop.
    pub(crate) fn check(&mut self) -> Done {
        proc::check_interrupt()?;
        self.programs().try_for_each(Program::check)
    }

    /// Both nodes as they are now.
    pub(crate) fn look(&mut self) -> Done<(Node, Node)> {
        self.check()?;
        let (a, b) = self.operator.nodes()?;
        self.view.update(&a, &b);
        Ok((a, b))
    }

    /// Looks on for a while.
    pub(crate) fn watch(&mut self, time: Duration) -> Done {
        let end = Instant::now() + time;
        loop {
            self.look()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Looks on until something is so; how long it took, or none when it did not come in time.
    pub(crate) fn until(
        &mut self,
        patience: Duration,
        is_so: impl Fn(&Node, &Node) -> bool,
    ) -> Done<Option<Duration>> {
        let begin = Instant::now();
        loop {
            let (a, b) = self.look()?;
            if is_so(&a, &b) {
                return Ok(Some(begin.elapsed()));
            }
            if begin.elapsed() > patience {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Looks on until all channels are open at both ends; before that the doors may not answer yet.
    fn until_open(&mut self, patience: Duration) -> Done {
        let begin = Instant::now();
        loop {
            self.check()?;
            let looked = self.look();
            if looked
                .as_ref()
                .is_ok_and(|(a, b)| a.all_open() && b.all_open())
            {
                return Ok(());
            }
            if begin.elapsed() > patience {
                return Err(Failure::new(match looked {
                    Ok((a, b)) => format!(
                        "the channels did not open within {} s; alarms: {}; logs in {}",
                        patience.as_secs(),
                        [a.alarms, b.alarms]
                            .concat()
                            .iter()
                            .map(|alarm| alarm.text.clone())
                            .collect::<Vec<_>>()
                            .join("; "),
                        self.folder().display()
                    ),
                    Err(failure) => format!("the nodes do not answer: {failure}"),
                }));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until nothing is under way: every counter of frames stands still.
    pub(crate) fn drain(&mut self) -> Done<(Node, Node)> {
        let mut last = None;
        let begin = Instant::now();
        loop {
            let (a, b) = self.look()?;
            let now = (frames(&a), frames(&b));
            if last.as_ref() == Some(&now) {
                return Ok((a, b));
            }
            if begin.elapsed() > Duration::from_secs(10) {
                self.view
                    .event(NOTE, "frames still come though the traffic has ended");
                return Ok((a, b));
            }
            last = Some(now);
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Every counter of client frames of a node.
fn frames(node: &Node) -> Vec<(u64, u64)> {
    node.clients
        .iter()
        .map(|client| {
            (
                client.port.counters.received_frames,
                client.delivered_frames,
            )
        })
        .collect()
}

/// Builds `qloak` and says where it is.
pub(crate) fn build_product() -> Done<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let binary = tree::root().join(target).join("release/qloak");
    if !binary.exists() {
        ui::line("building qloak (release): some minutes, the first time");
    }
    let log = tree::log("build").cannot("make the folder for logs")?;
    let mut build = cargo();
    build
        .args(["build", "--release", "--locked", "-p", "qloak"])
        .current_dir(tree::root());
    let time = proc::run(&mut build, "building qloak (release)", &log, STEP_TIME_MAX)?;
    if time > Duration::from_secs(5) {
        ui::line(format!("qloak built in {}", ui::seconds(time)));
    }
    Ok(binary)
}

/// A new folder `.lab/run-<n>`, and `.lab/last` that points to it. Of earlier ones the last few stay.
fn run_folder() -> Done<PathBuf> {
    let lab = tree::lab();
    fs::create_dir_all(&lab).cannot("make .lab")?;
    let mut numbers: Vec<u32> = fs::read_dir(&lab)
        .cannot("read .lab")?
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("run-")?
                .parse()
                .ok()
        })
        .collect();
    numbers.sort_unstable();
    for old in numbers.iter().rev().skip(RUNS_KEPT) {
        // What cannot be removed only takes room.
        let _ = fs::remove_dir_all(lab.join(format!("run-{old}")));
    }
    let number = numbers.last().map_or(1, |last| last + 1);
    let folder = lab.join(format!("run-{number}"));
    fs::create_dir(&folder).cannot(format_args!("make {}", folder.display()))?;
    let last = lab.join("last");
    // The link is a convenience; a file system without links loses only that.
    let _ = fs::remove_file(&last);
    let _ = std::os::unix::fs::symlink(format!("run-{number}"), &last);
    Ok(folder)
}

/// A command of the demo's own in a namespace of the hosts.
pub(crate) fn send(folder: &Path, time: Duration, octets_per_s: u64) -> Done<Part> {
    let (ports, time, pace) = (
        CLIENT_PORTS.to_string(),
        time.as_millis().to_string(),
        octets_per_s.to_string(),
    );
    let arguments = [
        "send",
        "--ports",
        &ports,
        "--time-ms",
        &time,
        "--octets-per-s",
        &pace,
    ];
    Part::start("send", Space::HostsA, folder, &arguments)
}
