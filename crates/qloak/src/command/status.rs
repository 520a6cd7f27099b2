//! `qloak status`.

use clap::Args;
use comfy_table::{Cell, Color};
use qloak_api::{
    control::{ChannelView, KmsView, NodeView, Overview},
    manage::NodeState,
};

use super::{
    picture::{self, Answerer, Source},
    service,
};
use crate::{
    error::{Error, Outcome},
    output::{self, name, number, should_be_zero, state},
    words,
};

/// Show nodes, links, channels and alarms, as the controller sees them
///
/// With --node, what that node says of itself.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    source: Source,
}

impl Status {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let answerer = self.source.answerer()?;
        service::block_on(async {
            match (&answerer, json) {
                (Answerer::Node(peer), true) => {
                    output::json(&peer.get::<NodeState>("/v1/state").await?)?
                }
                (_, true) => output::json(&answerer.overview().await?)?,
                (_, false) => {
                    output::text_line(&in_words(answerer.who(), &answerer.overview().await?))?
                }
            }
            Ok(Outcome::Well)
        })
    }
}

/// The whole picture as tables.
pub(super) fn in_words(who: &str, overview: &Overview) -> String {
    let mut parts = vec![format!("As seen by {who}")];
    parts.push(format!(
        "{}\n{}",
        output::title("Nodes"),
        nodes(&overview.nodes)
    ));
    if !overview.kms.is_empty() {
        parts.push(format!(
            "{}\n{}",
            output::title("Key management"),
            kms(&overview.kms)
        ));
    }
    if !overview.links.is_empty() {
        let lines: Vec<_> = overview
            .links
            .iter()
            .map(|link| format!("{}: {} - {}", link.name, link.a, link.b))
            .collect();
        parts.push(format!(
            "{}\n {}",
            output::title("Links"),
            lines.join("\n ")
        ));
    }
    parts.push(format!(
        "{}\n{}",
        output::title("Channels"),
        channels(overview)
    ));
    if let Some(table) = times(&overview.nodes) {
        parts.push(format!(
            "{}\n{table}",
            output::title("Time in the nodes, since their start")
        ));
    }
    let impaired = picture::impaired(overview);
    if !impaired.is_empty() {
        let lines: Vec<_> = impaired
            .iter()
            .map(|text| output::loud(&format!("IMPAIRED  {text}")))
            .collect();
        parts.push(lines.join("\n"));
    }
    let hazmat = picture::hazmat(overview);
    if !hazmat.is_empty() {
        let lines: Vec<_> = hazmat
            .iter()
            .map(|text| output::loud(&format!("HAZMAT  {text}")))
            .collect();
        parts.push(lines.join("\n"));
    }
    let alarms = picture::alarms(overview);
    if alarms.is_empty() {
        parts.push("No alarms.".into());
    } else {
        let lines: Vec<_> = alarms
            .iter()
            .map(|(who, text)| format!(" {}  {text}", output::loud(who)))
            .collect();
        parts.push(format!("{}\n{}", output::title("Alarms"), lines.join("\n")));
    }
    parts.join("\n\n")
}

fn nodes(nodes: &[NodeView]) -> String {
    let mut table = output::table([
        "node",
        "door",
        "",
        "uptime",
        "line",
        "received",
        "transmitted",
        "dropped",
        "strays",
        "peer",
        "KME",
        "keys out/in",
        "version",
    ]);
    for node in nodes {
        let reachable = match (node.reachable, node.age_ms) {
            (true, _) => state(true, "reachable"),
            (false, Some(age_ms)) => state(
                false,
                format!("silent for {}", words::seconds(age_ms / 1000)),
            ),
            (false, None) => state(false, "never seen"),
        };
        let mut row = vec![
            name(&node.record.name),
            Cell::new(&node.record.url),
            reachable,
        ];
        if let Some(seen) = &node.state {
            let counters = &seen.line.counters;
            let keys = &seen.key_handler;
            let strays = &seen.strays;
            row.extend([
                Cell::new(words::seconds(seen.uptime_s)),
                Cell::new(format!("{} ({})", seen.line.name, seen.line.kind)),
                number(words::octets(counters.received_octets)),
                number(words::octets(counters.transmitted_octets)),
                should_be_zero(
                    counters.receive_dropped + counters.transmit_dropped + counters.malformed,
                ),
                should_be_zero(strays.bad_tag + strays.unknown_sci + strays.bad_agreement),
                state(
                    keys.peer_alive,
                    if keys.peer_alive { "heard" } else { "silent" },
                ),
                state(
                    keys.kme_reachable,
                    if keys.kme_reachable {
                        "answers"
                    } else {
                        "silent"
                    },
                ),
                number(format!("{}/{}", keys.outbound_keys, keys.inbound_keys)),
                Cell::new(&seen.version),
            ]);
        }
        table.add_row(row);
    }
    output::shown(&table)
}

