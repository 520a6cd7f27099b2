//! The radio's probabilities beside values that were come by in another way, and its samples beside its
//! probabilities.

use super::*;
use crate::impair::testing::assert_ratio;

/// The code of most satellites: CCSDS 131.0-B.
fn radio(eb_n0_db: f64) -> Radio {
    Radio {
        eb_n0_db,
        word_octets: 255,
        data_octets: 223,
    }
}

/// The Eb/N0 at which a bit on the air of this code has so much energy over the noise density.
fn on_the_air(ratio: f64, word_octets: usize, data_octets: usize) -> Radio {
    Radio {
        eb_n0_db: 10.0 * (ratio * word_octets as f64 / data_octets as f64).log10(),
        word_octets,
        data_octets,
    }
}

#[track_caller]
fn assert_near(what: &str, got: f64, expected: f64, relative: f64) {
    assert!(
        (got - expected).abs() <= relative * expected,
        "{what}: {got:e}, expected {expected:e}"
    );
}

/// erfc by the series of erf (NIST DLMF 7.6.1); good for arguments up to 2.
fn erfc_by_series(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..80 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    1.0 - 2.0 / std::f64::consts::PI.sqrt() * sum
}

/// That more than `corrected` of `octets` are wrong, octet after octet: the distribution of the count is
/// convolved with one octet's as often as there are octets.
fn failure_by_convolution(octet: f64, octets: usize, corrected: usize) -> f64 {
    let mut wrong = vec![0.0; octets + 1];
    wrong[0] = 1.0;
    for sent in 1..=octets {
        for count in (1..=sent).rev() {
            wrong[count] = wrong[count] * (1.0 - octet) + wrong[count - 1] * octet;
        }
        wrong[0] *= 1.0 - octet;
    }
    wrong[corrected + 1..].iter().sum()
}

#[test]
fn bit_error_ratios_are_those_of_the_tables() {
    // erfc as printed in M. Abramowitz and I. Stegun, Handbook of Mathematical Functions (1964), 7.1.
    for (x, erfc) in [
        (0.5_f64, 0.479_500_122_2),
        (1.0, 0.157_299_207_1),
        (1.5, 0.033_894_853_5),
        (2.0, 0.004_677_735_0),
        (3.0, 0.000_022_090_497_0),
    ] {
        let ratio = on_the_air(x * x, 255, 223).bit_error_ratio();
        assert!((ratio - erfc / 2.0).abs() < 1e-10, "{x}: {ratio}");
    }
    // The usual points of the curve of QPSK: 0 dB, 10 dB, and one error in 100000 at 9.59 dB.
    for (db, expected) in [(0.0_f64, 0.078_649_6), (10.0, 3.872_11e-6), (9.588, 1e-5)] {
        let ratio = on_the_air(10_f64.powf(db / 10.0), 15, 11).bit_error_ratio();
        assert_near("dB", ratio, expected, 1e-3);
    }
    for db in [-20.0, -3.0, 0.0, 1.5, 3.0, 5.5] {
        let energy = 10_f64.powf(db / 10.0) * 223.0 / 255.0;
        let expected = erfc_by_series(energy.sqrt()) / 2.0;
        assert_near("series", radio(db).bit_error_ratio(), expected, 1e-9);
    }
}

#[test]
fn symbols_of_the_air_and_of_the_code_are_wrong_when_one_of_their_bits_is() {
    for db in [-10.0, 0.0, 4.0, 8.0] {
        let radio = radio(db);
        let bit = radio.bit_error_ratio();
        let symbol = 2.0 * bit - bit * bit;
        assert_near("QPSK", radio.qpsk_symbol_error_ratio(), symbol, 1e-12);
        let octet = 1.0 - (1.0 - symbol).powi(4);
        assert_near("octet", radio.octet_error_ratio(), octet, 1e-8);
    }
    // Where 1 - p is rounded to 1, eight bits are still eight times as often wrong as one.
    let rare = radio(20.0);
    assert_near(
        "rare",
        rare.octet_error_ratio(),
        8.0 * rare.bit_error_ratio(),
        1e-9,
    );
}

#[test]
fn words_fail_with_the_tail_of_the_binomial_distribution() {
    for (word_octets, data_octets) in [(255, 223), (255, 239), (255, 1), (15, 11), (4, 1), (2, 1)] {
        for eb_n0_db in [-30.0, -3.0, 0.0, 3.0, 5.0, 6.5, 8.0] {
            let radio = Radio {
                eb_n0_db,
                word_octets,
                data_octets,
            };
            let corrected = radio.corrected_octets();
            for data in [1, data_octets / 2 + 1, data_octets] {
                let octets = data + word_octets - data_octets;
                let expected = failure_by_convolution(radio.octet_error_ratio(), octets, corrected);
                let what = format!("({word_octets}, {data_octets}) with {data} at {eb_n0_db} dB");
                assert_near(&what, radio.word_failure_ratio(data), expected, 1e-9);
            }
        }
    }
    let [two, three] = [(2, 1), (3, 1)].map(|(n, k)| on_the_air(1.0, n, k));
    let p = two.octet_error_ratio();
    assert_near(
        "none corrected",
        two.word_failure_ratio(1),
        2.0 * p - p * p,
        1e-12,
    );
    let expected = 3.0 * p * p * (1.0 - p) + p * p * p;
    assert_near("one of three", three.word_failure_ratio(1), expected, 1e-12);
}

