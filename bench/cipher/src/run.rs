//! A run from its plan to its outputs.

use std::collections::BTreeMap;

use indicatif::{ProgressBar, ProgressStyle};
use qloak_cipher::{Level, Suite, SuiteKey};

use crate::{
    arguments::Arguments,
    check, floor,
    frames::Frames,
    limits::SPREAD_QUIET_MAX,
    machine::{self, Machine, instructions::Units},
    measure::Cell,
    party::Party,
    peers::{self, Peer},
    plan::Plan,
    record,
    report::{self, About},
    results::{Results, Row, Who},
    stopwatch::{Stopwatch, quantile},
};

/// No secret: nothing that is sealed here matters.
const KEY: [u8; 32] = [
    0x51, 0x4c, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    25, 26, 27, 28, 29, 30, 31,
];

/// Does what was asked for; the error is a sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let plan = arguments.plan()?;
    let disabled = std::env::var("QLOAK_CPU_DISABLE").unwrap_or_default();
    let best = Level::detect(&disabled).map_err(|error| format!("QLOAK_CPU_DISABLE: {error}"))?;
    let levels = arguments.levels(best)?;
    let pinned = machine::pin();
    let watch = Stopwatch::new().ok_or("the clock of this kind of CPU cannot be told here")?;
    let (peers, absent) = peers::find(|name| arguments.wants_peer(name));
    let mut about = About {
        machine: Machine::here(),
        clock_ghz: watch.clock_ghz(),
        cycles_from: watch.source(),
        method: watch.method(),
        quick: arguments.quick,
        command: command(),
        peers: peers
            .iter()
            .map(|peer| [peer.name().into(), peer.version(), peer.manner().into()])
            .collect(),
        units: None,
        notes: Vec::new(),
    };
    if !pinned {
        about
            .notes
            .push("this thread may move between cores: pinning was refused".into());
    }
    for absent in absent {
        about
            .notes
            .push(format!("{} is absent: {}", absent.name, absent.why));
    }

    let mut bench = Bench {
        units: None,
        watch,
        results: Results::default(),
        notes: Vec::new(),
        same: BTreeMap::new(),
        quick: arguments.quick,
        machine: about.machine.clone(),
        bar: ProgressBar::hidden(),
    };
    let entries: Vec<Entry> = plan
        .suites
        .iter()
        .map(|suite| bench.entry(suite, best, &levels, &peers))
        .collect();
    bench.bar = bar(entries
        .iter()
        .map(|entry| entry.parties.len())
        .sum::<usize>()
        * plan.figures_per_party());
    for entry in entries {
        bench.suite(entry, &plan);
    }
    bench.bar.finish_and_clear();
    bench.set_limits();
    bench.look_at_spread();
    about.units = bench.units;
    about.clock_ghz = bench.watch.clock_ghz();
    for (what, suites) in &bench.same {
        let suites = suites.join(", ");
        about.notes.push(format!("{what}, measured once: {suites}"));
    }
    about.notes.append(&mut bench.notes);

    let folder = record::folder(&about, arguments.record)
        .map_err(|error| format!("cannot make the folder for the figures: {error}"))?;
    record::write(&folder, &bench.results, &plan, &about)
        .map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    if arguments.json {
        println!("{:#}", report::json(&bench.results, &about));
    } else {
        about.print();
        report::print_tables(&bench.results, &plan);
        anstream::println!("\nfigures and pictures: {}", folder.display());
    }
    Ok(())
}

/// A suite and all who are to be measured on it.
struct Entry {
    suite: &'static Suite,
    parties: Vec<(Who, Box<dyn Party>)>,
}

struct Bench {
    watch: Stopwatch,
    units: Option<Units>,
    results: Results,
    notes: Vec<String>,
    /// Suites where a level has nothing of its own, by what it runs instead.
    same: BTreeMap<String, Vec<&'static str>>,
    quick: bool,
    machine: Machine,
    bar: ProgressBar,
}

