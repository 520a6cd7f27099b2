//! Camellia on GFNI, which inverts in the field of AES and maps octets in one instruction: six of the
//! eight S-boxes of a round are that one, and each map of a layer is.
//!
//! It is written over any register that has the instructions, so that a model of them in plain Rust
//! can stand for a CPU that has not.

#[cfg(test)]
pub(crate) mod model;

use crate::cipher::camellia::field::{self, Matrix};
use crate::cipher::camellia::octets::{self, Half, LEFT, LayerMaps, Octets, RIGHT, Splats, Unpack};
use crate::lanes::STRIPE;

/// Registers with the Galois field instructions. A map is given as [`Matrix::rows`].
pub(crate) trait Gfni: Unpack {
    /// Whether `xor3` is one instruction.
    const HAS_XOR3: bool;

    /// The same four octets everywhere.
    fn splat_octets(octets: u32) -> Self;
    /// The same map in every eight octets.
    fn splat_rows(rows: u64) -> Self;
    /// Each octet through the map.
    fn mapped(self, rows: Self) -> Self;
    /// The inverse of each octet through the map.
    fn inverted_and_mapped(self, rows: Self) -> Self;
}

/// One octet of each block of a stripe.
#[derive(Clone, Copy)]
pub(crate) struct Affine<V>(V);

const BASE: Matrix = field::FRONT;

impl<V: Gfni> Affine<V> {
    #[inline(always)]
    fn mapped(self, rows: u64) -> Self {
        Self(self.0.mapped(V::splat_rows(rows)))
    }

    #[inline(always)]
    fn xor3(self, second: Self, third: Self) -> Self {
        Self(self.0.xor3(second.0, third.0))
    }

    /// From the right word of a half to the left one.
    #[inline(always)]
    fn pass_back(half: &mut Half<Self>, back: &[u64; 4]) {
        for at in 0..4 {
            half[at] = half[at].xor(half[at + 4].mapped(back[at]));
        }
    }
}

impl<V: Gfni> octets::Boxes for Affine<V> {
    #[inline(always)]
    fn substituted<const NUMBER: usize>(self) -> Self {
        let behind = const { field::behind(NUMBER, Matrix::IDENTITY, BASE).rows() };
        let octets = match NUMBER {
            4 => self.mapped(const { field::in_front(4, BASE).rows() }),
            _ => self,
        };
        Self(octets.0.inverted_and_mapped(V::splat_rows(behind)))
    }
}

impl<V: Gfni> Octets for Affine<V> {
    type Memory = V;
    /// The maps of [`LayerMaps`].
    type Layer = [[u64; 4]; 3];

    const BASES: [Matrix; 2] = [BASE; 2];
    const SINGULAR: [u8; 2] = [field::SINGULAR; 2];

    #[inline(always)]
    fn slice(stripe: &[V; STRIPE]) -> [Half<Self>; 2] {
        let rows = octets::transposed(stripe);
        let mut halves = [[Self(V::zero()); 8]; 2];
        for at in 0..8 {
            halves[LEFT][at] = Self(rows[at]).mapped(const { BASE.rows() });
            halves[RIGHT][at] = Self(rows[at + 8]).mapped(const { BASE.rows() });
        }
        halves
    }

    #[inline(always)]
    fn unslice(halves: [Half<Self>; 2]) -> [V; STRIPE] {
        let mut rows = [V::zero(); STRIPE];
        for at in 0..8 {
            rows[at] = halves[RIGHT][at].mapped(const { BASE.inverse().rows() }).0;
            rows[at + 8] = halves[LEFT][at].mapped(const { BASE.inverse().rows() }).0;
        }
        octets::transposed(&rows)
    }

    #[inline(always)]
    fn splat(octets: u32) -> Self {
        Self(V::splat_octets(octets))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }

    fn round_key<const FROM: usize>(difference: u64) -> Splats {
        if V::HAS_XOR3 {
            octets::splats(difference, BASE)
        } else {
            octets::before_spread(difference, [BASE; 4])
        }
    }

    #[inline(always)]
    fn round<const FROM: usize>(from: &Half<Self>, to: &mut Half<Self>, key: &Splats) {
        let mut boxes = octets::through_boxes(from);
        if V::HAS_XOR3 {
            spread_with(boxes, to, key);
        } else {
            for at in 0..8 {
                boxes[at] = boxes[at].xor(Self::splat(key[at]));
            }
            octets::spread(boxes, to);
        }
    }

    fn layer<const HALF: usize>(key: u64) -> Self::Layer {
        let maps = LayerMaps::new(key, BASE, const { BASE.inverse() });
        [maps.own, maps.next, maps.back].map(|maps| maps.map(Matrix::rows))
    }

    #[inline(always)]
    fn pass<const HALF: usize>(half: &mut Half<Self>, [own, next, back]: &Self::Layer) {
        if HALF == RIGHT {
            Self::pass_back(half, back);
        }
        for at in 0..4 {
            let (own, next) = (
                half[at].mapped(own[at]),
                half[(at + 1) % 4].mapped(next[at]),
            );
            half[at + 4] = half[at + 4].xor3(own, next);
        }
        if HALF == LEFT {
            Self::pass_back(half, back);
        }
    }
}

/// P as [`octets::spread`] does it, with exclusive ors of three, and a difference for each octet.
#[inline(always)]
fn spread_with<V: Gfni>(boxes: Half<Affine<V>>, to: &mut Half<Affine<V>>, difference: &Splats) {
    let [a, b, c, d, e, f, g, h] = boxes;
    let (ab, bc, cd, da) = (a.xor(b), b.xor(c), c.xor(d), d.xor(a));
    let all = ab.xor3(cd, e.xor3(f, g.xor(h)));
    let but = [
        (b, e),
        (c, f),
        (d, g),
        (a, h),
        (cd, e),
        (da, f),
        (ab, g),
        (bc, h),
    ];
    for at in 0..8 {
        let (first, second) = but[at];
        to[at] = to[at]
            .xor3(Affine::splat(difference[at]), first)
            .xor3(second, all);
    }
}