#[test]
fn frames_are_damaged_as_often_and_as_much_as_computed() {
    for (eb_n0_db, word_octets, data_octets) in [(5.2, 255, 223), (3.0, 15, 11), (7.0, 4, 1)] {
        let radio = Radio {
            eb_n0_db,
            word_octets,
            data_octets,
        };
        let link = RadioLink::new(&radio);
        let mut chance = Chance::new(9);
        // Words of whole length only: what is expected is one number.
        let frames = 6000;
        let sent = vec![0_u8; data_octets * 4];
        let mut all = Decoded::default();
        let (mut octets_seen, mut bits, mut first_bits, mut last_bits) = (0, 0, 0, 0);
        for _ in 0..frames {
            let mut frame = sent.clone();
            let decoded = link.damage(&mut frame, &mut chance);
            all.words += decoded.words;
            all.words_failed += decoded.words_failed;
            all.octets_changed += decoded.octets_changed;
            for octet in frame {
                octets_seen += u64::from(octet != 0);
                bits += u64::from(octet.count_ones());
                first_bits += u64::from(octet >> 7);
                last_bits += u64::from(octet & 1);
            }
        }
        assert_eq!(all.words, frames * 4);
        assert_eq!(
            octets_seen, all.octets_changed,
            "exactly the counted octets"
        );
        let failure = radio.word_failure_ratio(data_octets);
        assert!((0.001..0.9).contains(&failure), "{failure}");
        assert_ratio("words", all.words_failed, all.words, failure);

        // Octets of data that are wrong in a failed word: a share of all that are wrong (the hypergeometric
        // distribution), and how many those are given that the word fails.
        let wrong = WrongOctets::new(radio.octet_error_ratio());
        let octets = word_octets as f64;
        let data = data_octets as f64 / octets;
        let (mut mean, mut square) = (0.0, 0.0);
        for count in radio.corrected_octets() + 1..=word_octets {
            let probability = wrong.probability(count, word_octets) / failure;
            let count = count as f64;
            let spread = count * data * (1.0 - data) * (octets - count) / (octets - 1.0);
            mean += probability * count * data;
            square += probability * (spread + (count * data).powi(2));
        }
        let failed = all.words_failed as f64;
        let off = 5.0 * (failed * (square - mean * mean)).sqrt();
        assert!(
            (octets_seen as f64 - failed * mean).abs() < off,
            "{octets_seen} octets, expected {} and at most {off} off",
            failed * mean
        );
        // In a wrong octet each bit is wrong as often as another.
        let bit = radio.bit_error_ratio() / radio.octet_error_ratio();
        assert_ratio("first bits", first_bits, octets_seen, bit);
        assert_ratio("last bits", last_bits, octets_seen, bit);
        // Bits of an octet are dependent, so eight deviations of a mean of eight are allowed.
        let expected = 8.0 * bit * octets_seen as f64;
        assert!((bits as f64 - expected).abs() < 8.0 * (8.0 * octets_seen as f64).sqrt());
    }
}

#[test]
fn the_last_word_of_a_frame_is_shorter_and_fails_less() {
    let radio = radio(5.2);
    let link = RadioLink::new(&radio);
    let mut chance = Chance::new(10);
    let (mut failed, frames) = (0, 20_000);
    for _ in 0..frames {
        let decoded = link.damage(&mut [0; 100], &mut chance);
        assert_eq!(decoded.words, 1);
        failed += decoded.words_failed;
    }
    let failure = radio.word_failure_ratio(100);
    assert!(failure < radio.word_failure_ratio(223) / 10.0);
    assert_ratio("short words", failed, frames, failure);
}

#[test]
fn a_strong_signal_changes_nothing_and_noise_everything() {
    let mut chance = Chance::new(11);
    let mut octets = [0x77; 1514];
    let strong = RadioLink::new(&radio(25.0)).damage(&mut octets, &mut chance);
    assert_eq!((strong.words, strong.words_failed), (7, 0));
    assert_eq!(octets, [0x77; 1514]);
    let noise = RadioLink::new(&radio(-30.0)).damage(&mut octets, &mut chance);
    assert_eq!((noise.words, noise.words_failed), (7, 7));
    assert!(noise.octets_changed > 1400, "{noise:?}");
    assert_eq!(
        RadioLink::new(&radio(5.0)).damage(&mut [], &mut chance),
        Decoded::default()
    );
}

#[test]
fn codes_that_are_none_are_refused() {
    let refused = |eb_n0_db, word_octets, data_octets| {
        let radio = Radio {
            eb_n0_db,
            word_octets,
            data_octets,
        };
        radio.check().expect_err("out of bounds").to_string()
    };
    assert_eq!(
        refused(5.0, 255, 255),
        "k of the radio's code is 255 octets: allowed is 1 to 254 octets"
    );
    for (n, k, words) in [
        (256, 223, "n of the radio's code is 256"),
        (1, 1, "n of the radio's code is 1"),
        (0, 0, "n of the radio's code is 0"),
        (255, 0, "k of the radio's code is 0"),
        (223, 255, "allowed is 1 to 222 octets"),
    ] {
        let text = refused(5.0, n, k);
        assert!(text.contains(words), "{text}");
    }
    for db in [f64::NAN, f64::INFINITY, -31.0, 25.5] {
        let text = refused(db, 255, 223);
        assert!(text.contains("allowed is -30 to 25 dB"), "{text}");
    }
}
