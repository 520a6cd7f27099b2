//! Numbers and times as a person reads them.

use std::time::Duration;

/// A rate in bits per second, with its unit.
pub(crate) fn bit_rate(bps: f64) -> String {
    scaled(bps, &["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"], 1000.0)
}

/// Octets, with their unit.
pub(crate) fn octets(octets: u64) -> String {
    scaled(
        octets as f64,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
        1024.0,
    )
}

/// A count in three or four digits.
pub(crate) fn count(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        _ => scaled(count as f64, &["", "k", "M", "G", "T", "P", "E"], 1000.0).replace(' ', ""),
    }
}

/// Seconds, in the two largest units.
pub(crate) fn seconds(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Milliseconds, with as many digits as mean something.
pub(crate) fn milliseconds(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

/// A time as short as it can be said.
pub(crate) fn brief_time(ns: u64) -> String {
    let mut value = ns as f64;
    let mut units = ["ns", "us", "ms", "s"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        (value, unit) = (value / 1000.0, next);
    }
    let digits = usize::from(value < 9.95 && unit != "ns");
    format!("{value:.digits$}{unit}")
}

/// What half of the frames, 99 of 100, and all of them did not exceed.
pub(crate) fn three_times(times: &qloak_api::Latency) -> String {
    [times.p50_ns, times.p99_ns, times.max_ns]
        .map(brief_time)
        .join(" ")
}

/// `1 frame`, `2 frames`.
pub(crate) fn plural(count: u64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

fn scaled(mut value: f64, units: &[&str], step: f64) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while value >= step * 0.9995 {
        let Some(next) = units.next() else { break };
        value /= step;
        unit = next;
    }
    let digits = match value {
        _ if value.fract() == 0.0 && value < 1000.0 => 0,
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_fits() {
        assert_eq!(bit_rate(0.0), "0 b/s");
        assert_eq!(bit_rate(1_234.0), "1.23 kb/s");
        assert_eq!(bit_rate(9.876e9), "9.88 Gb/s");
        assert_eq!(bit_rate(999.9e6), "1000 Mb/s".replace("1000 M", "1.00 G"));
        assert_eq!(octets(4096), "4 KiB");
        assert_eq!(octets(u64::MAX), "16384 PiB");
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(12_345), "12.3k");
        assert_eq!(count(1 << 32), "4.29G");
        assert_eq!(seconds(59), "59 s");
        assert_eq!(seconds(3_661), "1 h 1 min");
        assert_eq!(seconds(90_000), "1 d 1 h");
        assert_eq!(milliseconds(Duration::from_micros(1_520)), "1.5 ms");
        let times = [0, 999, 1000, 9_949, 9_960, 120_400, 999_600, 90_000_000_000];
        let brief = times.map(brief_time).join(" ");
        assert_eq!(brief, "0ns 999ns 1.0us 9.9us 10us 120us 1.0ms 90s");
        assert_eq!(
            plural(1, "frame") + " " + &plural(0, "frame"),
            "1 frame 0 frames"
        );
    }
}
