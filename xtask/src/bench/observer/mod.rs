//! `cargo xtask bench observer`: what somebody learns who sees the sizes and times of line frames and has no key,
//! with a channel whose frames leave as client frames come and with one of constant rate.
//!
//! ```text
//!   round 0   idle ping bulk     learnt from
//!   round 1   ping bulk idle     asked about
//!   round 2   bulk idle ping     learnt from ...
//! ```
//!
//! A packet socket at node B's end records node A's frames with stamps of the kernel. Sizes and times are cut into
//! windows; a classifier learns from the even rounds what idle, ping and bulk look like, and is asked about the odd
//! ones. Who can tell nothing is right once in three. The traffic, both nodes and the observer share the machine:
//! what it adds to the times is in the record. Nothing is asserted.

mod statistics;
mod table;

use std::{
    fs, thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use super::{ground::Common, report};
use crate::{
    lab::{
        Lab,
        layout::{Channel, Layout},
        network::Space,
        ping::{Ping, RoundTrips},
        programs::Part,
    },
    parts::{Observed, Sent, Sighting},
    setup::Need,
    ui::{self, Context, Done, Failure},
};
use statistics::{CLASSES, Telling, Window};

/// What goes on, in the order of the first round.
const ACTIVITIES: [&str; CLASSES] = ["idle", "ping", "bulk"];

/// MTU of the line and of the client ports.
const MTU: usize = 1500;

/// Octets that Ethernet puts around a frame: preamble 8, FCS 4, gap 12
/// (IEEE 802.3-2022, 3.1.1 and 4.4.2).
const AROUND_FRAME: u64 = 24;

/// At the begin of a stretch, until the traffic runs, and at its end.
const BEGIN: Duration = Duration::from_millis(700);
const END: Duration = Duration::from_millis(200);

/// Windows in which the rate is looked at.
const RATE_WINDOWS_MS: [u64; 2] = [10, 100];

/// How near the rate is meant to be, of itself.
const RATE_GOAL: f64 = 0.05;

/// How long TCP may take to end after its time.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to observe. Needs root (network namespaces), ping, and some cores: nodes of constant rate keep one each
/// busy, and what they cannot keep of their rate for want of cores is what an observer sees.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The constant rate, bits per second on the wire.
    #[arg(long, default_value_t = 1_000_000_000, value_parser = clap::value_parser!(u64).range(100_000_000..=100_000_000_000))]
    rate_bps: u64,
    /// Rounds of idle, ping and bulk; half of them are learnt from.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=40))]
    rounds: u64,
    /// Seconds of each.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=60))]
    seconds: u64,
    /// Milliseconds of a window.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(5..=1000))]
    window_ms: u64,
    #[command(flatten)]
    common: Common,
}

/// All of it.
#[derive(Serialize)]
struct Report {
    rate_bps: u64,
    window_ms: u64,
    cases: Vec<Case>,
}

/// One kind of channel.
#[derive(Serialize)]
struct Case {
    name: &'static str,
    observed: Observed,
    told: Told,
    costs: Costs,
    /// For a channel of constant rate: activity by activity and window by window.
    rates: Vec<Rate>,
}

/// What the observer learns.
#[derive(Serialize)]
struct Told {
    windows_learnt: usize,
    windows_asked: u64,
    /// Share of right answers of either classifier.
    neighbours_accuracy: f64,
    centres_accuracy: f64,
    /// What 95 of 100 guessers come to.
    chance_accuracy: [f64; 2],
    /// Bits that the better classifier's answers tell; log2(3) is all.
    answer_bits: f64,
    feature: &'static str,
    feature_bits: f64,
    feature_by_chance_bits: f64,
}

/// What the traffic and the machine see.
#[derive(Serialize, Default)]
struct Costs {
    /// TCP, both ways together.
    goodput_gbps: f64,
    ping_p50_us: Option<f64>,
    ping_p99_us: Option<f64>,
    /// Cores that both nodes keep busy: idle, ping, bulk.
    node_cores: [f64; CLASSES],
}

