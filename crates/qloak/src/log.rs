//! Logs go to standard error: readable in a terminal, JSON where a machine reads.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Sets up logging for a program that runs on (`info`) or a command that answers (`warn`), unless
/// RUST_LOG says otherwise.
pub(crate) fn set_up(json: bool, usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        builder.json().flatten_event(true).init();
    } else {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        builder.with_ansi(colour).with_target(false).init();
    }
}
