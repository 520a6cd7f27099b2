//! Camellia on byte shuffles and AES: an octet a place, inverted by the last round of AES.
//!
//! SubBytes is an inversion before a linear map, and InvSubBytes one after it. The left half goes
//! through the one and the right half through the other: the shift of rows that comes with each is
//! undone by the other's, and each half has the basis that its own likes. Linear maps are looked up
//! by byte shuffles, half an octet at a time. Where AES adds its key last, the round's key enters there.

use std::marker::PhantomData;

use super::Block;
use crate::cipher::camellia::field::{self, Matrix};
use crate::cipher::camellia::octets::{self, Half, LEFT, LayerMaps, Octets, RIGHT, Splats, Unpack};
use crate::lanes::{Blocks, Rounds, STRIPE};

/// Registers with a byte shuffle.
pub(crate) trait Shuffle: Unpack {
    /// The same four octets everywhere.
    fn splat_octets(octets: u32) -> Self;
    /// The low half and the high half of each octet.
    fn nibbles(self) -> [Self; 2];
    /// Of each block the octets at these places, each below 16.
    fn shuffled(self, places: Self) -> Self;
}

/// The last rounds of AES on each block of a register, both ways.
pub(crate) trait LastRounds: Copy + Send + Sync + 'static {
    /// The register.
    type Register: Shuffle;
    /// SubBytes, ShiftRows, AddRoundKey.
    fn forward(octets: Self::Register, key: Self::Register) -> Self::Register;
    /// InvSubBytes, InvShiftRows, AddRoundKey.
    fn backward(octets: Self::Register, key: Self::Register) -> Self::Register;
}

/// Registers of which every block goes through AES at once.
#[derive(Clone, Copy)]
pub(crate) struct Whole<V>(PhantomData<V>);

impl<V: Rounds + Shuffle> LastRounds for Whole<V> {
    type Register = V;

    #[inline(always)]
    fn forward(octets: V, key: V) -> V {
        octets.last_round(key)
    }

    #[inline(always)]
    fn backward(octets: V, key: V) -> V {
        octets.last_inverse_round(key)
    }
}

/// One octet of each block of a stripe, on a CPU that does AES as `A` says.
#[derive(Clone, Copy)]
pub(crate) struct Nibbles<A: LastRounds>(A::Register);

/// A linear map, and a constant: what each low half of an octet and each high half adds.
type Tables = [Block; 2];

/// FL's three maps that begin at or lead to an octet of a word: see [`LayerMaps`].
type LaneLayer = [Tables; 3];

/// The tables around the inversion of S-box `NUMBER` on the way from a half to the other.
struct Sbox<A, const NUMBER: usize, const FROM: usize>(PhantomData<A>);

impl<A: LastRounds, const NUMBER: usize, const FROM: usize> Sbox<A, NUMBER, FROM> {
    const TO: Matrix = Nibbles::<A>::BASES[1 - FROM];
    /// What AES does behind the inversion on this way.
    const AES: (Matrix, u8) = match FROM {
        LEFT => (field::AES, field::AES_PLUS),
        _ => (Matrix::IDENTITY, 0),
    };
    const BEHIND: Matrix = field::behind(NUMBER, Self::AES.0, Self::TO);
    const IN_FRONT_TABLES: Tables = field::in_front(NUMBER, Nibbles::<A>::BASES[FROM]).nibbles(0);
    const BEHIND_TABLES: Tables = Self::BEHIND.nibbles(Self::BEHIND.of(Self::AES.1));
    /// What AES adds so that the box adds an octet.
    const KEY: Matrix = Self::BEHIND.inverse().after(Self::TO);

    #[inline(always)]
    fn of(octets: Nibbles<A>, key: u32) -> Nibbles<A> {
        let octets = match NUMBER {
            4 => octets.mapped(&Self::IN_FRONT_TABLES),
            _ => octets,
        };
        let key = A::Register::splat_octets(key);
        let inverted = match FROM {
            LEFT => A::forward(octets.0, key),
            _ => A::backward(octets.0, key),
        };
        Nibbles::<A>(inverted).mapped(&Self::BEHIND_TABLES)
    }
}

impl<A: LastRounds> Nibbles<A> {
    #[inline(always)]
    fn mapped(self, tables: &Tables) -> Self {
        both(self.0.nibbles(), tables)
    }

    /// The octets of each block in another order.
    #[inline(always)]
    fn ordered(self, order: &Block) -> Self {
        Self(self.0.shuffled(A::Register::splat(order)))
    }
}

/// What both halves of octets add.
#[inline(always)]
fn both<A: LastRounds>(nibbles: [A::Register; 2], tables: &Tables) -> Nibbles<A> {
    let low = A::Register::splat(&tables[0]).shuffled(nibbles[0]);
    let high = A::Register::splat(&tables[1]).shuffled(nibbles[1]);
    Nibbles(low.xor(high))
}

