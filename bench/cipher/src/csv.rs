//! Every figure as one line of a table that a program can read.

use crate::plan::Direction;
use crate::results::{Results, Row, Who};

const HEAD: &str = "suite,direction,load,batch_frames,who,level,backend,cycles_per_octet,gbps,\
    clock_ghz,cycles_from,spread_ratio,windows,frames_in,limit_cycles_per_octet,share_of_limit_ratio,\
    best_peer,best_peer_ratio";

/// The whole file: the figures of one direction.
pub(crate) fn text(results: &Results, direction: Direction, cycles_from: &str) -> String {
    let mut text = format!("{HEAD}\n");
    for row in results.rows.iter().filter(|row| row.direction == direction) {
        text += &line(results, row, cycles_from);
        text.push('\n');
    }
    text
}

fn line(results: &Results, row: &Row, cycles_from: &str) -> String {
    let (who, level, backend) = match &row.who {
        Who::Ours { level, backend } => ("qloak", *level, *backend),
        Who::Peer { name } => (*name, "", ""),
    };
    let best = match row.who {
        Who::Ours { .. } => results.best_peer(row),
        Who::Peer { .. } => None,
    };
    let best_name = match best.map(|best| &best.who) {
        Some(Who::Peer { name }) => *name,
        _ => "",
    };
    let figure = &row.figure;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    [
        row.suite.to_owned(),
        row.direction.name().to_owned(),
        row.load.name.clone(),
        row.batch.to_string(),
        who.to_owned(),
        level.to_owned(),
        backend.to_owned(),
        format!("{:.4}", figure.cycles_per_octet),
        format!("{:.3}", figure.gbps()),
        format!("{:.3}", figure.clock_ghz),
        cycles_from.to_owned(),
        format!("{:.4}", figure.spread),
        figure.windows.to_string(),
        row.cache.clone(),
        number(row.limit),
        number(row.share_of_limit()),
        best_name.to_owned(),
        number(best.and_then(|_| results.ratio(row))),
    ]
    .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::made_up;

    #[test]
    fn each_figure_is_a_line_with_every_column() {
        let ours = Who::Ours {
            level: "soft",
            backend: "soft",
        };
        let results = Results {
            rows: vec![
                made_up(ours, 0.25),
                made_up(Who::Peer { name: "ring" }, 0.5),
            ],
        };
        let text = text(&results, Direction::Seal, "counter");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        assert_eq!(
            lines[1].join(","),
            "aes-256-gcm,seal,1420,64,qloak,soft,soft,0.2500,128.000,4.000,counter,0.0100,15,L2,\
             0.1000,0.4000,ring,2.0000"
        );
        assert!(lines[2].join(",").ends_with(",0.1000,0.2000,,"));
        let open = super::text(&results, Direction::Open, "counter");
        assert_eq!(open.lines().count(), 1, "nothing was opened");
    }
}
