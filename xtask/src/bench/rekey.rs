//! `cargo xtask bench rekey`: throughput and loss against rekeys per second.
//!
//! A rekey is one SA replaced: one channel, one way. One a second is asked for as an operator would, by
//! command; more by the time limit of SAs, because commands at that rate would measure the management
//! door. What was asked for stands beside what the nodes counted, with what else tells where the bound is:
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
        state::{Limits, Node},
    },
    ui::{self, Context, Done, Failure},
};

/// Rekeys a second that are asked for.
const RATES: [u64; 6] = [0, 1, 10, 100, 1000, 5000];

/// Up to here by command; a command rekeys both ways.
const COMMANDED_MAX: u64 = 1;

/// Octets per second on each port and way without `--load`.
const PACE_LIGHT: u64 = 20_000;

/// Limits that are never reached.
const NEVER: Limits = Limits {
    seconds: 86_400,
    rekey_at_percent: 80,
};

/// A rate that is this near to the one asked for will do.
const NEAR: f64 = 0.02;

/// Faults of a rate that the table tells; JSON has all.
const FAULTS_SHOWN: usize = 4;

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
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u8).range(1..=64))]
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
            slots: 8192,
            ahead: 2048,
            at_once: 128,
        },
        ..Layout::demo()
    }
}

fn measure(lab: &mut Lab, layout: &Layout, arguments: &Arguments, rate: u64) -> Done<Row> {
    let time = Duration::from_secs(arguments.seconds);
    let by_command = rate <= COMMANDED_MAX;
    // So few channels that each SA is replaced once a second or more often: no rate comes in one heap.
    let channels = layout.channels.len().min(rate as usize / 2);
    let (limits, asked_per_s) = if by_command {
        (NEVER, rate as f64)
    } else {
        limits_for(rate as f64, channels * 2)
    };
    set_limits(lab, layout, channels, limits)?;
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
            false => asked_per_s,
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

/// The limits of so many SCs under which so many SAs a second are replaced, as near as whole seconds and
/// whole percents come to it, and the rate that this asks for. The limit itself is as far as it can be, so
/// that a machine that stalls closes no channel.
fn limits_for(rate_per_s: f64, scs: usize) -> (Limits, f64) {
    let life_s = scs as f64 / rate_per_s;
    let longest = (life_s * 100.0).floor().max(1.0) as u64;
    let choices = (1..=longest).rev().map(|seconds| {
        let percent = (life_s / seconds as f64 * 100.0).round().clamp(1.0, 99.0);
        let limits = Limits {
            seconds,
            rekey_at_percent: percent as u8,
        };
        (limits, scs as f64 * 100.0 / (seconds as f64 * percent))
    });
    let error = |(_, rate): &(Limits, f64)| (rate / rate_per_s - 1.0).abs();
    let near = choices.clone().find(|choice| error(choice) < NEAR);
    near.or_else(|| choices.min_by(|a, b| error(a).total_cmp(&error(b))))
        .unwrap_or((NEVER, 0.0))
}

/// Gives the first channels these limits, the others none that is reached.
fn set_limits(lab: &mut Lab, layout: &Layout, channels: usize, limits: Limits) -> Done {
    let wanted = |index: usize| if index < channels { limits } else { NEVER };
    let (a, b) = lab.look(&mut |_, _| {})?;
    for (index, channel) in layout.channels.iter().enumerate() {
        let wanted = wanted(index);
        if a.channels[index].limits != wanted || b.channels[index].limits != wanted {
            lab.operator.set_limit_seconds(
                channel.number,
                wanted.seconds,
                wanted.rekey_at_percent,
            )?;
        }
    }
    let all = |node: &Node| {
        let mut channels = node.channels.iter().enumerate();
        channels.all(|(index, channel)| channel.limits == wanted(index))
    };
    let known = lab.until(LIMITS_PATIENCE, &mut |_, _| {}, |a, b| all(a) && all(b))?;
    known.map(drop).ok_or_else(|| {
        Failure::new(format!(
            "the nodes did not take the limits {limits:?}; logs in {}",
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
        "{} channels, an SC each way; a rekey is one SA replaced. Four ANs and 100 ms for an old SA to drain\n\
         allow some 30 a second for each SC (docs/key-agreement.md); few keys waiting: the key supply is the\n\
         bound; processors full: they are.",
        arguments.channels
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
    fn limits_come_near_to_the_rate_and_stay_far() {
        for (rate, scs) in [(10.0, 10), (100.0, 100), (1000.0, 100), (1000.0, 40)] {
            let (limits, asked) = limits_for(rate, scs);
            assert!((asked / rate - 1.0).abs() < NEAR, "{limits:?} asks {asked}");
            assert!(limits.rekey_at_percent <= 10, "{limits:?}");
        }
    }

    #[test]
    fn no_more_is_asked_for_than_limits_can_say() {
        let (limits, asked) = limits_for(5000.0, 2);
        assert_eq!((limits.seconds, limits.rekey_at_percent), (1, 1));
        assert_eq!(asked, 200.0);
    }

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
