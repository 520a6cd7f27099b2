//! A radio link as seed paper 003 has one: QPSK at 60 GHz with a Reed-Solomon code.
//!
//! The paper (P. Visconti et al., Electronics 9 (2020), 1665, section 2.3) gives modulation, symbol rate and
//! kind of code; code length and signal-to-noise ratio are for whoever configures the link. Nothing here
//! walks over symbols: probabilities are computed once, and each code word is one draw, with more only for
//! the few that fail.
//!
//! ```text
//!   frame       | k octets      | k octets      | rest |
//!   code words  | k octets      | n - k parity  |   ...   | rest | n - k parity |
//!                 wrong symbols <= t: corrected, whole
//!                               >  t: given up, the wrong octets stay wrong
//! ```

use super::chance::Chance;
use crate::{PortError, config::bounded, limits};

/// QPSK over white Gaussian noise, with a systematic Reed-Solomon code over GF(256).
///
/// With `Eb/N0` the energy of a bit of data over the noise density, and `k` of `n` octets data, a bit on
/// the air has `k/n` of that energy. Gray-coded QPSK with coherent detection is two independent binary
/// channels, so that (J. G. Proakis and M. Salehi, Digital Communications, 5th ed., 4.3)
///
/// ```text
///   bit wrong           b = 1/2 erfc( sqrt( Eb/N0 * k/n ) )
///   QPSK symbol wrong       1 - (1 - b)^2      two bits
///   octet wrong         p = 1 - (1 - b)^8      a symbol of the code, four of QPSK
/// ```
///
/// with erfc as in NIST's Digital Library of Mathematical Functions, 7.2.2. The code corrects up to
/// `t = floor((n - k) / 2)` wrong octets (I. S. Reed and G. Solomon, J. SIAM 8 (1960), 300), so a word is
/// given up with the upper tail of the binomial distribution (the same library, 8.17.5):
///
/// ```text
///   word fails          P = sum over j from t + 1 to n of  C(n, j) p^j (1 - p)^(n - j)
/// ```
///
/// The last word of a frame is shortened: it has fewer octets of data and as many of parity. A decoder that
/// gives up hands on the word as it came, so octets of data among the wrong ones are changed, and a word
/// whose wrong octets are all parity is whole. That a decoder takes a word for another valid one (one in
/// t! of those that fail) is left out. Without a code use [`crate::Faults::bit_error_ratio`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Radio {
    /// Energy of a bit of data over the noise density, in dB: -30 to 25.
    pub eb_n0_db: f64,
    /// Octets of a code word, n: at most 255.
    pub word_octets: usize,
    /// Octets of data in it, k: at least 1 and less than n.
    pub data_octets: usize,
}

impl Radio {
    /// Probability that a bit on the air is taken for the other, b.
    pub fn bit_error_ratio(&self) -> f64 {
        let rate = self.data_octets as f64 / self.word_octets as f64;
        0.5 * libm::erfc((libm::pow(10.0, self.eb_n0_db / 10.0) * rate).sqrt())
    }

    /// Probability that a symbol of QPSK, two bits, is taken for another.
    pub fn qpsk_symbol_error_ratio(&self) -> f64 {
        any_of(2, self.bit_error_ratio())
    }

    /// Probability that an octet, which is a symbol of the code, is wrong before decoding: p.
    pub fn octet_error_ratio(&self) -> f64 {
        any_of(8, self.bit_error_ratio())
    }

    /// Wrong octets of a word that the code corrects, t.
    pub fn corrected_octets(&self) -> usize {
        (self.word_octets - self.data_octets) / 2
    }

    /// Probability that a word of so many octets of data, from 1 to [`Self::data_octets`], is given up: P.
    pub fn word_failure_ratio(&self, data_octets: usize) -> f64 {
        let octets = data_octets + self.word_octets - self.data_octets;
        let wrong = WrongOctets::new(self.octet_error_ratio());
        (self.corrected_octets() + 1..=octets)
            .map(|count| wrong.probability(count, octets))
            .sum::<f64>()
            // Sums of rounded terms may be a little more than certain.
            .min(1.0)
    }

    pub(super) fn check(&self) -> Result<(), PortError> {
        let code = &limits::REED_SOLOMON_OCTETS;
        bounded("Eb/N0", self.eb_n0_db, &limits::RADIO_EB_N0_DB, "dB")?;
        bounded("n of the radio's code", self.word_octets, code, "octets")?;
        let data = 1..=self.word_octets - 1;
        bounded("k of the radio's code", self.data_octets, &data, "octets")
    }
}

/// Probability that at least one of `count` independent events happens. Exact for rare events too.
fn any_of(count: u8, each: f64) -> f64 {
    -libm::expm1(f64::from(count) * libm::log1p(-each))
}

