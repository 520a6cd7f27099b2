//! Which frames are lost: each for itself, or in spells.
//!
//! ```text
//!                 to_bad
//!        +------+ -----> +------+      a frame is lost with the probability of the state that it
//!        | good |        | bad  |      meets; then the state may change
//!        +------+ <----- +------+
//!                 to_good
//! ```
//!
//! The model of two states: E. N. Gilbert, Bell System Technical Journal 39 (1960), 1253 (nothing is lost in
//! the good state); E. O. Elliott, the same 42 (1963), 1977 (losses in both).

use super::{GilbertElliott, Loss, chance::Chance};

/// A way's losses, and in which state it is.
pub(super) struct Losses {
    loss: Loss,
    bad: bool,
}

impl Losses {
    /// Starts in the good state.
    pub(super) fn new(loss: Loss) -> Self {
        Self { loss, bad: false }
    }

    /// Whether the next frame is lost.
    pub(super) fn next(&mut self, chance: &mut Chance) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent { probability } => chance.happens(probability),
            Loss::Spells(model) => {
                let (lost, change) = if self.bad {
                    (model.lost_in_bad, model.to_good)
                } else {
                    (model.lost_in_good, model.to_bad)
                };
                let lost = chance.happens(lost);
                self.bad ^= chance.happens(change);
                lost
            }
        }
    }
}

impl GilbertElliott {
    /// Frames lost of all frames in the long run: each state's loss, weighed with the share of frames that meet
    /// it. The state at the start is good, and stays so when nothing ever changes it.
    pub fn loss_ratio(&self) -> f64 {
        let changes = self.to_bad + self.to_good;
        if changes == 0.0 {
            return self.lost_in_good;
        }
        (self.to_good * self.lost_in_good + self.to_bad * self.lost_in_bad) / changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impair::testing::assert_ratio;

    #[test]
    fn spells_are_as_long_and_as_many_as_the_model_says() {
        let model = GilbertElliott {
            to_bad: 0.01,
            to_good: 0.2,
            lost_in_good: 0.0,
            lost_in_bad: 1.0,
        };
        let mut losses = Losses::new(Loss::Spells(model));
        let mut chance = Chance::new(6);
        let frames = 500_000;
        let (mut lost, mut spells, mut before) = (0_u64, 0_u64, false);
        for _ in 0..frames {
            let now = losses.next(&mut chance);
            lost += u64::from(now);
            spells += u64::from(now && !before);
            before = now;
        }
        // Of the frames that meet the good state, `to_bad` begin a spell; of those in a spell, `to_good` end it.
        assert_ratio("spells", spells, frames - lost, model.to_bad);
        assert_ratio("ends", spells, lost, model.to_good);
        // Neighbours are alike, so the share of all varies more than a binomial: a tenth is ten deviations.
        let ratio = lost as f64 / frames as f64;
        let expected = 0.01 / 0.21;
        assert!((model.loss_ratio() - expected).abs() < 1e-15);
        assert!((ratio / expected - 1.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn both_states_may_lose() {
        let model = GilbertElliott {
            to_bad: 0.5,
            to_good: 0.5,
            lost_in_good: 0.1,
            lost_in_bad: 0.7,
        };
        let mut losses = Losses::new(Loss::Spells(model));
        let mut chance = Chance::new(7);
        let lost = (0..100_000).filter(|_| losses.next(&mut chance)).count();
        // With equal changes the states of two frames are independent, and so are their losses.
        assert_ratio("lost", lost as u64, 100_000, 0.4);
        let still = GilbertElliott {
            to_bad: 0.0,
            to_good: 0.0,
            ..model
        };
        assert_eq!(still.loss_ratio(), 0.1);
    }
}
