//! Core cycles, counted by the CPU where the kernel lets us, else reckoned from time.
//!
//! Counted cycles are those of this thread in user mode: other work on the machine does not enter.
//! Without a counter (many virtual machines have none) they are time multiplied by the core's clock,
//! which a chain of dependent additions tells: one addition is one cycle. Every output says which.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::{
    limits::{CHAIN_ADDITIONS, CHAIN_LOOKS, LONG_NS_MIN},
    machine::{counter::Counter, instructions},
};

/// Measures pieces of work in ticks: cycles where they are counted, else nanoseconds.
pub(crate) struct Stopwatch {
    counter: Option<Counter>,
    clock_ghz: f64,
    clock_ghz_best: f64,
    own_ticks: f64,
}

/// Where a measurement began.
pub(crate) struct Mark {
    cycles: u64,
    thread_ns: f64,
    time: Instant,
}

impl Stopwatch {
    /// Ready to use, and knowing what its own look costs. None on a CPU whose clock we cannot tell.
    pub(crate) fn new() -> Option<Self> {
        let mut watch = Self {
            counter: Counter::open(),
            clock_ghz: 0.0,
            clock_ghz_best: 0.0,
            own_ticks: 0.0,
        };
        watch.find_clock();
        let looks = (0..201).map(|_| {
            let mark = watch.start();
            watch.stop(&mark)
        });
        watch.own_ticks = quantile(&mut looks.collect::<Vec<f64>>(), 0.5);
        (watch.clock_ghz > 0.0).then_some(watch)
    }

    /// Finds the clock anew: a core changes it with its load and its heat.
    pub(crate) fn find_clock(&mut self) {
        self.clock_ghz = 0.0;
        (0..CHAIN_LOOKS).for_each(|_| self.look_at_clock());
    }

    /// One look more. Interruptions only make a look longer, so the quickest is the true one.
    pub(crate) fn look_at_clock(&mut self) {
        let start = Instant::now();
        if instructions::chain(CHAIN_ADDITIONS).is_some() {
            let ns = start.elapsed().as_nanos() as f64;
            self.clock_ghz = self.clock_ghz.max(CHAIN_ADDITIONS as f64 / ns);
            self.clock_ghz_best = self.clock_ghz_best.max(self.clock_ghz);
        }
    }

    /// The core's clock since it was last found.
    pub(crate) fn clock_ghz(&self) -> f64 {
        self.clock_ghz
    }

    /// Ticks as cycles.
    pub(crate) fn cycles(&self, ticks: f64) -> f64 {
        match self.counter {
            Some(_) => ticks,
            None => ticks * self.clock_ghz,
        }
    }

    /// Ticks as cycles of the fastest clock of the whole run: never fewer than there were.
    pub(crate) fn cycles_at_most(&self, ticks: f64) -> f64 {
        match self.counter {
            Some(_) => ticks,
            None => ticks * self.clock_ghz_best,
        }
    }

    /// About so many ticks in so much time.
    pub(crate) fn ticks(&self, ns: f64) -> f64 {
        match self.counter {
            Some(_) => ns * self.clock_ghz,
            None => ns,
        }
    }

    /// Which of many measurements counts. Counted cycles leave interruptions out, and the middle one
    /// is fair; time has them in, they only make it longer, and the undisturbed ones are the low ones.
    pub(crate) fn quantile(&self) -> f64 {
        match self.counter {
            Some(_) => 0.5,
            None => 0.1,
        }
    }

    /// Where cycles come from, for every output.
    pub(crate) fn source(&self) -> &'static str {
        if self.counter.is_some() {
            "counter"
        } else {
            "time"
        }
    }

    /// The same as a sentence.
    pub(crate) fn method(&self) -> &'static str {
        if self.counter.is_some() {
            "cycles counted by the CPU, user mode, this thread alone; the median of each figure's windows"
        } else {
            "TIME, not counted: no perf counter here; cycles are time x the core's clock, of the lowest \
             tenth of each figure's windows"
        }
    }

    /// Begins.
    #[inline]
    pub(crate) fn start(&self) -> Mark {
        Mark {
            cycles: self.counter.as_ref().map_or(0, Counter::read),
            thread_ns: match self.counter {
                Some(_) => 0.0,
                None => thread_ns(),
            },
            time: Instant::now(),
        }
    }

    /// Ticks since, without those of the looking.
    #[inline]
    pub(crate) fn stop(&self, mark: &Mark) -> f64 {
        let ns = mark.time.elapsed().as_nanos() as f64;
        let ticks = match &self.counter {
            Some(counter) => (counter.read() - mark.cycles) as f64,
            // The thread's own time leaves out what others did in between, but a look at it is
            // dear and coarse; short work is seldom interrupted.
            None if ns > LONG_NS_MIN => thread_ns() - mark.thread_ns,
            None => ns,
        };
        (ticks - self.own_ticks).max(0.0)
    }
}

/// Nanoseconds that this thread has run.
fn thread_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The value below which this part of all lies; sorts. 0 of nothing.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    values
        .get((last * part).round() as usize)
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quantile(&mut values, 0.5), 3.0);
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 1.0), 5.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
