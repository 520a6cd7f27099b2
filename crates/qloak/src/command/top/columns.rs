//! The tables of the picture. A narrow terminal shows fewer columns: one that is cut could be misread.

use qloak_api::{
    Latency, NodeLatency,
    control::{KmsView, NodeView},
    kms::KmsLink,
    manage::NodeState,
};
use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Rect},
    style::{Color, Modifier, Style},
    text::Line,
    widgets::{Cell, Row, Table},
};

use super::{
    sample,
    view::{BAD, GOOD, QUIET, framed},
};
use crate::words;

const PLAIN: Style = Style::new();

/// What a column shows of a row, and how.
type Shown = (String, Style);

/// A column of a table over `T`.
struct Column<T> {
    title: &'static str,
    wide: usize,
    right: bool,
    /// Columns with the lowest ranks stay when the terminal is narrow.
    rank: u8,
    show: fn(&T) -> Shown,
}

/// A column of words.
fn text<T>(title: &'static str, rank: u8, wide: usize, show: fn(&T) -> Shown) -> Column<T> {
    Column {
        title,
        wide: wide.max(title.len()),
        right: false,
        rank,
        show,
    }
}

/// A column of numbers.
fn number<T>(title: &'static str, rank: u8, wide: usize, show: fn(&T) -> Shown) -> Column<T> {
    Column {
        right: true,
        ..text(title, rank, wide, show)
    }
}

/// One row for each channel.
pub(super) fn draw_channels(frame: &mut Frame<'_>, area: Rect, rows: &[sample::Row]) {
    let longest = |of: fn(&sample::Row) -> usize| rows.iter().map(of).max().unwrap_or(0).min(36);
    let columns = [
        text(
            "link",
            9,
            longest(|row| row.link.len()),
            |row: &sample::Row| (row.link.clone(), PLAIN.add_modifier(Modifier::BOLD)),
        ),
        text("channel", 0, longest(|row| row.name.len() + 3), |row| {
            (format!("{} {}", row.channel, row.name), PLAIN)
        }),
        text("suite", 1, longest(|row| row.suite.len()), |row| {
            (row.suite.clone(), suite_style(row))
        }),
        text("status", 4, longest(|row| row.status.len()), |row| {
            (row.status.clone(), if row.open { GOOD } else { BAD })
        }),
        number("A to B", 2, 9, |row| {
            (words::bit_rate(row.a_to_b.outbound_bps), PLAIN)
        }),
        number("B to A", 3, 9, |row| {
            (words::bit_rate(row.b_to_a.outbound_bps), PLAIN)
        }),
        number("frames/s", 7, 8, |row| {
            let frames = row.a_to_b.outbound_fps + row.b_to_a.outbound_fps;
            (words::count(frames as u64), PLAIN)
        }),
        number("frames", 10, 7, |row| (words::count(row.frames), PLAIN)),
        number("discarded", 5, 9, |row| zero(row.discarded)),
        number("rekeys", 6, 6, |row| (words::count(row.rekeys), PLAIN)),
        number("key age", 8, 12, |row| {
            (row.key_age_s.map_or("-".into(), words::seconds), PLAIN)
        }),
    ];
    draw_table(frame, area, " channels ", &columns, rows);
}

/// A node, and the times of its client frames in the last interval.
pub(super) type OfNode<'a> = (&'a NodeView, Option<&'a NodeLatency>);

/// One row for each node.
pub(super) fn draw_nodes(frame: &mut Frame<'_>, area: Rect, nodes: &[OfNode<'_>]) {
    let longest = nodes
        .iter()
        .map(|(node, _)| node.record.name.as_str().len())
        .max();
    let columns = [
        text(
            "node",
            0,
            longest.unwrap_or(0).min(24),
            |(node, _): &OfNode<'_>| {
                (
                    node.record.name.to_string(),
                    if node.reachable { GOOD } else { BAD },
                )
            },
        ),
        number("out p50 p99 max", 4, 17, |(_, times)| {
            of_times(times.map(|times| &times.outbound))
        }),
        number("in p50 p99 max", 5, 17, |(_, times)| {
            of_times(times.map(|times| &times.inbound))
        }),
        number("line in", 6, 9, |(node, _)| {
            of_state(node, |state| {
                (words::octets(state.line.counters.received_octets), PLAIN)
            })
        }),
        number("line out", 7, 9, |(node, _)| {
            of_state(node, |state| {
                (words::octets(state.line.counters.transmitted_octets), PLAIN)
            })
        }),
        number("dropped", 8, 7, |(node, _)| {
            of_state(node, |state| {
                let line = &state.line.counters;
                zero(line.receive_dropped + line.transmit_dropped + line.malformed)
            })
        }),
        number("keys out/in", 1, 11, |(node, _)| {
            of_state(node, |state| {
                let keys = &state.key_handler;
                let style = if keys.outbound_keys == 0 { BAD } else { PLAIN };
                (
                    format!("{}/{}", keys.outbound_keys, keys.inbound_keys),
                    style,
                )
            })
        }),
        text("KME", 2, 7, |(node, _)| {
            of_state(node, |state| {
                word(state.key_handler.kme_reachable, "answers")
            })
        }),
        text("peer", 3, 6, |(node, _)| {
            of_state(node, |state| word(state.key_handler.peer_alive, "heard"))
        }),
    ];
    draw_table(frame, area, " nodes ", &columns, nodes);
}

