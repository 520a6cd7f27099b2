//! What an impaired port is asked to do, and the bounds of it. Plain data, checked once when the port is made.

use super::Radio;
use crate::{PortConfig, PortError, config::bounded, limits};

/// A port and what happens to frames that pass it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpairedConfig {
    /// The port that is wrapped.
    pub port: PortConfig,
    /// What happens.
    pub impairment: Impairment,
}

/// What happens to frames each way. A way whose faults are the default is left alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Impairment {
    /// Everything that is left to chance comes from this number: the same seed, frames and times give the
    /// same frames.
    pub seed: u64,
    /// To frames that are received.
    pub receive: Faults,
    /// To frames that are transmitted.
    pub transmit: Faults,
}

/// What happens to frames of one way, in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Frames that vanish.
    pub loss: Loss,
    /// Probability that a frame comes twice, one directly behind the other; each is damaged for itself.
    pub duplicate: f64,
    /// A radio link with forward error correction.
    pub radio: Option<Radio>,
    /// Probability of each bit to flip. The FCS is not there any more when a port hands over a frame, so
    /// the damaged frame arrives as it would over a line that does not check it.
    pub bit_error_ratio: f64,
    /// Bits per second of the line, with the octets that Ethernet puts around a frame; no bound when none.
    pub rate_bps: Option<u64>,
    /// How long frames are under way.
    pub delay: Delay,
    /// Frames that are overtaken; all others keep their order.
    pub reorder: Reorder,
    /// Frames that can wait for their time; what comes beyond is dropped: 1 to 65536.
    pub waiting_frames_max: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            loss: Loss::None,
            duplicate: 0.0,
            radio: None,
            bit_error_ratio: 0.0,
            rate_bps: None,
            delay: Delay::default(),
            reorder: Reorder::default(),
            waiting_frames_max: limits::IMPAIRED_FRAMES,
        }
    }
}

/// Frames that vanish.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Loss {
    /// None does.
    #[default]
    None,
    /// Each for itself.
    Independent {
        /// Of each frame.
        probability: f64,
    },
    /// In spells.
    Spells(GilbertElliott),
}

/// A line of two states, good and bad; it is good at first. All four are probabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GilbertElliott {
    /// To turn bad after a frame; the inverse of the mean count of frames in the good state.
    pub to_bad: f64,
    /// To turn good after a frame; the inverse of the mean count of frames in the bad state.
    pub to_good: f64,
    /// To lose a frame in the good state; 0 in Gilbert's model.
    pub lost_in_good: f64,
    /// To lose a frame in the bad state.
    pub lost_in_bad: f64,
}

/// How long a frame is under way. Jitter alone never changes the order: a frame that would leave before
/// the one before it leaves with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delay {
    /// Every frame, in nanoseconds.
    pub fixed_ns: u64,
    /// Up to so many more, each as likely as another.
    pub jitter_ns: u64,
}

/// Frames that are overtaken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reorder {
    /// Of a frame to be held.
    pub probability: f64,
    /// How many frames must come after a held one before it goes on, behind them.
    pub frames: usize,
    /// How long it is held at most when fewer come, in nanoseconds.
    pub hold_ns_max: u64,
}

impl Default for Reorder {
    /// Nothing is held; if it were, for three frames and 10 ms.
    fn default() -> Self {
        Self {
            probability: 0.0,
            frames: 3,
            hold_ns_max: 10_000_000,
        }
    }
}

impl Impairment {
    /// Whether every setting is within its bounds, as a port that is made with them checks too.
    ///
    /// # Errors
    /// The setting that is not, and its bounds.
    pub fn check(&self) -> Result<(), PortError> {
        self.receive.check()?;
        self.transmit.check()
    }
}

impl Faults {
    /// Whether a frame can meet none of them.
    pub(super) fn are_none(&self) -> bool {
        *self
            == Self {
                reorder: Reorder {
                    probability: 0.0,
                    ..self.reorder
                },
                waiting_frames_max: self.waiting_frames_max,
                ..Self::default()
            }
    }