/// How near a rate was to what was configured.
#[derive(Serialize)]
struct Rate {
    activity: &'static str,
    window_ms: u64,
    mean_bps: f64,
    /// The farthest window, of the rate.
    worst: f64,
    /// Share of windows within the goal.
    within_goal: f64,
}

/// A stretch of one activity.
struct Stretch {
    round: u64,
    class: usize,
    from_ns: u64,
    to_ns: u64,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    arguments.common.prepare(&[Need::Ping])?;
    let stretches = 2 * arguments.rounds * CLASSES as u64;
    let bar = ui::clock(
        "observing",
        Duration::from_secs(stretches * arguments.seconds),
    );
    let mut cases = Vec::new();
    for rate_bps in [None, Some(arguments.rate_bps)] {
        let case = observe(arguments, rate_bps, |activity| {
            bar.inc(arguments.seconds);
            bar.set_message(activity);
        })?;
        cases.push(case);
    }
    bar.finish_and_clear();
    let report = Report {
        rate_bps: arguments.rate_bps,
        window_ms: arguments.window_ms,
        cases,
    };
    if arguments.common.json {
        return report::json(&report);
    }
    table::show(&report);
    Ok(())
}

/// One kind of channel through all rounds.
fn observe(
    arguments: &Arguments,
    rate_bps: Option<u64>,
    mut done: impl FnMut(&'static str),
) -> Done<Case> {
    let mut lab = arguments.common.open(&layout(rate_bps))?;
    let record = lab.folder().join("observed");
    let _answer = Part::answer(lab.folder())?;
    let path = record.to_string_lossy();
    let words = ["observe", "--interface", "line-b", "--record", &path];
    let mut observer = Part::start("observe", Space::B, lab.folder(), &words)?;
    observer.hear(Duration::from_secs(5))?;
    let time = Duration::from_secs(arguments.seconds);
    let (mut stretches, mut costs, mut pings) = (Vec::new(), Vec::new(), RoundTrips::default());
    for round in 0..arguments.rounds {
        for place in 0..CLASSES {
            let class = (round as usize + place) % CLASSES;
            let begin = now_ns();
            let cost = stretch(&mut lab, class, time, &mut pings)?;
            stretches.push(Stretch {
                round,
                class,
                from_ns: begin + BEGIN.as_nanos() as u64,
                to_ns: begin + (time - END).as_nanos() as u64,
            });
            costs.push((class, cost));
            done(ACTIVITIES[class]);
        }
    }
    observer.close();
    let observed = Observed::parse(&observer.hear(PATIENCE)?)?;
    let frames = Sighting::read(&record)?;
    // Some megabytes that nobody needs any more.
    let _ = fs::remove_file(&record);
    Ok(Case {
        name: if rate_bps.is_some() {
            "constant rate"
        } else {
            "as frames come"
        },
        observed,
        told: told(&frames, &stretches, arguments.window_ms * 1_000_000),
        costs: costs_of(&costs, arguments.rounds, &pings),
        rates: rate_bps.map_or_else(Vec::new, |bps| rates(&frames, &stretches, bps)),
    })
}

/// One client port on each side.
fn layout(constant_rate_bps: Option<u64>) -> Layout {
    Layout {
        channels: vec![Channel {
            number: 1,
            name: "observed".to_owned(),
            carriage: "aggregated",
            clients: 1..=1,
            constant_rate_bps,
        }],
        line_mtu: MTU,
        client_mtu: MTU,
        ..Layout::demo()
    }
}

/// One activity for a while: cores that the nodes keep busy, and bits of TCP a second.
fn stretch(
    lab: &mut Lab,
    class: usize,
    time: Duration,
    pings: &mut RoundTrips,
) -> Done<(f64, f64)> {
    let (busy, begin) = (nodes_busy(lab)?, Instant::now());
    let mut bps = 0.0;
    let finish = |begin: Instant| thread::sleep(time.saturating_sub(begin.elapsed()));
    match ACTIVITIES[class] {
        "ping" => {
            let ping = Ping::start(1, time, lab.folder())?;
            finish(begin);
            let found = ping.finish(PATIENCE)?;
            *pings = std::mem::take(pings).join(found);
        }
        "bulk" => {
            let traffic = Part::send(lab.folder(), 1, time, 0)?;
            let sent = Sent::parse(&traffic.hear(time + PATIENCE)?)?;
            if let Some(fault) = sent.faults.first() {
                return Err(Failure::new(format!("TCP: {fault}")));
            }
            let octets = sent.received_octets + sent.sent_octets;
            bps = octets as f64 * 8.0 / begin.elapsed().as_secs_f64();
        }
        _ => finish(begin),
    }
    lab.check()?;
    let cores = (nodes_busy(lab)? - busy).as_secs_f64() / begin.elapsed().as_secs_f64();
    // What TCP left behind in queues is not the next stretch's.
    thread::sleep(Duration::from_millis(300));
    Ok((cores, bps))
}

/// Processor time that both nodes have used.
fn nodes_busy(lab: &Lab) -> Done<Duration> {
    /// Of a second, in which the kernel tells it (proc(5), USER_HZ).
    const TICK: Duration = Duration::from_millis(10);
    let mut busy = Duration::ZERO;
    for node in &lab.nodes {
        let path = format!("/proc/{}/stat", node.pid()?);
        let text = fs::read_to_string(&path).cannot(format_args!("read {path}"))?;
        let ticks = ticks(&text).ok_or_else(|| Failure::new(format!("{path} has no times")))?;
        busy += TICK * ticks;
    }
    Ok(busy)
}

/// utime and stime, the 14th and the 15th field; the second is a name in brackets that may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(next()? + next()?)
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as u64
}

