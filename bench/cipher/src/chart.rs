//! A picture: ours beside the best peer, a pair of bars for each suite, on a logarithmic axis of Gb/s.
//!
//! Plain SVG with its colours in classes, so that it follows the reader's light or dark screen.

use std::fmt::Write;

use crate::results::{Results, Row, Who};

const WIDTH: f64 = 960.0;
const PLOT_LEFT: f64 = 170.0;
const PLOT_WIDTH: f64 = 540.0;
const RATIO_RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 112.0;
const BAR: f64 = 13.0;
const GROUP: f64 = 36.0;
const FAMILY: f64 = 14.0;

const STYLE: &str = "\
    .back{fill:#ffffff}.ours{fill:#0f766e}.peer{fill:#b6bec9}.limit{fill:#d3ece8}\
    .grid{stroke:#e5e7eb;stroke-width:1}.title{fill:#111827;font-size:19px;font-weight:600}\
    .text{fill:#111827}.dim{fill:#6b7280}.ratio{fill:#0f766e;font-weight:600}\
    text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12.5px}\
    @media (prefers-color-scheme:dark){.back{fill:#0d1117}.ours{fill:#2dd4bf}.peer{fill:#4b5563}\
    .limit{fill:#123f3b}.grid{stroke:#21262d}.title,.text{fill:#e6edf3}.dim{fill:#8b949e}\
    .ratio{fill:#2dd4bf}}";

/// What stands above the bars.
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) below: String,
}

/// The picture of these rows of ours, one a suite.
pub(crate) fn svg(results: &Results, rows: &[&Row], words: &Words) -> String {
    let speeds = rows.iter().flat_map(|row| {
        let best = results.best_peer(row);
        let limit = row.limit.map(|limit| 8.0 * row.figure.clock_ghz / limit);
        [
            Some(row.figure.gbps()),
            best.map(|best| best.figure.gbps()),
            limit,
        ]
    });
    let axis = Axis::around(speeds.flatten());
    let tops = tops(rows);
    let height = tops.last().map_or(TOP, |top| top + GROUP) + 40.0;
    let mut out = Canvas(String::new());
    out.add(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">"
    ));
    out.add(format_args!(
        "<title>{}</title><style>{STYLE}</style>",
        escape(&words.title)
    ));
    out.add(format_args!(
        "<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>"
    ));
    out.text("title", 24.0, 36.0, "start", &words.title);
    out.text("dim", 24.0, 57.0, "start", &words.below);
    legend(&mut out);
    grid(&mut out, &axis, height);
    for (row, top) in rows.iter().zip(tops) {
        group(&mut out, results, row, &axis, top);
    }
    out.add(format_args!("</svg>"));
    out.0
}

/// Where each suite's bars begin: suites that differ in key length alone stand together.
fn tops(rows: &[&Row]) -> Vec<f64> {
    let family = |row: &Row| row.suite.replace(|c: char| c.is_ascii_digit(), "");
    let mut top = TOP;
    let mut tops = Vec::with_capacity(rows.len());
    for (position, row) in rows.iter().enumerate() {
        if position > 0 && family(rows[position - 1]) != family(row) {
            top += FAMILY;
        }
        tops.push(top);
        top += GROUP;
    }
    tops
}

fn legend(out: &mut Canvas) {
    let y = 70.0;
    out.rect("ours", PLOT_LEFT, y, 14.0, BAR);
    out.text("text", PLOT_LEFT + 20.0, y + 11.0, "start", "Qloak");
    out.rect("peer", PLOT_LEFT + 80.0, y, 14.0, BAR);
    out.text(
        "text",
        PLOT_LEFT + 100.0,
        y + 11.0,
        "start",
        "best peer of the same run",
    );
    out.rect("limit", PLOT_LEFT + 290.0, y, 14.0, BAR);
    let limit = "up to this core's limit";
    out.text("text", PLOT_LEFT + 310.0, y + 11.0, "start", limit);
    out.text("dim", RATIO_RIGHT, y + 11.0, "end", "times the best peer");
}

fn grid(out: &mut Canvas, axis: &Axis, height: f64) {
    let bottom = height - 34.0;
    for speed in axis.marks() {
        let x = axis.x(speed);
        out.line("grid", x, TOP - 12.0, bottom);
        out.text("dim", x, bottom + 16.0, "middle", &short(speed));
    }
    out.text(
        "dim",
        PLOT_LEFT + PLOT_WIDTH + 22.0,
        bottom + 16.0,
        "start",
        "Gb/s on one core",
    );
}

fn group(out: &mut Canvas, results: &Results, row: &Row, axis: &Axis, y: f64) {
    let bar = |out: &mut Canvas, class: &str, row: &Row, y: f64, who: &str| {
        let x = axis.x(row.figure.gbps());
        out.rect(class, PLOT_LEFT, y, x - PLOT_LEFT, BAR);
        let speed = short(row.figure.gbps());
        let cycles = row.figure.cycles_per_octet;
        let label = format!("{who}{speed}  ({} c/o)", significant(cycles));
        let class = if class == "ours" { "text" } else { "dim" };
        out.text(class, x.max(PLOT_LEFT) + 8.0, y + 10.5, "start", &label);
    };
    out.text("text", PLOT_LEFT - 12.0, y + BAR + 4.0, "end", row.suite);
    if let Some(limit) = row.limit {
        let x = axis.x(8.0 * row.figure.clock_ghz / limit);
        out.rect("limit", PLOT_LEFT, y, x - PLOT_LEFT, BAR);
    }
    bar(out, "ours", row, y, "");
    let Some(best) = results.best_peer(row) else {
        return;
    };
    let name = match &best.who {
        Who::Peer { name } => format!("{name}  "),
        Who::Ours { .. } => String::new(),
    };
    bar(out, "peer", best, y + BAR + 2.0, &name);
    if let Some(ratio) = results.ratio(row) {
        let class = if ratio >= 1.0 { "ratio" } else { "dim" };
        let ratio = format!("{}\u{d7}", short(ratio));
        out.text(class, RATIO_RIGHT, y + BAR + 4.0, "end", &ratio);
    }
}

