//! The closing table: a row for each phase, and the verdict.

use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Color, Table, presets::UTF8_BORDERS_ONLY};

use crate::{
    lab::{count::Count, ping::RoundTrips},
    ui::{self, BAD, GOOD},
};

/// What came of a phase.
pub(crate) struct Row {
    /// Its title.
    pub(crate) title: String,
    /// Its counts.
    pub(crate) count: Count,
    /// How long traffic flowed.
    pub(crate) time: Duration,
    /// Round trips, where there was a ping.
    pub(crate) round_trips: RoundTrips,
    /// From the command to the last frame under the old suite, where there was a change: the slowest
    /// channel and way.
    pub(crate) change_ms: Option<f64>,
    /// What was not as it must be, in words.
    pub(crate) faults: Vec<String>,
    /// What else is worth a line under the table.
    pub(crate) notes: Vec<String>,
}

/// Prints the table with what is to be said about it; whether all is well.
pub(crate) fn show(rows: &[Row]) -> bool {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "\nphase",
        "frames\nin",
        "\nout",
        "\nlost",
        "\nrefused",
        "\nGb/s",
        "ping, ms\np50",
        "\np99",
        "\nrekeys",
        "old suite\nended, ms",
        "\nverdict",
    ]);
    for row in rows {
        let good = row.faults.is_empty();
        let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
        let number = |value: u64| Cell::new(value).set_alignment(CellAlignment::Right);
        let text = |value: String| Cell::new(value).set_alignment(CellAlignment::Right);
        let lost = number(row.count.lost);
        table.add_row([
            Cell::new(&row.title),
            number(row.count.taken),
            number(row.count.delivered),
            if row.count.lost == 0 {
                lost.fg(Color::Green)
            } else {
                lost.fg(Color::Red)
            },
            number(row.count.refused),
            text(format!("{:.3}", row.count.gbps(row.time))),
            text(ms(row.round_trips.quantile_ms(0.5))),
            text(ms(row.round_trips.quantile_ms(0.99))),
            number(row.count.rekeys),
            text(ms(row.change_ms)),
            if good {
                Cell::new("good").fg(Color::Green)
            } else {
                Cell::new("FAILED").fg(Color::Red)
            },
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    anstream::println!("{table}");
    ui::line(
        "refused: frames that met a closed channel, as they must. old suite ended: from the command to the\n\
         last frame under the old suite, the slowest channel and way. Gb/s: client frames, both ways.",
    );
    for row in rows {
        for note in &row.notes {
            ui::line(format!("{}: {note}", row.title));
        }
    }
    for row in rows {
        for fault in &row.faults {
            anstream::println!("{BAD}failed{BAD:#} {}: {fault}", row.title);
        }
    }
    let open = rows.iter().filter(|row| row.count.refused == 0);
    let again: u64 = open.map(|row| row.count.tcp_again).sum();
    if again > 0 {
        ui::line(format!(
            "TCP sent {again} segments again because an answer was late"
        ));
    }
    let sum = |of: fn(&Count) -> u64| rows.iter().map(|row| of(&row.count)).sum::<u64>();
    let (taken, delivered, lost) = (sum(|c| c.taken), sum(|c| c.delivered), sum(|c| c.lost));
    let good = rows.iter().all(|row| row.faults.is_empty());
    let style = if good { GOOD } else { BAD };
    anstream::println!("{style}{taken} client frames in, {delivered} out, {lost} lost{style:#}");
    good
}
