//! Every bound of this crate, and why.

use std::{ops::RangeInclusive, time::Duration};

/// Fibre length in km. Beyond 200 km no link of this kind has ever given a key.
pub const LENGTH_KM: RangeInclusive<f64> = 0.0..=200.0;

/// Loss of the fibre in dB, connectors included.
pub const LOSS_DB: RangeInclusive<f64> = 0.0..=60.0;

/// How many times faster than physics a lab may run. The fastest lab wish so far is a rekey every
/// 10 ms, which is 25.6 kb/s, fifteen times the best link; the rest is room.
pub const RATE_FACTOR: RangeInclusive<f64> = 1e-3..=1e4;

/// Octets of a key block: what a key container can hold.
pub const BLOCK_OCTETS: RangeInclusive<usize> = 8..=128;

/// Time that one call may make up for. A machine that slept does not find an hour of keys at once.
pub const CATCH_UP_MAX: Duration = Duration::from_secs(1);

/// Blocks that one call emits at most; what is left over comes with the next call.
pub const BLOCKS_PER_CALL_MAX: usize = 256;
