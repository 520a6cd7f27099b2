//! Every bound of the command line, and why.

use std::time::Duration;

/// Octets of `cli.toml`: three short lines.
pub(crate) const CONFIG_OCTETS_MAX: u64 = 64 << 10;

/// Octets of a key file: two lines of hex.
pub(crate) const KEY_FILE_OCTETS_MAX: u64 = 4096;

/// Octets of a certificate file: a chain of some certificates.
pub(crate) const CERTIFICATE_OCTETS_MAX: u64 = 1 << 20;

/// How often `suite set --wait` looks whether the change is there.
pub(crate) const WAIT_POLL: Duration = Duration::from_millis(25);

/// How long a person waits for an answer that a machine gives in milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Bounds of the time between two looks of `top`, seconds.
pub(crate) const TOP_EVERY_S: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Two looks at a node's counters closer than this are the same look: a rate over less is noise.
pub(crate) const RATE_OVER_MIN: Duration = Duration::from_millis(50);

/// Columns of the little curve of `top`.
pub(crate) const CURVE_POINTS: usize = 120;

/// Suites that an error message suggests.
pub(crate) const SUGGESTIONS_MAX: usize = 3;

/// How often a running capture says how far it is.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// Octets of a capture that are handed to the system at once, at most.
pub(crate) const CAPTURE_BUFFER_OCTETS: usize = 1 << 20;

/// A capture that ends so much before its time, without all its frames, was cut short.
pub(crate) const CAPTURE_END_EARLY: Duration = Duration::from_secs(1);