/// Times of client frames in the nodes that carry some themselves.
fn times(nodes: &[NodeView]) -> Option<String> {
    let mut table = output::table(["node", "", "frames", "p50", "p99", "max"]);
    for node in nodes {
        let Some(times) = node.state.as_ref().and_then(|state| state.latency.as_ref()) else {
            continue;
        };
        for (way, times) in [("outbound", &times.outbound), ("inbound", &times.inbound)] {
            if times.frames > 0 {
                table.add_row([
                    name(&node.record.name),
                    Cell::new(way),
                    number(words::count(times.frames)),
                    number(words::brief_time(times.p50_ns)),
                    number(words::brief_time(times.p99_ns)),
                    number(words::brief_time(times.max_ns)),
                ]);
            }
        }
    }
    (table.row_count() > 0).then(|| output::shown(&table))
}

fn kms(kms: &[KmsView]) -> String {
    let mut table = output::table([
        "KME",
        "door",
        "",
        "QKD link",
        "to",
        "source",
        "SKR",
        "QBER",
        "stored",
        "delivered",
    ]);
    for one in kms {
        let reachable = state(
            one.reachable,
            if one.reachable { "reachable" } else { "silent" },
        );
        let head = [
            name(&one.record.kme_id),
            Cell::new(&one.record.url),
            reachable,
        ];
        let links = one.state.iter().flat_map(|state| &state.links);
        let mut rows = 0;
        for link in links {
            rows += 1;
            // What an emulated source models stands in the JSON; here it must be seen that it is one.
            let source = if link.emulated {
                Cell::new("emulated").fg(Color::Yellow)
            } else {
                Cell::new(&link.source)
            };
            table.add_row(head.iter().cloned().chain([
                state(
                    link.up,
                    format!("{} {}", link.name, if link.up { "up" } else { "down" }),
                ),
                Cell::new(&link.peer_kme_id),
                source,
                number(words::bit_rate(link.skr_bps)),
                number(format!("{:.1} %", link.qber_ratio * 100.0)),
                number(format!("{}/{}", link.stored_key_count, link.max_key_count)),
                number(words::count(link.delivered_key_count)),
            ]));
        }
        if rows == 0 {
            table.add_row(head.to_vec());
        }
    }
    output::shown(&table)
}

fn channels(overview: &Overview) -> String {
    let mut table = output::table([
        "link",
        "channel",
        "carriage",
        "wanted",
        "suite encoding",
        "",
        "met",
        "protected",
        "valid",
        "discarded",
        "rekeys",
        "last change",
    ]);
    for view in &overview.channels {
        let ends: Vec<_> = (0..view.observed.len())
            .filter_map(|index| picture::end(overview, view, index))
            .collect();
        let sum = |of: fn(&qloak_api::manage::ChannelState) -> u64| {
            ends.iter().map(|end| of(end)).sum::<u64>()
        };
        let carriage = ends.first().map_or("-", |end| match end.carriage {
            qloak_api::Carriage::Transparent => "transparent",
            qloak_api::Carriage::Aggregated => "aggregated",
        });
        let change = ends
            .iter()
            .filter_map(|end| end.last_suite_change_ms)
            .fold(None, |most: Option<f64>, ms| {
                Some(most.map_or(ms, |most| most.max(ms)))
            });
        table.add_row([
            name(&view.link),
            Cell::new(format!("{} {}", view.channel, view.name)),
            Cell::new(carriage),
            Cell::new(
                view.intent
                    .as_ref()
                    .map_or("as configured", |intent| &intent.suite),
            ),
            encoding(overview, view),
            status(view),
            met(view),
            number(words::count(sum(|end| {
                end.outbound.counters.protected_frames
            }))),
            number(words::count(sum(|end| end.inbound.counters.ok))),
            should_be_zero(sum(picture::discarded)),
            number(sum(|end| end.rekeys)),
            number(change.map_or("-".into(), |ms| format!("{ms:.1} ms"))),
        ]);
    }
    output::shown(&table)
}

/// What the ends encode with: one name if it is the same.
pub(super) fn suites(view: &ChannelView) -> String {
    let mut names: Vec<_> = view
        .observed
        .iter()
        .map(|end| end.encoding_suite.as_deref().unwrap_or("none"))
        .collect();
    names.dedup();
    names.join(" / ")
}

fn encoding(overview: &Overview, view: &ChannelView) -> Cell {
    let cell = Cell::new(suites(view));
    let all = view.observed.iter().all(|end| end.encoding_suite.is_some());
    if all && !picture::uses_hazmat(overview, view) {
        cell.fg(Color::Cyan)
    } else {
        cell.fg(Color::Red)
    }
}

fn met(view: &ChannelView) -> Cell {
    match (&view.intent, view.converged) {
        // Nothing was asked, so nothing can be unmet.
        (None, _) => Cell::new("-"),
        (_, true) => state(true, "yes"),
        (_, false) => state(false, "no"),
    }
}

fn status(view: &ChannelView) -> Cell {
    let mut words: Vec<_> = view
        .observed
        .iter()
        .map(|end| end.status.as_str())
        .collect();
    words.dedup();
    state(words == ["open"], words.join(" / "))
}
