//! Does it take longer for one class of secrets than for another?
//!
//! Three secrets of each suite at each level: the key (zeros, or random), the plaintext (zeros, or
//! random), and where a forged tag is wrong (in its first octet, or in its last). The class of each sample
//! is drawn, and both classes go through the same memory: the secret is written where that of the
//! sample before lay, the key is made anew, and only then the clock runs.

use std::hint::black_box;
use std::time::Instant;

use qloak_cipher::{Level, Suite, SuiteKey};

use crate::leaky::{BY_BRANCH, BY_EARLY_EXIT, Leaky};
use crate::limits::{T_DIFFERS_MIN, TIMED_FRAMES, TIMED_OCTETS};
use crate::random::Random;
use crate::report::{self, Times};
use crate::subject::{Frames, open, seal};
use crate::welch::{Sample, t_max};

/// What differs between the classes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secret {
    Key,
    Data,
    Tag,
}

/// Measures all; prints; the error is a sentence.
pub(crate) fn run(
    all: &[(&'static Suite, Level)],
    samples: usize,
    json: bool,
) -> Result<(), String> {
    let controls = [BY_BRANCH, BY_EARLY_EXIT].map(|leaky| (leaky.0, control(leaky, samples)));
    for (name, t) in controls {
        if t < T_DIFFERS_MIN {
            return Err(format!(
                "the function that {name} on purpose shows |t| = {t:.1}, below {T_DIFFERS_MIN}: \
                 this machine is too restless, or {samples} samples are too few"
            ));
        }
    }
    let mut found = Vec::new();
    for (suite, level) in all {
        found.push(measure(suite, *level, samples));
        if !json {
            report::progress(found.len(), all.len());
        }
    }
    report::times(&controls, &found, json);
    Ok(())
}

/// |t| of a function that leaks.
fn control((_, function): Leaky, samples: usize) -> f64 {
    let mut random = Random::new(5);
    let mut secret = [0; TIMED_OCTETS];
    let sample = |_| {
        let class = choose(&mut random, &mut secret);
        let ns = time(|| {
            black_box(function(black_box(&secret)));
        });
        Sample { class, ns }
    };
    t_max(&(0..samples).map(sample).collect::<Vec<_>>())
}

fn measure(suite: &'static Suite, level: Level, samples: usize) -> Times {
    let of = |secret| t_max(&take(suite, level, secret, samples));
    Times {
        suite: suite.name,
        level: level.name(),
        samples,
        t_key: of(Secret::Key),
        t_data: of(Secret::Data),
        t_tag: suite.authenticates().then(|| of(Secret::Tag)),
    }
}

/// Times batches whose one secret is of a class that is drawn anew each time.
fn take(suite: &'static Suite, level: Level, secret: Secret, samples: usize) -> Vec<Sample> {
    let mut random = Random::new(6);
    let mut octets = vec![0x51; suite.key_octets];
    let mut frames = Frames::new(&[TIMED_OCTETS; TIMED_FRAMES], suite.tag_octets);
    let new_key = |octets: &[u8]| SuiteKey::new(suite, octets, level).expect("the suite's length");
    let mut key = new_key(&octets);
    let mut plain = vec![0; TIMED_OCTETS * TIMED_FRAMES];
    let mut taken = Vec::with_capacity(samples);
    // A few more, which warm caches and predictors and are not kept.
    for number in 0..samples + samples / 20 {
        let class = match secret {
            Secret::Key => {
                let class = choose(&mut random, &mut octets);
                // The old one first: the new one then comes to lie where it lay.
                drop(key);
                key = new_key(&octets);
                class
            }
            Secret::Data => choose(&mut random, &mut plain),
            Secret::Tag => random.next() & 1 == 1,
        };
        for (data, plain) in frames.data.iter_mut().zip(plain.chunks(TIMED_OCTETS)) {
            data.copy_from_slice(plain);
        }
        let ns = if secret == Secret::Tag {
            seal(&key, &mut frames.seals());
            let late = mask(class);
            for tag in &mut frames.tags {
                let last = tag.len() - 1;
                tag[0] ^= 0x10 & !late;
                tag[last] ^= 0x10 & late;
            }
            let mut batch = frames.opens();
            time(|| open(&key, &mut batch))
        } else {
            let mut batch = frames.seals();
            time(|| seal(&key, &mut batch))
        };
        if number >= samples / 20 {
            taken.push(Sample { class, ns });
        }
    }
    taken
}

/// Draws a class and writes its secret: zeros, or random octets. Both draw the octets, so that what
/// comes before the clock is alike.
fn choose(random: &mut Random, secret: &mut [u8]) -> bool {
    let class = random.next() & 1 == 1;
    random.fill(secret);
    let mask = mask(class);
    for octet in secret {
        *octet &= mask;
    }
    class
}

/// Ones or zeros. No branch may depend on the class before the clock runs: the CPU's predictor would
/// remember it, and what is timed would differ.
fn mask(class: bool) -> u8 {
    black_box(u8::from(class)).wrapping_neg()
}

fn time(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64
}
