//! `cargo xtask bench latency`: round trips under every suite, as seed 000 measured them (III.D, Figure 8):
//! 300,000 pings each through two nodes, the scheme without encryption (plain) among them.
//!
//! Each suite is measured twice, half of the pings each time, the second time in reverse order. How far the
//! two halves of one suite lie apart is the noise of the machine; a difference between suites that is not
//! larger says nothing.

mod plot;

use std::{path::PathBuf, time::Duration};

use serde::Serialize;

use super::{
    ground::Common,
    report::{self, Rows, number},
};
use crate::{
    lab::{
        Lab,
        layout::{Channel, Layout},
        network::Space,
        ping::{Ping, RoundTrips},
    },
    setup::Need,
    tree,
    ui::{self, Context, Done, Failure},
};

/// The channel and the far host of its client port.
const CHANNEL: u16 = 1;
const FAR: &str = "10.77.1.2";

/// The suite that stands for no encryption.
const PLAIN: &str = "plain";

/// A round trip that takes longer than this on average is a stalled machine.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(10);

/// How many pings.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Pings for each suite.
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(20..=10_000_000))]
    pings: u64,
    /// Only these suites.
    #[arg(long, value_delimiter = ',')]
    suites: Vec<String>,
    /// Where the picture goes.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// A suite's round trips, microseconds.
#[derive(Serialize)]
struct Row {
    suite: String,
    pings: u64,
    unanswered: u64,
    mean_us: Option<f64>,
    deviation_us: Option<f64>,
    least_us: Option<f64>,
    p1_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    p999_us: Option<f64>,
    most_us: Option<f64>,
    /// p50 of the first and of the second half.
    halves_us: [Option<f64>; 2],
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    arguments.common.prepare(&[Need::Ping])?;
    let layout = layout();
    let mut lab = arguments.common.open(&layout)?;
    let suites = suites(&lab, &arguments.suites)?;
    let bar = ui::rows("suites, twice", suites.len() * 2);
    let mut measure = |suite: &String| {
        bar.set_message(suite.clone());
        let found = round_trips(&mut lab, suite, arguments.pings.div_ceil(2));
        bar.inc(1);
        found
    };
    let first: Vec<RoundTrips> = suites.iter().map(&mut measure).collect::<Done<_>>()?;
    let mut second: Vec<RoundTrips> = suites.iter().rev().map(&mut measure).collect::<Done<_>>()?;
    second.reverse();
    bar.finish_and_clear();
    let rows: Vec<Row> = suites
        .into_iter()
        .zip(first.into_iter().zip(second))
        .map(|(suite, (first, second))| Row::new(suite, first, second))
        .collect();
    let plot = arguments
        .plot
        .clone()
        .unwrap_or_else(|| tree::lab().join("latency.svg"));
    std::fs::write(&plot, plot::svg(&rows)).cannot(format_args!("write {}", plot.display()))?;
    if arguments.common.json {
        return report::json(&rows);
    }
    show(&rows);
    ui::line(format!("picture: {}", plot.display()));
    Ok(())
}

/// One client port on each side.
fn layout() -> Layout {
    Layout {
        channels: vec![Channel {
            number: CHANNEL,
            name: "latency".to_owned(),
            carriage: "aggregated",
            clients: 1..=1,
            constant_rate_bps: None,
        }],
        hazmat: vec![PLAIN.to_owned()],
        ..Layout::demo()
    }
}

/// Plain, then every suite that authenticates; or those of them that were named.
fn suites(lab: &Lab, wanted: &[String]) -> Done<Vec<String>> {
    let mut all = vec![PLAIN.to_owned()];
    all.extend(lab.operator.suites()?);
    if let Some(unknown) = wanted.iter().find(|suite| !all.contains(suite)) {
        return Err(Failure::new(format!(
            "there is no suite {unknown:?}; there are {}",
            all.join(", ")
        )));
    }
    all.retain(|suite| wanted.is_empty() || wanted.contains(suite));
    Ok(all)
}