    fn check(&self) -> Result<(), PortError> {
        match self.loss {
            Loss::None => {}
            Loss::Independent { probability: p } => probability("the probability of loss", p)?,
            Loss::Spells(model) => {
                probability("the probability to turn bad", model.to_bad)?;
                probability("the probability to turn good", model.to_good)?;
                probability("the loss in the good state", model.lost_in_good)?;
                probability("the loss in the bad state", model.lost_in_bad)?;
            }
        }
        probability("the probability of a duplicate", self.duplicate)?;
        if let Some(radio) = &self.radio {
            radio.check()?;
        }
        probability("the bit error ratio", self.bit_error_ratio)?;
        if let Some(rate_bps) = self.rate_bps {
            bounded("the rate", rate_bps, &limits::IMPAIRED_RATE_BPS, "bit/s")?;
        }
        let times = 0..=limits::IMPAIRED_DELAY_NS_MAX;
        bounded("the delay", self.delay.fixed_ns, &times, "ns")?;
        bounded("the jitter", self.delay.jitter_ns, &times, "ns")?;
        probability("the probability of reordering", self.reorder.probability)?;
        bounded("the hold", self.reorder.hold_ns_max, &times, "ns")?;
        let frames = &limits::IMPAIRED_FRAMES_RANGE;
        bounded("the reordering", self.reorder.frames, frames, "frames")?;
        bounded("the queue", self.waiting_frames_max, frames, "frames")?;
        if self.reorder.probability > 0.0 && self.reorder.frames >= self.waiting_frames_max {
            return Err(PortError::Setting {
                setting: "the reordering of an impaired port",
                given: format!("by {} frames", self.reorder.frames),
                allowed: format!(
                    "less than the {} frames that its queue holds",
                    self.waiting_frames_max
                ),
            });
        }
        Ok(())
    }
}

fn probability(what: &'static str, given: f64) -> Result<(), PortError> {
    // Not a number is in no range.
    bounded(what, given, &(0.0..=1.0), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(change: impl Fn(&mut Faults), words: &[&str]) {
        let mut faults = Faults::default();
        change(&mut faults);
        for impairment in [
            Impairment {
                receive: faults.clone(),
                ..Impairment::default()
            },
            Impairment {
                transmit: faults.clone(),
                ..Impairment::default()
            },
        ] {
            let text = impairment.check().expect_err("out of bounds").to_string();
            for word in words {
                assert!(text.contains(word), "{word:?} is not in {text:?}");
            }
        }
    }

    #[test]
    fn no_probability_is_outside_0_to_1() {
        fn spells(change: impl Fn(&mut GilbertElliott)) -> Loss {
            let mut model = GilbertElliott::default();
            change(&mut model);
            Loss::Spells(model)
        }
        type Set = fn(&mut Faults, f64);
        let settings: [(&str, Set); 8] = [
            ("probability of loss", |faults, bad| {
                faults.loss = Loss::Independent { probability: bad };
            }),
            ("turn bad", |faults, bad| {
                faults.loss = spells(|model| model.to_bad = bad);
            }),
            ("turn good", |faults, bad| {
                faults.loss = spells(|model| model.to_good = bad);
            }),
            ("good state", |faults, bad| {
                faults.loss = spells(|model| model.lost_in_good = bad);
            }),
            ("bad state", |faults, bad| {
                faults.loss = spells(|model| model.lost_in_bad = bad);
            }),
            ("duplicate", |faults, bad| faults.duplicate = bad),
            ("bit error", |faults, bad| faults.bit_error_ratio = bad),
            ("reordering", |faults, bad| faults.reorder.probability = bad),
        ];
        for bad in [-0.1, 1.000_001, f64::NAN, f64::INFINITY, -f64::INFINITY] {
            for (name, set) in settings {
                let given = format!("is {bad}: allowed is 0 to 1");
                refused(|faults| set(faults, bad), &[name, &given]);
            }
        }
    }

    #[test]
    fn what_is_out_of_its_bounds_is_said_with_them() {
        refused(
            |faults| faults.rate_bps = Some(999),
            &["999 bit/s", "1000 to"],
        );
        let minute = limits::IMPAIRED_DELAY_NS_MAX;
        let allowed = "0 to 60000000000 ns";
        refused(
            |faults| faults.delay.fixed_ns = minute + 1,
            &["delay", allowed],
        );
        refused(
            |faults| faults.delay.jitter_ns = u64::MAX,
            &["jitter", allowed],
        );
        refused(
            |faults| faults.reorder.hold_ns_max = u64::MAX,
            &["hold", allowed],
        );
        refused(
            |faults| faults.reorder.frames = 0,
            &["0 frames", "1 to 65536"],
        );
        for frames in [0, 65_537] {
            refused(
                |faults| faults.waiting_frames_max = frames,
                &["queue", "1 to 65536"],
            );
        }
        refused(
            |faults| {
                faults.reorder.probability = 0.1;
                faults.reorder.frames = 8;
                faults.waiting_frames_max = 8;
            },
            &["by 8 frames", "less than the 8"],
        );
    }

    #[test]
    fn the_ends_of_each_range_are_allowed() {
        for end in [0.0, 1.0] {
            let faults = Faults {
                loss: Loss::Independent { probability: end },
                duplicate: end,
                bit_error_ratio: end,
                rate_bps: Some(*limits::IMPAIRED_RATE_BPS.end()),
                reorder: Reorder {
                    probability: end,
                    ..Reorder::default()
                },
                ..Faults::default()
            };
            assert!(faults.check().is_ok());
        }
    }
}
