//! Camellia in plain Rust: one bit of 64 blocks a word, and the S-boxes as circuits.
//!
//! The basis is a tower of fields, each of degree two over the one below it, in which an inversion
//! is a few products of bits:
//!
//! ```text
//!   GF(2^8) = GF(2^4)[z] / z^2 + z + vw
//!   GF(2^4) = GF(2^2)[v] / v^2 + v + w
//!   GF(2^2) = GF(2)[w]   / w^2 + w + 1
//! ```
//!
//! Nothing is looked up, so there is nothing that a neighbour on the same core could observe.

use std::array::from_fn;

use super::portable::Portable;
use crate::cipher::camellia::field::{self, Matrix, times};
use crate::cipher::camellia::octets::{self, Half, LEFT, Octets, RIGHT, Splats};
use crate::lanes::STRIPE;

/// One octet of each of 64 blocks: bit by bit, from the lowest.
#[derive(Clone, Copy)]
pub(crate) struct Planes([u64; 8]);

/// The tower in the field of AES: where w, v and z lie there, and with them all eight elements.
const TOWER: Matrix = {
    let w = root(1);
    let v = root(w);
    let z = root(times(v, w));
    let low = 1 | w << 8 | v << 16 | times(v, w) << 24;
    Matrix(low | times_each(low, z) << 32)
};

/// An x for which x^2 + x is this.
const fn root(sum: u64) -> u64 {
    let mut x = 2;
    while times(x, x) ^ x != sum {
        x += 1;
    }
    x
}

const fn times_each(octets: u64, factor: u64) -> u64 {
    times(octets, factor * 0x0101_0101)
}

/// The tower, in front of which the S-boxes have nothing but their first linear map.
const BASE: Matrix = TOWER.inverse().after(field::FRONT);
const BASE_INVERSE: Matrix = BASE.inverse();

impl Planes {
    /// Each octet through a linear map, which is known when this is compiled.
    #[inline(always)]
    fn mapped(self, map: Matrix) -> Self {
        let mut images = [0; 8];
        for bit in 0..8 {
            for (to, image) in images.iter_mut().enumerate() {
                if map.0 >> (8 * bit + to) & 1 == 1 {
                    *image ^= self.0[bit];
                }
            }
        }
        Self(images)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        let mut both = self;
        for (bit, other) in both.0.iter_mut().zip(other.0) {
            *bit &= other;
        }
        both
    }

    /// Shifted to the left by one bit, the lowest bit from the highest of the octet that comes next.
    #[inline(always)]
    fn shifted(self, next: Self) -> Self {
        let [a, b, c, d, e, f, g, _] = self.0;
        Self([next.0[7], a, b, c, d, e, f, g])
    }

    /// From the left word of a half to the right one.
    #[inline(always)]
    fn pass_across(half: &mut Half<Self>, across: &[u32; 4]) {
        let mut word = [half[0], half[1], half[2], half[3]];
        for at in 0..4 {
            word[at] = word[at].and(Self::splat(across[at]));
        }
        for at in 0..4 {
            half[at + 4] = half[at + 4].xor(word[at].shifted(word[(at + 1) % 4]));
        }
    }

    /// From the right word of a half to the left one.
    #[inline(always)]
    fn pass_back(half: &mut Half<Self>, back: &[u32; 4]) {
        for at in 0..4 {
            half[at] = half[at].xor(half[at + 4].and(Self::splat(back[at])));
        }
    }
}

impl octets::Boxes for Planes {
    #[inline(never)]
    fn substituted<const NUMBER: usize>(self) -> Self {
        let octets = match NUMBER {
            4 => self.mapped(const { field::in_front(4, BASE) }),
            _ => self,
        };
        // The inversion is in the tower's own field, so it comes with the way back to AES's.
        Self(tower::inverse(octets.0))
            .mapped(const { field::behind(NUMBER, TOWER.inverse(), BASE) })
    }
}

impl Octets for Planes {
    type Memory = Portable;
    type Layer = [[u32; 4]; 2];

    const BASES: [Matrix; 2] = [BASE; 2];
    const SINGULAR: [u8; 2] = [field::SINGULAR; 2];

    #[inline(never)]
    fn slice(stripe: &[Portable; STRIPE]) -> [Half<Self>; 2] {
        let mut halves = [[Self([0; 8]); 8]; 2];
        for word in 0..4 {
            let mut rows = [0; 32];
            for (row, blocks) in rows.iter_mut().enumerate() {
                let [low, high] = [stripe[row / 4], stripe[row / 4 + 8]];
                let at = row % 4 * 4 + word;
                *blocks = u64::from(low.0[at]) | u64::from(high.0[at]) << 32;
            }
            transpose(&mut rows);
            for (octet, bits) in rows.as_chunks().0.iter().enumerate() {
                halves[word / 2][word % 2 * 4 + octet] = Self(*bits).mapped(BASE);
            }
        }
        halves
    }

    #[inline(never)]
    fn unslice(halves: [Half<Self>; 2]) -> [Portable; STRIPE] {
        let mut stripe = [Portable([0; 16]); STRIPE];
        for word in 0..4 {
            let half = &halves[if word < 2 { RIGHT } else { LEFT }];
            let mut rows = [0; 32];
            for (octet, bits) in rows.as_chunks_mut().0.iter_mut().enumerate() {
                *bits = half[word % 2 * 4 + octet].mapped(BASE_INVERSE).0;
            }
            transpose(&mut rows);
            for (row, blocks) in rows.into_iter().enumerate() {
                let at = row % 4 * 4 + word;
                stripe[row / 4].0[at] = blocks as u32;
                stripe[row / 4 + 8].0[at] = (blocks >> 32) as u32;
            }
        }
        stripe
    }

