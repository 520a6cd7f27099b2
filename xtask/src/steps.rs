//! A list of steps, run in order, with a line for each as it ends and a table at the close.
//!
//! The first failure ends the run, unless the caller wants to see them all.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anstream::println;
use comfy_table::{Cell, CellAlignment, Color, Table, presets::UTF8_BORDERS_ONLY};

use crate::{
    limits::STEP_TIME_MAX,
    proc, tree,
    ui::{self, BAD, Context, DIM, Done, Failure, GOOD, NOTE},
};

/// What became of a step.
enum Outcome {
    Good,
    Bad,
    Skipped(String),
}

/// What a step did; `Err` is its failure.
pub(crate) enum Did {
    /// All of it.
    Passed,
    /// Nothing, and why.
    Skipped(String),
}

/// Steps in progress.
pub(crate) struct Steps {
    keep_going: bool,
    rows: Vec<(String, Outcome, Duration)>,
    tests: Tests,
}

/// Tests counted in the output of cargo.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tests {
    passed: u64,
    failed: u64,
}

impl Steps {
    /// None yet. `keep_going`: a failure does not end the run.
    pub(crate) fn new(keep_going: bool) -> Self {
        proc::interrupt_flag();
        Self {
            keep_going,
            rows: Vec::new(),
            tests: Tests::default(),
        }
    }

    /// A step that is one program.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) -> Done {
        let log = tree::log(name).cannot("make the folder for logs")?;
        let done = self.step(name, || {
            command.current_dir(tree::root());
            proc::run(command, name, &log, STEP_TIME_MAX).map(|_| Did::Passed)
        });
        self.tests
            .count(&std::fs::read_to_string(&log).unwrap_or_default());
        done
    }

    /// A step of our own.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Done<Did>) -> Done {
        let begin = Instant::now();
        let done = work();
        let time = begin.elapsed();
        let clock = ui::seconds(time);
        match done {
            Ok(Did::Passed) => {
                println!("{GOOD}passed{GOOD:#}  {name} {DIM}{clock}{DIM:#}");
                self.rows.push((name.to_owned(), Outcome::Good, time));
                Ok(())
            }
            Ok(Did::Skipped(why)) => {
                println!("{NOTE}skipped{NOTE:#} {name}: {why}");
                self.rows
                    .push((name.to_owned(), Outcome::Skipped(why), time));
                Ok(())
            }
            Err(failure) => {
                println!("{BAD}failed{BAD:#}  {name} {DIM}{clock}{DIM:#}");
                self.rows.push((name.to_owned(), Outcome::Bad, time));
                if self.keep_going && !proc::interrupted() {
                    ui::line(&failure);
                    Ok(())
                } else {
                    Err(failure)
                }
            }
        }
    }

    /// The closing table; fails when a step failed.
    pub(crate) fn finish(self) -> Done {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(["step", "time", "outcome"]);
        for (name, outcome, time) in &self.rows {
            let (word, colour) = match outcome {
                Outcome::Good => ("passed".to_owned(), Color::Green),
                Outcome::Bad => ("FAILED".to_owned(), Color::Red),
                Outcome::Skipped(why) => (format!("skipped: {why}"), Color::Yellow),
            };
            table.add_row([
                Cell::new(name),
                Cell::new(ui::seconds(*time)).set_alignment(CellAlignment::Right),
                Cell::new(word).fg(colour),
            ]);
        }
        println!("{table}");
        let total = self.rows.iter().map(|(_, _, time)| *time).sum();
        let bad = self
            .rows
            .iter()
            .filter(|(_, outcome, _)| matches!(outcome, Outcome::Bad))
            .count();
        if bad == 0 {
            println!("{GOOD}all green{GOOD:#} in {}", ui::seconds(total));
            if self.tests != Tests::default() {
                println!("{} passed, {} failed", self.tests.passed, self.tests.failed);
            }
            Ok(())
        } else {
            Err(Failure::new(format!(
                "{bad} of {} steps; each one's output is in .lab/log",
                self.rows.len()
            )))
        }
    }
}

impl Tests {
    /// Adds what lines such as `test result: ok. 12 passed; 0 failed; ...` say.
    fn count(&mut self, output: &str) {
        for line in output.lines() {
            let Some((_, words)) = line.split_once("test result: ") else {
                continue;
            };
            let number = |word: &str| {
                let part = words.split([';', '.']).find(|part| part.ends_with(word));
                let digits = part.and_then(|part| part.split_whitespace().next());
                digits
                    .and_then(|digits| digits.parse::<u64>().ok())
                    .unwrap_or(0)
            };
            self.passed += number(" passed");
            self.failed += number(" failed");
        }
    }
}

/// Cargo, the one that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_over_all_binaries() {
        let output = "test result: ok. 12 passed; 0 failed; 1 ignored\nnoise\ntest result: FAILED. 3 passed; 2 failed; 0 ignored\n";
        let mut tests = Tests::default();
        tests.count(output);
        assert_eq!(
            tests,
            Tests {
                passed: 15,
                failed: 2
            }
        );
    }
}
