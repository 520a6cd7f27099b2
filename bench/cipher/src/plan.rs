//! What is measured: suites, loads, batches, directions.

use qloak_cipher::Suite;
use serde::Serialize;

/// Which way through a cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// Plaintext in, ciphertext and tag out.
    Seal,
    /// The way back.
    Open,
}

impl Direction {
    /// The word in tables and files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Seal => "seal",
            Self::Open => "open",
        }
    }
}

/// Frames by the octets of their data: a pattern that repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Load {
    /// Its name in filters and files: `1420`, `imix`.
    pub(crate) name: String,
    /// Lengths in their order.
    pub(crate) pattern: Vec<usize>,
}

/// A mix of the internet's lengths: in each twelve frames seven of 64 octets, four of 570, one of
/// 1420, spread so that each batch meets all of them.
const IMIX: [usize; 12] = [64, 570, 64, 64, 570, 64, 1420, 64, 570, 64, 570, 64];

impl Load {
    /// Frames of one length.
    pub(crate) fn of(octets: usize) -> Self {
        Self {
            name: octets.to_string(),
            pattern: vec![octets],
        }
    }

    /// The mix.
    pub(crate) fn imix() -> Self {
        Self {
            name: "imix".into(),
            pattern: IMIX.into(),
        }
    }

    /// What is measured when nothing else was asked for.
    pub(crate) fn usual() -> Vec<Self> {
        let lengths = [64, 512, 1420, 9000, 65_536].map(Self::of);
        lengths.into_iter().chain([Self::imix()]).collect()
    }

    /// The name for people.
    pub(crate) fn title(&self) -> String {
        match self.pattern.as_slice() {
            [octets] if octets % 1024 == 0 => format!("{} KiB", octets / 1024),
            [octets] => format!("{octets} octets"),
            _ => "IMIX (7 of 64 octets, 4 of 570, 1 of 1420)".into(),
        }
    }
}

/// Everything that was asked for.
pub(crate) struct Plan {
    pub(crate) suites: Vec<&'static Suite>,
    pub(crate) loads: Vec<Load>,
    pub(crate) batches: Vec<usize>,
    pub(crate) directions: Vec<Direction>,
}

impl Plan {
    /// Figures that each party of a suite gets.
    pub(crate) fn figures_per_party(&self) -> usize {
        self.loads.len() * self.batches.len() * self.directions.len()
    }

    /// The batch that tables and charts show: the largest.
    pub(crate) fn batch_shown(&self) -> usize {
        self.batches.iter().copied().max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_seven_four_one() {
        let count = |octets| IMIX.iter().filter(|&&one| one == octets).count();
        assert_eq!((count(64), count(570), count(1420)), (7, 4, 1));
        assert_eq!(IMIX.iter().sum::<usize>(), 7 * 64 + 4 * 570 + 1420);
    }

    #[test]
    fn loads_have_names_for_people() {
        let titles: Vec<String> = Load::usual().iter().map(Load::title).collect();
        assert_eq!(titles[2], "1420 octets");
        assert_eq!(titles[4], "64 KiB");
        assert!(titles[5].starts_with("IMIX"));
    }
}