    #[inline(always)]
    fn splat(octets: u32) -> Self {
        let mut bits = [0; 8];
        for (at, bit) in bits.iter_mut().enumerate() {
            *bit = u64::from(octets >> at & 1).wrapping_neg();
        }
        Self(bits)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        let mut sum = self;
        for (bit, other) in sum.0.iter_mut().zip(other.0) {
            *bit ^= other;
        }
        sum
    }

    fn round_key<const FROM: usize>(difference: u64) -> Splats {
        octets::before_spread(difference, [BASE; 4])
    }

    #[inline(never)]
    fn round<const FROM: usize>(from: &Half<Self>, to: &mut Half<Self>, key: &Splats) {
        let mut boxes = octets::through_boxes(from);
        for at in 0..8 {
            boxes[at] = boxes[at].xor(Self::splat(key[at]));
        }
        octets::spread(boxes, to);
    }

    fn layer<const HALF: usize>(key: u64) -> Self::Layer {
        let octets = octets::splats(key, Matrix::IDENTITY);
        [
            from_fn(|at| octets[at]),
            // x | k is x & !k, plus k, which is the offset's.
            from_fn(|at| !octets[at + 4]),
        ]
    }

    #[inline(never)]
    fn pass<const HALF: usize>(half: &mut Half<Self>, [across, back]: &Self::Layer) {
        for octet in half.iter_mut() {
            *octet = octet.mapped(BASE_INVERSE);
        }
        if HALF == RIGHT {
            Self::pass_back(half, back);
        }
        Self::pass_across(half, across);
        if HALF == LEFT {
            Self::pass_back(half, back);
        }
        for octet in half.iter_mut() {
            *octet = octet.mapped(BASE);
        }
    }
}

/// 32 rows of 32 bits, twice, side by side: row and column change places. Its own inverse.
#[inline(always)]
fn transpose(rows: &mut [u64; 32]) {
    let mut mask = 0x0000_ffff_0000_ffff;
    for step in [16, 8, 4, 2, 1] {
        for pair in 0..16 {
            let below = pair & (step - 1);
            let row = 2 * (pair - below) + below;
            let change = (rows[row] >> step ^ rows[row + step]) & mask;
            rows[row + step] ^= change;
            rows[row] ^= change << step;
        }
        mask ^= mask << (step / 2);
    }
}

/// Arithmetic of the tower. Elements have their low coefficient first.
mod tower {
    type Pair = [u64; 2];
    type Quad = [u64; 4];

    #[inline(always)]
    fn add<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
        let mut sum = a;
        for (bit, other) in sum.iter_mut().zip(b) {
            *bit ^= other;
        }
        sum
    }

    #[inline(always)]
    fn pairs([a, b, c, d]: Quad) -> [Pair; 2] {
        [[a, b], [c, d]]
    }

    #[inline(always)]
    fn quad([[a, b], [c, d]]: [Pair; 2]) -> Quad {
        [a, b, c, d]
    }

    #[inline(always)]
    fn times_w([low, high]: Pair) -> Pair {
        [high, low ^ high]
    }

    /// The square, which in a field of four is the inverse.
    #[inline(always)]
    fn pair_square([low, high]: Pair) -> Pair {
        [low ^ high, high]
    }

    #[inline(always)]
    fn pair_times(a: Pair, b: Pair) -> Pair {
        let low = a[0] & b[0];
        let mixed = (a[0] ^ a[1]) & (b[0] ^ b[1]);
        [low ^ a[1] & b[1], mixed ^ low]
    }

    #[inline(always)]
    fn quad_times(a: Quad, b: Quad) -> Quad {
        let ([a_low, a_high], [b_low, b_high]) = (pairs(a), pairs(b));
        let low = pair_times(a_low, b_low);
        let high = pair_times(a_high, b_high);
        let mixed = pair_times(add(a_low, a_high), add(b_low, b_high));
        quad([add(low, times_w(high)), add(mixed, low)])
    }

    /// The square, times vw.
    #[inline(always)]
    fn quad_square_scaled(a: Quad) -> Quad {
        let [low, high] = pairs(a);
        let (low, high) = (pair_square(low), pair_square(high));
        // a^2 = high v + low + high w, and vw times this is (low + high w + high) vw + high w^2.
        let scaled = times_w(high);
        quad([times_w(scaled), times_w(add(add(low, scaled), high))])
    }

    /// 1 / (high v + low) = (high v + low + high) / (high^2 w + low high + low^2)
    #[inline(always)]
    fn quad_inverse(a: Quad) -> Quad {
        let [low, high] = pairs(a);
        let sum = add(low, high);
        let norm = add(times_w(pair_square(high)), pair_times(low, sum));
        let inverse = pair_square(norm);
        quad([pair_times(sum, inverse), pair_times(high, inverse)])
    }

    /// The inverse of each octet, of zero zero.
    #[inline(always)]
    pub(super) fn inverse([a, b, c, d, e, f, g, h]: [u64; 8]) -> [u64; 8] {
        let (low, high) = ([a, b, c, d], [e, f, g, h]);
        let sum = add(low, high);
        let norm = add(quad_square_scaled(high), quad_times(low, sum));
        let inverse = quad_inverse(norm);
        let [a, b, c, d] = quad_times(sum, inverse);
        let [e, f, g, h] = quad_times(high, inverse);
        [a, b, c, d, e, f, g, h]
    }
}
