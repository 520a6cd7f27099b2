//! Bits that flip: each with the same probability, independent of the others.
//!
//! The bits of all frames of a way are one stream. The distance to the next error is drawn when an error
//! was made, so that a frame without one costs a subtraction:
//!
//! ```text
//!   | frame ............... | frame ..x........... | frame ...
//!   |<------- ahead ----------------->|
//! ```

use super::chance::Chance;

/// Where the next error lies.
pub(super) struct BitErrors {
    ratio: f64,
    /// Sound bits before the next error.
    ahead: u64,
}

impl BitErrors {
    /// `ratio` is above 0 and at most 1.
    pub(super) fn new(ratio: f64, chance: &mut Chance) -> Self {
        Self {
            ratio,
            ahead: chance.misses(ratio),
        }
    }

    /// Flips what is to be flipped in the next octets of the stream and says how many bits.
    pub(super) fn damage(&mut self, octets: &mut [u8], chance: &mut Chance) -> u64 {
        let bits = octets.len() as u64 * 8;
        let mut flipped = 0;
        while self.ahead < bits {
            octets[(self.ahead / 8) as usize] ^= 0x80 >> (self.ahead % 8);
            flipped += 1;
            self.ahead = (self.ahead + 1).saturating_add(chance.misses(self.ratio));
        }
        self.ahead -= bits;
        flipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impair::testing::assert_ratio;

    #[test]
    fn exactly_the_counted_bits_flip_at_the_ratio_asked_for() {
        for (ratio, frames) in [(1e-5, 20_000), (1e-3, 2000), (0.3, 200)] {
            let mut chance = Chance::new(4);
            let mut errors = BitErrors::new(ratio, &mut chance);
            let (mut flipped, mut first) = (0, 0);
            for _ in 0..frames {
                let mut octets = [0_u8; 500];
                let counted = errors.damage(&mut octets, &mut chance);
                let seen: u32 = octets.iter().map(|octet| octet.count_ones()).sum();
                assert_eq!(counted, u64::from(seen));
                flipped += counted;
                first += octets
                    .iter()
                    .map(|octet| u64::from(octet >> 7))
                    .sum::<u64>();
            }
            assert_ratio("bits", flipped, frames * 4000, ratio);
            assert_ratio("first bits of octets", first, frames * 500, ratio);
        }
    }

    #[test]
    fn a_ratio_of_one_turns_every_bit() {
        let mut chance = Chance::new(5);
        let mut errors = BitErrors::new(1.0, &mut chance);
        let mut octets = [0x5a; 99];
        assert_eq!(errors.damage(&mut octets, &mut chance), 99 * 8);
        assert_eq!(octets, [0xa5; 99]);
    }
}
