//! What people see: spinners on a terminal, plain lines elsewhere, one shape for tables and failures.

use std::{
    fmt,
    io::{self, IsTerminal},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anstream::{eprintln, println};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};

/// Good news.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Bad news.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Something to know.
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
/// Less important.
pub(crate) const DIM: Style = AnsiColor::BrightBlack.on_default();
/// A heading.
pub(crate) const HEAD: Style = AnsiColor::Cyan.on_default().bold();

/// Why a command failed: in words for a person, with what to do.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// From words.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// What commands return.
pub(crate) type Done<T = ()> = Result<T, Failure>;

/// Adds what was being done to an error that does not say.
pub(crate) trait Context<T> {
    /// `what` completes the sentence "cannot ...".
    fn cannot(self, what: impl fmt::Display) -> Done<T>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn cannot(self, what: impl fmt::Display) -> Done<T> {
        self.map_err(|error| Failure::new(format!("cannot {what}: {error}")))
    }
}

/// Whether standard output belongs to one JSON document, so that words for people go to standard error.
static FOR_JSON: AtomicBool = AtomicBool::new(false);

/// From now on nothing but [`output`] writes to standard output.
pub(crate) fn keep_output_for_json() {
    FOR_JSON.store(true, Ordering::Relaxed);
}

/// What the command was asked for.
pub(crate) fn output(text: impl fmt::Display) {
    println!("{text}");
}

fn tell(text: impl fmt::Display) {
    if FOR_JSON.load(Ordering::Relaxed) {
        eprintln!("{text}");
    } else {
        println!("{text}");
    }
}

/// The last words of a failed command.
pub(crate) fn failure(failure: &Failure) {
    eprintln!("{BAD}failed{BAD:#} {failure}");
}

/// A heading.
pub(crate) fn head(text: impl fmt::Display) {
    tell(format_args!("{HEAD}{text}{HEAD:#}"));
}

/// Something to know.
pub(crate) fn note(text: impl fmt::Display) {
    tell(format_args!("{NOTE}note{NOTE:#} {text}"));
}

/// A plain line.
pub(crate) fn line(text: impl fmt::Display) {
    tell(text);
}

/// Whether a person watches.
pub(crate) fn is_live() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// A spinner with the time gone; silent when nobody watches.
pub(crate) fn spinner(text: &str) -> ProgressBar {
    if !is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) =
        ProgressStyle::with_template("{spinner:.cyan} {prefix} {elapsed:.dim} {wide_msg:.dim}")
    {
        bar.set_style(style);
    }
    bar.set_prefix(text.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A bar that fills with the time of a run; its position is in seconds. Silent when nobody watches.
pub(crate) fn clock(text: &str, time: Duration) -> ProgressBar {
    bar(
        text,
        time.as_secs(),
        "{spinner:.cyan} {prefix} {wide_bar:.cyan} {pos}/{len} s {msg:.dim}",
    )
}

/// A bar that fills with the rows of a table. Silent when nobody watches.
pub(crate) fn rows(text: &str, count: usize) -> ProgressBar {
    bar(
        text,
        count as u64,
        "{spinner:.cyan} {prefix} {wide_bar:.cyan} {pos}/{len} {msg:.dim}",
    )
}

fn bar(text: &str, length: u64, template: &str) -> ProgressBar {
    if !is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(text.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A time as people write it.
pub(crate) fn seconds(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    match tenths {
        0..600 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => format!("{} min {:02} s", tenths / 600, tenths % 600 / 10),
    }
}
