//! Known answers.

use super::*;

/// A large table, where the correction is nothing.
fn bits(table: &[[u64; 2]]) -> f64 {
    let table: Vec<Vec<u64>> = table
        .iter()
        .map(|row| row.iter().map(|count| count * 1_000_000).collect())
        .collect();
    information_bits(&table)
}

#[test]
fn information_is_what_the_books_say() {
    assert!(bits(&[[50, 50], [50, 50]]).abs() < 1e-6, "independent");
    assert!((bits(&[[50, 0], [0, 50]]) - 1.0).abs() < 1e-6, "the same");
    // A binary symmetric channel that errs in 11 of 100 carries 1 - H(0.11) = 0.50009 bits.
    assert!((bits(&[[89, 11], [11, 89]]) - 0.50009).abs() < 1e-4);
    let three = Answers([[7_000_000, 0, 0], [0, 7_000_000, 0], [0, 0, 7_000_000]]);
    assert!((three.bits() - 3f64.log2()).abs() < 1e-5);
    assert_eq!((three.accuracy(), three.count()), (1.0, 21_000_000));
}

#[test]
fn the_bias_of_few_counts_is_taken_off() {
    // From these counts alone 0.0290 bits; (2 - 1)(2 - 1) / (2 * 100 ln 2) = 0.0072 of them are bias.
    let table = [vec![30, 20], vec![20, 30]];
    let plain = 0.6 * 1.2f64.log2() + 0.4 * 0.8f64.log2();
    assert!((information_bits(&table) - (plain - 0.007_213)).abs() < 1e-5);
    assert_eq!(information_bits(&[vec![1, 1], vec![1, 1]]), 0.0);
    assert_eq!(information_bits(&[]), 0.0);
}

fn frame(at_ns: u64, octets: u32) -> Sighting {
    Sighting {
        at_ns,
        octets,
        agreement: octets == 100,
    }
}

#[test]
fn the_features_of_a_window() {
    let frames = [
        frame(0, 100),
        frame(1000, 1500),
        frame(11_000, 1500),
        frame(41_000, 1500),
        frame(100_000, 9),
    ];
    let windows = windows(&frames, 0, 299_999, 100_000, 2);
    assert_eq!(windows.len(), 2, "whole windows only");
    let [first, second] = [&windows[0], &windows[1]];
    assert_eq!((first.class, first.features[0]), (2, 4.0));
    assert_eq!(first.features[1], 1150.0);
    assert!((first.features[2] - 606.2178).abs() < 1e-3);
    assert_eq!(first.features[3..6], [2.0, 0.25, 10_000.0]);
    assert!((first.features[6] - 12_119.77).abs() < 0.1);
    assert_eq!(first.features[7], 30_000.0);
    assert!((first.features[8] - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(first.features[9], 1.0);
    assert_eq!(
        second.features[5], 100_000.0,
        "one frame: no gap but the window"
    );
}

/// Windows whose first feature says what they are, and whose others say nothing.
fn plain(count: usize) -> Vec<Window> {
    let window = |index: usize| {
        let class = index % CLASSES;
        let mut features = [1.0; FEATURES.len()];
        features[0] = class as f64 * 10.0 + (index % 7) as f64 * 0.1;
        features[4] = (index * index % 11) as f64 * 0.01;
        Window { class, features }
    };
    (0..count).map(window).collect()
}

/// Windows that are the same whatever goes on.
fn blank(count: usize) -> Vec<Window> {
    let mut windows = plain(count);
    for (index, window) in windows.iter_mut().enumerate() {
        window.features[0] = (index / CLASSES * 37 % 101) as f64;
    }
    windows
}

#[test]
fn what_is_plain_is_told_and_what_is_blank_is_not() {
    let (known, asked) = (plain(90), plain(60));
    assert_eq!(by_neighbours(&known, &asked).accuracy(), 1.0);
    assert_eq!(by_centres(&known, &asked).accuracy(), 1.0);
    let told = most_telling(&plain(300));
    assert_eq!(told.feature, "frames");
    assert!((told.bits - 3f64.log2()).abs() < 0.1, "{told:?}");
    assert!(told.by_chance_bits < 0.1, "{told:?}");

    let told = most_telling(&blank(300));
    assert!(told.bits <= told.by_chance_bits + 0.05, "{told:?}");
    let blank = blank(300);
    let (known, asked) = blank.split_at(150);
    for answers in [by_neighbours(known, asked), by_centres(known, asked)] {
        assert!((answers.accuracy() - 1.0 / 3.0).abs() < 0.15, "{answers:?}");
    }
}
