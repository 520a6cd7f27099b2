//! What the observer learned, printed.

use super::{ACTIVITIES, Case, RATE_GOAL, Report};
use crate::{
    bench::report::{Rows, number},
    ui,
};

pub(super) fn show(report: &Report) {
    ui::head(format_args!(
        "what sizes and times of windows of {} ms tell: idle, ping or bulk",
        report.window_ms
    ));
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut rows = Rows::new(&[
        "line frames leave",
        "told right by\n5 neighbours",
        "\ncentres",
        "\nby chance",
        "bits of 1.58\nin the answers",
        "\nin one feature",
        "\nby chance",
        "the feature",
        "frames",
        "missed",
    ]);
    for case in &report.cases {
        let told = &case.told;
        let [low, high] = told.chance_accuracy;
        rows.row(
            case.name,
            [
                percent(told.neighbours_accuracy),
                percent(told.centres_accuracy),
                format!("{:.0} to {:.0} %", low * 100.0, high * 100.0),
                number(Some(told.answer_bits), 2),
                number(Some(told.feature_bits), 2),
                number(Some(told.feature_by_chance_bits), 2),
                told.feature.to_owned(),
                case.observed.frames.to_string(),
                case.observed.missed.to_string(),
            ],
        );
    }
    rows.show();
    costs(&report.cases);
    for case in report.cases.iter().filter(|case| !case.rates.is_empty()) {
        rates(case, report.rate_bps);
    }
    if report.cases.iter().any(|case| case.observed.missed > 0) {
        ui::note(
            "the observer missed frames: this machine is too slow for it, and some of what it tells apart is that",
        );
    }
}

fn costs(cases: &[Case]) {
    ui::head("what it costs");
    let mut rows = Rows::new(&[
        "line frames leave",
        "TCP, both ways\nGb/s",
        "ping, us\np50",
        "\np99",
        "cores of both nodes\nidle",
        "\nping",
        "\nbulk",
    ]);
    for case in cases {
        let costs = &case.costs;
        let mut cells = vec![
            number(Some(costs.goodput_gbps), 2),
            number(costs.ping_p50_us, 0),
            number(costs.ping_p99_us, 0),
        ];
        cells.extend(costs.node_cores.map(|cores| number(Some(cores), 2)));
        rows.row(case.name, cells);
    }
    rows.show();
}

fn rates(case: &Case, rate_bps: u64) {
    let mbps = rate_bps as f64 * 1e-6;
    ui::head(format_args!("{}: how near {mbps:.0} Mb/s", case.name));
    let mut rows = Rows::new(&[
        "while",
        "windows, ms",
        "mean, Mb/s",
        "farthest window",
        &format!("within {:.0} %", RATE_GOAL * 100.0),
    ]);
    for activity in ACTIVITIES {
        for rate in case.rates.iter().filter(|rate| rate.activity == activity) {
            rows.row(
                activity,
                [
                    rate.window_ms.to_string(),
                    number(Some(rate.mean_bps * 1e-6), 1),
                    format!("{:+.1} %", rate.worst * 100.0),
                    format!("{:.1} %", rate.within_goal * 100.0),
                ],
            );
        }
    }
    rows.show();
}
