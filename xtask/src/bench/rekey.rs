//! `cargo xtask bench rekey`: throughput and loss against rekeys per second.
//!
//! A rekey is one SA replaced: one channel, one way. Few a second are asked for as an operator would, by
//! command; many by the time limit of every SA, because commands at that rate would measure the management
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

/// Up to here by command; a command takes some ten milliseconds and rekeys both ways.
const COMMANDED_MAX: u64 = 20;

/// Octets per second on each port and way without `--load`.
const PACE_LIGHT: u64 = 20_000;

/// An SA is rekeyed at this share of its time at the latest, so that a stalled machine closes no channel.
const SHARE_MAX: f64 = 0.8;

/// The time limit of an SA that is never reached, seconds.
const NEVER_S: u64 = 86_400;

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
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=64))]
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
    /// For one channel and way.
    reached_per_sc_s: f64,
    client_gbps: f64,
    frames_in: u64,
    frames_lost: u64,
    frames_refused: u64,
    /// Outbound keys that waited at a node, the fewest that were seen.
    keys_waiting_min: u32,
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
    let scs = layout.channels.len() * 2;
    let time = Duration::from_secs(arguments.seconds);
    let by_command = rate <= COMMANDED_MAX;
    let (limits, asked_per_s) = if by_command {
        let never = Limits {
            seconds: NEVER_S,
            rekey_at_percent: 80,
        };
        (never, rate as f64)
    } else {
        limits_for(rate as f64 / scs as f64, scs)
    };
    set_limits(lab, layout, limits)?;
    let pace = if arguments.load { 0 } else { PACE_LIGHT };
    let mut watch = Watch::default();
    let mut turn = layout.channels.iter().cycle();
    let mut commanded = 0;
    let loaded = ground::under_load(lab, layout, time, pace, |lab, at| {
        // While TCP ends, nothing is measured any more.
        if at < time {
            let (a, b) = lab.look(&mut |_, _| {})?;
            watch.see(&a, &b)?;
        }
        let next = Instant::now() + Duration::from_millis(250);
        // Each command rekeys both ways.
        while by_command && at < time && (commanded as f64) < at.as_secs_f64() * rate as f64 {
            if let Some(channel) = turn.next() {
                lab.operator.rekey(channel.number)?;
            }
            commanded += 2;
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
        Ok(())
    })?;
    let reached_per_s = watch.rekeys_per_s();
    Ok(Row {
        asked_per_s,
        reached_per_s,
        reached_per_sc_s: reached_per_s / scs as f64,
        client_gbps: loaded.count.gbps(loaded.time),
        frames_in: loaded.count.taken,
        frames_lost: loaded.count.lost,
        frames_refused: loaded.count.refused,
        keys_waiting_min: watch.keys_waiting_min.unwrap_or(0),
        busy_percent: watch.busy_percent(),
        faults: loaded.faults,
    })
}

/// The limits under which every SA is replaced so many times a second, as near as whole seconds and whole
/// percents come to it, and the rate of all SCs together that this asks for.
fn limits_for(per_sc_s: f64, scs: usize) -> (Limits, f64) {
    let life_s = 1.0 / per_sc_s;
    let seconds = (life_s / SHARE_MAX).ceil().max(1.0);
    let percent = (life_s / seconds * 100.0).round().clamp(1.0, 99.0);
    let limits = Limits {
        seconds: seconds as u64,
        rekey_at_percent: percent as u8,
    };
    (limits, scs as f64 * 100.0 / (seconds * percent))
}

fn set_limits(lab: &mut Lab, layout: &Layout, limits: Limits) -> Done {
    for channel in &layout.channels {
        lab.operator
            .set_limit_seconds(channel.number, limits.seconds, limits.rekey_at_percent)?;
    }
    let all = |node: &Node| node.channels.iter().all(|channel| channel.limits == limits);
    let known = lab.until(LIMITS_PATIENCE, &mut |_, _| {}, |a, b| all(a) && all(b))?;
    known.map(drop).ok_or_else(|| {
        Failure::new(format!(
            "the nodes did not take the limits {limits:?}; logs in {}",
            lab.folder().display()
        ))
    })
}

/// What was seen while the load was on.
#[derive(Default)]
struct Watch {
    first: Option<Seen>,
    last: Option<Seen>,
    keys_waiting_min: Option<u32>,
}

#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    rekeys: u64,
    processors: Processors,
}

impl Watch {
    fn see(&mut self, a: &Node, b: &Node) -> Done {
        let channels = a.channels.iter().chain(&b.channels);
        let seen = Seen {
            at: Instant::now(),
            rekeys: channels.map(|channel| channel.rekeys).sum(),
            processors: Processors::read()?,
        };
        self.first.get_or_insert(seen);
        self.last = Some(seen);
        for node in [a, b] {
            let waiting = node.key_handler.outbound_keys;
            let least = self.keys_waiting_min.get_or_insert(waiting);
            *least = waiting.min(*least);
        }
        Ok(())
    }

    fn rekeys_per_s(&self) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return 0.0;
        };
        let time = last.at.duration_since(first.at).as_secs_f64();
        last.rekeys.saturating_sub(first.rekeys) as f64 / time.max(1e-3)
    }

    fn busy_percent(&self) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return 0.0;
        };
        let all = last.processors.all.saturating_sub(first.processors.all);
        let idle = last.processors.idle.saturating_sub(first.processors.idle);
        100.0 * (1.0 - idle as f64 / all.max(1) as f64)
    }
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
        "keys\nwaiting, least",
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
                row.keys_waiting_min.to_string(),
                number(Some(row.busy_percent), 0),
            ],
        );
    }
    table.show();
    ui::line(format!(
        "{} channels, an SC each way; a rekey is one SA replaced. Four ANs and 100 ms for an old SA to drain\n\
         allow some 30 to 40 a second for each SC (docs/key-agreement.md); no keys waiting: the key supply is\n\
         the bound; processors full: they are.",
        arguments.channels
    ));
    for row in rows {
        for fault in &row.faults {
            ui::note(format!("at {:.0} a second: {fault}", row.asked_per_s));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_near_to_the_rate() {
        for (per_sc_s, scs, near) in [(1.0, 100, 100.0), (10.0, 100, 1000.0), (50.0, 100, 5000.0)] {
            let (limits, asked) = limits_for(per_sc_s, scs);
            assert!(
                (asked - near).abs() < near * 0.02,
                "{limits:?} asks {asked}"
            );
            assert!(limits.rekey_at_percent <= 80, "{limits:?}");
        }
    }

    #[test]
    fn no_more_is_asked_for_than_limits_can_say() {
        let (limits, asked) = limits_for(2500.0, 2);
        assert_eq!((limits.seconds, limits.rekey_at_percent), (1, 1));
        assert_eq!(asked, 200.0);
    }

    #[test]
    fn the_kernels_ticks() {
        let seen = Processors::parse("cpu  10 0 5 80 5 0 0 0 7 0\ncpu0 1\n").expect("parsed");
        assert_eq!((seen.all, seen.idle), (100, 85));
        assert!(Processors::parse("nonsense").is_none());
    }
}
