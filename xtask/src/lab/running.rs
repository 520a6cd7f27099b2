//! A lab that runs: network, files, programs, all started here and all ended with it.
//!
//! ```text
//! build -> network -> pki and files -> kms a, b -> node a, b -> controller -> channels open
//! ```
//!
//! Dropping a lab ends the programs, then removes the namespaces: on success, on failure, on Ctrl-C and on
//! panic alike. Whoever waits for something here sees both nodes each time that they are asked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::{
    config::{self, Place, Site},
    layout::Layout,
    network::{self, Space},
    operator::Operator,
    programs::Program,
    state::Node,
};
use crate::{
    limits::STEP_TIME_MAX,
    proc,
    steps::cargo,
    tree,
    ui::{self, Context, Done, Failure},
};

/// How long the programs may take from their start until every channel is open: a debug machine under
/// load included.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Folders of earlier runs that stay: some megabytes each.
const RUNS_KEPT: usize = 4;

/// How often the nodes are asked how they are.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long frames may still come after the traffic has ended.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

/// Programs that answer a door, on their network.
pub(crate) struct Lab {
    // Fields are dropped in this order.
    pub(crate) controller: Program,
    pub(crate) nodes: Vec<Program>,
    pub(crate) kms: Vec<Program>,
    pub(crate) operator: Operator,
    pub(crate) place: Place,
    network: Option<Network>,
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

/// Who sees both nodes each time that they are asked.
pub(crate) type Seen<'a> = &'a mut dyn FnMut(&Node, &Node);

impl Lab {
    /// Everything up to the start of the programs. `prepare` puts into the folder of the run what they need
    /// besides their configuration.
    pub(crate) fn start(
        place: Place,
        layout: &Layout,
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
                network::up(&lock, layout)?;
                Some(Network { lock, keep: false })
            }
            Place::Memory { .. } => None,
        };
        let folder = run_folder()?;
        prepare(&folder)?;
        config::write(&folder, place, layout)?;
        let mut lab = Self::describe(place, binary, folder, network);
        lab.pki()?;
        lab.programs().try_for_each(Program::start)?;
        Ok(lab)
    }

    /// The folder of this run.
    pub(crate) fn folder(&self) -> &Path {
        &self.operator.folder
    }

    /// Leaves programs and namespaces running when this goes.
    pub(crate) fn keep(&mut self) {
        if let Some(network) = &mut self.network {
            network.keep = true;
            network::keep(&network.lock);
        }
        self.programs().for_each(Program::release);
    }

    /// Ends all programs; the network stays.
    pub(crate) fn stop(&mut self) {
        self.controller.stop();
        self.nodes
            .iter_mut()
            .chain(&mut self.kms)
            .for_each(Program::stop);
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
            controller,
            nodes,
            kms,
            operator: Operator {
                binary,
                folder,
                place,
            },
            place,
            network,
        }
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
    pub(crate) fn look(&mut self, seen: Seen<'_>) -> Done<(Node, Node)> {
        self.check()?;
        let (a, b) = self.operator.nodes()?;
        seen(&a, &b);
        Ok((a, b))
    }

    /// Looks on for a while.
    pub(crate) fn watch(&mut self, time: Duration, seen: Seen<'_>) -> Done {
        let end = Instant::now() + time;
        loop {
            self.look(seen)?;
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
        seen: Seen<'_>,
        is_so: impl Fn(&Node, &Node) -> bool,
    ) -> Done<Option<Duration>> {
        let begin = Instant::now();
        loop {
            let (a, b) = self.look(seen)?;
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
    pub(crate) fn until_open(&mut self, seen: Seen<'_>) -> Done {
        let begin = Instant::now();
        loop {
            self.check()?;
            let looked = self.look(seen);
            if looked
                .as_ref()
                .is_ok_and(|(a, b)| a.all_open() && b.all_open())
            {
                return Ok(());
            }
            if begin.elapsed() > START_PATIENCE {
                return Err(Failure::new(match looked {
                    Ok((a, b)) => format!(
                        "the channels did not open within {} s; alarms: {}; logs in {}",
                        START_PATIENCE.as_secs(),
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

    /// Waits until nothing is under way: every counter of frames stands still. The last word is false when
    /// frames still came after a while.
    pub(crate) fn drain(&mut self, seen: Seen<'_>) -> Done<(Node, Node, bool)> {
        let mut last = None;
        let begin = Instant::now();
        loop {
            let (a, b) = self.look(seen)?;
            let now = (frames(&a), frames(&b));
            if last.as_ref() == Some(&now) {
                return Ok((a, b, true));
            }
            if begin.elapsed() > DRAIN_PATIENCE {
                return Ok((a, b, false));
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
