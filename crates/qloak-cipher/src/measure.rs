//! What a suite costs on this machine: frames sealed for a short while, by the caller's clock.

use crate::aead::Seal;
use crate::key::{KeyLengthError, SuiteKey};
use crate::level::Level;
use crate::limits::{DATA_OCTETS_MAX, KEY_OCTETS_MAX, MEASURE_FRAMES, TAG_OCTETS};
use crate::suite::Suite;

/// Gb/s at which one core seals frames of `octets` data octets (at most
/// [`DATA_OCTETS_MAX`]) under `suite`, in cache, in batches of 64.
///
/// `clock_ns` tells nanoseconds since any fixed time; it is read once a batch, and measuring ends
/// when it has moved by `for_ns`. A clock that stands still ends it after 2^20 batches. Returns 0
/// when no time passed or `octets` is 0. Speed is data alone: tags and AAD are cost, not gain.
///
/// # Errors
/// None for a suite of the table; the key is made to measure.
pub fn measure(
    suite: &'static Suite,
    level: Level,
    octets: usize,
    for_ns: u64,
    mut clock_ns: impl FnMut() -> u64,
) -> Result<f64, KeyLengthError> {
    const BATCHES_MAX: u32 = 1 << 20;
    let octets = octets.min(DATA_OCTETS_MAX);
    // Nothing secret is sealed, so neither key nor nonce matters.
    let key_octets = suite.key_octets.min(KEY_OCTETS_MAX);
    let key = SuiteKey::new(suite, &[0x51; KEY_OCTETS_MAX][..key_octets], level)?;
    let aad = [0; 28];
    let mut data = vec![0; octets * MEASURE_FRAMES];
    let mut tags = [[0; TAG_OCTETS]; MEASURE_FRAMES];
    if octets == 0 {
        return Ok(0.0);
    }

    let mut batch: Vec<Seal<'_>> = data
        .chunks_exact_mut(octets)
        .zip(&mut tags)
        .zip(0_u8..)
        .map(|((data, tag), number)| Seal {
            nonce: [number; 12],
            aad: &aad,
            data,
            tag: &mut tag[..suite.tag_octets],
        })
        .collect();
    // The first batch warms caches and branch predictors and is not counted.
    seal(&key, &mut batch);

    let (mut sealed, mut passed_ns) = (0u64, 0u64);
    let start = clock_ns();
    for _ in 0..BATCHES_MAX {
        seal(&key, &mut batch);
        sealed += (octets * MEASURE_FRAMES) as u64;
        passed_ns = clock_ns().saturating_sub(start);
        if passed_ns >= for_ns {
            break;
        }
    }
    // Bits per nanosecond are gigabits per second.
    Ok(if passed_ns == 0 {
        0.0
    } else {
        sealed as f64 * 8.0 / passed_ns as f64
    })
}

fn seal(key: &SuiteKey, batch: &mut [Seal<'_>]) {
    // Lengths are inside the limits by construction, so there is no error to report.
    let _ = key.seal(batch);
    std::hint::black_box(batch);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_octets_by_the_clock_that_was_given() {
        let suite = Suite::by_name("plain").expect("in the table");
        let mut now = 0;
        let clock = || {
            now += 1000;
            now
        };
        // One batch a microsecond: 64 frames of 1500 octets are 768 000 bits.
        let gbps = measure(suite, Level::Soft, 1500, 10_000, clock).expect("a suite of the table");
        assert!((gbps - 768.0).abs() < 1e-9, "{gbps}");
    }

    #[test]
    fn no_time_and_no_data_make_no_speed() {
        let suite = Suite::by_name("plain").expect("in the table");
        assert_eq!(measure(suite, Level::Soft, 0, 10, || 5), Ok(0.0));
        assert_eq!(measure(suite, Level::Soft, 1, 10, || 5), Ok(0.0));
    }
}
