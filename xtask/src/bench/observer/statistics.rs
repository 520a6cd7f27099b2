//! What sizes and times of frames tell about the activity behind them: features of windows, two simple
//! classifiers, mutual information.
//!
//! ```text
//!   frames -> windows, each with its features and what was going on
//!   windows of some rounds -> classifier -> windows of the other rounds: how many are told right
//!   windows -> one feature in bins, beside the activity: how many bits it tells
//! ```
//!
//! Information is estimated from counts and corrected for how few they are (Miller and Madow, 1955). What is left of
//! it by chance is found by shuffling the activities.

use crate::parts::Sighting;

/// Activities.
pub(super) const CLASSES: usize = 3;

/// What is measured of a window.
pub(super) const FEATURES: [&str; 10] = [
    "frames",
    "mean octets",
    "deviation of octets",
    "different lengths",
    "share of short frames",
    "median gap",
    "deviation of gaps",
    "longest gap",
    "share of gaps under 5 us",
    "key agreement frames",
];

/// Octets up to which a frame is short.
const SHORT_OCTETS: u32 = 256;

/// Nanoseconds up to which two frames came together.
const TOGETHER_NS: u64 = 5_000;

/// Windows that are asked for the nearest neighbours' activity.
const NEIGHBOURS: usize = 5;

/// Bins of a feature: a multiple of the activities, so that a feature that tells them apart fills whole bins.
const BINS: usize = 3 * CLASSES;

/// How often activities are shuffled.
const SHUFFLES: usize = 200;

/// What was seen in a window, and what was going on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Window {
    pub(super) class: usize,
    pub(super) features: [f64; FEATURES.len()],
}

/// Whole windows of a stretch of frames, which are in order.
pub(super) fn windows(
    frames: &[Sighting],
    from_ns: u64,
    to_ns: u64,
    window_ns: u64,
    class: usize,
) -> Vec<Window> {
    let count = to_ns.saturating_sub(from_ns) / window_ns.max(1);
    let of = |window| {
        let begin = from_ns + window * window_ns;
        let features = features(between(frames, begin, begin + window_ns), window_ns);
        Window { class, features }
    };
    (0..count).map(of).collect()
}

/// The frames of a time.
pub(super) fn between(frames: &[Sighting], from_ns: u64, to_ns: u64) -> &[Sighting] {
    let begin = frames.partition_point(|frame| frame.at_ns < from_ns);
    let end = frames.partition_point(|frame| frame.at_ns < to_ns);
    frames.get(begin..end).unwrap_or_default()
}

fn features(frames: &[Sighting], window_ns: u64) -> [f64; FEATURES.len()] {
    let octets: Vec<f64> = frames.iter().map(|frame| frame.octets.into()).collect();
    let mut lengths: Vec<u32> = frames.iter().map(|frame| frame.octets).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let pairs = frames.windows(2);
    let mut gaps: Vec<f64> = pairs
        .map(|pair| pair[1].at_ns.saturating_sub(pair[0].at_ns) as f64)
        .collect();
    gaps.sort_by(f64::total_cmp);
    let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    let short = frames.iter().filter(|frame| frame.octets <= SHORT_OCTETS);
    let together = gaps.partition_point(|gap| *gap <= TOGETHER_NS as f64);
    // A window without two frames is one gap.
    let silent = window_ns as f64;
    [
        frames.len() as f64,
        mean(&octets),
        deviation(&octets),
        lengths.len() as f64,
        share(short.count(), frames.len()),
        gaps.get(gaps.len() / 2).copied().unwrap_or(silent),
        deviation(&gaps),
        gaps.last().copied().unwrap_or(silent),
        share(together, gaps.len()),
        frames.iter().filter(|frame| frame.agreement).count() as f64,
    ]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / values.len().max(1) as f64).sqrt()
}

/// How often each activity was taken for each: `[was][taken for]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answers(pub(super) [[u64; CLASSES]; CLASSES]);

impl Answers {
    /// Share of right answers.
    pub(super) fn accuracy(&self) -> f64 {
        let right: u64 = (0..CLASSES).map(|class| self.0[class][class]).sum();
        right as f64 / self.count().max(1) as f64
    }

    /// How many answers.
    pub(super) fn count(&self) -> u64 {
        self.0.as_flattened().iter().sum()
    }

    /// Bits that an answer tells about the activity.
    pub(super) fn bits(&self) -> f64 {
        let rows = self.0.map(|row| row.to_vec());
        information_bits(&rows)
    }
}

/// Each window of `asked` is taken for what most of its nearest `known` ones are.
pub(super) fn by_neighbours(known: &[Window], asked: &[Window]) -> Answers {
    classify(known, asked, |known, point| {
        let mut near: Vec<(f64, usize)> = known
            .iter()
            .map(|(class, other)| (distance(point, other), *class))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut votes = [0; CLASSES];
        near.iter()
            .take(NEIGHBOURS)
            .for_each(|(_, class)| votes[*class] += 1);
        let most = votes.iter().max().copied().unwrap_or(0);
        // Equal votes: whoever is nearest of them.
        let first = near.iter().find(|(_, class)| votes[*class] == most);
        first.map_or(0, |(_, class)| *class)
    })
}

