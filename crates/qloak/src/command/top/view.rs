//! The picture on a terminal.
//!
//! ```text
//!   who is asked                                   q quits
//!   [ channels: suite, rates each way, frames, keys      ]
//!   [ total rate, a curve                                ]
//!   [ nodes: line, keys, KME, peer ][ KMS: SKR, store    ]
//!   [ alarms                                             ]
//! ```

use qloak_api::control::{KmsView, NodeView};
use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize},
    text::{Line, Span},
    widgets::{Block, BorderType, Cell, Paragraph, Row, Sparkline, Table, Wrap},
};

use super::sample::{self, Sample};
use crate::{command::picture, words};

const QUIET: Style = Style::new().fg(Color::DarkGray);
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, who: &str, sample: &Sample, trouble: Option<&str>) {
    let rows = sample.rows();
    let alarms = alarm_lines(sample, trouble);
    let channels_high = (rows.len() as u16).saturating_add(3).max(4);
    let tables_high = (sample
        .overview
        .nodes
        .len()
        .max(kms_rows(&sample.overview.kms)) as u16)
        .saturating_add(3)
        .max(4);
    let [head, channels, curve, tables, alarm] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(channels_high),
        Constraint::Length(6),
        Constraint::Length(tables_high),
        Constraint::Min(3),
    ])
    .areas(frame.area());

    let [left, right] =
        Layout::horizontal([Constraint::Min(10), Constraint::Length(10)]).areas(head);
    frame.render_widget(
        Line::from(vec![
            " qloak top ".bold().reversed(),
            format!(" {who}").into(),
        ]),
        left,
    );
    frame.render_widget(
        Line::from("q quits ")
            .alignment(Alignment::Right)
            .style(QUIET),
        right,
    );
    draw_channels(frame, channels, &rows);
    draw_curve(frame, curve, &sample.curve);
    let [nodes, kms] =
        Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]).areas(tables);
    draw_nodes(frame, nodes, &sample.overview.nodes);
    draw_kms(frame, kms, &sample.overview.kms);
    let block = framed(if alarms.is_empty() {
        " alarms: none "
    } else {
        " alarms "
    });
    let block = if alarms.is_empty() {
        block
    } else {
        block.border_style(BAD)
    };
    frame.render_widget(
        Paragraph::new(alarms)
            .wrap(Wrap { trim: true })
            .block(block),
        alarm,
    );
}

fn draw_channels(frame: &mut Frame<'_>, area: Rect, rows: &[sample::Row]) {
    let head = [
        "link",
        "channel",
        "suite",
        "status",
        "A to B",
        "B to A",
        "frames/s",
        "frames",
        "discarded",
        "rekeys",
        "key age",
    ];
    let body = rows.iter().map(|row| {
        let suite = if row.converged {
            Style::new().fg(Color::Cyan)
        } else {
            Style::new().fg(Color::Yellow)
        };
        let frames = row.a_to_b.outbound_fps + row.b_to_a.outbound_fps;
        Row::new([
            Cell::new(row.link.clone()).bold(),
            Cell::new(format!("{} {}", row.channel, row.name)),
            Cell::new(row.suite.clone()).style(suite),
            Cell::new(row.status.clone()).style(if row.open { GOOD } else { BAD }),
            right(words::bit_rate(row.a_to_b.outbound_bps)),
            right(words::bit_rate(row.b_to_a.outbound_bps)),
            right(words::count(frames as u64)),
            right(words::count(row.frames)),
            zero(row.discarded),
            right(row.rekeys),
            right(row.key_age_s.map_or("-".into(), words::seconds)),
        ])
    });
    let widths = [
        Constraint::Min(8),
        Constraint::Min(10),
        Constraint::Min(18),
        Constraint::Min(8),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(12),
    ];
    let head = Row::new(head.iter().enumerate().map(|(place, text)| {
        if place < 4 {
            Cell::new(*text)
        } else {
            right(text)
        }
    }))
    .style(QUIET);
    frame.render_widget(
        Table::new(body, widths)
            .header(head)
            .block(framed(" channels ")),
        area,
    );
}

