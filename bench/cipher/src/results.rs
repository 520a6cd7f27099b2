//! All figures of a run, and what they say about one another.

use crate::{
    measure::Figure,
    plan::{Direction, Load},
};

/// Whose figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Ours at a level; the backend is what ran there.
    Ours {
        level: &'static str,
        backend: &'static str,
    },
    /// Somebody else's library.
    Peer { name: &'static str },
}

/// One figure and where it belongs.
pub(crate) struct Row {
    pub(crate) suite: &'static str,
    pub(crate) load: Load,
    pub(crate) batch: usize,
    pub(crate) direction: Direction,
    pub(crate) who: Who,
    pub(crate) figure: Figure,
    /// The nearest cache that holds all frames of a round.
    pub(crate) cache: String,
    /// The core's limit in cycles per octet.
    pub(crate) limit: Option<f64>,
}

impl Row {
    /// How near the limit: 1 is there.
    pub(crate) fn share_of_limit(&self) -> Option<f64> {
        self.limit.map(|limit| limit / self.figure.cycles_per_octet)
    }

    fn is_beside(&self, other: &Self) -> bool {
        (self.suite, self.batch, self.direction) == (other.suite, other.batch, other.direction)
            && self.load == other.load
    }
}

/// The rows of a run in the order of measuring.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
}

impl Results {
    /// The quickest peer on the same suite, load, batch and direction.
    pub(crate) fn best_peer(&self, row: &Row) -> Option<&Row> {
        let cycles = |row: &&Row| row.figure.cycles_per_octet;
        self.rows
            .iter()
            .filter(|other| matches!(other.who, Who::Peer { .. }) && row.is_beside(other))
            .min_by(|a, b| cycles(a).total_cmp(&cycles(b)))
    }

    /// How many times as fast as the best peer.
    pub(crate) fn ratio(&self, row: &Row) -> Option<f64> {
        let best = self.best_peer(row)?;
        Some(best.figure.cycles_per_octet / row.figure.cycles_per_octet)
    }

    /// The row of the same suite, load and party in another batch or direction.
    pub(crate) fn like(&self, row: &Row, batch: usize, direction: Direction) -> Option<&Row> {
        self.rows.iter().find(|other| {
            (other.suite, other.batch, other.direction) == (row.suite, batch, direction)
                && other.load == row.load
                && other.who == row.who
        })
    }

    /// Our rows of a load, batch and direction, suite by suite, highest level first.
    pub(crate) fn ours(
        &self,
        load: &Load,
        batch: usize,
        direction: Direction,
    ) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            matches!(row.who, Who::Ours { .. })
                && (row.batch, row.direction) == (batch, direction)
                && row.load == *load
        })
    }
}

/// Rows for the tests of those who show them.
#[cfg(test)]
pub(crate) fn made_up(who: Who, cycles_per_octet: f64) -> Row {
    Row {
        suite: "aes-256-gcm",
        load: Load::of(1420),
        batch: 64,
        direction: Direction::Seal,
        who,
        figure: Figure {
            cycles_per_octet,
            spread: 0.01,
            clock_ghz: 4.0,
            windows: 15,
        },
        cache: "L2".into(),
        limit: Some(0.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Who = Who::Ours {
        level: "soft",
        backend: "soft",
    };

    #[test]
    fn the_ratio_is_to_the_best_peer_of_the_same_cell() {
        let mut elsewhere = made_up(Who::Peer { name: "b" }, 0.01);
        elsewhere.batch = 1;
        let results = Results {
            rows: vec![
                made_up(OURS, 0.2),
                made_up(Who::Peer { name: "a" }, 0.6),
                made_up(Who::Peer { name: "b" }, 0.3),
                elsewhere,
            ],
        };
        let ours = &results.rows[0];
        assert_eq!(
            results.best_peer(ours).map(|row| &row.who),
            Some(&Who::Peer { name: "b" })
        );
        assert!((results.ratio(ours).expect("peers") - 1.5).abs() < 1e-9);
        assert!((ours.share_of_limit().expect("a limit") - 0.5).abs() < 1e-9);
        assert!((ours.figure.gbps() - 160.0).abs() < 1e-9);
    }

    #[test]
    fn without_peers_there_is_no_ratio() {
        let results = Results {
            rows: vec![made_up(OURS, 0.2)],
        };
        assert_eq!(results.ratio(&results.rows[0]), None);
        let load = Load::of(1420);
        assert_eq!(results.ours(&load, 64, Direction::Seal).count(), 1);
        assert_eq!(results.ours(&load, 64, Direction::Open).count(), 0);
    }
}
