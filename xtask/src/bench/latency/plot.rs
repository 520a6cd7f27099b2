//! The picture: a row for each suite on a logarithmic axis of microseconds. A thin line from the least to
//! the most, a bar from the first to the 99th percentile, a mark at the median.
//!
//! Plain SVG with its colours in classes, so that it follows the reader's light or dark screen.

use std::fmt::Write;

use super::Row;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 180.0;
const RIGHT: f64 = WIDTH - 90.0;
const TOP: f64 = 76.0;
const ROW: f64 = 26.0;

const STYLE: &str = ".back{fill:#fff}.bar{fill:#99d5cd}.all{stroke:#b6bec9}.middle{fill:#0f766e}\
    .grid{stroke:#e5e7eb}.text{fill:#111827}.dim{fill:#6b7280}.title{fill:#111827;font-size:18px}\
    text{font-family:system-ui,sans-serif;font-size:12.5px}\
    @media (prefers-color-scheme:dark){.back{fill:#0d1117}.bar{fill:#115e56}.all{stroke:#4b5563}\
    .middle{fill:#2dd4bf}.grid{stroke:#21262d}.text,.title{fill:#e6edf3}.dim{fill:#8b949e}}";

/// The picture of these rows.
pub(super) fn svg(rows: &[Row]) -> String {
    let height = TOP + rows.len() as f64 * ROW + 44.0;
    let axis = Axis::around(
        rows.iter()
            .flat_map(|row| [row.least_us, row.most_us])
            .flatten(),
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\
         <title>Round trips by suite</title><style>{STYLE}</style>\
         <rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>"
    );
    let pings = rows.iter().map(|row| row.pings).max().unwrap_or(0);
    text(
        &mut out,
        "title",
        24.0,
        32.0,
        "start",
        "Round trips through two nodes, by suite",
    );
    let below =
        format!("{pings} pings each: bar from p1 to p99, mark at p50, line from least to most");
    text(&mut out, "dim", 24.0, 52.0, "start", &below);
    let bottom = height - 34.0;
    for mark in axis.marks() {
        let x = axis.x(mark);
        line(&mut out, "grid", x, TOP - 8.0, x, bottom);
        text(
            &mut out,
            "dim",
            x,
            bottom + 18.0,
            "middle",
            &format!("{mark}"),
        );
    }
    text(&mut out, "dim", RIGHT + 24.0, bottom + 18.0, "start", "us");
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + (index as f64 + 0.5) * ROW;
        text(&mut out, "text", LEFT - 14.0, y + 4.0, "end", &row.suite);
        draw(&mut out, &axis, row, y);
    }
    out.push_str("</svg>");
    out
}

fn draw(out: &mut String, axis: &Axis, row: &Row, y: f64) {
    let (Some(least), Some(most)) = (row.least_us, row.most_us) else {
        return;
    };
    line(out, "all", axis.x(least), y, axis.x(most), y);
    if let (Some(p1), Some(p50), Some(p99)) = (row.p1_us, row.p50_us, row.p99_us) {
        let (from, to) = (axis.x(p1), axis.x(p99));
        rect(out, "bar", from, y - 7.0, (to - from).max(1.0), 14.0);
        rect(out, "middle", axis.x(p50) - 1.5, y - 9.0, 3.0, 18.0);
        text(
            out,
            "dim",
            RIGHT + 24.0,
            y + 4.0,
            "start",
            &format!("{p50:.0} us"),
        );
    }
}

/// Microseconds on a logarithmic scale, from a power of ten to a power of ten.
struct Axis {
    from: i32,
    to: i32,
}

impl Axis {
    fn around(times_us: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for time in times_us.filter(|time| *time > 0.0) {
            (least, most) = (least.min(time), most.max(time));
        }
        if least > most {
            return Self { from: 0, to: 1 };
        }
        let from = least.log10().floor() as i32;
        let to = (most.log10().ceil() as i32).max(from + 1);
        Self { from, to }
    }

    fn x(&self, time_us: f64) -> f64 {
        let share =
            (time_us.max(1e-3).log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// One, two and five of each power of ten.
    fn marks(&self) -> impl Iterator<Item = f64> {
        let powers = self.from..=self.to;
        let most = 10f64.powi(self.to);
        powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)))
            .filter(move |mark| *mark <= most)
    }
}

// Writing to a String cannot fail, so these ignore what `write!` returns.

fn text(out: &mut String, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = write!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

fn line(out: &mut String, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
    let _ = write!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn rect(out: &mut String, class: &str, x: f64, y: f64, width: f64, height: f64) {
    let _ = write!(
        out,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
    );
}
