//! Camellia on AVX2: 32 octets a register, inverted by the last round of AES.
//!
//! SubBytes is an inversion before a linear map, and InvSubBytes one after it. The left half goes
//! through the one and the right half through the other: the shift of rows that comes with each is
//! undone by the other's, and each half has the basis that its own likes. Linear maps are looked up
//! by byte shuffles, half an octet at a time. The key enters as the round key of AES, for nothing.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::aesni::Ymm;
use crate::cipher::camellia::field::{self, Matrix};
use crate::cipher::camellia::octets::{self, Half, LEFT, LayerMaps, Octets, RIGHT, Splats};
use crate::lanes::{Blocks, STRIPE};

/// The last rounds of AES on two blocks, both ways.
pub(crate) trait LastRounds: Copy + Send + Sync + 'static {
    /// SubBytes, ShiftRows, AddRoundKey.
    fn forward(octets: __m256i, key: u32) -> __m256i;
    /// InvSubBytes, InvShiftRows, AddRoundKey.
    fn backward(octets: __m256i, key: u32) -> __m256i;
}

/// 32 octets, one of each block of a stripe, on a CPU that does AES as `A` says.
#[derive(Clone, Copy)]
pub(crate) struct Nibbles<A>(__m256i, PhantomData<A>);

/// A linear map, and a constant: what each low half of an octet and each high half adds.
type Tables = [[u8; 16]; 2];

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
        let inverted = match FROM {
            LEFT => A::forward(octets.0, key),
            _ => A::backward(octets.0, key),
        };
        Nibbles::new(inverted).mapped(&Self::BEHIND_TABLES)
    }
}

impl<A: LastRounds> Nibbles<A> {
    #[inline(always)]
    fn new(octets: __m256i) -> Self {
        Self(octets, PhantomData)
    }

    /// Each half of an octet by itself.
    #[inline(always)]
    fn nibbles(self) -> [__m256i; 2] {
        simd!({
            let mask = _mm256_set1_epi8(0x0f);
            let high = _mm256_srli_epi16::<4>(self.0);
            [_mm256_and_si256(self.0, mask), _mm256_and_si256(high, mask)]
        })
    }

    #[inline(always)]
    fn mapped(self, tables: &Tables) -> Self {
        both(self.nibbles(), tables)
    }

    /// Each sixteen octets in another order.
    #[inline(always)]
    fn shuffled(self, order: &[u8; 16]) -> Self {
        simd!(Self::new(_mm256_shuffle_epi8(self.0, twice(order))))
    }
}

/// What both halves of octets add.
#[inline(always)]
fn both<A: LastRounds>(nibbles: [__m256i; 2], tables: &Tables) -> Nibbles<A> {
    look_up(nibbles[0], &tables[0]).xor(look_up(nibbles[1], &tables[1]))
}

#[inline(always)]
fn look_up<A: LastRounds>(nibbles: __m256i, table: &[u8; 16]) -> Nibbles<A> {
    simd!(Nibbles::new(_mm256_shuffle_epi8(twice(table), nibbles)))
}

#[inline(always)]
fn twice(octets: &[u8; 16]) -> __m256i {
    simd!(_mm256_broadcastsi128_si256(_mm_loadu_si128(
        octets.as_ptr().cast()
    )))
}

impl<A: LastRounds> Octets for Nibbles<A> {
    type Memory = Ymm;
    type Layer = [LaneLayer; 4];

    const BASES: [Matrix; 2] = [field::FRONT, field::AES.after(field::FRONT)];
    const SINGULAR: [u8; 2] = [
        field::SINGULAR,
        field::SINGULAR ^ Self::BASES[RIGHT].inverse().of(field::AES_PLUS),
    ];

    #[inline(always)]
    fn slice(stripe: &[Ymm; STRIPE]) -> [Half<Self>; 2] {
        let mut halves = [[Self::splat(0); 8]; 2];
        let rows = octets::transposed(stripe);
        for at in 0..8 {
            let [left, right] = [Self::new(rows[at].0), Self::new(rows[at + 8].0)];
            halves[LEFT][at] = left.mapped(&const { Self::BASES[LEFT].nibbles(0) });
            halves[RIGHT][at] = right
                .mapped(&const { Self::BASES[RIGHT].nibbles(0) })
                .shuffled(&ROWS_SHIFTED);
        }
        halves
    }

    #[inline(always)]
    fn unslice(halves: [Half<Self>; 2]) -> [Ymm; STRIPE] {
        let mut rows = [Ymm::zero(); STRIPE];
        for at in 0..8 {
            let right = halves[RIGHT][at]
                .shuffled(&ROWS_SHIFTED_BACK)
                .mapped(&const { Self::BASES[RIGHT].inverse().nibbles(0) });
            let left = halves[LEFT][at].mapped(&const { Self::BASES[LEFT].inverse().nibbles(0) });
            (rows[at], rows[at + 8]) = (Ymm(right.0), Ymm(left.0));
        }
        octets::transposed(&rows)
    }

    #[inline(always)]
    fn splat(octets: u32) -> Self {
        simd!(Self::new(_mm256_set1_epi32(octets.cast_signed())))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        simd!(Self::new(_mm256_xor_si256(self.0, other.0)))
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
            half[0].nibbles(),
            half[1].nibbles(),
            half[2].nibbles(),
            half[3].nibbles(),
        ];
        for (at, [own, next, _]) in layer.iter().enumerate() {
            let (own, next) = (both(nibbles[at], own), both(nibbles[(at + 1) % 4], next));
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
