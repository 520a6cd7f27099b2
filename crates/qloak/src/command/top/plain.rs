//! The picture as text, for a file, a pipe or `--once`.

use comfy_table::{Cell, Color};

use super::sample::Sample;
use crate::{
    command::picture,
    output::{self, name, number, should_be_zero, state},
    words,
};

pub(super) fn picture(who: &str, sample: &Sample) -> String {
    let mut table = output::table([
        "link",
        "channel",
        "suite",
        "",
        "A to B",
        "B to A",
        "frames/s",
        "frames",
        "discarded",
        "rekeys",
        "key age",
    ]);
    for row in sample.rows() {
        let frames = row.a_to_b.outbound_fps + row.b_to_a.outbound_fps;
        table.add_row([
            name(&row.link),
            Cell::new(format!("{} {}", row.channel, row.name)),
            Cell::new(&row.suite).fg(if row.suite_is_well() {
                Color::Cyan
            } else {
                Color::Yellow
            }),
            state(row.open, &row.status),
            number(words::bit_rate(row.a_to_b.outbound_bps)),
            number(words::bit_rate(row.b_to_a.outbound_bps)),
            number(words::count(frames as u64)),
            number(words::count(row.frames)),
            should_be_zero(row.discarded),
            number(row.rekeys),
            number(row.key_age_s.map_or("-".into(), words::seconds)),
        ]);
    }
    let alarms: Vec<_> = picture::alarms(&sample.overview)
        .into_iter()
        .map(|(who, text)| format!("{}  {text}", output::loud(&who)))
        .collect();
    let alarms = if alarms.is_empty() {
        "No alarms.".to_owned()
    } else {
        alarms.join("\n")
    };
    let table = output::shown(&table);
    format!("As seen by {who}\n{table}\n{alarms}\n")
}
