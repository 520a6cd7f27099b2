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
    let mut lines = vec![format!("As seen by {who}\n{}", output::shown(&table))];
    lines.extend(times(sample));
    let impaired = picture::impaired(&sample.overview);
    lines.extend(
        impaired
            .iter()
            .map(|text| output::loud(&format!("IMPAIRED  {text}"))),
    );
    lines.push(alarms);
    lines.join("\n") + "\n"
}

/// The times of the last interval, one line for each node that carried frames.
fn times(sample: &Sample) -> Vec<String> {
    let said = |times: &qloak_api::Latency| match times.frames {
        0 => "-".to_owned(),
        _ => words::three_times(times),
    };
    let nodes = sample.nodes().into_iter();
    let known = nodes.filter_map(|(node, times)| Some((&node.record.name, times?)));
    let lines = known.map(|(node, times)| {
        let (out, back) = (said(&times.outbound), said(&times.inbound));
        format!("{node}  time in the node (p50 p99 max): outbound {out}, inbound {back}")
    });
    lines.collect()
}
