//! One cell: all parties seal or open a load in batches until the cost of each is known.
//!
//! ```text
//!   warm up, each: how many rounds fill a window?
//!   again and again: a window of the first, of the second, ... and a look at the clock
//!   each party's windows -> one figure
//! ```
//!
//! The parties take turns on the same frames, so that what else happens on the machine meets all of
//! them. Sealing seals ciphertext again, each time under a new nonce: to a cipher all octets are the
//! same. Opening needs true frames, so before each round the sealed ones are put back; that is outside
//! the time. Every frame must open as valid, or there is no figure.

use qloak_cipher::{Open, Seal};

use crate::{
    frames::{Frames, nonce},
    limits::{AAD_OCTETS, FIGURE_NS_MAX, WINDOW_NS, WINDOWS, WINDOWS_MIN},
    party::Party,
    plan::{Direction, Load},
    stopwatch::{Stopwatch, quantile},
};

/// What was measured of one party in one cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    /// The window that counts.
    pub(crate) cycles_per_octet: f64,
    /// Half of the windows lie within this part of it.
    pub(crate) spread: f64,
    /// The core's clock at the time.
    pub(crate) clock_ghz: f64,
    /// How many windows there were.
    pub(crate) windows: usize,
}

impl Figure {
    /// Gb/s of data on this core.
    pub(crate) fn gbps(&self) -> f64 {
        8.0 * self.clock_ghz / self.cycles_per_octet
    }
}

/// The cell.
pub(crate) struct Cell<'a> {
    pub(crate) load: &'a Load,
    pub(crate) batch: usize,
    pub(crate) direction: Direction,
    pub(crate) tag_octets: usize,
    pub(crate) quick: bool,
}

/// One party's windows: ticks of a round.
struct Turns {
    rounds: u64,
    windows: Vec<f64>,
    spent_ns: f64,
}

impl Cell<'_> {
    /// Measures each party; None for one that did not open its frames.
    pub(crate) fn measure(
        &self,
        parties: &mut [&mut dyn Party],
        watch: &mut Stopwatch,
    ) -> Vec<Option<Figure>> {
        let mut frames = Frames::new(self.load, self.batch, self.tag_octets);
        let octets = frames.data_octets() as f64;
        let aad = [0x51; AAD_OCTETS];
        let mut opened = vec![true; parties.len()];
        let turns = match self.direction {
            Direction::Seal => {
                let mut seals = frames.seals(&aad);
                let mut number = 0;
                self.take_turns(watch, parties.len(), |watch, party, rounds| {
                    let mark = watch.start();
                    for _ in 0..rounds {
                        self.seal_round(parties[party], &mut seals, &mut number);
                    }
                    watch.stop(&mark)
                })
            }
            Direction::Open => {
                let Some(first) = parties.first_mut() else {
                    return Vec::new();
                };
                // All parties seal to the same octets; that was checked before.
                let mut seals = frames.seals(&aad);
                seals
                    .chunks_mut(self.batch)
                    .for_each(|batch| first.seal(batch));
                let sealed = frames.data();
                let mut opens = frames.opens(&aad);
                self.take_turns(watch, parties.len(), |watch, party, rounds| {
                    let mut ticks = 0.0;
                    for _ in 0..rounds {
                        put_back(&mut opens, &sealed);
                        let mark = watch.start();
                        for batch in opens.chunks_mut(self.batch) {
                            parties[party].open(batch);
                        }
                        ticks += watch.stop(&mark);
                        opened[party] &= opens.iter().all(|open| open.valid);
                    }
                    ticks
                })
            }
        };
        let figure = |mut turns: Turns| {
            let of = |part, windows: &mut Vec<f64>| watch.cycles(quantile(windows, part));
            let cycles = of(watch.quantile(), &mut turns.windows);
            let half = of(0.75, &mut turns.windows) - of(0.25, &mut turns.windows);
            Figure {
                cycles_per_octet: cycles / octets,
                spread: half / cycles.max(1.0),
                clock_ghz: watch.clock_ghz(),
                windows: turns.windows.len(),
            }
        };
        let figures = turns.into_iter().map(figure);
        figures
            .zip(opened)
            .map(|(figure, opened)| opened.then_some(figure))
            .collect()
    }

    /// `work` does a party's rounds and says their ticks.
    fn take_turns(
        &self,
        watch: &mut Stopwatch,
        parties: usize,
        mut work: impl FnMut(&Stopwatch, usize, u64) -> f64,
    ) -> Vec<Turns> {
        watch.find_clock();
        let ticks_per_window = watch.ticks(WINDOW_NS);
        let mut all: Vec<Turns> = (0..parties)
            .map(|party| {
                work(watch, party, 1);
                // Caches and predictors are warm now; an interrupted look only makes windows short.
                let ticks = work(watch, party, 1).min(work(watch, party, 1)).max(1.0);
                Turns {
                    rounds: (ticks_per_window / ticks).clamp(1.0, 1e6) as u64,
                    windows: Vec::new(),
                    spent_ns: 0.0,
                }
            })
            .collect();
        let wanted = if self.quick {
            WINDOWS.quick
        } else {
            WINDOWS.full
        };
        for window in 0..wanted {
            for (party, turns) in all.iter_mut().enumerate() {
                if window >= WINDOWS_MIN && turns.spent_ns > FIGURE_NS_MAX {
                    continue;
                }
                let ticks = work(watch, party, turns.rounds);
                turns.spent_ns += ticks * WINDOW_NS / ticks_per_window;
                turns.windows.push(ticks / turns.rounds as f64);
            }
            watch.look_at_clock();
        }
        all
    }

    fn seal_round(&self, party: &mut dyn Party, seals: &mut [Seal<'_>], number: &mut u64) {
        for batch in seals.chunks_mut(self.batch) {
            for one in batch.iter_mut() {
                *number += 1;
                one.nonce = nonce(*number);
            }
            party.seal(batch);
        }
    }
}

fn put_back(opens: &mut [Open<'_>], sealed: &[Vec<u8>]) {
    for (open, sealed) in opens.iter_mut().zip(sealed) {
        open.data.copy_from_slice(sealed);
        open.valid = false;
    }
}
