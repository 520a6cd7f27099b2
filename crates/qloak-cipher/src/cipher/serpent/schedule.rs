//! The key schedule: 132 words of an affine recurrence, each four put through an S-box.
//!
//! Round key `i` goes through S-box `3 - i` modulo 8, by the circuits of the rounds: no table is looked
//! up, and the time does not depend on the key.

use zeroize::Zeroizing;

use super::{RoundKey, sbox};

/// The fraction of the golden ratio.
const PHI: u32 = 0x9e37_79b9;

/// Words that the key is padded to, before those of the schedule.
const PADDED: usize = 8;

/// Round keys.
const KEYS: usize = 33;

/// Fills the turns and the last round key from a key of 16, 24 or 32 octets.
pub(super) fn fill(key: &[u8], turns: &mut [[RoundKey; 8]; 4], last: &mut RoundKey) {
    let words = recurrence(key);
    let fours = words[PADDED..].as_chunks::<4>().0;
    substitute::<0, 3>(fours, turns);
    substitute::<1, 2>(fours, turns);
    substitute::<2, 1>(fours, turns);
    substitute::<3, 0>(fours, turns);
    substitute::<4, 7>(fours, turns);
    substitute::<5, 6>(fours, turns);
    substitute::<6, 5>(fours, turns);
    substitute::<7, 4>(fours, turns);
    *last = sbox::forward::<u32, 3>(fours[KEYS - 1]);
}

/// The padded key, then the prekeys. A key shorter than 256 bits ends with a one and zeros.
fn recurrence(key: &[u8]) -> Zeroizing<[u32; PADDED + 4 * KEYS]> {
    let mut padded = Zeroizing::new([0; 4 * PADDED]);
    padded[..key.len()].copy_from_slice(key);
    if let Some(after) = padded.get_mut(key.len()) {
        *after = 1;
    }

    let mut words = Zeroizing::new([0; PADDED + 4 * KEYS]);
    for (word, octets) in words.iter_mut().zip(padded.as_chunks().0) {
        *word = u32::from_le_bytes(*octets);
    }
    for (number, at) in (0..).zip(PADDED..words.len()) {
        let sum = words[at - 8] ^ words[at - 5] ^ words[at - 3] ^ words[at - 1] ^ PHI ^ number;
        words[at] = sum.rotate_left(11);
    }
    words
}

/// The round keys of one place in each turn.
fn substitute<const PLACE: usize, const BOX: usize>(
    fours: &[RoundKey],
    turns: &mut [[RoundKey; 8]; 4],
) {
    for (turn, keys) in turns.iter_mut().zip(fours.chunks(8)) {
        turn[PLACE] = sbox::forward::<u32, BOX>(keys[PLACE]);
    }
}
