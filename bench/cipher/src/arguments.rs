//! What a person asks for, and its translation into a [`Plan`].

use clap::Parser;
use qloak_cipher::{Level, Suite, limits::DATA_OCTETS_MAX, suite::SUITES};

use crate::{
    limits::BATCH_FRAMES_MAX,
    plan::{Direction, Load, Plan},
};

/// Cycles per octet and Gb/s per core for every cipher suite, beside every other library of the same
/// run. Lists take commas.
#[derive(Parser, Default)]
#[command(
    name = "cargo xtask bench cipher",
    bin_name = "cargo xtask bench cipher"
)]
pub(crate) struct Arguments {
    /// Few samples of each figure: a look, not a record.
    #[arg(long)]
    pub(crate) quick: bool,
    /// One JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the figures under bench/record instead of target/bench.
    #[arg(long)]
    pub(crate) record: bool,
    /// Only suites with one of these words in their names, such as `aes-256-gcm,serpent`.
    #[arg(long, value_delimiter = ',', value_name = "WORD")]
    suite: Vec<String>,
    /// Only these levels of ours.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    level: Vec<String>,
    /// Only these lengths; `imix` is the mix. Usual: 64,512,1420,9000,65536,imix.
    #[arg(long, value_delimiter = ',', value_name = "OCTETS")]
    octets: Vec<String>,
    /// Only these batches, in frames. Usual: 1,8,64.
    #[arg(long, value_delimiter = ',', value_name = "FRAMES")]
    batch: Vec<usize>,
    /// Only peers with one of these words in their names, such as `openssl,ring`.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "WORD",
        conflicts_with = "no_peers"
    )]
    peer: Vec<String>,
    /// Ours alone.
    #[arg(long)]
    pub(crate) no_peers: bool,
    /// Only sealing.
    #[arg(long)]
    seal: bool,
    /// Only opening.
    #[arg(long)]
    open: bool,
}

impl Arguments {
    /// The plan; the error is a sentence for the person who asked.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        Ok(Plan {
            suites: self.suites()?,
            loads: self.loads()?,
            batches: self.batches()?,
            directions: match (self.seal, self.open) {
                (true, false) => vec![Direction::Seal],
                (false, true) => vec![Direction::Open],
                _ => vec![Direction::Seal, Direction::Open],
            },
        })
    }

    /// Those of the levels at hand that were asked for, highest first.
    pub(crate) fn levels(&self, best: Level) -> Result<Vec<Level>, String> {
        let here: Vec<Level> = best.and_below().collect();
        if let Some(unknown) = self
            .level
            .iter()
            .find(|word| here.iter().all(|level| level.name() != word.as_str()))
        {
            let names: Vec<&str> = here.iter().map(|level| level.name()).collect();
            return Err(format!(
                "--level {unknown}: this machine has {}",
                names.join(", ")
            ));
        }
        let wanted =
            |level: &Level| self.level.is_empty() || self.level.iter().any(|w| w == level.name());
        Ok(here.into_iter().filter(wanted).collect())
    }

    /// Whether a peer was asked for.
    pub(crate) fn wants_peer(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        !self.no_peers
            && (self.peer.is_empty()
                || self
                    .peer
                    .iter()
                    .any(|word| name.contains(&word.to_lowercase())))
    }

    fn suites(&self) -> Result<Vec<&'static Suite>, String> {
        if let Some(unknown) = self.suite.iter().find(|word| {
            SUITES
                .iter()
                .all(|suite| !suite.name.contains(word.as_str()))
        }) {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            return Err(format!(
                "--suite {unknown}: no suite has that in its name; there are {}",
                names.join(", ")
            ));
        }
        let wanted = |suite: &&Suite| {
            self.suite.is_empty()
                || self
                    .suite
                    .iter()
                    .any(|word| suite.name.contains(word.as_str()))
        };
        Ok(SUITES.iter().filter(wanted).collect())
    }

    fn loads(&self) -> Result<Vec<Load>, String> {
        if self.octets.is_empty() {
            return Ok(Load::usual());
        }
        let load = |word: &String| match word.parse::<usize>() {
            _ if word.eq_ignore_ascii_case("imix") => Ok(Load::imix()),
            Ok(octets @ 1..=DATA_OCTETS_MAX) => Ok(Load::of(octets)),
            _ => Err(format!(
                "--octets {word}: give a length from 1 to {DATA_OCTETS_MAX}, or imix"
            )),
        };
        self.octets.iter().map(load).collect()
    }

    fn batches(&self) -> Result<Vec<usize>, String> {
        if self.batch.is_empty() {
            return Ok(vec![1, 8, 64]);
        }
        match self
            .batch
            .iter()
            .find(|frames| !(1..=BATCH_FRAMES_MAX).contains(*frames))
        {
            Some(frames) => Err(format!(
                "--batch {frames}: give a number of frames from 1 to {BATCH_FRAMES_MAX}"
            )),
            None => Ok(self.batch.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Arguments {
        Arguments::try_parse_from(["cipher"].into_iter().chain(words.split_whitespace()))
            .expect("sound arguments")
    }

    #[test]
    fn without_filters_everything_is_measured() {
        let plan = parse("").plan().expect("a plan");
        assert_eq!(plan.suites.len(), SUITES.len());
        assert_eq!(plan.batches, [1, 8, 64]);
        assert_eq!(plan.directions, [Direction::Seal, Direction::Open]);
        assert_eq!(plan.figures_per_party(), 6 * 3 * 2);
    }

    #[test]
    fn filters_choose() {
        let plan = parse("--suite aes-256-gcm,serpent-256 --octets 1420,IMIX --batch 64 --open")
            .plan()
            .expect("a plan");
        let names: Vec<&str> = plan.suites.iter().map(|suite| suite.name).collect();
        assert_eq!(
            names,
            [
                "aes-256-gcm",
                "serpent-256-gcm",
                "serpent-256-ocb",
                "serpent-256-ctr"
            ]
        );
        assert_eq!(plan.loads, [Load::of(1420), Load::imix()]);
        assert_eq!(plan.batch_shown(), 64);
        assert_eq!(plan.directions, [Direction::Open]);
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        let refused = |words| parse(words).plan().err().expect("refused");
        assert!(refused("--suite des").contains("aes-128-gcm"));
        assert!(refused("--octets 0").contains("--octets 0"));
        assert!(refused("--octets many").contains("imix"));
        assert!(refused("--batch 0").contains("from 1"));
        let error = parse("--level mmx").levels(Level::Soft).expect_err("none");
        assert!(error.contains("soft"), "{error}");
    }

    #[test]
    fn peers_are_chosen_by_a_word_of_their_name() {
        assert!(parse("").wants_peer("OpenSSL"));
        assert!(parse("--peer openssl").wants_peer("OpenSSL"));
        assert!(!parse("--peer ring,botan").wants_peer("OpenSSL"));
        assert!(!parse("--no-peers").wants_peer("OpenSSL"));
    }

    #[test]
    fn levels_are_chosen_by_name() {
        let soft = parse("--level soft")
            .levels(Level::Soft)
            .expect("there is one");
        assert_eq!(soft, [Level::Soft]);
    }
}
