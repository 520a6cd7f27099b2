//! Tables and JSON on standard output.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::error::Error;

/// Prints a document as JSON, indented.
pub(crate) fn json(document: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(document).map_err(|error| Error::System {
        what: "write JSON",
        error: error.into(),
    })?;
    text_line(&text)
}

/// Prints text. A reader that has gone away (`| head`) is no error.
pub(crate) fn text_line(text: &str) -> Result<(), Error> {
    let mut out = anstream::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::System {
            what: "write to standard output",
            error,
        }),
        Ok(()) => Ok(()),
    }
}

/// A headline.
pub(crate) fn title(text: &str) -> String {
    let bold = anstyle::Style::new().bold();
    format!("{bold}{text}{bold:#}")
}

/// A text that must be seen.
pub(crate) fn loud(text: &str) -> String {
    let red = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    format!("{red}{text}{red:#}")
}

/// A table with a head; as wide as the terminal, or as it needs where there is none.
pub(crate) fn table<'a>(head: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = pairs();
    table.set_header(
        head.into_iter()
            .map(|text| Cell::new(text).fg(Color::DarkGrey)),
    );
    table
}

/// The same without a head.
pub(crate) fn pairs() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if std::env::var_os("NO_COLOR").is_some() {
            table.force_no_tty();
        }
    }
    table
}

/// The table as text, without blanks at the ends of its lines.
pub(crate) fn shown(table: &Table) -> String {
    table.trim_fmt()
}

/// A cell for what is as it should be or not.
pub(crate) fn state(well: bool, text: impl ToString) -> Cell {
    let cell = Cell::new(text);
    if well {
        cell.fg(Color::Green)
    } else {
        cell.fg(Color::Red).add_attribute(Attribute::Bold)
    }
}

/// A cell for a name.
pub(crate) fn name(text: impl ToString) -> Cell {
    Cell::new(text).add_attribute(Attribute::Bold)
}

/// A cell with a number, at the right.
pub(crate) fn number(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(comfy_table::CellAlignment::Right)
}

/// A cell for a number that should be zero.
pub(crate) fn should_be_zero(count: u64) -> Cell {
    let cell = number(crate::words::count(count));
    if count == 0 {
        cell
    } else {
        cell.fg(Color::Yellow)
    }
}
