//! What the tests of this folder share.

/// Whether `hits` of `trials` is what a probability gives: within five standard deviations of the binomial
/// distribution, and one for its steps. A sound generator leaves that once in a million and a half seeds.
#[track_caller]
pub(crate) fn assert_ratio(what: &str, hits: u64, trials: u64, probability: f64) {
    let expected = trials as f64 * probability;
    let deviation = (expected * (1.0 - probability)).sqrt();
    assert!(
        (hits as f64 - expected).abs() <= 5.0 * deviation + 1.0,
        "{what}: {hits} of {trials}, expected {expected:.1} and at most {:.1} off",
        5.0 * deviation
    );
}
