//! The limit: the least cycles that an octet can cost on this core, from what a suite must do and what
//! the core's units finish in a cycle. No program can pass it; how near one comes is its share.
//!
//! ```text
//!   frame -> blocks through the cipher: data, and what the mode adds (tag mask, AAD in OCB)
//!         -> blocks through GHASH: AAD, data, lengths        each a Karatsuba product of three
//!   limit = the busiest unit's cycles / octets of data       units work beside one another
//! ```
//!
//! The units are measured when the program starts, so that the limit is this core's own.

use qloak_cipher::{Mode, Suite};

use crate::{limits::AAD_OCTETS, machine::instructions::Units, plan::Load};

/// Vector operations of one group of Serpent blocks, a block in each 32-bit lane: 32 rounds of S-box,
/// linear map and key. With three-operand logic and rotations 58 gates for the eight boxes, 12 for the
/// map, 4 for the key. With two operands about 17 for a box, and 28 for a map whose six rotations take
/// three each.
const SERPENT_THREE_OPERANDS: f64 = 736.0;
const SERPENT_TWO_OPERANDS: f64 = 32.0 * 17.0 + 31.0 * 28.0 + 33.0 * 4.0;

/// The same of one group of Camellia blocks, an octet position in each register, S-boxes by two affine
/// instructions: 18 rounds (128 bits) and 24 (192 and 256 bits) with their FL layers, transposition,
/// load and store.
const CAMELLIA_18_ROUNDS: f64 = 970.0;
const CAMELLIA_24_ROUNDS: f64 = 1240.0;

/// 16-octet blocks that one group of Camellia has for each 16-octet lane of a register.
const CAMELLIA_BLOCKS_PER_LANE: f64 = 16.0;

/// 32-bit lanes in 16 octets.
const SERPENT_BLOCKS_PER_LANE: f64 = 4.0;

/// Cycles per octet of data, or None where the suite's limit on this core is not known.
pub(crate) fn cycles_per_octet(suite: &Suite, load: &Load, units: Option<&Units>) -> Option<f64> {
    let units = units?;
    let block_cycles = cipher_block_cycles(suite, units)?;
    let hash_cycles = known(units.multiplications).map(|per_cycle| 3.0 / per_cycle);
    let octets: usize = load.pattern.iter().sum();
    let mut cycles = 0.0;
    for frame in &load.pattern {
        let data = frame.div_ceil(16) as f64;
        let aad = AAD_OCTETS.div_ceil(16) as f64;
        cycles += match suite.mode {
            Mode::Ctr => data * block_cycles,
            Mode::Gcm => ((data + 1.0) * block_cycles).max((aad + data + 1.0) * hash_cycles?),
            // The nonce's own block serves 64 frames.
            Mode::Ocb3 => (data + aad + 1.0) * block_cycles,
            _ => return None,
        };
    }
    Some(cycles / octets as f64)
}

/// Cycles of one block through the cipher when the units are full.
fn cipher_block_cycles(suite: &Suite, units: &Units) -> Option<f64> {
    match suite.cipher {
        "AES-128" => Some(10.0 / known(units.aes_rounds)?),
        "AES-192" => Some(12.0 / known(units.aes_rounds)?),
        "AES-256" => Some(14.0 / known(units.aes_rounds)?),
        "Camellia-128" => camellia(CAMELLIA_18_ROUNDS, units),
        "Camellia-192" | "Camellia-256" => camellia(CAMELLIA_24_ROUNDS, units),
        serpent if serpent.starts_with("Serpent") => {
            let operations = if units.three_operands {
                SERPENT_THREE_OPERANDS
            } else {
                SERPENT_TWO_OPERANDS
            };
            Some(operations / SERPENT_BLOCKS_PER_LANE / known(units.logic)?)
        }
        _ => None,
    }
}

/// Only with affine instructions: what the cipher needs without them depends on too much else.
fn camellia(operations: f64, units: &Units) -> Option<f64> {
    let logic = known(units.logic).filter(|_| units.affine)?;
    Some(operations / CAMELLIA_BLOCKS_PER_LANE / logic)
}

fn known(per_cycle: f64) -> Option<f64> {
    (per_cycle > 0.0).then_some(per_cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core of the Zen 5 kind: two 512-bit AES units, one multiplier every second cycle.
    const ZEN_5: Units = Units {
        aes_rounds: 8.0,
        multiplications: 2.0,
        logic: 14.3,
        three_operands: true,
        affine: true,
    };

    fn limit(suite: &str) -> f64 {
        let suite = Suite::by_name(suite).expect("in the table");
        cycles_per_octet(suite, &Load::of(65_536), Some(&ZEN_5)).expect("known")
    }

    #[test]
    fn long_frames_come_to_the_bulk_limits_of_the_instruction_tables() {
        for (suite, expected) in [
            ("aes-128-ctr", 0.078),
            ("aes-256-ctr", 0.109),
            ("aes-128-gcm", 0.094),
            ("aes-256-gcm", 0.109),
            ("aes-256-ocb", 0.109),
            ("serpent-256-ctr", 0.81),
            ("camellia-128-ctr", 0.27),
        ] {
            let found = limit(suite);
            assert!(
                (found - expected).abs() / expected < 0.03,
                "{suite}: {found}"
            );
        }
    }

    #[test]
    fn short_frames_cost_more_an_octet() {
        let gcm = Suite::by_name("aes-256-gcm").expect("in the table");
        let short = cycles_per_octet(gcm, &Load::of(64), Some(&ZEN_5)).expect("known");
        assert!(short > 1.2 * limit("aes-256-gcm"), "{short}");
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let of = |name, units: Option<&Units>| {
            cycles_per_octet(
                Suite::by_name(name).expect("in the table"),
                &Load::of(64),
                units,
            )
        };
        assert_eq!(of("aes-256-gcm", None), None);
        assert_eq!(of("chacha20-poly1305", Some(&ZEN_5)), None);
        let no_affine = Units {
            affine: false,
            ..ZEN_5
        };
        assert_eq!(of("camellia-256-gcm", Some(&no_affine)), None);
    }
}
