//! The picture on a terminal.
//!
//! ```text
//!   who is asked                                   q quits
//!   [ channels: suite, rates each way, frames, keys      ]
//!   [ total rate, a curve                                ]
//!   [ nodes: line, keys, KME, peer ][ KMS: SKR, store    ]   one above the other where it is narrow
//!   [ alarms                                             ]
//! ```

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize},
    text::{Line, Span},
    widgets::{Block, BorderType, Paragraph, Sparkline, Wrap},
};

use super::{columns, sample::Sample};
use crate::{command::picture, words};

pub(super) const QUIET: Style = Style::new().fg(Color::DarkGray);
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Columns from which on nodes and KMSs stand side by side.
const WIDE: u16 = 120;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, who: &str, sample: &Sample, trouble: Option<&str>) {
    let rows = sample.rows();
    let links = columns::kms_links(&sample.overview.kms);
    let high = |rows: usize| (rows as u16).saturating_add(3).max(4);
    let nodes_high = high(sample.overview.nodes.len());
    let kms_high = if links.is_empty() {
        0
    } else {
        high(links.len())
    };
    let wide = frame.area().width >= WIDE;
    let tables_high = if wide {
        nodes_high.max(kms_high)
    } else {
        nodes_high + kms_high
    };
    let [head, channels, curve, tables, alarms] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(high(rows.len())),
        Constraint::Max(6),
        Constraint::Length(tables_high),
        Constraint::Min(3),
    ])
    .areas(frame.area());
    let [nodes, kms] = if links.is_empty() {
        [tables, Rect::ZERO]
    } else if wide {
        Layout::horizontal([Constraint::Fill(11), Constraint::Fill(9)]).areas(tables)
    } else {
        Layout::vertical([Constraint::Length(nodes_high), Constraint::Length(kms_high)])
            .areas(tables)
    };

    draw_head(frame, head, who);
    columns::draw_channels(frame, channels, &rows);
    draw_curve(frame, curve, &sample.curve);
    columns::draw_nodes(frame, nodes, &sample.nodes());
    columns::draw_kms(frame, kms, &links);
    draw_alarms(frame, alarms, sample, trouble);
}

/// A frame around a part of the picture.
pub(super) fn framed(title: &str) -> Block<'static> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(QUIET)
        .title(title.to_owned())
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, who: &str) {
    let [left, right] =
        Layout::horizontal([Constraint::Min(10), Constraint::Length(8)]).areas(area);
    let title = vec![" qloak top ".bold().reversed(), format!(" {who}").into()];
    frame.render_widget(Line::from(title), left);
    let quit = Line::from("q quits ").alignment(Alignment::Right);
    frame.render_widget(quit.style(QUIET), right);
}

fn draw_curve(frame: &mut Frame<'_>, area: Rect, curve: &[u64]) {
    let now = curve.last().copied().unwrap_or(0);
    let most = curve.iter().copied().max().unwrap_or(0);
    let title = format!(
        " client frames, both ways: {} (most {}) ",
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

fn draw_alarms(frame: &mut Frame<'_>, area: Rect, sample: &Sample, trouble: Option<&str>) {
    let mut lines = Vec::new();
    let mut line = |who: String, text: String| {
        lines.push(Line::from(vec![Span::styled(who, BAD), text.into()]));
    };
    if let Some(words) = trouble {
        line("this picture is old  ".into(), words.replace('\n', " "));
    }
    for text in picture::impaired(&sample.overview) {
        line("IMPAIRED  ".into(), text);
    }
    for text in picture::hazmat(&sample.overview) {
        line("HAZMAT  ".into(), text);
    }
    for (who, text) in picture::alarms(&sample.overview) {
        line(format!("{who}  "), text);
    }
    let block = if lines.is_empty() {
        framed(" no alarms ")
    } else {
        framed(" alarms ").border_style(BAD)
    };
    let text = Paragraph::new(lines).wrap(Wrap { trim: true });
    frame.render_widget(text.block(block), area);
}

#[cfg(test)]
mod tests;