fn told(frames: &[Sighting], stretches: &[Stretch], window_ns: u64) -> Told {
    let of = |odd: u64| -> Vec<Window> {
        let chosen = stretches.iter().filter(|stretch| stretch.round % 2 == odd);
        chosen
            .flat_map(|s| statistics::windows(frames, s.from_ns, s.to_ns, window_ns, s.class))
            .collect()
    };
    let (known, asked) = (of(0), of(1));
    let neighbours = statistics::by_neighbours(&known, &asked);
    let centres = statistics::by_centres(&known, &asked);
    let Telling {
        feature,
        bits,
        by_chance_bits,
    } = statistics::most_telling(&[known.as_slice(), asked.as_slice()].concat());
    let chance = 1.0 / CLASSES as f64;
    let spread = 1.96 * (chance * (1.0 - chance) / asked.len().max(1) as f64).sqrt();
    Told {
        windows_learnt: known.len(),
        windows_asked: neighbours.count(),
        neighbours_accuracy: neighbours.accuracy(),
        centres_accuracy: centres.accuracy(),
        chance_accuracy: [chance - spread, chance + spread],
        answer_bits: neighbours.bits().max(centres.bits()),
        feature,
        feature_bits: bits,
        feature_by_chance_bits: by_chance_bits,
    }
}

fn costs_of(all: &[(usize, (f64, f64))], rounds: u64, pings: &RoundTrips) -> Costs {
    let mut costs = Costs {
        ping_p50_us: pings.quantile_ms(0.5).map(|ms| ms * 1000.0),
        ping_p99_us: pings.quantile_ms(0.99).map(|ms| ms * 1000.0),
        ..Costs::default()
    };
    for (class, (cores, bps)) in all {
        costs.node_cores[*class] += cores / rounds as f64;
        costs.goodput_gbps += bps * 1e-9 / rounds as f64;
    }
    costs
}

