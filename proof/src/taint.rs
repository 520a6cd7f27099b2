//! Secrets followed to every branch and address, under valgrind's memcheck.
//!
//! A secret is marked as memory that nobody has written. Memcheck follows that mark through registers
//! and memory, bit by bit, and reports a conditional jump or an address that depends on it. Of a key
//! everything is secret, and of a frame its plaintext; lengths, nonces, AAD, ciphertext and tags are known to
//! the line. When a frame is opened the verdict becomes known: the jumps that depend on it, and no others,
//! are listed in `verdict.supp`.
//!
//! What it cannot see: instructions whose own time depends on their operands, and levels that valgrind's
//! CPU does not have (it has AVX2, AES-NI and PCLMULQDQ, neither VAES nor AVX-512).

use qloak_cipher::{Level, Suite, SuiteKey};

use crate::leaky::{BY_ADDRESS, BY_BRANCH, BY_EARLY_EXIT, Leaky};
use crate::limits::FOLLOWED_OCTETS;
use crate::marks;
use crate::random::Random;
use crate::report::{self, Taint};
use crate::subject::{Frames, open, seal};

/// Looks at all; prints; the error says what leaks, or why nothing can be said.
pub(crate) fn run(all: &[(&'static Suite, Level)], json: bool) -> Result<(), String> {
    if !marks::listening() {
        return Err(
            "this looks at itself under valgrind: call it by `cargo xtask constant-time taint`"
                .into(),
        );
    }
    for leaky in [BY_ADDRESS, BY_BRANCH, BY_EARLY_EXIT] {
        if control(leaky) == 0 {
            return Err(format!(
                "the function that {} on purpose was not reported, so nothing that follows could be believed",
                leaky.0
            ));
        }
    }
    let found: Vec<Taint> = all
        .iter()
        .map(|(suite, level)| follow(suite, *level))
        .collect();
    report::taint(&found, json);
    let leaks = found.iter().filter(|one| one.leaks()).count();
    let lost = found.iter().filter(|one| one.lost).count();
    match (leaks, lost) {
        (0, 0) => Ok(()),
        (0, lost) => Err(format!(
            "{lost}: the mark of the secret did not reach the result"
        )),
        (leaks, _) => Err(format!(
            "{leaks} suites and levels branch on a secret or use one as an address; valgrind's log says where"
        )),
    }
}

/// Reports of a function that leaks.
fn control((_, function): Leaky) -> usize {
    let mut secret = [0_u8; 32];
    Random::new(1).fill(&mut secret);
    let before = marks::errors();
    marks::secret(&secret);
    let told = std::hint::black_box(function(&secret));
    marks::public(&[told]);
    marks::errors() - before
}

/// One suite at one level: a key is made, a batch sealed and opened, one frame of it forged; then the
/// longest frame alone.
fn follow(suite: &'static Suite, level: Level) -> Taint {
    let mut octets = vec![0; suite.key_octets];
    Random::new(2).fill(&mut octets);
    marks::secret(&octets);
    let (key, key_reports) = reports(|| SuiteKey::new(suite, &octets, level));
    let key = key.expect("a key of the suite's length");
    marks::public(&octets);

    let (mut seal_reports, mut open_reports, mut lost) = (0, 0, false);
    for lengths in [
        &FOLLOWED_OCTETS[..],
        &FOLLOWED_OCTETS[FOLLOWED_OCTETS.len() - 1..],
    ] {
        let mut frames = Frames::new(lengths, suite.tag_octets);
        for data in &mut frames.data {
            Random::new(3).fill(data);
            marks::secret(data);
        }
        let ((), reports) = self::reports(|| seal(&key, &mut frames.seals()));
        seal_reports += reports;
        let last = frames.data.len() - 1;
        lost |= !marks::is_secret(&frames.data[last]);
        for sealed in frames.data.iter().chain(&frames.tags) {
            marks::public(sealed);
        }
        if lengths.len() > 1
            && let Some(octet) = frames.tags[4].first_mut()
        {
            *octet ^= 1;
        }

        let mut batch = frames.opens();
        let ((), reports) = self::reports(|| open(&key, &mut batch));
        open_reports += reports;
        let valid: Vec<bool> = batch.iter().map(|open| open.valid).collect();
        marks::public(&valid);
        drop(batch);
        // What was opened comes from the key, except where there is none.
        lost |= suite.cipher != "none" && !marks::is_secret(&frames.data[last]);
        for (at, valid) in valid.iter().enumerate() {
            let forged = suite.authenticates() && lengths.len() > 1 && at == 4;
            assert_eq!(*valid, !forged, "{} at {level}, frame {at}", suite.name);
        }
    }
    Taint {
        suite: suite.name,
        level: level.name(),
        backend: key.backend(),
        key: key_reports,
        seal: seal_reports,
        open: open_reports,
        lost,
    }
}

/// What comes of it, and how many reports came with it.
fn reports<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = marks::errors();
    let done = work();
    (done, marks::errors() - before)
}