fn draw_curve(frame: &mut Frame<'_>, area: Rect, curve: &[u64]) {
    let now = curve.last().copied().unwrap_or(0);
    let most = curve.iter().copied().max().unwrap_or(0);
    let title = format!(
        " client frames, all channels, both ways: {} (most {}) ",
        words::bit_rate(now as f64),
        words::bit_rate(most as f64)
    );
    let wide = usize::from(area.width.saturating_sub(2));
    let shown = curve
        .get(curve.len().saturating_sub(wide)..)
        .unwrap_or_default();
    let line = Sparkline::default()
        .data(shown.iter().copied())
        .style(Style::new().fg(Color::Cyan))
        .block(framed(&title));
    frame.render_widget(line, area);
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, nodes: &[NodeView]) {
    let body = nodes.iter().map(|node| {
        let name =
            Cell::new(node.record.name.to_string()).style(if node.reachable { GOOD } else { BAD });
        let Some(seen) = &node.state else {
            return Row::new([name, Cell::new("never seen").style(BAD)]);
        };
        let line = &seen.line.counters;
        let keys = &seen.key_handler;
        Row::new([
            name,
            right(words::octets(line.received_octets)),
            right(words::octets(line.transmitted_octets)),
            zero(line.receive_dropped + line.transmit_dropped + line.malformed),
            right(format!("{}/{}", keys.outbound_keys, keys.inbound_keys)),
            word(keys.kme_reachable, "answers", "silent"),
            word(keys.peer_alive, "heard", "silent"),
        ])
    });
    let widths = [
        Constraint::Min(8),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(6),
    ];
    let head = Row::new([
        Cell::new("node"),
        right("line in"),
        right("line out"),
        right("dropped"),
        right("keys o/i"),
        Cell::new("KME"),
        Cell::new("peer"),
    ])
    .style(QUIET);
    frame.render_widget(
        Table::new(body, widths)
            .header(head)
            .block(framed(" nodes ")),
        area,
    );
}

fn draw_kms(frame: &mut Frame<'_>, area: Rect, kms: &[KmsView]) {
    let body = kms.iter().flat_map(|one| {
        let name =
            Cell::new(one.record.kme_id.clone()).style(if one.reachable { GOOD } else { BAD });
        let links = one
            .state
            .iter()
            .flat_map(|state| &state.links)
            .map(move |link| {
                Row::new([
                    name.clone(),
                    Cell::new(link.name.clone()).style(if link.up { GOOD } else { BAD }),
                    right(words::bit_rate(link.skr_bps)),
                    right(format!("{:.1} %", link.qber_ratio * 100.0)),
                    right(link.stored_key_count),
                ])
            });
        links.collect::<Vec<_>>()
    });
    let widths = [
        Constraint::Min(6),
        Constraint::Min(6),
        Constraint::Length(10),
        Constraint::Length(6),
        Constraint::Length(7),
    ];
    let head = Row::new([
        Cell::new("KME"),
        Cell::new("QKD link"),
        right("SKR"),
        right("QBER"),
        right("stored"),
    ])
    .style(QUIET);
    frame.render_widget(
        Table::new(body, widths)
            .header(head)
            .block(framed(" key management ")),
        area,
    );
}

fn kms_rows(kms: &[KmsView]) -> usize {
    kms.iter()
        .map(|one| one.state.as_ref().map_or(0, |state| state.links.len()))
        .sum()
}

fn alarm_lines<'a>(sample: &Sample, trouble: Option<&str>) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    if let Some(words) = trouble {
        let words = words.replace('\n', " ");
        lines.push(Line::from(vec![
            Span::styled("the picture is old: ", BAD),
            words.into(),
        ]));
    }
    for node in &sample.overview.nodes {
        let hazmat = node
            .state
            .as_ref()
            .map(|state| state.hazmat_allowed.join(", "))
            .unwrap_or_default();
        if !hazmat.is_empty() {
            let text = format!(
                "HAZMAT {} allows suites that do not authenticate: {hazmat}",
                node.record.name
            );
            lines.push(Line::styled(text, BAD));
        }
    }
    for (who, text) in picture::alarms(&sample.overview) {
        lines.push(Line::from(vec![
            Span::styled(format!("{who}  "), BAD),
            text.into(),
        ]));
    }
    lines
}

fn framed(title: &str) -> Block<'static> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(QUIET)
        .title(title.to_owned())
}

fn right<'a>(text: impl ToString) -> Cell<'a> {
    Cell::new(Line::from(text.to_string()).alignment(Alignment::Right))
}

fn zero<'a>(count: u64) -> Cell<'a> {
    let cell = right(words::count(count));
    if count == 0 {
        cell
    } else {
        cell.style(Style::new().fg(Color::Yellow))
    }
}

fn word<'a>(well: bool, good: &'static str, bad: &'static str) -> Cell<'a> {
    if well {
        Cell::new(good).style(GOOD)
    } else {
        Cell::new(bad).style(BAD)
    }
}
