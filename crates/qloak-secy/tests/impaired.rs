//! Protected frames over a line that loses, doubles, reorders and damages them: protect, an impaired wire
//! in memory, validate. Nothing is delivered that was not sent, nothing twice, and every frame that was protected is
//! found again: in one counter of the wire or in one of the SecY.

mod common;

use std::collections::{HashMap, HashSet};

use common::*;
use qloak_api::Carriage;
use qloak_port::{
    Batch, FaultCounters, Faults, GilbertElliott, Impairment, Loss, Port, Radio, Reorder, Sizes,
    impair, pair,
};
use qloak_secy::{ChannelConfig, Verdict, limits};

const WINDOW: u64 = 64;
const SIZES: Sizes = Sizes {
    headroom: limits::HEADROOM,
    octets_max: 1514,
    tailroom: limits::TAILROOM,
};

/// Two nodes' SecYs and the impaired wire between them.
struct Line {
    link: Link,
    wire: [Box<dyn Port>; 2],
    /// Client frames sent.
    sent: HashSet<Vec<u8>>,
    /// Line frames as they were protected, with the number of times that each may be accepted.
    protected: HashMap<Vec<u8>, usize>,
    /// Client frames delivered.
    delivered: HashSet<Vec<u8>>,
    /// Frames out of the wire by verdict.
    verdicts: Tally,
}

/// What the SecY found, counted here from its verdicts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    valid: u64,
    late: u64,
    replayed: u64,
    not_valid: u64,
    no_sa: u64,
    strays: u64,
    agreement: u64,
}

impl Tally {
    fn all(&self) -> u64 {
        self.valid
            + self.late
            + self.replayed
            + self.not_valid
            + self.no_sa
            + self.strays
            + self.agreement
    }

    fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Valid(_) => &mut self.valid,
            Verdict::Late => &mut self.late,
            Verdict::Replayed => &mut self.replayed,
            Verdict::NotValid => &mut self.not_valid,
            Verdict::NoSa => &mut self.no_sa,
            Verdict::NoTag | Verdict::BadTag | Verdict::UnknownSci => &mut self.strays,
            Verdict::Agreement => &mut self.agreement,
        } += 1;
    }
}

impl Line {
    fn new(carriage: Carriage, seed: u64, faults: &Faults) -> Self {
        let config = ChannelConfig {
            replay_window: WINDOW,
            ..channel(carriage)
        };
        let [near, far] = pair("line", 256, &SIZES).unwrap();
        let impairment = Impairment {
            seed,
            receive: faults.clone(),
            ..Impairment::default()
        };
        // Time stands: what is held goes on when enough frames came after it.
        let far = impair(far, &impairment, &SIZES, std::sync::Arc::new(|| 0)).unwrap();
        Self {
            link: Link::keyed(&config, 1514, suite("aes-256-gcm")),
            wire: [near, far],
            sent: HashSet::new(),
            protected: HashMap::new(),
            delivered: HashSet::new(),
            verdicts: Tally::default(),
        }
    }

    /// Sends client frames of many lengths, each unlike any other, and takes what the line gives.
    fn run(&mut self, frames: u64) {
        for round in 0..frames {
            let octets = 40 + (round * 37 % 1200) as usize;
            let one = (client(1), frame(octets, round + 1));
            assert!(self.sent.insert(one.1.clone()), "each differs");
            for line in self.link.send(std::slice::from_ref(&one)) {
                self.carry(line.octets());
            }
        }
    }

    fn carry(&mut self, protected: &[u8]) {
        let mut out = Batch::with_sizes(1, SIZES);
        assert!(out.push(protected));
        self.protected.insert(protected.to_vec(), 1);
        assert_eq!(self.wire[0].transmit(&mut out).unwrap(), 1);
        let mut batch = Batch::with_sizes(16, SIZES);
        while self.wire[1].receive(&mut batch).unwrap() > 0 {
            let came: Vec<Stored> = batch
                .frames()
                .iter()
                .map(|f| Stored::of(f.octets()))
                .collect();
            self.validate(&came);
            batch.clear();
        }
    }

    fn validate(&mut self, came: &[Stored]) {
        let (verdicts, opened) = self.link.validate(came);
        for ((verdict, opened), came) in verdicts.into_iter().zip(opened).zip(came) {
            self.verdicts.count(verdict);
            let Verdict::Valid(valid) = verdict else {
                assert!(verdict == Verdict::Agreement || opened.range.is_empty());
                continue;
            };
            let left = self.protected.get_mut(came.octets());
            let left = left.expect("only a frame that was protected, and as it was, is valid");
            *left = left.checked_sub(1).expect("none is valid twice");
            let (sent, delivered) = (&self.sent, &mut self.delivered);
            self.link
                .inbound
                .demux(valid, opened.octets(), |port, frame| {
                    assert!(port == client(1) && sent.contains(frame), "nobody sent it");
                    assert!(delivered.insert(frame.to_vec()), "delivered twice");
                });
        }
    }