/// From a power of ten to a power of ten.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn around(speeds: impl Iterator<Item = f64>) -> Self {
        let sound = speeds.filter(|speed| speed.is_finite() && *speed > 0.0);
        let (low, high) = sound.fold((f64::INFINITY, 0.0_f64), |(low, high), speed| {
            (low.min(speed), high.max(speed))
        });
        if low > high {
            return Self {
                low: 0.0,
                high: 1.0,
            };
        }
        let low = low.log10().floor();
        Self {
            low,
            high: high.log10().ceil().max(low + 1.0),
        }
    }

    fn x(&self, speed: f64) -> f64 {
        let part = (speed.max(1e-9).log10() - self.low) / (self.high - self.low);
        PLOT_LEFT + PLOT_WIDTH * part.clamp(0.0, 1.0)
    }

    /// Powers of ten, and 2 and 5 of each while there is room.
    fn marks(&self) -> Vec<f64> {
        let steps: &[f64] = if self.high - self.low <= 3.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let decades = self.low as i32..self.high as i32;
        let mut marks: Vec<f64> = decades
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
            .collect();
        marks.push(10_f64.powf(self.high));
        marks
    }
}

struct Canvas(String);

impl Canvas {
    fn add(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{what}");
    }

    fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let width = width.max(1.0);
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"2\"/>"
        ));
    }

    fn line(&mut self, class: &str, x: f64, from: f64, to: f64) {
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{from:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\"/>"
        ));
    }

    fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escape(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A speed in three digits at most.
pub(crate) fn short(gbps: f64) -> String {
    match gbps {
        10.0.. => format!("{gbps:.0}"),
        1.0.. => format!("{gbps:.1}").replace(".0", ""),
        _ => format!("{gbps:.2}").trim_end_matches('0').to_owned(),
    }
}

/// Three digits that count.
pub(crate) fn significant(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::made_up;

    const OURS: Who = Who::Ours {
        level: "soft",
        backend: "soft",
    };

    /// Every tag that opens closes in its order, and no text holds a bare `<` or `&`.
    fn is_well_formed(svg: &str) -> bool {
        let mut open: Vec<&str> = Vec::new();
        for (position, part) in svg.split('<').enumerate() {
            let Some((tag, text)) = part.split_once('>') else {
                if position == 0 && part.is_empty() {
                    continue;
                }
                return false;
            };
            let bare = text.split('&').skip(1).any(|rest| {
                !["amp;", "lt;", "gt;", "quot;"]
                    .iter()
                    .any(|known| rest.starts_with(known))
            });
            if bare || tag.matches('"').count() % 2 != 0 {
                return false;
            }
            let name = tag
                .trim_start_matches('/')
                .split([' ', '/'])
                .next()
                .unwrap_or("");
            if tag.starts_with('/') {
                if open.pop() != Some(name) {
                    return false;
                }
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        open.is_empty()
    }

    #[test]
    fn the_picture_is_well_formed_and_says_the_figures() {
        let results = Results {
            rows: vec![
                made_up(OURS, 0.25),
                made_up(Who::Peer { name: "ring" }, 0.5),
            ],
        };
        let words = Words {
            title: "a < b & c".into(),
            below: "\"quoted\"".into(),
        };
        let svg = svg(&results, &[&results.rows[0]], &words);
        assert!(is_well_formed(&svg), "{svg}");
        for said in [
            "aes-256-gcm",
            "128  (0.250 c/o)",
            "ring  64  (0.500 c/o)",
            "2\u{d7}",
        ] {
            assert!(svg.contains(said), "{said} is not in {svg}");
        }
        assert!(!is_well_formed("<a><b></a></b>"));
        assert!(!is_well_formed("<a>1 & 2</a>"));
    }

    #[test]
    fn no_figures_make_an_empty_picture() {
        let words = Words {
            title: String::new(),
            below: String::new(),
        };
        assert!(is_well_formed(&svg(&Results::default(), &[], &words)));
    }

    #[test]
    fn the_axis_goes_from_power_to_power() {
        let axis = Axis::around([0.5, 120.0].into_iter());
        assert_eq!((axis.low, axis.high), (-1.0, 3.0));
        assert!((axis.x(0.1) - PLOT_LEFT).abs() < 1e-9);
        assert!((axis.x(1000.0) - PLOT_LEFT - PLOT_WIDTH).abs() < 1e-9);
        assert_eq!(axis.marks().len(), 5);
    }

    #[test]
    fn figures_have_few_digits() {
        assert_eq!(
            (short(118.4), short(3.0), short(0.5)),
            ("118".into(), "3".into(), "0.5".into())
        );
        assert_eq!(significant(0.2414), "0.241");
        assert_eq!(significant(29.44), "29.4");
    }
}
