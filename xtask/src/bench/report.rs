//! How benchmarks of the whole product print: one shape of table, or one JSON document.

use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;

use crate::ui::{self, Context, Done};

/// A table whose first column holds words and whose others hold numbers.
pub(super) struct Rows(Table);

impl Rows {
    /// With these heads.
    pub(super) fn new(heads: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(heads);
        Self(table)
    }

    /// A row more.
    pub(super) fn row(&mut self, name: &str, numbers: impl IntoIterator<Item = String>) {
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let cells = std::iter::once(Cell::new(name)).chain(numbers.into_iter().map(right));
        self.0.add_row(cells);
    }

    /// Prints it.
    pub(super) fn show(&self) {
        anstream::println!("{}", self.0);
    }
}

/// A number with so many digits behind the point, or a dash.
pub(super) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Prints the results as one JSON document.
pub(super) fn json(results: &impl Serialize) -> Done {
    let text = serde_json::to_string_pretty(results).cannot("write the results")?;
    ui::output(text);
    Ok(())
}
