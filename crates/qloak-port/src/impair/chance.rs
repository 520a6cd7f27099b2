//! Chance from a seed: the same numbers in every run and on every machine.
//!
//! Each way through a port draws from a generator of its own, so that what happens to received frames
//! does not depend on when others are transmitted. The generator is xoshiro256++ (D. Blackman and S. Vigna,
//! ACM Trans. Math. Softw. 47 (2021), 36); it serves tests and must never make a key.

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};

/// Draws of one way.
pub(super) struct Chance(Xoshiro256PlusPlus);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any of 2^53 numbers from 0 up to, not including, 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability; nothing is drawn for what never happens.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Any number below `bound`, which is not 0; more likely than another by at most `bound` in 2^64.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// How many times something of this probability does not happen before it does: one draw, however
    /// rare it is. The geometric distribution by inversion, L. Devroye, Non-Uniform Random Variate
    /// Generation (1986), X.2.
    pub(super) fn misses(&mut self, probability: f64) -> u64 {
        // From above 0 to 1, so that the logarithm is finite.
        let unit = 1.0 - self.unit();
        // The conversion takes a number that is too large to the greatest there is.
        (libm::log(unit) / libm::log1p(-probability)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_and_impossibility_are_exact() {
        let mut chance = Chance::new(1);
        for _ in 0..1000 {
            assert!(chance.happens(1.0) && !chance.happens(0.0));
            assert_eq!(chance.misses(1.0), 0);
            assert_eq!(chance.below(1), 0);
        }
    }

    #[test]
    fn misses_have_the_mean_and_the_first_probability_of_the_geometric_distribution() {
        let mut chance = Chance::new(2);
        let (draws, probability) = (200_000, 0.03);
        let (mut sum, mut none) = (0, 0);
        for _ in 0..draws {
            let misses = chance.misses(probability);
            sum += misses;
            none += u64::from(misses == 0);
        }
        // Mean (1 - p) / p, standard deviation sqrt(1 - p) / p of one draw.
        let deviation = (f64::from(draws) * (1.0 - probability)).sqrt() / probability;
        let expected = f64::from(draws) * (1.0 - probability) / probability;
        assert!((sum as f64 - expected).abs() < 5.0 * deviation, "{sum}");
        super::super::testing::assert_ratio("no miss", none, 200_000, probability);
    }

    #[test]
    fn what_is_rarer_than_a_clock_can_count_does_not_overflow() {
        let mut chance = Chance::new(3);
        assert!((0..1000).all(|_| chance.misses(1e-300) == u64::MAX));
    }
}