/// How many octets of a word are wrong: the binomial distribution.
struct WrongOctets {
    /// Logarithms of the probabilities of a wrong and of a right octet.
    ln_wrong: f64,
    ln_right: f64,
    /// Logarithm of the factorial of each index.
    ln_factorial: Box<[f64]>,
}

impl WrongOctets {
    fn new(octet_error_ratio: f64) -> Self {
        let mut sum = 0.0;
        let ln_factorial = (0..=*limits::REED_SOLOMON_OCTETS.end())
            .map(|number| {
                sum += libm::log(number.max(1) as f64);
                sum
            })
            .collect();
        Self {
            ln_wrong: libm::log(octet_error_ratio),
            ln_right: libm::log1p(-octet_error_ratio),
            ln_factorial,
        }
    }

    /// That exactly `count`, at least 1, of `octets` are wrong.
    fn probability(&self, count: usize, octets: usize) -> f64 {
        let right = octets - count;
        let ln_ways =
            self.ln_factorial[octets] - self.ln_factorial[count] - self.ln_factorial[right];
        libm::exp(ln_ways + count as f64 * self.ln_wrong + right as f64 * self.ln_right)
    }
}

/// What the radio did to a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    /// Code words of the frame.
    pub(super) words: u64,
    /// Of these, given up.
    pub(super) words_failed: u64,
    /// Octets of the frame that were changed.
    pub(super) octets_changed: u64,
}

/// The same with all that is the same for every frame computed.
pub(super) struct RadioLink {
    data_octets: usize,
    parity_octets: usize,
    corrected_octets: usize,
    bit_error_ratio: f64,
    octet_error_ratio: f64,
    wrong: WrongOctets,
    /// Probability that a word fails, by its octets of data.
    failure: Box<[f64]>,
}

impl RadioLink {
    /// `radio` was checked.
    pub(super) fn new(radio: &Radio) -> Self {
        let failure = (0..=radio.data_octets)
            .map(|data_octets| radio.word_failure_ratio(data_octets))
            .collect();
        Self {
            data_octets: radio.data_octets,
            parity_octets: radio.word_octets - radio.data_octets,
            corrected_octets: radio.corrected_octets(),
            bit_error_ratio: radio.bit_error_ratio(),
            octet_error_ratio: radio.octet_error_ratio(),
            wrong: WrongOctets::new(radio.octet_error_ratio()),
            failure,
        }
    }

    /// Sends a frame over the link and leaves it as the decoder gives it.
    pub(super) fn damage(&self, octets: &mut [u8], chance: &mut Chance) -> Decoded {
        let mut decoded = Decoded::default();
        for data in octets.chunks_mut(self.data_octets) {
            decoded.words += 1;
            if chance.happens(self.failure[data.len()]) {
                decoded.words_failed += 1;
                decoded.octets_changed += self.fail(data, chance);
            }
        }
        decoded
    }

    /// Makes octets of a word wrong that is known to fail; any of its octets is as likely as another. Says how
    /// many of them are data.
    fn fail(&self, data: &mut [u8], chance: &mut Chance) -> u64 {
        let octets = data.len() + self.parity_octets;
        let wrong = self.wrong_of_a_failed_word(octets, self.failure[data.len()], chance);
        let mut left = wrong;
        for (index, octet) in data.iter_mut().enumerate() {
            if chance.below((octets - index) as u64) < left {
                *octet ^= self.error(chance);
                left -= 1;
            }
        }
        wrong - left
    }

    /// How many octets of a word are wrong, given that it fails, which has the probability `failure`.
    fn wrong_of_a_failed_word(&self, octets: usize, failure: f64, chance: &mut Chance) -> u64 {
        let mut above = chance.unit() * failure;
        let mut count = self.corrected_octets + 1;
        while count < octets {
            above -= self.wrong.probability(count, octets);
            if above < 0.0 {
                break;
            }
            count += 1;
        }
        count as u64
    }

    /// The bits by which a wrong octet differs: each for itself, at least one.
    fn error(&self, chance: &mut Chance) -> u8 {
        // The first wrong bit is drawn from the geometric distribution cut off behind the eighth.
        let below = chance.unit() * self.octet_error_ratio;
        let first = libm::log1p(-below) / libm::log1p(-self.bit_error_ratio);
        let mut bit = 0x80_u8 >> (first as u32).min(7);
        let mut error = bit;
        while bit > 1 {
            bit >>= 1;
            if chance.happens(self.bit_error_ratio) {
                error |= bit;
            }
        }
        error
    }
}

#[cfg(test)]
mod tests;
