//! Key blocks at the rate of the model: a bucket that secret bits flow into as time passes.
//!
//! What always holds: over any time the emulator gives no more bits than rate times time; the caller
//! says what time it is and where randomness comes from, and a failure of the latter gives no block.

use std::time::Duration;

use qloak_api::KeyId;
use qloak_keys::Key;
use zeroize::Zeroizing;

use crate::{
    LABEL, limits,
    model::{Fibre, Figures, figures},
};

/// One block of key, the same at both ends of the link.
pub struct Block {
    /// Its name, a random UUID (RFC 9562, version 4).
    pub id: KeyId,
    /// The bits.
    pub key: Key,
}

/// The caller's randomness failed; nothing was emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the source of randomness failed")]
pub struct RandomFailed;

/// A source of randomness: fills the whole slice or fails.
pub type Random<'a> = dyn FnMut(&mut [u8]) -> Result<(), RandomFailed> + 'a;

/// Why no emulator can be made.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EmulatorError {
    /// The fibre loses so much that no secret key is left.
    #[error(
        "a fibre of {length_km} km and {loss_db} dB gives no secret key (QBER {:.1} %); about 12 dB is the most",
        100.0 * qber_ratio
    )]
    NoKey {
        /// Length, km.
        length_km: f64,
        /// Loss, dB.
        loss_db: f64,
        /// What the error ratio would be, 0 to 1.
        qber_ratio: f64,
    },
    /// The factor is out of range.
    #[error("a rate factor of {given}; 0.001 to 10000 are allowed, 1 is physics")]
    RateFactor {
        /// What was given.
        given: f64,
    },
    /// Blocks of this size cannot be held.
    #[error("blocks of {given} octets; 8 to 128 are allowed")]
    BlockOctets {
        /// What was given.
        given: usize,
    },
}

/// An emulated link of two id3100 over one fibre.
#[derive(Debug, Clone)]
pub struct Emulator {
    fibre: Fibre,
    figures: Figures,
    rate_factor: f64,
    block_octets: usize,
    bits: f64,
    seen: Duration,
}

impl Emulator {
    /// A link over `fibre` that emits blocks of `block_octets`, `rate_factor` times as fast as the model
    /// says (1 is physics; anything else is for labs and is shown as such). `now` is the time since any
    /// fixed moment, the same moment in every call.
    ///
    /// # Errors
    /// [`EmulatorError`] with what is allowed.
    pub fn new(
        fibre: Fibre,
        block_octets: usize,
        rate_factor: f64,
        now: Duration,
    ) -> Result<Self, EmulatorError> {
        if !limits::RATE_FACTOR.contains(&rate_factor) {
            return Err(EmulatorError::RateFactor { given: rate_factor });
        }
        if !limits::BLOCK_OCTETS.contains(&block_octets) {
            return Err(EmulatorError::BlockOctets {
                given: block_octets,
            });
        }
        let figures = figures(fibre);
        if figures.skr_bps <= 0.0 {
            return Err(EmulatorError::NoKey {
                length_km: fibre.length_km(),
                loss_db: fibre.loss_db(),
                qber_ratio: figures.qber_ratio,
            });
        }
        Ok(Self {
            fibre,
            figures,
            rate_factor,
            block_octets,
            bits: 0.0,
            seen: now,
        })
    }

    /// The figures of the model, without the rate factor.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Secret bits per second that are really emitted: the model's rate times the rate factor.
    pub fn rate_bps(&self) -> f64 {
        self.figures.skr_bps * self.rate_factor
    }

    /// What this source is, in words for an operator.
    pub fn describe(&self) -> String {
        let factor = if self.rate_factor == 1.0 {
            String::new()
        } else {
            format!(", rate times {} (not physics)", self.rate_factor)
        };
        format!(
            "{LABEL}: model of an id3100 pair over {} km, {} dB{factor}",
            self.fibre.length_km(),
            self.fibre.loss_db()
        )
    }

    /// Lets time pass without emitting: the source is cut or nobody has room for its blocks.
    pub fn idle(&mut self, now: Duration) {
        self.seen = self.seen.max(now);
        self.bits = 0.0;
    }

    /// The blocks that have become whole since the last call, at most
    /// [`limits::BLOCKS_PER_CALL_MAX`]. Time that runs backwards gives nothing.
    ///
    /// # Errors
    /// [`RandomFailed`] if the caller's randomness did; no block of this call is kept.
    pub fn emit(
        &mut self,
        now: Duration,
        random: &mut Random<'_>,
    ) -> Result<Vec<Block>, RandomFailed> {
        let passed = now.saturating_sub(self.seen).min(limits::CATCH_UP_MAX);
        self.seen = self.seen.max(now);
        self.bits += passed.as_secs_f64() * self.rate_bps();
        let block_bits = (self.block_octets * 8) as f64;
        let mut blocks = Vec::new();
        while self.bits >= block_bits && blocks.len() < limits::BLOCKS_PER_CALL_MAX {
            self.bits -= block_bits;
            blocks.push(self.block(random)?);
        }
        // What one call could not emit may wait for the next one, but not grow without end.
        self.bits = self
            .bits
            .min(self.rate_bps() * limits::CATCH_UP_MAX.as_secs_f64() + block_bits);
        Ok(blocks)
    }

