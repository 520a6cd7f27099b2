//! `cargo xtask bench rekey`: throughput and loss against rekeys per second.
//!
//! A rekey is one SA replaced: one channel, one way. One a second is asked for as an operator would, by
//! command; more by the time between rekeys that a channel's limits can have, because commands at that rate
//! would measure the management door. What was asked for stands beside what the nodes counted, with what else tells where the bound is:
//! how few keys ever waited, how busy the processors were, how often each SC changed its SA.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    ground::{self, Common},
    report::{self, Rows, number},
};
use crate::{
    lab::{
        Lab,
        layout::{Channel, Keys, Layout},
        programs::Part,
        state::Node,
    },
    ui::{self, Context, Done, Failure},
};

/// Rekeys a second that are asked for.
const RATES: [u64; 6] = [0, 1, 10, 100, 1000, 5000];

/// Up to here by command; a command rekeys both ways.
const COMMANDED_MAX: u64 = 1;

/// Octets per second on each port and way without `--load`.
const PACE_LIGHT: u64 = 20_000;

/// Faults of a rate that the table tells; JSON has all.
const FAULTS_SHOWN: usize = 4;

/// How long the line may bring frames under the old key: it is a veth, which keeps the order.
const DRAIN_US: u32 = 1000;

/// How long the nodes may take to learn new limits.
const LIMITS_PATIENCE: Duration = Duration::from_secs(20);

/// What to ask for.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// All client ports at full load; otherwise a trickle.
    #[arg(long)]
    load: bool,
    /// The highest rate of 0, 1, 10, 100, 1000, 5000 rekeys a second.
    #[arg(long, default_value_t = 5000)]
    up_to: u64,
    /// Channels, each with a client port on each side.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=64))]
    channels: u8,
    /// Seconds at each rate.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(3..=600))]
    seconds: u64,
    #[command(flatten)]
    common: Common,
}