/// The channel's own frames beside the rate that they should have; key agreement frames leave beside it.
fn rates(frames: &[Sighting], stretches: &[Stretch], rate_bps: u64) -> Vec<Rate> {
    let mut rates = Vec::new();
    for (class, activity) in ACTIVITIES.into_iter().enumerate() {
        for window_ms in RATE_WINDOWS_MS {
            let window_ns = window_ms * 1_000_000;
            let mut found: Vec<f64> = Vec::new();
            for stretch in stretches.iter().filter(|stretch| stretch.class == class) {
                let windows = (stretch.to_ns - stretch.from_ns) / window_ns;
                found.extend((0..windows).map(|window| {
                    let begin = stretch.from_ns + window * window_ns;
                    let seen = statistics::between(frames, begin, begin + window_ns);
                    bits(seen) as f64 * 1e9 / window_ns as f64
                }));
            }
            let off = |bps: &f64| bps / rate_bps as f64 - 1.0;
            let count = found.len().max(1) as f64;
            let within = found.iter().filter(|bps| off(bps).abs() <= RATE_GOAL);
            let worst = found.iter().map(off);
            rates.push(Rate {
                activity,
                window_ms,
                mean_bps: found.iter().sum::<f64>() / count,
                worst: worst
                    .max_by(|a, b| a.abs().total_cmp(&b.abs()))
                    .unwrap_or(0.0),
                within_goal: within.count() as f64 / count,
            });
        }
    }
    rates
}

/// Bits that the channel's frames take on the wire.
fn bits(frames: &[Sighting]) -> u64 {
    let own = frames.iter().filter(|frame| !frame.agreement);
    own.map(|frame| (u64::from(frame.octets) + AROUND_FRAME) * 8)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_kept_and_one_that_is_not() {
        // 1 Gb/s of 1514 octets is a frame each 12 304 ns; for the last 10 ms there is none.
        let at_ns = (0..).map(|number| number * 12_304);
        let mut frames: Vec<Sighting> = at_ns
            .take_while(|at_ns| *at_ns < 990_000_000)
            .map(|at_ns| Sighting {
                at_ns,
                octets: 1514,
                agreement: false,
            })
            .collect();
        frames.push(Sighting {
            at_ns: 990_000_000,
            octets: 60,
            agreement: true,
        });
        let whole = Stretch {
            round: 0,
            class: 0,
            from_ns: 0,
            to_ns: 1_000_000_000,
        };
        let rates = rates(&frames, &[whole], 1_000_000_000);
        assert!(
            (rates[0].mean_bps - 0.99e9).abs() < 1e6,
            "{}",
            rates[0].mean_bps
        );
        assert!((rates[0].within_goal - 0.99).abs() < 1e-9);
        assert_eq!(rates[0].worst, -1.0);
        assert!((rates[1].worst + 0.1).abs() < 1e-3 && rates[1].within_goal == 0.9);
        assert_eq!(rates[2].mean_bps, 0.0, "there was no ping");
    }

    #[test]
    fn an_observer_of_what_is_plain_is_always_right() {
        let frame = |at_ns| Sighting {
            at_ns,
            octets: 60,
            agreement: false,
        };
        let mut stretches = Vec::new();
        let mut frames = Vec::new();
        for place in 0..6_u64 {
            let (class, from_ns) = ((place % 3) as usize, place * 1_000_000);
            let count = [0, 100, 1000][class];
            frames.extend((0..count).map(|n| frame(from_ns + n * 1_000_000 / count.max(1))));
            stretches.push(Stretch {
                round: place / 3,
                class,
                from_ns,
                to_ns: from_ns + 1_000_000,
            });
        }
        let told = told(&frames, &stretches, 50_000);
        assert_eq!((told.windows_learnt, told.windows_asked), (60, 60));
        assert_eq!(told.neighbours_accuracy, 1.0);
        assert!(told.answer_bits > 1.5 && told.feature_bits > told.feature_by_chance_bits);
        assert!(told.chance_accuracy[0] > 0.2 && told.chance_accuracy[1] < 0.46);
    }

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "7 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("7 (a"), None);
    }
}
