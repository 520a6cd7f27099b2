//! When the line frames of a channel of constant rate leave, and the sealed ones that wait for that.
//!
//! ```text
//!            prepare     leave       prepare     leave
//!   ------------|-----------|-----------|-----------|------> time
//!      mux      |<-- half ->|   mux     |           |
//!      until    |  a beat   |           |           |
//!      here     seal        as many frames, at each beat, whatever was muxed
//! ```
//!
//! Frames leave in beats: as many at each as the rate wants in [`BEAT_NS`] or a little more, since no thread
//! wakes for every single frame of a fast line. They are sealed half a beat ahead, so that the work for them does
//! not move the time at which they leave. Beats are counted from one start, in whole numbers: no drift.

use qloak_port::{Batch, Sizes};

/// Least time between two beats, nanoseconds: as long as a kernel may be late to wake a thread.
const BEAT_NS: u64 = 50_000;

/// A beat that is late by more than this, nanoseconds, is left out: the node was held up, and many frames
/// at once would tell by whom.
const LATE_NS: u64 = 5_000_000;

/// Octets that Ethernet puts around a frame on the wire: preamble 8, FCS 4, gap 12
/// (IEEE 802.3-2022, 3.1.1 and 4.4.2).
const AROUND_FRAME: usize = 24;

const NS_PER_S: u128 = 1_000_000_000;

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Seal line frames until none is missing for the beat.
    Prepare,
    /// Let them leave.
    Leave,
}

/// The beats of one channel.
pub(super) struct Pace {
    /// Line frames of each beat.
    frames: usize,
    /// Bits of those on the wire.
    bits: u128,
    rate_bps: u128,
    /// When the first beat was, once there was one.
    start_ns: Option<u64>,
    /// Beats until now.
    beats: u64,
    next: Step,
    /// Line frames that were left out.
    pub(super) late_frames: u64,
    /// Sealed, in the order in which they leave.
    pub(super) ready: Batch,
}

impl Pace {
    /// Line frames of `octets`, without FCS, as many as make up `rate_bps` on the wire; `spare` more of them
    /// can be ready than one beat takes.
    pub(super) fn new(rate_bps: u64, octets: usize, spare: usize, sizes: Sizes) -> Self {
        let (rate_bps, bits) = (
            u128::from(rate_bps.max(1)),
            (octets + AROUND_FRAME) as u128 * 8,
        );
        let frames = (u128::from(BEAT_NS) * rate_bps).div_ceil(bits * NS_PER_S);
        Self {
            frames: frames as usize,
            bits: bits * frames,
            rate_bps,
            start_ns: None,
            beats: 0,
            next: Step::Prepare,
            late_frames: 0,
            ready: Batch::with_sizes(frames as usize + spare, sizes),
        }
    }

    /// Line frames of each beat.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// Line frames that are still to be sealed for the next beat.
    pub(super) fn missing(&self) -> usize {
        self.frames.saturating_sub(self.ready.len())
    }

    /// What is to be done, if its time has come.
    pub(super) fn step(&mut self, now_ns: u64) -> Option<Step> {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        if now_ns > self.beat_ns(self.beats).saturating_add(LATE_NS) {
            let beats = u128::from(now_ns - start_ns) * self.rate_bps / (self.bits * NS_PER_S) + 1;
            let beats = u64::try_from(beats).unwrap_or(u64::MAX);
            self.late_frames += (beats - self.beats) * self.frames as u64;
            self.beats = beats;
        }
        (now_ns >= self.next_ns()?).then_some(self.next)
    }

