//! `cargo xtask bench lab`: TCP, UDP and ping through two nodes, beside other programs that protect a line
//! and beside the plain line.
//!
//! Everything runs in the lab's namespaces over the same veth, one after the other, with the same tools:
//! iperf3 and ping. Offloads of the veth are off for all, so that each frame on the line is one that a
//! real line could carry. A peer that cannot be had here is named, with the reason. Nothing is asserted.

mod measure;
mod peers;

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
    },
    setup::Need,
    ui::{self, Done, Failure},
};
use measure::{Figures, Route, Times};
use peers::Peer;

/// What is measured with.
const NEEDS: [Need; 2] = [
    Need::Ping,
    Need::Program {
        package: "iperf3",
        program: "iperf3",
        why: "TCP and UDP of the benchmark of the whole product",
    },
];

/// MTUs of the line.
const LINE_MTUS: [usize; 2] = [1500, 9000];

/// MTUs that can be asked for: with less some peer would cut the datagrams of UDP, more is longer than the node's longest
/// line frame (16000 octets) less its Ethernet header.
const LINE_MTU_RANGE: std::ops::RangeInclusive<usize> = 1500..=15_986;

/// The row of the plain line.
const CEILING: &str = "plain veth";

/// The row of the product.
const OURS: &str = "qloak";

/// What to measure.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only these peers; "none" for none.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Only this MTU of the line: 1500 (less, and some peer would cut the datagrams of UDP) to 15986 (the node's longest
    /// line frame less its Ethernet header).
    #[arg(long, value_parser = line_mtu)]
    line_mtu: Option<usize>,
    /// A second of everything: a look, not a record.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

/// What was measured with one MTU of the line.
#[derive(Serialize)]
struct Table {
    line_mtu: usize,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    what: String,
    figures: Figures,
}

/// All of it.
#[derive(Serialize)]
struct Report {
    tables: Vec<Table>,
    /// Peers that are not here, and why.
    absent: Vec<(String, String)>,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Done {
    let wanted = wanted(&arguments.peers)?;
    arguments.common.prepare(&NEEDS)?;
    let mut absent = Vec::new();
    let mut here = Vec::new();
    for peer in wanted {
        match peer.obtain() {
            Ok(()) => here.push(peer),
            Err(why) => absent.push((peer.name.to_owned(), why.to_string())),
        }
    }
    let mtus: Vec<usize> = match arguments.line_mtu {
        Some(mtu) => vec![mtu],
        None => LINE_MTUS.to_vec(),
    };
    let times = if arguments.quick {
        Times::QUICK
    } else {
        Times::FULL
    };
    let bar = ui::rows("measuring", mtus.len() * (here.len() + 2));
    let mut tables = Vec::new();
    for line_mtu in mtus {
        let mut rows = Vec::new();
        let mut add = |name: &str, what: &str, figures: Figures| {
            rows.push(Row {
                name: name.to_owned(),
                what: what.to_owned(),
                figures,
            });
            bar.inc(1);
        };
        let layout = layout(line_mtu);
        let mut lab = arguments.common.open(&layout)?;
        bar.set_message(format!("{OURS}, line of {line_mtu}"));
        add(OURS, &layout.suite, measure::route(&ours(&lab), times)?);
        lab.stop();
        bar.set_message(format!("{CEILING}, line of {line_mtu}"));
        let line = peers::Line::lay(line_mtu, lab.folder())?;
        add(
            CEILING,
            "no protection",
            measure::route(&line.plain(), times)?,
        );
        for peer in &here {
            bar.set_message(format!("{}, line of {line_mtu}", peer.name));
            match peer.measure(&line, times) {
                Ok(figures) => add(peer.name, peer.cipher, figures),
                Err(why) => absent.push((
                    format!("{}, line of {line_mtu}", peer.name),
                    why.to_string(),
                )),
            }
        }
        tables.push(Table { line_mtu, rows });
    }
    bar.finish_and_clear();
    let report = Report { tables, absent };
    if arguments.common.json {
        return report::json(&report);
    }
    show(&report);
    Ok(())
}

fn line_mtu(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(mtu) if LINE_MTU_RANGE.contains(&mtu) => Ok(mtu),
        _ => Err(format!(
            "{} to {} octets are allowed",
            LINE_MTU_RANGE.start(),
            LINE_MTU_RANGE.end()
        )),
    }
}