/// Each window of `asked` is taken for the activity whose mean window is nearest.
pub(super) fn by_centres(known: &[Window], asked: &[Window]) -> Answers {
    classify(known, asked, |known, point| {
        let centre = |class| {
            let of: Vec<&Point> = known
                .iter()
                .filter(|k| k.0 == class)
                .map(|k| &k.1)
                .collect();
            std::array::from_fn(|at| {
                let values: Vec<f64> = of.iter().map(|point| point[at]).collect();
                mean(&values)
            })
        };
        let far = |class: &usize| distance(point, &centre(*class));
        let nearest = (0..CLASSES).min_by(|a, b| far(a).total_cmp(&far(b)));
        nearest.unwrap_or(0)
    })
}

/// A window's features in units of their deviation.
type Point = [f64; FEATURES.len()];

fn classify(
    known: &[Window],
    asked: &[Window],
    answer: impl Fn(&[(usize, Point)], &Point) -> usize,
) -> Answers {
    let scale: [(f64, f64); FEATURES.len()] = std::array::from_fn(|at| {
        let values: Vec<f64> = known.iter().map(|window| window.features[at]).collect();
        (mean(&values), deviation(&values))
    });
    let point = |window: &Window| -> Point {
        std::array::from_fn(|at| {
            let (mean, deviation) = scale[at];
            // A feature that never changed while it was learnt says nothing.
            if deviation > 0.0 {
                (window.features[at] - mean) / deviation
            } else {
                0.0
            }
        })
    };
    let known: Vec<(usize, Point)> = known.iter().map(|w| (w.class, point(w))).collect();
    let mut answers = Answers::default();
    for window in asked {
        answers.0[window.class][answer(&known, &point(window))] += 1;
    }
    answers
}

fn distance(a: &Point, b: &Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// What one feature tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Telling {
    pub(super) feature: &'static str,
    /// Bits about the activity.
    pub(super) bits: f64,
    /// Bits that the best feature tells in one of twenty shuffles of the activities.
    pub(super) by_chance_bits: f64,
}

/// The feature that tells most.
pub(super) fn most_telling(windows: &[Window]) -> Telling {
    let columns: Vec<Vec<usize>> = (0..FEATURES.len()).map(|at| bins(windows, at)).collect();
    let mut classes: Vec<usize> = windows.iter().map(|window| window.class).collect();
    let best = |classes: &[usize]| {
        let told = columns.iter().map(|column| {
            let mut table = vec![vec![0; BINS]; CLASSES];
            for (class, bin) in classes.iter().zip(column) {
                table[*class][*bin] += 1;
            }
            information_bits(&table)
        });
        let best = told.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.unwrap_or((0, 0.0))
    };
    let (feature, bits) = best(&classes);
    let mut chance: Vec<f64> = (0..SHUFFLES as u64)
        .map(|seed| {
            shuffle(&mut classes, seed);
            best(&classes).1
        })
        .collect();
    chance.sort_by(f64::total_cmp);
    Telling {
        feature: FEATURES[feature],
        bits,
        by_chance_bits: chance[SHUFFLES * 19 / 20],
    }
}

/// Which bin each window's feature is in; as many windows in each as equal values allow.
fn bins(windows: &[Window], feature: usize) -> Vec<usize> {
    let value = |window: &Window| window.features[feature];
    let mut sorted: Vec<f64> = windows.iter().map(value).collect();
    sorted.sort_by(f64::total_cmp);
    let bounds: Vec<f64> = (1..BINS)
        .filter_map(|bin| sorted.get(bin * sorted.len() / BINS).copied())
        .collect();
    let bin = |window| {
        bounds
            .iter()
            .filter(|bound| value(window) >= **bound)
            .count()
    };
    windows.iter().map(bin).collect()
}

/// In an order that depends on the seed alone (Fisher and Yates; xorshift of Marsaglia).
fn shuffle(values: &mut [usize], seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for last in (1..values.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values.swap(last, (state % (last as u64 + 1)) as usize);
    }
}

/// Mutual information of row and column of a table of counts, in bits: the estimate from the counts, less its bias.
fn information_bits(table: &[Vec<u64>]) -> f64 {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let row = |row: &Vec<u64>| row.iter().sum::<u64>();
    let column = |at: usize| -> u64 { table.iter().filter_map(|row| row.get(at)).sum() };
    let sums: Vec<u64> = (0..columns).map(column).collect();
    let all: u64 = sums.iter().sum();
    if all == 0 {
        return 0.0;
    }
    let mut bits = 0.0;
    for line in table {
        let in_row = row(line);
        for (count, in_column) in line.iter().zip(&sums).filter(|(count, _)| **count > 0) {
            let together = *count as f64 / all as f64;
            let apart = in_row as f64 / all as f64 * *in_column as f64 / all as f64;
            bits += together * (together / apart).log2();
        }
    }
    let used = |sums: &mut dyn Iterator<Item = u64>| sums.filter(|sum| *sum > 0).count() as f64;
    let (rows, columns) = (
        used(&mut table.iter().map(row)),
        used(&mut sums.iter().copied()),
    );
    let bias = (rows - 1.0) * (columns - 1.0) / (2.0 * all as f64 * std::f64::consts::LN_2);
    (bits - bias).max(0.0)
}

#[cfg(test)]
mod tests;