fn round_trips(lab: &mut Lab, suite: &str, pings: u64) -> Done<RoundTrips> {
    lab.check()?;
    lab.operator.set_suite(CHANNEL, suite)?;
    let ping = |count| Ping::one_by_one(Space::HostsA, FAR, count, lab.folder());
    // The first round trips resolve addresses and wake what sleeps.
    ping(20)?.finish(Duration::from_secs(10))?;
    let patience = ROUND_TRIP_MAX.saturating_mul(u32::try_from(pings).unwrap_or(u32::MAX));
    ping(pings)?.finish(patience)
}

impl Row {
    fn new(suite: String, first: RoundTrips, second: RoundTrips) -> Self {
        let us = |ms: f64| ms * 1000.0;
        let halves_us = [&first, &second].map(|half| half.quantile_ms(0.5).map(us));
        let all = first.join(second);
        let quantile_us = |share| all.quantile_ms(share).map(us);
        let (mean, deviation) = all.mean_and_deviation_ms().unzip();
        Self {
            suite,
            pings: all.sent,
            unanswered: all.sent.saturating_sub(all.received),
            mean_us: mean.map(us),
            deviation_us: deviation.map(us),
            least_us: quantile_us(0.0),
            p1_us: quantile_us(0.01),
            p50_us: quantile_us(0.5),
            p99_us: quantile_us(0.99),
            p999_us: quantile_us(0.999),
            most_us: quantile_us(1.0),
            halves_us,
        }
    }

    /// How far the two halves lie apart.
    fn noise_us(&self) -> Option<f64> {
        let [first, second] = self.halves_us;
        Some((first? - second?).abs())
    }
}

fn show(rows: &[Row]) {
    let mut table = Rows::new(&[
        "round trip, us",
        "mean",
        "deviation",
        "least",
        "p50",
        "p99",
        "p99.9",
        "most",
        "halves apart",
        "unanswered",
    ]);
    for row in rows {
        table.row(
            &row.suite,
            [
                number(row.mean_us, 1),
                number(row.deviation_us, 1),
                number(row.least_us, 0),
                number(row.p50_us, 0),
                number(row.p99_us, 0),
                number(row.p999_us, 0),
                number(row.most_us, 0),
                number(row.noise_us(), 0),
                row.unanswered.to_string(),
            ],
        );
    }
    table.show();
    ui::line(verdict(rows));
}

/// How far apart the suites are, beside how far apart the two halves of one suite are.
fn verdict(rows: &[Row]) -> String {
    let p50 = || rows.iter().filter_map(|row| row.p50_us);
    let apart = p50().fold(f64::MIN, f64::max) - p50().fold(f64::MAX, f64::min);
    let noise = rows.iter().filter_map(Row::noise_us).fold(0.0, f64::max);
    let word = if apart <= noise {
        "the suites do not differ by more than the noise"
    } else {
        "the suites differ by more than the noise"
    };
    format!(
        "p50 of all suites within {apart:.0} us, the two halves of one suite within {noise:.0} us: {word}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(suite: &str, halves: [f64; 2]) -> Row {
        Row {
            suite: suite.to_owned(),
            pings: 2,
            unanswered: 0,
            mean_us: None,
            deviation_us: None,
            least_us: Some(halves[0] / 2.0),
            p1_us: Some(halves[0]),
            p50_us: Some((halves[0] + halves[1]) / 2.0),
            p99_us: Some(halves[1]),
            p999_us: Some(halves[1]),
            most_us: Some(halves[1] * 3.0),
            halves_us: halves.map(Some),
        }
    }

    #[test]
    fn a_difference_counts_beyond_the_noise_only() {
        let noisy = verdict(&[row("a", [40.0, 60.0]), row("b", [50.0, 55.0])]);
        assert!(noisy.contains("do not differ"), "{noisy}");
        let clear = verdict(&[row("a", [40.0, 41.0]), row("b", [80.0, 82.0])]);
        assert!(clear.contains("suites differ"), "{clear}");
    }

    #[test]
    fn the_picture_names_each_suite_and_nothing_breaks_it() {
        let svg = plot::svg(&[row("a<b", [40.0, 60.0]), row("c", [50.0, 55.0])]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
        assert!(svg.contains(">a&lt;b</text>") && svg.contains(">c</text>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn no_reply_makes_no_picture_of_it() {
        let silent = Row::new("a".to_owned(), RoundTrips::default(), RoundTrips::default());
        assert_eq!(silent.p50_us, None);
        assert!(!plot::svg(&[silent]).contains("NaN"));
    }
}