/// A KMS and one of its links.
pub(super) type OfKms<'a> = (&'a KmsView, &'a KmsLink);

/// Every link of every KMS.
pub(super) fn kms_links(kms: &[KmsView]) -> Vec<OfKms<'_>> {
    kms.iter()
        .flat_map(|one| {
            one.state
                .iter()
                .flat_map(|state| &state.links)
                .map(move |link| (one, link))
        })
        .collect()
}

/// One row for each link of a KMS.
pub(super) fn draw_kms(frame: &mut Frame<'_>, area: Rect, rows: &[OfKms<'_>]) {
    let columns = [
        text("KME", 0, 8, |(kms, _): &OfKms<'_>| {
            (
                kms.record.kme_id.clone(),
                if kms.reachable { GOOD } else { BAD },
            )
        }),
        text("QKD link", 2, 10, |(_, link)| {
            (link.name.clone(), if link.up { GOOD } else { BAD })
        }),
        text("source", 4, 9, |(_, link)| match link.emulated {
            true => ("emulated".into(), PLAIN.fg(Color::Yellow)),
            false => (link.source.clone(), PLAIN),
        }),
        number("SKR", 3, 9, |(_, link)| {
            (words::bit_rate(link.skr_bps), PLAIN)
        }),
        number("QBER", 5, 6, |(_, link)| {
            (format!("{:.1} %", link.qber_ratio * 100.0), PLAIN)
        }),
        number("stored", 1, 7, |(_, link)| {
            let style = if link.stored_key_count == 0 {
                BAD
            } else {
                PLAIN
            };
            (words::count(link.stored_key_count), style)
        }),
    ];
    draw_table(frame, area, " key management ", &columns, rows);
}

fn draw_table<T>(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    columns: &[Column<T>],
    rows: &[T],
) {
    let shown = that_fit(columns, area.width.saturating_sub(2).into());
    let cell = |column: &Column<T>, text: String| {
        let line = Line::from(text);
        let side = if column.right {
            Alignment::Right
        } else {
            Alignment::Left
        };
        Cell::new(line.alignment(side))
    };
    let body = rows.iter().map(|row| {
        Row::new(shown.iter().map(|column| {
            let (text, style) = (column.show)(row);
            cell(column, text).style(style)
        }))
    });
    let head = shown
        .iter()
        .map(|column| cell(column, column.title.to_owned()));
    let widths = shown
        .iter()
        .map(|column| Constraint::Length(column.wide as u16));
    let table = Table::new(body, widths)
        .column_spacing(2)
        .header(Row::new(head).style(QUIET));
    frame.render_widget(table.block(framed(title)), area);
}

/// The columns that there is room for, those of the lowest ranks first.
fn that_fit<T>(columns: &[Column<T>], room: usize) -> Vec<&Column<T>> {
    let mut ranked: Vec<_> = columns.iter().collect();
    ranked.sort_by_key(|column| column.rank);
    let mut used = 0;
    let fit = ranked.into_iter().take_while(|column| {
        used += column.wide + 2;
        used <= room + 2
    });
    let last = fit.last().map_or(0, |column| column.rank);
    columns
        .iter()
        .filter(|column| column.rank <= last)
        .collect()
}

fn suite_style(row: &sample::Row) -> Style {
    match (row.hazmat, row.converged) {
        (true, _) => BAD,
        (false, true) => PLAIN.fg(Color::Cyan),
        (false, false) => PLAIN.fg(Color::Yellow),
    }
}

fn of_state(node: &NodeView, show: impl Fn(&NodeState) -> Shown) -> Shown {
    node.state.as_ref().map_or(("-".into(), QUIET), show)
}

fn of_times(times: Option<&Latency>) -> Shown {
    let times = times.filter(|times| times.frames > 0);
    times.map_or(("-".into(), QUIET), |times| {
        (words::three_times(times), PLAIN)
    })
}

fn zero(count: u64) -> Shown {
    let style = if count == 0 {
        PLAIN
    } else {
        PLAIN.fg(Color::Yellow)
    };
    (words::count(count), style)
}

fn word(well: bool, good: &str) -> Shown {
    match well {
        true => (good.to_owned(), GOOD),
        false => ("silent".into(), BAD),
    }
}
