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
        Self(from_fn(|to| {
            let bits = (0..8).filter(|bit| map.0 >> (8 * bit + to) & 1 == 1);
            bits.fold(0, |sum, bit| sum ^ self.0[bit])
        }))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(from_fn(|bit| self.0[bit] & other.0[bit]))
    }

    /// A four-octet word, the highest octet first, rotated to the left by one bit.
    #[inline(always)]
    fn rotated(word: [Self; 4]) -> [Self; 4] {
        from_fn(|at| {
            let next = word[(at + 1) % 4].0[7];
            Self(from_fn(|bit| match bit {
                0 => next,
                _ => word[at].0[bit - 1],
            }))
        })
    }

    /// S-box `NUMBER`, but for what it adds.
    #[inline(always)]
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

    #[inline(always)]
    fn slice(stripe: &[Portable; STRIPE]) -> [Half<Self>; 2] {
        let words: [[Self; 4]; 4] = from_fn(|word| {
            let mut rows: [u64; 32] = from_fn(|row| {
                let [low, high] =
                    [row, row + 32].map(|block| stripe[block / 4].0[block % 4 * 4 + word]);
                u64::from(low) | u64::from(high) << 32
            });
            transpose(&mut rows);
            from_fn(|octet| Self(from_fn(|bit| rows[8 * octet + bit])).mapped(BASE))
        });
        [LEFT, RIGHT].map(|half| from_fn(|at| words[2 * half + at / 4][at % 4]))
    }

    #[inline(always)]
    fn unslice(halves: [Half<Self>; 2]) -> [Portable; STRIPE] {
        let mut stripe = [Portable([0; 16]); STRIPE];
        for word in 0..4 {
            let half = &halves[1 - word / 2];
            let octets: [Self; 4] =
                from_fn(|octet| half[word % 2 * 4 + octet].mapped(BASE_INVERSE));
            let mut rows = from_fn(|row| octets[row / 8].0[row % 8]);
            transpose(&mut rows);
            for (row, blocks) in rows.into_iter().enumerate() {
                stripe[row / 4].0[row % 4 * 4 + word] = blocks as u32;
                stripe[row / 4 + 8].0[row % 4 * 4 + word] = (blocks >> 32) as u32;
            }
        }
        stripe
    }

    #[inline(always)]
    fn splat(octets: u32) -> Self {
        Self(from_fn(|bit| u64::from(octets >> bit & 1).wrapping_neg()))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(from_fn(|bit| self.0[bit] ^ other.0[bit]))
    }

    fn round_key<const FROM: usize>(difference: u64) -> Splats {
        // What the boxes add is added here too.
        let keys = octets::box_keys(difference, [BASE; 4]);
        from_fn(|at| {
            let plus = field::plus(field::ORDER[at], BASE);
            keys[at] ^ u32::from_ne_bytes([plus; 4])
        })
    }

    #[inline(always)]
    fn round<const FROM: usize>(from: &Half<Self>, to: &mut Half<Self>, key: &Splats) {
        let boxes = [
            from[0].substituted::<1>(),
            from[1].substituted::<2>(),
            from[2].substituted::<3>(),
            from[3].substituted::<4>(),
            from[4].substituted::<2>(),
            from[5].substituted::<3>(),
            from[6].substituted::<4>(),
            from[7].substituted::<1>(),
        ];
        octets::spread(from_fn(|at| boxes[at].xor(Self::splat(key[at]))), to);
    }

    fn layer<const HALF: usize>(key: u64) -> Self::Layer {
        let octets = octets::splats(key, Matrix::IDENTITY);
        [
            from_fn(|at| octets[at]),
            // x | k is x & !k, plus k, which is the offset's.
            from_fn(|at| !octets[at + 4]),
        ]
    }

    #[inline(always)]
    fn pass<const HALF: usize>(half: &mut Half<Self>, [across, back]: &Self::Layer) {
        let plain = half.map(|octet| octet.mapped(BASE_INVERSE));
        let [mut left, mut right]: [[Self; 4]; 2] =
            [0, 4].map(|first| from_fn(|at| plain[first + at]));
        let pass_back = |left: &mut [Self; 4], right: &[Self; 4]| {
            for at in 0..4 {
                left[at] = left[at].xor(right[at].and(Self::splat(back[at])));
            }
        };
        if HALF == RIGHT {
            pass_back(&mut left, &right);
        }
        let passed = Self::rotated(from_fn(|at| left[at].and(Self::splat(across[at]))));
        right = from_fn(|at| right[at].xor(passed[at]));
        if HALF == LEFT {
            pass_back(&mut left, &right);
        }
        *half = from_fn(|at| if at < 4 { left[at] } else { right[at - 4] }.mapped(BASE));
    }
}

/// 32 rows of 32 bits, twice, side by side: row and column change places. Its own inverse.
#[inline(always)]
fn transpose(rows: &mut [u64; 32]) {
    let mut mask = 0x0000_ffff_0000_ffff;
    for step in [16, 8, 4, 2, 1] {
        for row in (0..32).filter(|row| row & step == 0) {
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
        std::array::from_fn(|at| a[at] ^ b[at])
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
        let [low, high] = pairs(a).map(pair_square);
        // (high v + low + high w) vw = (low + high w + high) wv + high w^2
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