/// All peers, or those that were named.
fn wanted(names: &[String]) -> Done<Vec<Peer>> {
    if names == ["none"] {
        return Ok(Vec::new());
    }
    let all = peers::all();
    if let Some(unknown) = names
        .iter()
        .find(|name| !all.iter().any(|peer| peer.name == *name))
    {
        let known: Vec<&str> = all.iter().map(|peer| peer.name).collect();
        return Err(Failure::new(format!(
            "there is no peer {unknown:?}; there are {}",
            known.join(", ")
        )));
    }
    let chosen = |peer: &Peer| names.is_empty() || names.iter().any(|name| name == peer.name);
    Ok(all.into_iter().filter(chosen).collect())
}

/// One client port on each side, with the MTU of the line: an encryptor takes whatever its client sends.
fn layout(line_mtu: usize) -> Layout {
    Layout {
        channels: vec![Channel {
            number: 1,
            name: "lab".to_owned(),
            carriage: "aggregated",
            clients: 1..=1,
            constant_rate_bps: None,
        }],
        line_mtu,
        client_mtu: line_mtu,
        tcp_window_octets_max: None,
        ..Layout::demo()
    }
}

/// From host to host through client port 1.
fn ours(lab: &Lab) -> Route<'_> {
    Route {
        from: Space::HostsA,
        to: Space::HostsB,
        far: "10.77.1.2",
        folder: lab.folder(),
    }
}

fn show(report: &Report) {
    for table in &report.tables {
        ui::head(format_args!("line of {} octets", table.line_mtu));
        let mut rows = Rows::new(&[
            "",
            "cipher",
            "TCP\nGb/s",
            "\nof ours",
            "UDP, 1400 octets\nM/s",
            "\nof ours",
            "ping, us\nmean",
            "\np50",
            "\np99",
            "\nof ours, p50",
        ]);
        let ours = table.rows.iter().find(|row| row.name == OURS);
        for row in &table.rows {
            let share = |of: fn(&Figures) -> Option<f64>| {
                let ours = of(&ours?.figures)?;
                Some(of(&row.figures)? / ours)
            };
            rows.row(
                &row.name,
                [
                    row.what.clone(),
                    number(row.figures.tcp_gbps, 2),
                    number(share(|figures| figures.tcp_gbps), 2),
                    number(row.figures.udp_mfps, 3),
                    number(share(|figures| figures.udp_mfps), 2),
                    number(row.figures.ping_mean_us, 1),
                    number(row.figures.ping_p50_us, 0),
                    number(row.figures.ping_p99_us, 0),
                    number(share(|figures| figures.ping_p50_us), 2),
                ],
            );
        }
        rows.show();
        best(&table.rows);
    }
    for (name, why) in &report.absent {
        ui::note(format!("{name} is absent: {why}"));
    }
}

/// Ours beside the best peer, figure by figure.
fn best(rows: &[Row]) {
    let Some(ours) = rows.iter().find(|row| row.name == OURS) else {
        return;
    };
    let peers = || {
        rows.iter()
            .filter(|row| row.name != OURS && row.name != CEILING)
    };
    let say = |what: &str, of: fn(&Figures) -> Option<f64>, more_is_better: bool| {
        let ranked = peers().filter_map(|row| Some((of(&row.figures)?, &row.name)));
        let best = if more_is_better {
            ranked.max_by(|a, b| a.0.total_cmp(&b.0))
        } else {
            ranked.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        if let (Some((figure, name)), Some(our)) = (best, of(&ours.figures)) {
            let times = if more_is_better {
                our / figure
            } else {
                figure / our
            };
            ui::line(format!(
                "{what}: {times:.2} times as good as the best peer, {name}"
            ));
        }
    };
    say("TCP", |figures| figures.tcp_gbps, true);
    say("UDP", |figures| figures.udp_mfps, true);
    say("ping p50", |figures| figures.ping_p50_us, false);
    say("ping p99", |figures| figures.ping_p99_us, false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_that_no_line_has_is_refused_with_the_range() {
        assert_eq!(
            (line_mtu("1500"), line_mtu("15986")),
            (Ok(1500), Ok(15_986))
        );
        for wrong in ["1499", "15987", "0", "-5", "1500x", ""] {
            let words = line_mtu(wrong).expect_err(wrong);
            assert!(words.contains("1500 to 15986"), "{words}");
        }
    }

    #[test]
    fn peers_are_chosen_by_name_and_a_wrong_name_is_refused() {
        let names = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(wanted(&names(&["none"])).expect("none").len(), 0);
        let one = wanted(&names(&["fastd"])).expect("one");
        assert_eq!(one.len(), 1);
        assert_eq!(wanted(&[]).expect("all").len(), peers::all().len());
        let refused = wanted(&names(&["fast"]))
            .err()
            .expect("refused")
            .to_string();
        assert!(
            refused.contains("there are") && refused.contains("fastd"),
            "{refused}"
        );
    }
}
