//! Known answers, met before a suite is offered.
//!
//! A node runs this at start for each suite on the backend that it will use. Each answer must come
//! out of sealing, go back through opening, and in an AEAD suite a tag with one bit wrong must be
//! refused and the data wiped. The answers are two or so a suite out of `vectors/suite`, compiled
//! in; the crate's tests run all of them.

use thiserror::Error;

use crate::aead::{Open, Seal};
use crate::key::SuiteKey;
use crate::level::Level;
use crate::limits::NONCE_OCTETS;
use crate::suite::Suite;

mod answers;

/// A suite that did not meet a known answer on a backend. It must not be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{suite} on {backend} fails its self-test: {what}")]
pub struct SelfTestError {
    /// The suite's name.
    pub suite: &'static str,
    /// The backend that ran it.
    pub backend: &'static str,
    /// What was not as it ought to be.
    pub what: &'static str,
}

/// One known answer; octets in hex.
struct Answer {
    suite: &'static str,
    key: &'static str,
    nonce: &'static str,
    aad: &'static str,
    plaintext: &'static str,
    ciphertext: &'static str,
    tag: &'static str,
}

/// Runs the known answers of `suite` on the backend that `level` chooses.
///
/// # Errors
/// The first answer that was not met; also a suite without any answer.
pub fn run(suite: &'static Suite, level: Level) -> Result<(), SelfTestError> {
    run_on(answers::ANSWERS, suite, level)
}

fn run_on(answers: &[Answer], suite: &'static Suite, level: Level) -> Result<(), SelfTestError> {
    let mut met = 0;
    for answer in answers.iter().filter(|answer| answer.suite == suite.name) {
        meet(answer, suite, level)?;
        met += 1;
    }
    if met == 0 {
        return Err(SelfTestError {
            suite: suite.name,
            backend: "no backend",
            what: "there is no known answer",
        });
    }
    Ok(())
}

fn meet(answer: &Answer, suite: &'static Suite, level: Level) -> Result<(), SelfTestError> {
    let mut error = SelfTestError {
        suite: suite.name,
        backend: "no backend",
        what: "the known answer is not hex or has a wrong length",
    };
    let parsed = || {
        Some((
            octets(answer.key)?,
            <[u8; NONCE_OCTETS]>::try_from(octets(answer.nonce)?).ok()?,
            octets(answer.aad)?,
            octets(answer.plaintext)?,
            octets(answer.ciphertext)?,
            octets(answer.tag)?,
        ))
    };
    let (key, nonce, aad, plaintext, ciphertext, tag) = parsed().ok_or(error)?;
    let key = SuiteKey::new(suite, &key, level).map_err(|_| error)?;
    error.backend = key.backend();
    let fails = |what| SelfTestError { what, ..error };

    let mut data = plaintext.clone();
    let mut made = vec![0; tag.len()];
    key.seal(&mut [Seal {
        nonce,
        aad: &aad,
        data: &mut data,
        tag: &mut made,
    }])
    .map_err(|_| error)?;
    if data != ciphertext {
        return Err(fails("the ciphertext is wrong"));
    }
    if made != tag {
        return Err(fails("the tag is wrong"));
    }

    if !open(&key, nonce, &aad, &mut data, &tag).ok_or(error)? {
        return Err(fails("it refuses its own frame"));
    }
    if data != plaintext {
        return Err(fails("the plaintext does not come back"));
    }

    if let Some(last) = made.last_mut() {
        *last ^= 1;
        let mut data = ciphertext;
        if open(&key, nonce, &aad, &mut data, &made).ok_or(error)? {
            return Err(fails("it takes a forged tag"));
        }
        if data.iter().any(|octet| *octet != 0) {
            return Err(fails("it leaves data of a forged frame"));
        }
    }
    Ok(())
}

fn open(
    key: &SuiteKey,
    nonce: [u8; NONCE_OCTETS],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8],
) -> Option<bool> {
    let mut batch = [Open {
        nonce,
        aad,
        data,
        tag,
        valid: false,
    }];
    key.open(&mut batch).ok()?;
    Some(batch[0].valid)
}

/// The octets of a string of hex digits; None for anything else.
fn octets(hex: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |octet: u8| char::from(octet).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::SUITES;

    fn levels() -> impl Iterator<Item = Level> {
        Level::detect("").expect("nothing is disabled").and_below()
    }

    #[test]
    fn every_suite_meets_its_answers_on_every_backend() {
        for level in levels() {
            for suite in &SUITES {
                assert_eq!(run(suite, level), Ok(()));
            }
        }
    }

    /// One digit of one field at a time: each must be noticed, or the self-test tests nothing.
    #[test]
    fn a_wrong_answer_is_noticed_whichever_field_is_wrong() {
        for answer in answers::ANSWERS {
            let suite = Suite::by_name(answer.suite).expect("in the table");
            for level in levels() {
                for (field, bad) in corrupted(answer) {
                    let ignored = match field {
                        "key" => suite.name == "plain",
                        "nonce" | "aad" => !suite.authenticates() && !suite.name.ends_with("ctr"),
                        _ => false,
                    };
                    let met = run_on(&[bad], suite, level).is_ok();
                    assert_eq!(met, ignored, "{} {field} at {level}", suite.name);
                }
            }
        }
    }

    #[test]
    fn a_suite_without_answers_fails() {
        let error = run_on(&[], &SUITES[0], Level::Soft).expect_err("nothing was tested");
        assert_eq!(error.what, "there is no known answer");
    }

    /// The answer once for each of its fields that is not empty, with that field's first digit
    /// changed.
    fn corrupted(answer: &Answer) -> Vec<(&'static str, Answer)> {
        let wrong = |hex: &'static str| -> &'static str {
            let (first, rest) = hex.split_at(1);
            let other = if first == "0" { "1" } else { "0" };
            format!("{other}{rest}").leak()
        };
        let Answer {
            suite,
            key,
            nonce,
            aad,
            plaintext,
            ciphertext,
            tag,
        } = *answer;
        let same = || Answer {
            suite,
            key,
            nonce,
            aad,
            plaintext,
            ciphertext,
            tag,
        };
        let mut all = vec![
            (
                "key",
                Answer {
                    key: wrong(key),
                    ..same()
                },
            ),
            (
                "nonce",
                Answer {
                    nonce: wrong(nonce),
                    ..same()
                },
            ),
            (
                "plaintext",
                Answer {
                    plaintext: wrong(plaintext),
                    ..same()
                },
            ),
            (
                "ciphertext",
                Answer {
                    ciphertext: wrong(ciphertext),
                    ..same()
                },
            ),
        ];
        if !aad.is_empty() {
            all.push((
                "aad",
                Answer {
                    aad: wrong(aad),
                    ..same()
                },
            ));
        }
        if !tag.is_empty() {
            all.push((
                "tag",
                Answer {
                    tag: wrong(tag),
                    ..same()
                },
            ));
        }
        all
    }
}