    fn block(&self, random: &mut Random<'_>) -> Result<Block, RandomFailed> {
        let mut id = [0; 16];
        random(&mut id)?;
        // RFC 9562, 5.4: version 4, variant 10.
        id[6] = (id[6] & 0x0f) | 0x40;
        id[8] = (id[8] & 0x3f) | 0x80;
        let mut octets = Zeroizing::new([0; *limits::BLOCK_OCTETS.end()]);
        let used = octets.get_mut(..self.block_octets).ok_or(RandomFailed)?;
        random(used)?;
        let key = Key::from_slice(used).map_err(|_| RandomFailed)?;
        Ok(Block { id: KeyId(id), key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn link(rate_factor: f64) -> Emulator {
        let fibre = Fibre::new(0.5, 5.19).unwrap();
        Emulator::new(fibre, 32, rate_factor, Duration::ZERO).unwrap()
    }

    /// Counts upwards, so that equal calls give equal octets.
    fn counting() -> impl FnMut(&mut [u8]) -> Result<(), RandomFailed> {
        let mut next = 0u8;
        move |octets| {
            octets.fill_with(|| {
                next = next.wrapping_add(1);
                next
            });
            Ok(())
        }
    }

    #[test]
    fn blocks_come_at_the_modelled_rate() {
        let mut link = link(1.0);
        let mut random = counting();
        let emitted: usize = (1..=100_000)
            .map(|tick| link.emit(ms(tick * 10), &mut random).unwrap().len())
            .sum();
        let expected = 1000.0 * link.rate_bps() / 256.0;
        assert!(
            (emitted as f64 - expected).abs() <= 1.0,
            "{emitted} blocks, {expected} expected"
        );
        assert!((1690.0..1700.0).contains(&link.rate_bps()));
    }

    #[test]
    fn equal_time_and_randomness_give_equal_blocks_with_valid_names() {
        let blocks = || {
            let mut link = link(100.0);
            link.emit(ms(500), &mut counting()).unwrap()
        };
        let (one, two) = (blocks(), blocks());
        assert!(one.len() > 100);
        for (a, b) in one.iter().zip(&two) {
            assert!(a.id == b.id && a.key.same_as(&b.key));
            assert_eq!((a.id.0[6] >> 4, a.id.0[8] >> 6), (4, 2));
            assert_eq!(a.key.octets(), 32);
        }
        assert!(!one[0].key.same_as(&one[1].key));
    }

    #[test]
    fn a_source_of_randomness_that_fails_gives_no_block() {
        let mut link = link(100.0);
        assert!(matches!(
            link.emit(ms(500), &mut |_| Err(RandomFailed)),
            Err(RandomFailed)
        ));
    }

    #[test]
    fn neither_sleep_nor_idleness_nor_a_clock_that_goes_back_makes_keys() {
        let mut link = link(1.0);
        let hour = Duration::from_secs(3600);
        assert!(link.emit(hour, &mut counting()).unwrap().len() <= 7);
        link.idle(hour * 2);
        assert_eq!(link.emit(hour * 2, &mut counting()).unwrap().len(), 0);
        assert_eq!(link.emit(hour, &mut counting()).unwrap().len(), 0);
        assert_eq!(link.emit(hour * 2, &mut counting()).unwrap().len(), 0);
    }

    #[test]
    fn it_says_what_it_is() {
        assert!(link(1.0).describe().starts_with("emulated"));
        assert!(!link(1.0).describe().contains("times"));
        assert!(
            link(50.0)
                .describe()
                .contains("rate times 50 (not physics)")
        );
    }

    #[test]
    fn what_cannot_be_emulated_is_told() {
        let fibre = Fibre::new(0.5, 5.19).unwrap();
        let told = |fibre, octets, factor| {
            Emulator::new(fibre, octets, factor, Duration::ZERO)
                .unwrap_err()
                .to_string()
        };
        assert!(told(Fibre::new(80.0, 20.0).unwrap(), 32, 1.0).contains("no secret key"));
        for factor in [0.0, -1.0, f64::NAN, 1e5] {
            assert!(told(fibre, 32, factor).contains("1 is physics"));
        }
        assert!(
            told(fibre, 7, 1.0).contains("8 to 128") && told(fibre, 129, 1.0).contains("8 to 128")
        );
        // The limit that the message names.
        assert!(Emulator::new(Fibre::new(1.0, 12.0).unwrap(), 32, 1.0, Duration::ZERO).is_ok());
        assert!(Emulator::new(Fibre::new(1.0, 15.0).unwrap(), 32, 1.0, Duration::ZERO).is_err());
    }

    proptest! {
        #[test]
        fn never_more_bits_than_rate_times_time(steps in prop::collection::vec(0u64..3000, 1..50), factor in 0.1..20.0f64) {
            let mut link = link(factor);
            let (mut now, mut bits) = (0, 0);
            for step in steps {
                now += step;
                bits += link.emit(ms(now), &mut counting()).unwrap().len() * 256;
                prop_assert!(bits as f64 <= now as f64 / 1000.0 * link.rate_bps() + 1e-6);
            }
        }
    }
}