    /// Every frame is in one counter, and the SecY's own counters are those of its verdicts.
    fn account(&self) -> (FaultCounters, &Tally) {
        let wire = self.wire[1].impairments().unwrap().receive;
        let tally = &self.verdicts;
        assert_eq!(wire.taken, self.protected.len() as u64);
        assert_eq!(
            wire.taken + wire.duplicated,
            wire.lost + wire.overflowed + wire.waiting + tally.all(),
            "{wire:?} {tally:?}"
        );
        let counters = self.link.inbound.counters(number(1)).unwrap();
        let strays = self.link.inbound.strays();
        let counted = Tally {
            valid: counters.ok,
            late: counters.late,
            replayed: counters.replayed,
            not_valid: counters.not_valid,
            no_sa: counters.no_sa,
            strays: strays.no_tag + strays.bad_tag + strays.unknown_sci,
            agreement: tally.agreement,
        };
        assert_eq!(*tally, counted);
        assert_eq!(counters.mux_errors, 0);
        (wire, tally)
    }
}

fn reorder(probability: f64, frames: usize) -> Reorder {
    Reorder {
        probability,
        frames,
        hold_ns_max: 1,
    }
}

const BOTH: [Carriage; 2] = [Carriage::Transparent, Carriage::Aggregated];

#[test]
fn a_sound_line_delivers_everything() {
    for carriage in BOTH {
        // Something has to be set for a port to be impaired: a loss that never comes.
        let faults = Faults {
            loss: Loss::Independent { probability: 0.0 },
            ..Faults::default()
        };
        let mut line = Line::new(carriage, 1, &faults);
        line.run(500);
        let (wire, tally) = line.account();
        assert_eq!((wire.passed, tally.valid), (wire.taken, wire.taken));
        assert_eq!(line.delivered, line.sent);
    }
}

#[test]
fn what_is_lost_is_missing_and_nothing_else() {
    let faults = Faults {
        loss: Loss::Spells(GilbertElliott {
            to_bad: 0.02,
            to_good: 0.2,
            lost_in_good: 0.001,
            lost_in_bad: 0.9,
        }),
        ..Faults::default()
    };
    let mut line = Line::new(Carriage::Transparent, 2, &faults);
    line.run(3000);
    let (wire, tally) = line.account();
    assert!(wire.lost > 100, "{wire:?}");
    assert_eq!(tally.valid, wire.taken - wire.lost);
    assert_eq!(line.delivered.len() as u64, tally.valid);
}

#[test]
fn each_duplicate_is_a_replay() {
    for carriage in BOTH {
        let faults = Faults {
            duplicate: 0.3,
            ..Faults::default()
        };
        let mut line = Line::new(carriage, 3, &faults);
        line.run(1000);
        let (wire, tally) = line.account();
        assert!(wire.duplicated > 200, "{wire:?}");
        assert_eq!((tally.valid, tally.replayed), (wire.taken, wire.duplicated));
        assert_eq!(line.delivered, line.sent);
    }
}

//= IEEE 802.1AE-2018 10.6.2
#[test]
fn reordering_within_the_window_costs_nothing_and_beyond_it_the_frame() {
    // A frame that so many others overtook is still in the window, one that one more overtook is not.
    for (frames, in_window) in [(1, true), (WINDOW - 1, true), (WINDOW + 6, false)] {
        let faults = Faults {
            reorder: reorder(0.02, frames as usize),
            ..Faults::default()
        };
        let mut line = Line::new(Carriage::Transparent, 4, &faults);
        line.run(4000);
        let (wire, tally) = line.account();
        assert!(wire.reordered > 50, "{wire:?}");
        let late = if in_window { 0 } else { wire.reordered };
        assert_eq!(tally.late, late, "overtaken by {frames}");
        assert_eq!(tally.valid, wire.passed - late);
        assert_eq!(line.delivered.len() as u64, tally.valid);
    }
}

#[test]
fn no_damaged_frame_is_delivered_and_each_sound_one_is() {
    for carriage in BOTH {
        let bits = Faults {
            bit_error_ratio: 5e-5,
            ..Faults::default()
        };
        let radio = Faults {
            radio: Some(Radio {
                eb_n0_db: 5.6,
                word_octets: 255,
                data_octets: 223,
            }),
            ..Faults::default()
        };
        for faults in [bits, radio] {
            let mut line = Line::new(carriage, 5, &faults);
            line.run(3000);
            let (wire, tally) = line.account();
            let damaged = wire.bit_damaged + wire.radio_damaged;
            assert!(damaged > 100 && tally.not_valid > 100, "{wire:?} {tally:?}");
            assert_eq!(tally.valid, wire.taken - damaged);
        }
    }
}

#[test]
fn a_storm_forges_nothing_doubles_nothing_and_hides_nothing() {
    for carriage in BOTH {
        for seed in 0..5 {
            let faults = Faults {
                loss: Loss::Independent { probability: 0.05 },
                duplicate: 0.1,
                radio: Some(Radio {
                    eb_n0_db: 6.4,
                    word_octets: 255,
                    data_octets: 239,
                }),
                bit_error_ratio: 1e-5,
                reorder: reorder(0.2, 62 + 3 * seed as usize),
                ..Faults::default()
            };
            let mut line = Line::new(carriage, seed, &faults);
            line.run(2000);
            let (wire, tally) = line.account();
            for happened in [wire.lost, tally.replayed, tally.late, tally.not_valid] {
                assert!(happened > 0, "{wire:?} {tally:?}");
            }
            assert!(tally.valid > 1000, "the line still carries: {tally:?}");
        }
    }
}
