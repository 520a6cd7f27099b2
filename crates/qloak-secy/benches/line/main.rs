//! The line benchmark: protect and validate in memory, on one core, every suite.
//!
//! A batch of client frames is protected in place and validated in place, again and again, with all
//! that the data path does: SecTAG, PN, nonce, seal, SA lookup, replay window, open. Nothing is copied
//! and no port is involved. In the same run, batch for batch, a plain library seals the same octets
//! with none of that, so that a loaded machine slows both.
//!
//! ```text
//! cargo bench -p qloak-secy --bench line -- [--quick] [--json] [--aggregated] [--suite NAME]
//! ```
//!
//! `--aggregated` adds mux and demux: client frames of ten ports in line frames of 9000 octets.
//! `cargo test` runs this program without `--bench`, and then it ends at once.

mod measure;
mod peers;
mod report;

use std::time::Duration;

use qloak_cipher::{Level, Suite, suite::SUITES};

/// What was asked for.
struct Arguments {
    quick: bool,
    json: bool,
    aggregated: bool,
    suite: Option<&'static Suite>,
}

fn arguments() -> Result<Option<Arguments>, String> {
    let mut asked = Arguments {
        quick: false,
        json: false,
        aggregated: false,
        suite: None,
    };
    let mut as_benchmark = false;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => as_benchmark = true,
            "--quick" => asked.quick = true,
            "--json" => asked.json = true,
            "--aggregated" => asked.aggregated = true,
            "--suite" => {
                let name = words.next().unwrap_or_default();
                let suite = Suite::by_name(&name);
                asked.suite = Some(suite.ok_or(format!("there is no suite {name:?}"))?);
            }
            // `cargo test` hands on what it was given for test programs.
            _ if !as_benchmark && !std::env::args().any(|word| word == "--bench") => {}
            other => {
                let allowed = "--quick, --json, --aggregated, --suite NAME";
                return Err(format!("{other:?} is no option: {allowed} are allowed"));
            }
        }
    }
    Ok(as_benchmark.then_some(asked))
}

fn main() {
    let asked = match arguments() {
        Ok(Some(asked)) => asked,
        Ok(None) => return,
        Err(what) => {
            eprintln!("line: {what}");
            std::process::exit(2);
        }
    };
    let disabled = std::env::var("QLOAK_CPU_DISABLE").unwrap_or_default();
    let level = Level::detect(&disabled).unwrap_or_else(|error| {
        eprintln!("line: QLOAK_CPU_DISABLE: {error}");
        std::process::exit(2);
    });
    // Five samples of each cell; the middle one counts.
    let sample = Duration::from_micros(if asked.quick { 600 } else { 40_000 });

    let report = report::Report::new(level, asked.aggregated, asked.quick);
    let mut rows = Vec::new();
    if !asked.json {
        report.print_head();
    }
    for suite in SUITES
        .iter()
        .filter(|&s| asked.suite.is_none_or(|only| only == s))
    {
        let cells = measure::LOADS
            .iter()
            .map(|load| measure::cell(suite, level, load, asked.aggregated, sample))
            .collect();
        let row = report::Row { suite, cells };
        if !asked.json {
            row.print();
        }
        rows.push(row);
    }
    if asked.json {
        report.print_json(&rows);
    } else {
        report.print_foot();
    }
}
