//! Parts of the demo that run inside a namespace.

use crate::ui::Done;

/// A part.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Runs a part.
pub(crate) fn run(_: &Arguments) -> Done {
    Ok(())
}
