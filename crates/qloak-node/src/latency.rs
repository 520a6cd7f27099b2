//! How long client frames are in the node: a histogram that one thread of the pipeline fills and others read.
//!
//! ```text
//!   bucket  0..15   one nanosecond each
//!   above           16 buckets for each power of two, each 1/16 of where it begins wide
//! ```
//!
//! A recorded batch is one addition to one bucket, weighted by its frames. The counters are atomic so that others may
//! read them at any time; only one thread writes, so adding is a load and a store and no locked instruction, and nothing
//! has to be copied or sent to be seen.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use qloak_api::{Latency, LatencyBucket};

use crate::limits;

/// Bits of a time that its bucket keeps below the highest.
const FINE_BITS: u32 = 4;
const FINE: usize = 1 << FINE_BITS;

/// Times from here on are counted as this: a minute and more in a node is a fault to be seen, not measured.
const LONGEST_NS: u64 = (1 << 36) - 1;

const BUCKETS: usize = bucket_of(LONGEST_NS) + 1;

/// What readers hold.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// What the one thread that fills it holds.
pub(crate) struct Stopwatch(Arc<Histogram>);

impl Histogram {
    /// An empty one, and the one hand that fills it.
    pub(crate) fn new() -> (Stopwatch, Arc<Self>) {
        let histogram = Arc::new(Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        });
        (Stopwatch(Arc::clone(&histogram)), histogram)
    }

    /// What was recorded so far.
    pub(crate) fn read(&self) -> Latency {
        let buckets = self.buckets.iter().enumerate();
        let filled = buckets.filter_map(|(index, bucket)| {
            let frames = bucket.load(Relaxed);
            let at_most_ns = last_of(index);
            (frames > 0).then_some(LatencyBucket { at_most_ns, frames })
        });
        // A bucket may be newer than the longest time: read last, that is never shorter than what is counted.
        let filled = filled.collect();
        Latency::new(
            self.sum_ns.load(Relaxed),
            self.longest_ns.load(Relaxed),
            filled,
        )
    }
}

impl Stopwatch {
    /// So many frames took so long.
    pub(crate) fn record(&self, took_ns: u64, frames: u64) {
        let all = &*self.0;
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
        };
        let bucket = bucket_of(took_ns.min(LONGEST_NS));
        if took_ns > all.longest_ns.load(Relaxed) {
            all.longest_ns.store(took_ns, Relaxed);
        }
        add(&all.sum_ns, took_ns.saturating_mul(frames));
        add(&all.buckets[bucket], frames);
    }
}

const fn bucket_of(ns: u64) -> usize {
    if ns < FINE as u64 {
        return ns as usize;
    }
    let highest = ns.ilog2();
    let coarse = (highest - FINE_BITS + 1) as usize;
    let fine = (ns >> (highest - FINE_BITS)) as usize % FINE;
    coarse * FINE + fine
}

/// The longest time of a bucket.
fn last_of(index: usize) -> u64 {
    let (coarse, fine) = (index / FINE, index % FINE);
    match coarse {
        0 => index as u64,
        _ => (((FINE + fine + 1) as u64) << (coarse - 1)) - 1,
    }
}

/// When the client frames in the line frames of a trunk came, for those that have not left.
///
/// Line frames are numbered in the order in which they are begun, and leave in it; a client frame leaves with the line
/// frame that holds its end.
pub(crate) struct Waiting {
    marks: VecDeque<Mark>,
}

/// Client frames that came together and leave together.
struct Mark {
    came_ns: u64,
    line_frame: u64,
    frames: u64,
}

impl Waiting {
    /// For nobody yet; takes its memory here.
    pub(crate) fn new() -> Self {
        Self {
            marks: VecDeque::with_capacity(limits::WAITING_MARKS),
        }
    }

    /// A client frame that came then has its end in that line frame.
    pub(crate) fn enter(&mut self, came_ns: u64, line_frame: u64) {
        let full = self.marks.len() == limits::WAITING_MARKS;
        match self.marks.back_mut() {
            // Where there is no room for another mark, the frame goes with the last: its time is taken for a longer one.
            Some(last) if full || (last.came_ns, last.line_frame) == (came_ns, line_frame) => {
                last.frames += 1;
                last.line_frame = line_frame;
            }
            _ => self.marks.push_back(Mark {
                came_ns,
                line_frame,
                frames: 1,
            }),
        }
    }

    /// All line frames below this number have left now.
    pub(crate) fn leave(&mut self, below: u64, now_ns: u64, stopwatch: &Stopwatch) {
        while let Some(mark) = self.marks.front().filter(|mark| mark.line_frame < below) {
            stopwatch.record(now_ns.saturating_sub(mark.came_ns), mark.frames);
            self.marks.pop_front();
        }
    }

    /// Line frames did not leave as they were numbered: what waits is not measured.
    pub(crate) fn forget(&mut self) {
        self.marks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_one_bucket_that_is_at_most_a_sixteenth_too_long() {
        for shift in 0..36 {
            for ns in [
                1_u64 << shift,
                (1 << shift) + 1,
                (2 << shift) - 1,
                3 << shift >> 1,
            ] {
                let ns = ns.min(LONGEST_NS);
                let last = last_of(bucket_of(ns));
                assert!(
                    ns <= last && last <= ns + ns / 16,
                    "{ns} in the bucket up to {last}"
                );
                assert!(bucket_of(last + 1) > bucket_of(ns) || last == LONGEST_NS);
            }
        }
        assert_eq!(BUCKETS, 528);
    }

    #[test]
    fn what_is_recorded_is_read() {
        let (stopwatch, histogram) = Histogram::new();
        assert_eq!(histogram.read(), Latency::default());
        stopwatch.record(1000, 60);
        stopwatch.record(5000, 39);
        stopwatch.record(u64::MAX, 1);
        let read = histogram.read();
        assert_eq!((read.frames, read.max_ns), (100, u64::MAX));
        assert!((1000..=1062).contains(&read.p50_ns), "{}", read.p50_ns);
        assert!((5000..=5312).contains(&read.p99_ns), "{}", read.p99_ns);
        assert_eq!(read.buckets.len(), 3);
    }

    #[test]
    fn a_client_frame_is_measured_when_the_line_frame_with_its_end_leaves() {
        let (stopwatch, histogram) = Histogram::new();
        let mut waiting = Waiting::new();
        waiting.enter(100, 0);
        waiting.enter(100, 0);
        waiting.enter(100, 1);
        waiting.enter(150, 1);
        waiting.leave(1, 110, &stopwatch);
        let read = histogram.read();
        assert_eq!((read.frames, read.sum_ns), (2, 20));
        waiting.leave(2, 200, &stopwatch);
        let read = histogram.read();
        assert_eq!(
            (read.frames, read.sum_ns, read.max_ns),
            (4, 20 + 100 + 50, 100)
        );
    }

    #[test]
    fn what_waits_takes_no_more_memory_than_at_first() {
        let (stopwatch, histogram) = Histogram::new();
        let mut waiting = Waiting::new();
        let many = limits::WAITING_MARKS as u64 + 10;
        let memory = waiting.marks.capacity();
        (0..many).for_each(|number| waiting.enter(number, number));
        assert_eq!(waiting.marks.capacity(), memory);
        waiting.leave(many, many, &stopwatch);
        assert_eq!(histogram.read().frames, many, "none is forgotten");
    }
}
