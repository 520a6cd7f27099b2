//! A batch of any shape, under one to three keys of any suite: every level of this CPU does what `soft`
//! does frame by frame, and `soft` does what RustCrypto does.
//!
//! What always holds: a batch seals to the same octets on every level and opens again; a frame in which
//! one bit was changed is refused and wiped, and its neighbours are not; a batch with one nonce twice
//! under one key is refused and left as it was.

#![no_main]

mod input;
mod rustcrypto;

use input::{Frame, Input};
use libfuzzer_sys::fuzz_target;
use qloak_cipher::batch::{self, BatchError, Under};
use qloak_cipher::{Level, Open, Seal, SuiteKey};

/// A frame after sealing: data, tag.
type Sealed = (Vec<u8>, Vec<u8>);

fuzz_target!(|input: Input| {
    let best = Level::detect("").expect("nothing is disabled");
    if let Some((first, second)) = input.nonce_twice() {
        for level in best.and_below() {
            refuses_a_nonce_twice(&input, level, first, second);
        }
        return;
    }
    let soft = keys(&input, Level::Soft);
    let expected: Vec<Sealed> = input
        .frames
        .iter()
        .map(|frame| one_by_one(&soft[frame.key], frame))
        .collect();
    for (frame, sealed) in input.frames.iter().zip(&expected) {
        if let Some(theirs) = rustcrypto::seal(&input, frame) {
            assert!(
                theirs == *sealed,
                "{}: soft and RustCrypto differ",
                input.suite.name
            );
        }
    }
    for level in best.and_below() {
        let what = format!("{} at {level}", input.suite.name);
        let keys = keys(&input, level);
        let sealed = seal_all(&keys, &input.frames).expect("lengths and nonces are right");
        assert!(
            sealed == expected,
            "{what}: another ciphertext or tag than soft"
        );
        opens_all_but_the_forged(&input, &keys, sealed, &what);
    }
});

fn keys(input: &Input, level: Level) -> Vec<SuiteKey> {
    let make = |key: &Vec<u8>| {
        if input.short_tags {
            SuiteKey::pon(input.suite, key, level).expect("a GCM suite and its length")
        } else {
            SuiteKey::new(input.suite, key, level).expect("the suite's length")
        }
    };
    input.keys.iter().map(make).collect()
}

fn one_by_one(key: &SuiteKey, frame: &Frame) -> Sealed {
    let (mut data, mut tag) = (frame.data.clone(), vec![0; key.tag_octets()]);
    key.seal(&mut [Seal {
        nonce: frame.nonce,
        aad: &frame.aad,
        data: &mut data,
        tag: &mut tag,
    }])
    .expect("lengths are right");
    (data, tag)
}

/// In one call: that of the door where there is one key, that of batches under several keys else.
fn seal_all(keys: &[SuiteKey], frames: &[Frame]) -> Result<Vec<Sealed>, BatchError> {
    let place = |frame: &Frame| (frame.data.clone(), vec![0; keys[0].tag_octets()]);
    let mut sealed: Vec<Sealed> = frames.iter().map(place).collect();
    let seals = frames
        .iter()
        .zip(&mut sealed)
        .map(|(frame, (data, tag))| Seal {
            nonce: frame.nonce,
            aad: &frame.aad,
            data,
            tag,
        });
    if let [key] = keys {
        key.seal(&mut seals.collect::<Vec<_>>())?;
    } else {
        let under = |(seal, frame): (_, &Frame)| Under {
            key: &keys[frame.key],
            frame: seal,
        };
        batch::seal(&mut seals.zip(frames).map(under).collect::<Vec<_>>())?;
    }
    Ok(sealed)
}

/// Changes the bit that the input names, opens, and looks at every verdict and at what is left.
fn opens_all_but_the_forged(input: &Input, keys: &[SuiteKey], sealed: Vec<Sealed>, what: &str) {
    let mut sealed = sealed;
    let forged = input.forge(&mut sealed);
    let opens = input.frames.iter().zip(&mut sealed);
    let opens = opens.enumerate().map(|(at, (frame, (data, tag)))| Open {
        nonce: frame.nonce,
        aad: &frame.aad,
        data,
        tag,
        valid: Some(at) == forged,
    });
    let verdicts: Vec<bool> = if let [key] = keys {
        let mut batch: Vec<Open<'_>> = opens.collect();
        key.open(&mut batch).expect("lengths are right");
        batch.iter().map(|open| open.valid).collect()
    } else {
        let under = |(open, frame): (_, &Frame)| Under {
            key: &keys[frame.key],
            frame: open,
        };
        let mut batch: Vec<Under<'_, Open<'_>>> = opens.zip(&input.frames).map(under).collect();
        batch::open(&mut batch).expect("lengths are right");
        batch.iter().map(|one| one.frame.valid).collect()
    };
    for (at, valid) in verdicts.into_iter().enumerate() {
        let (data, frame) = (&sealed[at].0, &input.frames[at]);
        if Some(at) == forged {
            assert!(!valid, "{what}: a forged frame was opened");
            assert!(data.iter().all(|octet| *octet == 0), "{what}: not wiped");
        } else {
            assert!(valid, "{what}: a sound frame was refused");
            assert!(*data == frame.data, "{what}: it does not come back");
        }
    }
}

fn refuses_a_nonce_twice(input: &Input, level: Level, first: usize, second: usize) {
    let error = seal_all(&keys(input, level), &input.frames).expect_err("a nonce twice");
    assert_eq!(error, BatchError::NonceTwice { first, second });
}
