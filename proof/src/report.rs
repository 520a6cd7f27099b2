//! What people and programs read: a table, or one JSON document.

use std::io::{IsTerminal, Write};

use anstream::{print, println};
use comfy_table::{CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;

use crate::limits::{T_DIFFERS_MIN, T_EVEN_MAX};

/// What came of following the secrets of one suite at one level: reports of each part.
#[derive(Serialize)]
pub(crate) struct Taint {
    pub(crate) suite: &'static str,
    pub(crate) level: &'static str,
    pub(crate) backend: &'static str,
    pub(crate) key: usize,
    pub(crate) seal: usize,
    pub(crate) open: usize,
    /// The mark did not reach the result.
    pub(crate) lost: bool,
}

impl Taint {
    /// Whether anything was reported.
    pub(crate) fn leaks(&self) -> bool {
        self.key + self.seal + self.open > 0
    }

    fn verdict(&self) -> &'static str {
        match (self.leaks(), self.lost) {
            (true, _) => "depends on a secret",
            (false, true) => "nothing was seen: the mark was lost",
            (false, false) => "even",
        }
    }
}

/// What the clock says of one suite at one level: the largest |t| for each secret.
#[derive(Serialize)]
pub(crate) struct Times {
    pub(crate) suite: &'static str,
    pub(crate) level: &'static str,
    pub(crate) samples: usize,
    pub(crate) t_key: f64,
    pub(crate) t_data: f64,
    pub(crate) t_tag: Option<f64>,
}

impl Times {
    fn t_max(&self) -> f64 {
        self.t_key.max(self.t_data).max(self.t_tag.unwrap_or(0.0))
    }

    fn verdict(&self) -> &'static str {
        match self.t_max() {
            t if t < T_EVEN_MAX => "even",
            t if t < T_DIFFERS_MIN => "unclear: measure longer",
            _ => "differs",
        }
    }
}

/// The secrets followed.
pub(crate) fn taint(found: &[Taint], json: bool) {
    if json {
        return document(&serde_json::json!({ "controls": "seen", "taint": found }));
    }
    let mut table = table(&[
        "suite", "level", "backend", "key", "seal", "open", "verdict",
    ]);
    for one in found {
        table.add_row([
            one.suite.to_owned(),
            one.level.to_owned(),
            one.backend.to_owned(),
            one.key.to_string(),
            one.seal.to_string(),
            one.open.to_string(),
            one.verdict().to_owned(),
        ]);
    }
    right(&mut table, 3..6);
    println!("{table}");
    println!("reports of memcheck; the functions that leak on purpose were seen");
}

/// The times compared.
pub(crate) fn times(controls: &[(&str, f64)], found: &[Times], json: bool) {
    if json {
        let controls: Vec<_> = controls
            .iter()
            .map(|(name, t)| serde_json::json!({ "name": name, "t": t }))
            .collect();
        return document(&serde_json::json!({ "controls": controls, "statistics": found }));
    }
    let mut table = table(&[
        "suite", "level", "samples", "key |t|", "data |t|", "tag |t|", "verdict",
    ]);
    for one in found {
        let t = |t: f64| format!("{t:.1}");
        table.add_row([
            one.suite.to_owned(),
            one.level.to_owned(),
            one.samples.to_string(),
            t(one.t_key),
            t(one.t_data),
            one.t_tag.map_or_else(|| "-".to_owned(), t),
            one.verdict().to_owned(),
        ]);
    }
    right(&mut table, 2..6);
    println!("{table}");
    for (name, t) in controls {
        println!("for comparison, a function that {name}: |t| = {t:.1}");
    }
    println!("even below {T_EVEN_MAX}, differs from {T_DIFFERS_MIN} on; a report, and no proof");
}

/// How far it is, where somebody watches.
pub(crate) fn progress(done: usize, of: usize) {
    if std::io::stdout().is_terminal() {
        print!("\r{done} of {of} ");
        // A terminal that has gone is no reason to stop measuring.
        let _ = std::io::stdout().flush();
        if done == of {
            print!("\r");
        }
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(header);
    table
}

fn right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn document(value: &serde_json::Value) {
    println!("{value:#}");
}
