//! Camellia's subkeys (RFC 3713, 2.2 and 2.3), and the functions of its rounds on whole words.
//!
//! A half of a block is a word whose highest octet comes first. No octet of a key is an address and
//! none decides a branch: the S-boxes are computed, eight at once.

use zeroize::Zeroize;

use super::field::{self, Matrix};

/// The constants Sigma1 to Sigma6.
const SIGMA: [u64; 6] = [
    0xa09e_667f_3bcc_908b,
    0xb67a_e858_4caa_73b2,
    0xc6ef_372f_e94f_82be,
    0x54ff_53a5_f1d3_6f1c,
    0x10e5_27fa_de68_2d1d,
    0xb056_88c2_b3e6_c1fd,
];

/// Where the second, third and fourth S-box stand in a half (RFC 3713, 2.4.1).
const SECOND: u64 = 0x00ff_0000_ff00_0000;
const THIRD: u64 = 0x0000_ff00_00ff_0000;
const FOURTH: u64 = 0x0000_00ff_0000_ff00;

/// All subkeys of a key, in the order of their use in one direction.
pub(crate) struct Subkeys {
    /// kw1 to kw4.
    pub(crate) whitening: [u64; 4],
    /// k1 to k18 or k24.
    pub(crate) rounds: [u64; 24],
    /// ke1 to ke4 or ke6.
    pub(crate) layers: [u64; 6],
    /// How many times six rounds there are.
    pub(crate) sixes: usize,
}

impl Subkeys {
    /// For encryption under a key of 16, 24 or 32 octets; None when it has another length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let (first, rest) = key.split_first_chunk()?;
        let left = u128::from_be_bytes(*first);
        let right = match rest.len() {
            0 => 0,
            8 => {
                let half = u64::from_be_bytes(rest.try_into().ok()?);
                u128::from(half) << 64 | u128::from(!half)
            }
            _ => u128::from_be_bytes(rest.try_into().ok()?),
        };
        let a = stirred(stirred(left ^ right, 0) ^ left, 2);
        Some(if rest.is_empty() {
            Self::short(left, a)
        } else {
            Self::long(left, right, a, stirred(a ^ right, 4))
        })
    }

    /// For the inverse: the same in reverse order.
    pub(crate) fn reversed(&self) -> Self {
        let [first, second, third, fourth] = self.whitening;
        let mut reversed = Self {
            whitening: [third, fourth, first, second],
            ..*self
        };
        reversed.rounds[..6 * self.sixes].reverse();
        reversed.layers[..2 * self.sixes - 2].reverse();
        reversed
    }

    fn short(l: u128, a: u128) -> Self {
        let [(kw1, kw2), (kw3, kw4)] = [(l, 0), (a, 111)].map(halves);
        let rounds = [(a, 0), (l, 15), (a, 15), (l, 45)].map(halves);
        let ninth = halves((a, 45)).0;
        let tenth = halves((l, 60)).1;
        let last = [(a, 60), (l, 94), (a, 94), (l, 111)].map(halves);
        let layers = [(a, 30), (l, 77)].map(halves);
        let rounds = pairs(rounds).chain([ninth, tenth]).chain(pairs(last));
        Self::collect([kw1, kw2, kw3, kw4], rounds, pairs(layers))
    }

    fn long(l: u128, r: u128, a: u128, b: u128) -> Self {
        let [(kw1, kw2), (kw3, kw4)] = [(l, 0), (b, 111)].map(halves);
        let rounds = [
            (b, 0),
            (r, 15),
            (a, 15),
            (b, 30),
            (l, 45),
            (a, 45),
            (r, 60),
            (b, 60),
            (l, 77),
            (r, 94),
            (a, 94),
            (l, 111),
        ]
        .map(halves);
        let layers = [(r, 30), (l, 60), (a, 77)].map(halves);
        Self::collect([kw1, kw2, kw3, kw4], pairs(rounds), pairs(layers))
    }

    fn collect(
        whitening: [u64; 4],
        rounds: impl Iterator<Item = u64>,
        layers: impl Iterator<Item = u64>,
    ) -> Self {
        let mut subkeys = Self {
            whitening,
            rounds: [0; 24],
            layers: [0; 6],
            sixes: 0,
        };
        for (index, round) in rounds.enumerate() {
            subkeys.rounds[index] = round;
            subkeys.sixes = index / 6 + 1;
        }
        for (place, layer) in subkeys.layers.iter_mut().zip(layers) {
            *place = layer;
        }
        subkeys
    }
}

impl Drop for Subkeys {
    fn drop(&mut self) {
        self.whitening.zeroize();
        self.rounds.zeroize();
        self.layers.zeroize();
    }
}

/// Both halves of a part of the key, rotated to the left.
fn halves((part, bits): (u128, u32)) -> (u64, u64) {
    let rotated = part.rotate_left(bits);
    ((rotated >> 64) as u64, rotated as u64)
}

fn pairs<const N: usize>(pairs: [(u64, u64); N]) -> impl Iterator<Item = u64> {
    pairs
        .into_iter()
        .flat_map(|(first, second)| [first, second])
}

/// Two rounds under constants, the step that makes KA and KB.
fn stirred(part: u128, sigma: usize) -> u128 {
    let (mut left, mut right) = halves((part, 0));
    right ^= round(left ^ SIGMA[sigma]);
    left ^= round(right ^ SIGMA[sigma + 1]);
    u128::from(left) << 64 | u128::from(right)
}

/// The function F (RFC 3713, 2.4.1); the key is in already.
pub(crate) fn round(half: u64) -> u64 {
    spread(substituted(half))
}

fn substituted(half: u64) -> u64 {
    let before = choose(half, Matrix::rotation(1), FOURTH);
    let after = choose(field::first_box(before), Matrix::rotation(1), SECOND);
    choose(after, Matrix::rotation(7), THIRD)
}

/// The octets under the mask, mapped; the others as they are.
fn choose(half: u64, map: Matrix, mask: u64) -> u64 {
    half & !mask | map.each(half) & mask
}

/// The function P, in four steps of four octets.
pub(crate) fn spread(half: u64) -> u64 {
    let (mut first, mut last) = words(half);
    first ^= last.rotate_left(8);
    last ^= first.rotate_left(16);
    first ^= last.rotate_right(8);
    last ^= first.rotate_right(8);
    joined(last, first)
}

/// The inverse of [`spread`].
pub(crate) fn gathered(half: u64) -> u64 {
    let (mut last, mut first) = words(half);
    last ^= first.rotate_right(8);
    first ^= last.rotate_right(8);
    last ^= first.rotate_left(16);
    first ^= last.rotate_left(8);
    joined(first, last)
}

/// The function FL (RFC 3713, 2.4.2).
pub(crate) fn layer(half: u64, key: u64) -> u64 {
    let ((left, right), (and, or)) = (words(half), words(key));
    let right = right ^ (left & and).rotate_left(1);
    joined(left ^ (right | or), right)
}

/// The function FLINV (RFC 3713, 2.4.3).
pub(crate) fn layer_inverse(half: u64, key: u64) -> u64 {
    let ((left, right), (and, or)) = (words(half), words(key));
    let left = left ^ (right | or);
    joined(left, right ^ (left & and).rotate_left(1))
}

fn words(half: u64) -> (u32, u32) {
    ((half >> 32) as u32, half as u32)
}

fn joined(first: u32, last: u32) -> u64 {
    u64::from(first) << 32 | u64::from(last)
}
