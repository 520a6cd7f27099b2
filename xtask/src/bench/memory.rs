//! Whether a program's memory is flat: its resident set at the begin of a run beside that at the end.

use std::{fs, time::Duration};

use serde::Serialize;

use crate::ui::{Context, Done, Failure};

/// What grows by design is full by then: caches, rings, the begin of the list of spent keys.
const WARM_UP: Duration = Duration::from_secs(15);

/// How long the begin and the end that are compared may be.
const WINDOW_MAX: Duration = Duration::from_secs(60);

/// Octets that a flat program may still grow by: its list of spent key IDs reaches 16 384 entries over
/// time, and its allocator keeps what it once had.
const RISE_OCTETS_MAX: f64 = 6.0 * 1024.0 * 1024.0;

/// Samples of one program.
#[derive(Default)]
pub(super) struct Memory {
    samples: Vec<(Duration, f64)>,
}

/// What the samples say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Rise {
    /// Mean of the first window after the warm-up, MiB.
    pub(super) first_mib: f64,
    /// Mean of the last window, MiB.
    pub(super) last_mib: f64,
    /// Whether it stayed within the bound.
    pub(super) flat: bool,
}

impl Memory {
    /// The resident set of a process now, at this time of the run.
    pub(super) fn sample(&mut self, at: Duration, pid: u32) -> Done {
        let path = format!("/proc/{pid}/status");
        let text = fs::read_to_string(&path).cannot(format_args!("read {path}"))?;
        let octets = resident_octets(&text)
            .ok_or_else(|| Failure::new(format!("{path} does not say VmRSS")))?;
        self.samples.push((at, octets));
        Ok(())
    }

    /// Begin beside end; none while there are too few samples.
    pub(super) fn rise(&self) -> Option<Rise> {
        let end = self.samples.last()?.0;
        let window = WINDOW_MAX.min(end.saturating_sub(WARM_UP) / 2);
        let mean = |from: Duration, to: Duration| {
            let within = |(at, _): &&(Duration, f64)| (from..=to).contains(at);
            let found: Vec<f64> = self.samples.iter().filter(within).map(|s| s.1).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        let first = mean(WARM_UP, WARM_UP + window)?;
        let last = mean(end - window, end)?;
        let mib = |octets: f64| octets / 1024.0 / 1024.0;
        Some(Rise {
            first_mib: mib(first),
            last_mib: mib(last),
            flat: last - first <= RISE_OCTETS_MAX,
        })
    }
}

/// `VmRSS: 1234 kB` of `/proc/<pid>/status` (proc(5)).
fn resident_octets(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two minutes of samples, each second.
    fn memory(mib: impl Fn(u64) -> f64) -> Memory {
        let sample = |s: u64| (Duration::from_secs(s), mib(s) * 1024.0 * 1024.0);
        Memory {
            samples: (0..=120).map(sample).collect(),
        }
    }

    #[test]
    fn what_grows_at_the_start_only_is_flat() {
        let rise = memory(|s| if s < 15 { s as f64 } else { 40.0 }).rise();
        let rise = rise.expect("enough samples");
        assert!(rise.flat);
        assert_eq!((rise.first_mib, rise.last_mib), (40.0, 40.0));
    }

    #[test]
    fn what_grows_all_the_time_is_not() {
        let rise = memory(|s| 40.0 + s as f64 * 0.2).rise();
        assert!(!rise.expect("enough samples").flat);
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(Memory::default().rise(), None);
    }

    #[test]
    fn the_kernels_words() {
        let text = "Name:\tqloak\nVmRSS:\t    2048 kB\nThreads:\t9\n";
        assert_eq!(resident_octets(text), Some(2048.0 * 1024.0));
        assert_eq!(resident_octets("Name: x\n"), None);
    }
}
