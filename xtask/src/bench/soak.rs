//! `cargo xtask bench soak`: the demo's network at full load for minutes, with rekeys of every channel many
//! times a second and changes of suite all the while.
//!
//! What must be so at the end, or it fails: each client frame that went in came out, each way; the counters
//! of both nodes agree channel by channel; no alarm was ever raised; the memory of both nodes is flat.

use std::{collections::BTreeSet, thread, time::Duration};

use serde::Serialize;

use super::{
    ground::{self, Common},
    memory::{Memory, Rise},
    report::{self, Rows},
};
use crate::{
    lab::{
        Lab,
        count::Count,
        layout::{Keys, Layout},
        programs::Part,
    },
    ui::{self, Done, Failure},
};

/// The time limit of every SA, and the share of it at which it is rekeyed: five rekeys a second for each
/// channel and way. The limit itself is far: a machine that stalls shall not close a channel.
const SA_SECONDS: u64 = 20;
const SA_REKEY_PERCENT: u8 = 1;

/// Keys that a node has ready: for ten seconds, asked for in few requests. A KMS writes each to its disk.
const KEYS: Keys = Keys {
    rate_factor: 1000.0,
    slots: 1024,
    ahead: 256,
    at_once: 64,
};

/// Between two changes of suite.
const SUITE_EVERY: Duration = Duration::from_secs(4);

/// Between two looks at nodes and memory.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long to soak.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Minutes at full load.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    minutes: u64,
    #[command(flatten)]
    common: Common,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    seconds: f64,
    client_gbps: f64,
    suites: Vec<String>,
    suite_changes: u64,
    count: Count,
    memory: Vec<(String, Option<Rise>)>,
    alarms: BTreeSet<String>,
    /// What was not as it must be, in words.
    faults: Vec<String>,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    arguments.common.prepare(&[])?;
    let layout = Layout {
        keys: KEYS,
        ..Layout::demo()
    };
    let mut lab = arguments.common.open(&layout)?;
    let report = soak(
        &mut lab,
        &layout,
        Duration::from_secs(arguments.minutes * 60),
    )?;
    if arguments.common.json {
        report::json(&report)?;
    } else {
        show(&report);
    }
    match report.faults.as_slice() {
        [] => Ok(()),
        faults => Err(Failure::new(format!(
            "{}\nlogs: {}",
            faults.join("\n"),
            lab.folder().display()
        ))),
    }
}

fn soak(lab: &mut Lab, layout: &Layout, time: Duration) -> Done<Report> {
    let suites = lab.operator.suites()?;
    for channel in &layout.channels {
        lab.operator
            .set_limit_seconds(channel.number, SA_SECONDS, SA_REKEY_PERCENT)?;
    }
    let _answer = Part::answer(lab.folder())?;
    let mut life = Life {
        bar: ui::clock("soaking", time),
        memory: lab.nodes.iter().map(|_| Memory::default()).collect(),
        alarms: BTreeSet::new(),
        faults: Vec::new(),
        suites: suites.iter().cycle(),
        suite_changes: 0,
        next_suite: SUITE_EVERY,
    };
    let loaded = ground::under_load(lab, layout, time, 0, |lab, at| {
        life.go_on(lab, layout, at, time)
    })?;
    life.bar.finish_and_clear();
    life.faults.extend(loaded.faults);
    let names = ["node-a", "node-b"].map(str::to_owned).into_iter();
    let memory: Vec<(String, Option<Rise>)> =
        names.zip(life.memory.iter().map(Memory::rise)).collect();
    for (name, rise) in &memory {
        match rise {
            Some(rise) if rise.flat => {}
            Some(rise) => life.faults.push(format!(
                "{name} grew from {:.1} to {:.1} MiB",
                rise.first_mib, rise.last_mib
            )),
            None => life
                .faults
                .push(format!("the memory of {name} was not seen often enough")),
        }
    }
    let alarms = life.alarms.iter().map(|text| format!("alarm: {text}"));
    life.faults.extend(alarms);
    Ok(Report {
        seconds: loaded.time.as_secs_f64(),
        client_gbps: loaded.count.gbps(loaded.time),
        suite_changes: life.suite_changes,
        suites: suites.clone(),
        count: loaded.count,
        memory,
        alarms: life.alarms,
        faults: life.faults,
    })
}

/// The soak under way.
struct Life<'a> {
    bar: indicatif::ProgressBar,
    memory: Vec<Memory>,
    alarms: BTreeSet<String>,
    faults: Vec<String>,
    suites: std::iter::Cycle<std::slice::Iter<'a, String>>,
    suite_changes: u64,
    next_suite: Duration,
}

impl Life<'_> {
    /// A second of it.
    fn go_on(&mut self, lab: &mut Lab, layout: &Layout, at: Duration, time: Duration) -> Done {
        self.bar.set_position(at.min(time).as_secs());
        for (memory, node) in self.memory.iter_mut().zip(&lab.nodes) {
            memory.sample(at, node.pid()?)?;
        }
        let (a, b) = lab.look(&mut |_, _| {})?;
        for (node, alarm) in [&a, &b]
            .iter()
            .flat_map(|node| node.alarms.iter().map(|alarm| (&node.node, alarm)))
        {
            self.alarms.insert(format!("{node}: {}", alarm.text));
        }
        if at >= self.next_suite && at + SUITE_EVERY < time {
            self.next_suite = at + SUITE_EVERY;
            self.change_suite(lab, layout)?;
        }
        thread::sleep(LOOK_EVERY);
        Ok(())
    }

    fn change_suite(&mut self, lab: &Lab, layout: &Layout) -> Done {
        let Some(suite) = self.suites.next() else {
            return Ok(());
        };
        self.bar.set_message(suite.clone());
        for channel in &layout.channels {
            if let Err(failure) = lab.operator.set_suite(channel.number, suite) {
                self.faults
                    .push(format!("{} to {suite}: {failure}", channel.name));
            }
            self.suite_changes += 1;
        }
        Ok(())
    }
}

fn show(report: &Report) {
    let Count {
        taken,
        delivered,
        lost,
        rekeys,
        line_frames,
        ..
    } = report.count;
    let mut rows = Rows::new(&["soak", "value"]);
    let per_second = |count: u64| count as f64 / report.seconds;
    for (name, value) in [
        ("seconds", format!("{:.1}", report.seconds)),
        ("client frames in", taken.to_string()),
        ("client frames out", delivered.to_string()),
        ("lost", lost.to_string()),
        ("line frames", line_frames.to_string()),
        (
            "Gb/s of client frames, both ways",
            format!("{:.2}", report.client_gbps),
        ),
        (
            "rekeys",
            format!("{rekeys}, {:.0} a second", per_second(rekeys)),
        ),
        (
            "changes of suite",
            format!("{}, {} suites", report.suite_changes, report.suites.len()),
        ),
        (
            "TCP segments sent again",
            report.count.tcp_again.to_string(),
        ),
        ("alarms", report.alarms.len().to_string()),
    ] {
        rows.row(name, [value]);
    }
    for (node, rise) in &report.memory {
        let text = rise.map_or_else(
            || "-".to_owned(),
            |rise| format!("{:.1} then {:.1}", rise.first_mib, rise.last_mib),
        );
        rows.row(&format!("memory of {node}, MiB"), [text]);
    }
    rows.show();
}
