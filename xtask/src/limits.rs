//! Every bound of this crate, and why.

use std::time::Duration;

/// One step of `test` or `ci`. The longest is the first build of the workspace on two cores (about
/// ten minutes); a step that takes twice that hangs.
pub(crate) const STEP_TIME_MAX: Duration = Duration::from_secs(25 * 60);

/// `rustup target add`: 30 MB. Where that takes longer, rustup's servers are as good as out of reach.
pub(crate) const RUSTUP_TIME_MAX: Duration = Duration::from_secs(5 * 60);

/// An emulated machine, in minutes. The cipher's tests take a few there; one that takes this long hangs
/// or has too many cases.
pub(crate) const EMULATION_MINUTES_MAX: u64 = 20;

/// Lines of a failed step's output that are shown; all of it stays in its log.
pub(crate) const FAILURE_LINES_MAX: usize = 120;

/// Lines of a Rust file. A longer one wants to be two.
pub(crate) const FILE_LINES_MAX: usize = 500;

/// A file that tidy reads: larger ones are data, not text.
pub(crate) const TIDY_FILE_OCTETS_MAX: u64 = 1 << 20;
