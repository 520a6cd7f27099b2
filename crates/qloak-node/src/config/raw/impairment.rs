//! The table `line.impairment` as it is written: how a line that is too good is worsened. Bounds are checked
//! by the port.

use qloak_port::{Delay, Faults, GilbertElliott, Impairment, Loss, Radio, Reorder};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawImpairment {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    receive: RawFaults,
    #[serde(default)]
    transmit: RawFaults,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawFaults {
    loss: Option<RawLoss>,
    #[serde(default)]
    duplicate: f64,
    radio: Option<RawRadio>,
    #[serde(default)]
    bit_error_ratio: f64,
    rate_bps: Option<u64>,
    #[serde(default)]
    delay_us: u64,
    #[serde(default)]
    jitter_us: u64,
    reorder: Option<RawReorder>,
    waiting_frames_max: Option<usize>,
}

/// A probability, or a line of two states.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawLoss {
    Independent(f64),
    Spells(RawSpells),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpells {
    to_bad: f64,
    to_good: f64,
    #[serde(default)]
    lost_in_good: f64,
    #[serde(default = "always")]
    lost_in_bad: f64,
}

fn always() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRadio {
    eb_n0_db: f64,
    word_octets: usize,
    data_octets: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReorder {
    probability: f64,
    frames: Option<usize>,
    hold_us_max: Option<u64>,
}

impl From<RawImpairment> for Impairment {
    fn from(raw: RawImpairment) -> Self {
        Self {
            seed: raw.seed,
            receive: raw.receive.into(),
            transmit: raw.transmit.into(),
        }
    }
}

impl From<RawFaults> for Faults {
    fn from(raw: RawFaults) -> Self {
        let usual = Self::default();
        Self {
            loss: match raw.loss {
                None => Loss::None,
                Some(RawLoss::Independent(probability)) => Loss::Independent { probability },
                Some(RawLoss::Spells(spells)) => Loss::Spells(GilbertElliott {
                    to_bad: spells.to_bad,
                    to_good: spells.to_good,
                    lost_in_good: spells.lost_in_good,
                    lost_in_bad: spells.lost_in_bad,
                }),
            },
            duplicate: raw.duplicate,
            radio: raw.radio.map(|radio| Radio {
                eb_n0_db: radio.eb_n0_db,
                word_octets: radio.word_octets,
                data_octets: radio.data_octets,
            }),
            bit_error_ratio: raw.bit_error_ratio,
            rate_bps: raw.rate_bps,
            delay: Delay {
                fixed_ns: raw.delay_us.saturating_mul(1000),
                jitter_ns: raw.jitter_us.saturating_mul(1000),
            },
            reorder: raw.reorder.map_or(usual.reorder, |reorder| Reorder {
                probability: reorder.probability,
                frames: reorder.frames.unwrap_or(usual.reorder.frames),
                hold_ns_max: reorder
                    .hold_us_max
                    .map_or(usual.reorder.hold_ns_max, |us| us.saturating_mul(1000)),
            }),
            waiting_frames_max: raw.waiting_frames_max.unwrap_or(usual.waiting_frames_max),
        }
    }
}
