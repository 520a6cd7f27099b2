//! Whether the ciphers take the same steps whatever the secret. Never shipped.
//!
//! Two ways, because neither sees all:
//!
//! ```text
//!   taint        under valgrind: secrets count as never written, so that each branch and each address
//!                that depends on one is reported. Exact, for the instructions that valgrind knows.
//!   statistics   on the bare CPU: does sealing take longer for one class of secrets than for another?
//!                Any instruction, any level; a report and no proof.
//! ```
//!
//! Both look at every suite at every level through the door of the cipher crate, in batches, and both
//! look first at functions that leak on purpose ([`leaky`]): a check that does not see those says nothing.

mod leaky;
mod limits;
mod marks;
mod random;
mod report;
mod statistics;
mod subject;
mod taint;
mod welch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use qloak_cipher::{Level, Suite, suite::SUITES};

/// Whether the ciphers take the same steps whatever the secret.
#[derive(Parser)]
#[command(
    name = "cargo xtask constant-time",
    bin_name = "cargo xtask constant-time"
)]
struct Arguments {
    #[command(subcommand)]
    way: Way,
}

#[derive(Subcommand)]
enum Way {
    /// Follow secrets to every branch and address. Runs under valgrind, which xtask sees to.
    Taint(Choice),
    /// Time two classes of secrets and compare: Welch's t-test. A report.
    Statistics {
        #[command(flatten)]
        choice: Choice,
        /// Samples of each figure.
        #[arg(long, default_value_t = limits::SAMPLES, value_parser = clap::value_parser!(u32).range(limits::SAMPLES_MIN..))]
        samples: u32,
    },
}

/// What is looked at. Lists take commas.
#[derive(clap::Args)]
struct Choice {
    /// Only suites with one of these words in their names.
    #[arg(long, value_delimiter = ',', value_name = "WORD")]
    suite: Vec<String>,
    /// Only these levels.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    level: Vec<String>,
    /// One JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().way {
        Way::Taint(choice) => choice.all().and_then(|all| taint::run(&all, choice.json)),
        Way::Statistics { choice, samples } => choice
            .all()
            .and_then(|all| statistics::run(&all, samples as usize, choice.json)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            anstream::eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

impl Choice {
    /// Suites and levels that were asked for; the error is a sentence for the person who asked.
    fn all(&self) -> Result<Vec<(&'static Suite, Level)>, String> {
        let best = Level::detect("").map_err(|error| error.to_string())?;
        let levels: Vec<Level> = best
            .and_below()
            .filter(|level| self.level.is_empty() || self.level.iter().any(|w| w == level.name()))
            .collect();
        let named = |suite: &&Suite| {
            self.suite.is_empty() || self.suite.iter().any(|word| suite.name.contains(&word[..]))
        };
        let all: Vec<_> = SUITES
            .iter()
            .filter(named)
            .flat_map(|suite| levels.iter().map(move |level| (suite, *level)))
            .collect();
        if all.is_empty() {
            let here: Vec<&str> = best.and_below().map(Level::name).collect();
            return Err(format!(
                "no suite and level of that name: levels here are {}; suites are {} to {}",
                here.join(", "),
                SUITES[0].name,
                SUITES[SUITES.len() - 1].name
            ));
        }
        Ok(all)
    }
}