impl Bench {
    /// Makes keys, and leaves out who does other work than ours.
    fn entry(
        &mut self,
        suite: &'static Suite,
        best: Level,
        levels: &[Level],
        peers: &[Box<dyn Peer>],
    ) -> Entry {
        let key = &KEY[..suite.key_octets];
        let at = |level| SuiteKey::new(suite, key, level).expect("the suite's own length of key");
        let lowest = best.and_below().last().unwrap_or(best);
        let mut reference = at(lowest);
        let mut parties: Vec<(Who, Box<dyn Party>)> = Vec::new();
        let ladder: Vec<Level> = best.and_below().collect();
        for (position, level) in ladder.iter().enumerate() {
            if !levels.contains(level) {
                continue;
            }
            let ours = at(*level);
            let backend = ours.backend();
            let below = ladder.get(position + 1).copied();
            // The same code again would only be measured twice, unless it alone was asked for.
            if let Some(below) = below.filter(|below| levels.contains(below))
                && at(below).backend() == backend
            {
                let what = format!("{level} runs what {below} runs ({backend})");
                self.same.entry(what).or_default().push(suite.name);
                continue;
            }
            let who = Who::Ours {
                level: level.name(),
                backend,
            };
            parties.push((who, Box::new(ours)));
        }
        for peer in peers {
            if let Some(party) = peer.party(suite, key) {
                parties.push((Who::Peer { name: peer.name() }, party));
            }
        }
        parties.retain_mut(|(who, party)| {
            let Some(what) = check::difference(suite, &mut reference, party.as_mut()) else {
                return true;
            };
            self.notes
                .push(format!("LEFT OUT: {} on {}: {what}", name(who), suite.name));
            false
        });
        Entry { suite, parties }
    }

    fn suite(&mut self, mut entry: Entry, plan: &Plan) {
        for load in &plan.loads {
            for &batch in &plan.batches {
                for &direction in &plan.directions {
                    self.bar.set_message(format!(
                        "{} {} {} x{batch}",
                        entry.suite.name,
                        direction.name(),
                        load.name,
                    ));
                    let cell = Cell {
                        load,
                        batch,
                        direction,
                        tag_octets: entry.suite.tag_octets,
                        quick: self.quick,
                    };
                    self.cell(&mut entry, &cell);
                    self.bar.inc(entry.parties.len() as u64);
                }
            }
        }
    }

    fn cell(&mut self, entry: &mut Entry, cell: &Cell<'_>) {
        let Entry { suite, parties } = entry;
        let storage_octets = Frames::new(cell.load, cell.batch, cell.tag_octets).storage_octets();
        self.look_at_units();
        let mut all: Vec<&mut dyn Party> = Vec::new();
        for (_, party) in parties.iter_mut() {
            all.push(party.as_mut());
        }
        let figures = cell.measure(&mut all, &mut self.watch);
        for ((who, _), figure) in parties.iter().zip(figures) {
            let Some(figure) = figure else {
                self.notes.push(format!(
                    "NO FIGURE: {} did not open all frames of {} {} batch {}",
                    name(who),
                    suite.name,
                    cell.load.name,
                    cell.batch
                ));
                continue;
            };
            self.results.rows.push(Row {
                suite: suite.name,
                load: cell.load.clone(),
                batch: cell.batch,
                direction: cell.direction,
                who: who.clone(),
                figure,
                cache: self.machine.cache_of(storage_octets),
                limit: None,
            });
        }
    }

    /// The limits need the units undisturbed, so we look at them again and again and keep the best.
    fn look_at_units(&mut self) {
        let now = Units::measure(&self.watch);
        self.units = match (self.units, now) {
            (Some(before), Some(now)) => Some(before.better_of(now)),
            (before, now) => before.or(now),
        };
    }

    fn set_limits(&mut self) {
        for row in &mut self.results.rows {
            let suite = Suite::by_name(row.suite);
            row.limit = suite
                .and_then(|suite| floor::cycles_per_octet(suite, &row.load, self.units.as_ref()));
        }
    }

    /// Says so when the figures of this run scatter.
    fn look_at_spread(&mut self) {
        let mut spreads: Vec<f64> = self
            .results
            .rows
            .iter()
            .map(|row| row.figure.spread)
            .collect();
        let middle = quantile(&mut spreads, 0.5);
        if middle > SPREAD_QUIET_MAX {
            self.notes.push(format!(
                "the machine was not quiet: half of the windows scatter over {:.0} % and more in half \
                 of the figures; other work shares the core",
                middle * 100.0
            ));
        }
    }
}

fn name(who: &Who) -> String {
    match who {
        Who::Ours { level, .. } => format!("qloak at {level}"),
        Who::Peer { name } => (*name).to_owned(),
    }
}

fn command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo xtask bench cipher {}", words.join(" "))
        .trim_end()
        .to_owned()
}

/// With the time left, and silent where nobody watches.
fn bar(figures: usize) -> ProgressBar {
    let bar = ProgressBar::new(figures as u64);
    let template = "{bar:30.cyan/dim} {pos}/{len} figures, {eta} left  {msg:.dim}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