    /// When the next thing is to be done; `None` before the first.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.start_ns?;
        let beat_ns = self.beat_ns(self.beats);
        let ahead_ns = match self.next {
            Step::Prepare => (self.beat_ns(self.beats + 1) - beat_ns) / 2,
            Step::Leave => 0,
        };
        Some(beat_ns.saturating_sub(ahead_ns))
    }

    /// The frames are sealed, as many as could be.
    pub(super) fn prepared(&mut self) {
        self.next = Step::Leave;
    }

    /// The frames have left.
    pub(super) fn left(&mut self) {
        self.next = Step::Prepare;
        self.beats += 1;
    }

    /// When a beat is, counted from 0.
    fn beat_ns(&self, beats: u64) -> u64 {
        let ns = u128::from(beats) * self.bits * NS_PER_S / self.rate_bps;
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        self.start_ns.unwrap_or(0).saturating_add(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        headroom: 16,
        octets_max: 64,
        tailroom: 16,
    };

    /// Times of the beats of so many nanoseconds, the clock looked at in steps.
    fn beats(pace: &mut Pace, ns: u64, step_ns: u64) -> Vec<u64> {
        let mut beats = Vec::new();
        for now_ns in (1000..1000 + ns).step_by(step_ns as usize) {
            while let Some(step) = pace.step(now_ns) {
                match step {
                    Step::Prepare => pace.prepared(),
                    Step::Leave => {
                        beats.push(now_ns);
                        pace.left();
                    }
                }
            }
        }
        beats
    }

    #[test]
    fn the_rate_is_kept_to_a_thousandth_however_fast_or_slow() {
        for rate_bps in [
            1_000_000,
            10_000_000,
            1_000_000_000,
            10_000_000_000,
            99_999_999_999,
        ] {
            for octets in [256, 1514, 9014] {
                let mut pace = Pace::new(rate_bps, octets, 0, SIZES);
                let beat_ns = (octets + 24) as f64 * 8e9 * pace.frames() as f64 / rate_bps as f64;
                assert!(
                    beat_ns >= 49_999.0,
                    "{rate_bps} {octets}: a beat of {beat_ns} ns"
                );
                let ns = 2_000_000_000;
                let beats = beats(&mut pace, ns, 1000);
                let frames = (beats.len() * pace.frames()) as f64;
                let bps = frames * (octets + 24) as f64 * 8e9 / ns as f64;
                // One beat may be over at either end.
                let bound = 0.001 + beat_ns / ns as f64;
                assert!(
                    (bps / rate_bps as f64 - 1.0).abs() < bound,
                    "{rate_bps}: {bps}"
                );
                assert_eq!(pace.late_frames, 0);
            }
        }
    }

    #[test]
    fn what_is_a_little_late_is_caught_up_and_what_is_very_late_left_out() {
        let mut pace = Pace::new(1_000_000_000, 1514, 0, SIZES);
        let beat_ns = 1538 * 8 * 5;
        assert_eq!(pace.frames(), 5);
        assert_eq!(beats(&mut pace, 10 * beat_ns, 4_000_000).len(), 1);
        // From 1 us to 4.001 ms: 65 beats and the first are over, and all have come.
        assert_eq!(beats(&mut pace, 4_000_001, 4_000_000).len(), 65);
        assert_eq!(pace.late_frames, 0);
        assert_eq!(beats(&mut pace, 100_000_001, 100_000_000).len(), 0);
        let left_out = (100_000_000 / beat_ns + 1 - 66) * 5;
        assert_eq!(pace.late_frames, left_out);
        assert_eq!(
            beats(&mut pace, 200_000_000, 1000).len() as u64,
            200_000_000 / beat_ns - 100_000_000 / beat_ns
        );
        assert_eq!(pace.late_frames, left_out);
    }

    #[test]
    fn frames_are_prepared_half_a_beat_ahead() {
        let mut pace = Pace::new(1_000_000_000, 1514, 0, SIZES);
        assert_eq!(pace.next_ns(), None);
        assert_eq!(pace.step(500), Some(Step::Prepare), "the first at once");
        pace.prepared();
        assert_eq!(pace.step(500), Some(Step::Leave));
        pace.left();
        let beat_ns = 1538 * 8 * 5;
        assert_eq!(pace.next_ns(), Some(500 + beat_ns / 2));
        assert_eq!(pace.step(499 + beat_ns / 2), None);
        assert_eq!(pace.step(500 + beat_ns / 2), Some(Step::Prepare));
        pace.prepared();
        assert_eq!(pace.next_ns(), Some(500 + beat_ns));
    }
}
