//! The encryption library of this node: every suite, tested at start, with what it costs here.
//!
//! A suite that fails its known answers is not offered. A hazmat suite is offered only if the node's
//! configuration names it.

use std::time::{Duration, Instant};

use qloak_api::{SuiteEntry, SuiteId};
use qloak_cipher::{
    SuiteKey,
    level::{Level, UnknownLevelError},
    selftest,
    suite::{Mode, SUITES, Suite},
};

/// Octets of the frames that a suite's cost is measured with.
const MEASURED_OCTETS: usize = 1500;

/// The level of the CPU, as far as `QLOAK_CPU_DISABLE` allows it.
///
/// # Errors
/// When the variable names a level that does not exist.
pub(crate) fn level() -> Result<Level, UnknownLevelError> {
    Level::detect(&std::env::var("QLOAK_CPU_DISABLE").unwrap_or_default())
}

/// Every suite with its self-test run and its cost on one core measured for about `measure_for` each.
pub(crate) fn library(
    level: Level,
    hazmat_allowed: &[&'static Suite],
    measure_for: Duration,
) -> Vec<SuiteEntry> {
    SUITES
        .iter()
        .map(|suite| entry(suite, level, hazmat_allowed, measure_for))
        .collect()
}

fn entry(
    suite: &'static Suite,
    level: Level,
    hazmat_allowed: &[&'static Suite],
    measure_for: Duration,
) -> SuiteEntry {
    let self_test_passed = match selftest::run(suite, level) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(suite = suite.name, %error, "self-test failed; the suite is not offered");
            false
        }
    };
    let allowed = !suite.hazmat
        || hazmat_allowed
            .iter()
            .any(|allowed| allowed.name == suite.name);
    SuiteEntry {
        name: suite.name.to_owned(),
        id: SuiteId(suite.id),
        cipher: suite.cipher.to_owned(),
        mode: suite.mode.name().to_owned(),
        key_octets: u16::try_from(suite.key_octets).unwrap_or(u16::MAX),
        icv_octets: u16::try_from(suite.tag_octets).unwrap_or(u16::MAX),
        hazmat: suite.hazmat,
        macsec: suite.macsec,
        backend: backend(suite, level).to_owned(),
        self_test_passed,
        offered: self_test_passed && allowed,
        seal_gbps: if self_test_passed {
            measured(suite, level, measure_for)
        } else {
            0.0
        },
        about: suite.about.to_owned(),
    }
}

/// 0 for `plain`: it does nothing, so there is no rate to measure.
fn measured(suite: &'static Suite, level: Level, measure_for: Duration) -> f64 {
    if suite.mode == Mode::Plain {
        return 0.0;
    }
    let start = Instant::now();
    let clock_ns = || start.elapsed().as_nanos() as u64;
    let for_ns = measure_for.as_nanos() as u64;
    qloak_cipher::measure(suite, level, MEASURED_OCTETS, for_ns, clock_ns).unwrap_or(0.0)
}

/// The name of the backend that would run the suite.
fn backend(suite: &'static Suite, level: Level) -> &'static str {
    let key = [0x51; 64];
    let key = key
        .get(..suite.key_octets)
        .and_then(|key| SuiteKey::new(suite, key, level).ok());
    key.map_or("none", |key| key.backend())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_does_nothing_has_no_rate() {
        let plain = Suite::by_name("plain").expect("in the table");
        let entry = entry(plain, Level::Soft, &[], Duration::from_micros(50));
        assert!(entry.self_test_passed && !entry.offered);
        assert_eq!(entry.seal_gbps, 0.0);
        let xor = Suite::by_name("xor").expect("in the table");
        assert!(measured(xor, Level::Soft, Duration::from_micros(50)) > 0.0);
    }
}