/// A rate and what came of it.
#[derive(Serialize)]
struct Row {
    asked_per_s: f64,
    reached_per_s: f64,
    /// For one channel and way, of those that were asked.
    reached_per_sc_s: f64,
    client_gbps: f64,
    frames_in: u64,
    frames_lost: u64,
    frames_refused: u64,
    /// Keys to announce that waited at a node, the fewest that were seen.
    outbound_keys_min: u32,
    /// Keys that the far node may announce and that were fetched already, the fewest that were seen.
    inbound_keys_min: u32,
    /// Processors busy, all programs and the traffic together, percent.
    busy_percent: f64,
    faults: Vec<String>,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    arguments.common.prepare(&[])?;
    let layout = layout(arguments.channels);
    let mut lab = arguments.common.open(&layout)?;
    let _answer = Part::answer(lab.folder())?;
    let rates: Vec<u64> = RATES
        .into_iter()
        .filter(|rate| *rate <= arguments.up_to)
        .collect();
    let bar = ui::rows("rekeys a second", rates.len());
    let mut rows = Vec::new();
    for rate in rates {
        bar.set_message(rate.to_string());
        rows.push(measure(&mut lab, &layout, arguments, rate)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if arguments.common.json {
        return report::json(&rows);
    }
    show(&rows, arguments);
    Ok(())
}

/// A channel for each client port, and keys enough for the highest rate.
fn layout(channels: u8) -> Layout {
    let channel = |number: u8| Channel {
        number: number.into(),
        name: format!("channel-{number}"),
        carriage: "aggregated",
        constant_rate_bps: None,
        clients: number..=number,
    };
    Layout {
        channels: (1..=channels).map(channel).collect(),
        keys: Keys {
            rate_factor: 10_000.0,
            slots: 2048,
            ahead: 1024,
            at_once: 128,
        },
        drain_us: Some(DRAIN_US),
        ..Layout::demo()
    }
}

fn measure(lab: &mut Lab, layout: &Layout, arguments: &Arguments, rate: u64) -> Done<Row> {
    let time = Duration::from_secs(arguments.seconds);
    let by_command = rate <= COMMANDED_MAX;
    // So few channels that each SA is replaced once a second or more often: no rate comes in one heap.
    let channels = layout.channels.len().min(rate as usize / 2);
    let every_us = (!by_command).then(|| channels as u64 * 2_000_000 / rate);
    set_every(lab, layout, channels, every_us)?;
    let pace = if arguments.load { 0 } else { PACE_LIGHT };
    let (mut outbound_keys_min, mut inbound_keys_min) = (u32::MAX, u32::MAX);
    let processors = Processors::read()?;
    let mut turn = layout.channels.iter().cycle();
    let mut commanded = 0u32;
    let loaded = ground::under_load(lab, layout, time, pace, |lab, at| {
        // While TCP ends, nothing is measured any more.
        if at < time {
            let (a, b) = lab.look(&mut |_, _| {})?;
            for node in [a, b] {
                outbound_keys_min = outbound_keys_min.min(node.key_handler.outbound_keys);
                inbound_keys_min = inbound_keys_min.min(node.key_handler.inbound_keys);
            }
        }
        let next = Instant::now() + Duration::from_millis(250);
        // Each command rekeys both ways.
        while by_command && at < time && f64::from(commanded) < at.as_secs_f64() * rate as f64 {
            if let Some(channel) = turn.next() {
                lab.operator.rekey(channel.number)?;
            }
            commanded += 2;
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
        Ok(())
    })?;
    let counted_s = loaded.counted.as_secs_f64();
    let reached_per_s = loaded.count.rekeys as f64 / counted_s;
    Ok(Row {
        asked_per_s: match by_command {
            true => f64::from(commanded) / counted_s,
            false => rate as f64,
        },
        reached_per_s,
        reached_per_sc_s: reached_per_s / (channels.max(1) * 2) as f64,
        client_gbps: loaded.count.gbps(loaded.time),
        frames_in: loaded.count.taken,
        frames_lost: loaded.count.lost,
        frames_refused: loaded.count.refused,
        outbound_keys_min,
        inbound_keys_min,
        busy_percent: processors.busy_percent_until(Processors::read()?),
        faults: loaded.faults,
    })
}

/// Lets the first channels change their SAs this often, the others never.
fn set_every(lab: &mut Lab, layout: &Layout, channels: usize, every_us: Option<u64>) -> Done {
    let wanted = |index: usize| every_us.filter(|_| index < channels);
    let (a, b) = lab.look(&mut |_, _| {})?;
    for (index, channel) in layout.channels.iter().enumerate() {
        let wanted = wanted(index);
        let other = |node: &Node| node.channels[index].limits.rekey_every_us != wanted;
        if other(&a) || other(&b) {
            lab.operator
                .set_rekey_every(channel.number, wanted.unwrap_or(0))?;
        }
    }
    let all = |node: &Node| {
        let mut channels = node.channels.iter().enumerate();
        channels.all(|(index, channel)| channel.limits.rekey_every_us == wanted(index))
    };
    let known = lab.until(LIMITS_PATIENCE, &mut |_, _| {}, |a, b| all(a) && all(b))?;
    known.map(drop).ok_or_else(|| {
        Failure::new(format!(
            "the nodes did not take a rekey every {every_us:?} us; logs in {}",
            lab.folder().display()
        ))
    })
}

/// Ticks of all processors since the machine started (proc_stat(5)).
#[derive(Clone, Copy)]
struct Processors {
    all: u64,
    idle: u64,
}

impl Processors {
    fn read() -> Done<Self> {
        let text = fs::read_to_string("/proc/stat").cannot("read /proc/stat")?;
        Self::parse(&text).ok_or_else(|| Failure::new("/proc/stat does not begin with cpu"))
    }

    /// The share of the ticks from here to there that were not idle.
    fn busy_percent_until(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all);
        let idle = later.idle.saturating_sub(self.idle);
        100.0 * (1.0 - idle as f64 / all.max(1) as f64)
    }

    /// `cpu  user nice system idle iowait irq softirq steal ...`
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .filter_map(|ticks| ticks.parse().ok())
            .collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        let all = ticks.iter().sum();
        Some(Self { all, idle })
    }
}

fn show(rows: &[Row], arguments: &Arguments) {
    let mut table = Rows::new(&[
        "rekeys a second\nasked for",
        "\nreached",
        "\neach SC",
        "client frames\nGb/s",
        "\nin",
        "\nlost",
        "\nrefused",
        "keys waiting, least\noutbound",
        "\ninbound",
        "processors\nbusy, %",
    ]);
    for row in rows {
        table.row(
            &number(Some(row.asked_per_s), 0),
            [
                number(Some(row.reached_per_s), 1),
                number(Some(row.reached_per_sc_s), 1),
                number(Some(row.client_gbps), 2),
                row.frames_in.to_string(),
                row.frames_lost.to_string(),
                row.frames_refused.to_string(),
                row.outbound_keys_min.to_string(),
                row.inbound_keys_min.to_string(),
                number(Some(row.busy_percent), 0),
            ],
        );
    }
    table.show();
    ui::line(format!(
        "{} channels, an SC each way; a rekey is one SA replaced. Four ANs and {DRAIN_US} us for an old SA to drain\n\
         allow some {} a second for each SC (docs/key-agreement.md); few keys waiting: the key supply is the\n\
         bound; processors full: they are.",
        arguments.channels,
        3_000_000 / DRAIN_US,
    ));
    for row in rows {
        for fault in row.faults.iter().take(FAULTS_SHOWN) {
            ui::note(format!("at {:.0} a second: {fault}", row.asked_per_s));
        }
        if row.faults.len() > FAULTS_SHOWN {
            ui::note(format!(
                "at {:.0} a second: {} more, see --json",
                row.asked_per_s,
                row.faults.len() - FAULTS_SHOWN
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_ticks() {
        let seen = Processors::parse("cpu  10 0 5 80 5 0 0 7 9 9\ncpu0 1\n").expect("parsed");
        assert_eq!((seen.all, seen.idle), (107, 85));
        let later = Processors {
            all: 207,
            idle: 110,
        };
        assert_eq!(seen.busy_percent_until(later), 75.0);
        assert!(Processors::parse("nonsense").is_none());
    }
}