impl<A: LastRounds> Octets for Nibbles<A> {
    type Memory = A::Register;
    type Layer = [LaneLayer; 4];

    const BASES: [Matrix; 2] = [field::FRONT, field::AES.after(field::FRONT)];
    const SINGULAR: [u8; 2] = [
        field::SINGULAR,
        field::SINGULAR ^ Self::BASES[RIGHT].inverse().of(field::AES_PLUS),
    ];

    #[inline(always)]
    fn slice(stripe: &[A::Register; STRIPE]) -> [Half<Self>; 2] {
        let mut halves = [[Self::splat(0); 8]; 2];
        let rows = octets::transposed(stripe);
        for at in 0..8 {
            let [left, right] = [Self(rows[at]), Self(rows[at + 8])];
            halves[LEFT][at] = left.mapped(&const { Self::BASES[LEFT].nibbles(0) });
            halves[RIGHT][at] = right
                .mapped(&const { Self::BASES[RIGHT].nibbles(0) })
                .ordered(&ROWS_SHIFTED);
        }
        halves
    }

    #[inline(always)]
    fn unslice(halves: [Half<Self>; 2]) -> [A::Register; STRIPE] {
        let mut rows = [A::Register::zero(); STRIPE];
        for at in 0..8 {
            let right = halves[RIGHT][at]
                .ordered(&ROWS_SHIFTED_BACK)
                .mapped(&const { Self::BASES[RIGHT].inverse().nibbles(0) });
            let left = halves[LEFT][at].mapped(&const { Self::BASES[LEFT].inverse().nibbles(0) });
            (rows[at], rows[at + 8]) = (right.0, left.0);
        }
        octets::transposed(&rows)
    }

    #[inline(always)]
    fn splat(octets: u32) -> Self {
        Self(A::Register::splat_octets(octets))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }

    fn round_key<const FROM: usize>(difference: u64) -> Splats {
        let maps = [
            Sbox::<A, 1, FROM>::KEY,
            Sbox::<A, 2, FROM>::KEY,
            Sbox::<A, 3, FROM>::KEY,
            Sbox::<A, 4, FROM>::KEY,
        ];
        octets::before_spread(difference, maps)
    }

    #[inline(always)]
    fn round<const FROM: usize>(from: &Half<Self>, to: &mut Half<Self>, key: &Splats) {
        // The fourth boxes have the longest way and go first; then those that share their tables.
        let d = Sbox::<A, 4, FROM>::of(from[3], key[3]);
        let g = Sbox::<A, 4, FROM>::of(from[6], key[6]);
        let a = Sbox::<A, 1, FROM>::of(from[0], key[0]);
        let h = Sbox::<A, 1, FROM>::of(from[7], key[7]);
        let b = Sbox::<A, 2, FROM>::of(from[1], key[1]);
        let e = Sbox::<A, 2, FROM>::of(from[4], key[4]);
        let c = Sbox::<A, 3, FROM>::of(from[2], key[2]);
        let f = Sbox::<A, 3, FROM>::of(from[5], key[5]);
        let boxes = [a, b, c, d, e, f, g, h];
        octets::spread(boxes, to);
    }

    fn layer<const HALF: usize>(key: u64) -> Self::Layer {
        let base = Self::BASES[HALF];
        let maps = LayerMaps::new(key, base, const { Self::BASES[HALF].inverse() });
        std::array::from_fn(|at| {
            [maps.own[at], maps.next[at], maps.back[at]].map(|map| map.nibbles(0))
        })
    }

    #[inline(always)]
    fn pass<const HALF: usize>(half: &mut Half<Self>, layer: &Self::Layer) {
        if HALF == RIGHT {
            pass_back(half, layer);
        }
        let nibbles = [
            half[0].0.nibbles(),
            half[1].0.nibbles(),
            half[2].0.nibbles(),
            half[3].0.nibbles(),
        ];
        for (at, [own, next, _]) in layer.iter().enumerate() {
            let own: Self = both(nibbles[at], own);
            let next = both(nibbles[(at + 1) % 4], next);
            half[at + 4] = half[at + 4].xor(own.xor(next));
        }
        if HALF == LEFT {
            pass_back(half, layer);
        }
    }
}

/// From the right word of a half to the left one.
#[inline(always)]
fn pass_back<A: LastRounds>(half: &mut Half<Nibbles<A>>, layer: &[LaneLayer; 4]) {
    for (at, [.., back]) in layer.iter().enumerate() {
        half[at] = half[at].xor(half[at + 4].mapped(back));
    }
}

/// Where the last round of AES takes the octet of each place from.
const ROWS_SHIFTED: [u8; 16] = every(5);
/// The same for the last round of its inverse.
const ROWS_SHIFTED_BACK: [u8; 16] = every(13);

const fn every(step: u8) -> [u8; 16] {
    let mut order = [0; 16];
    let mut at = 1;
    while at < order.len() {
        order[at] = (order[at - 1] + step) % 16;
        at += 1;
    }
    order
}
