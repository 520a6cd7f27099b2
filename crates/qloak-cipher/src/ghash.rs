//! GHASH (SP 800-38D, 6.4) on carry-less multipliers, with one reduction for up to 128 blocks.
//!
//! The hash of blocks X_1 ... X_n is the sum of X_i * H^(n+1-i). A key therefore holds the powers
//! H^128 ... H^1 side by side, so that a register of X meets a register of powers in one load, and
//! the products are summed unreduced:
//!
//! ```text
//!   powers   H^128  H^127  ...  H^3  H^2  H^1   0  0  0     a block with `left` blocks to go,
//!                                ^                          itself included, meets H^left
//!                                left = 3
//! ```
//!
//! Longer texts are hashed 128 blocks at a time; what came before enters as one more block, added to
//! the next. Numbers are kept with their octets reversed and multiplied by x, so that the product of
//! two is right without a shift; the polynomial is then x^128 + x^127 + x^126 + x^121 + 1.
//!
//! A product of 128 by 128 bits takes four multiplications of halves the schoolbook's way, or three
//! and some additions Karatsuba's way. Which is faster depends on how many multipliers a CPU has, so
//! both are here and [`Level::karatsuba_pays`] chooses when a key is made.

use std::marker::PhantomData;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::backend::{Backend, Block, Ghash};
use crate::lanes::{Blocks, Clmul};
use crate::level::Level;

/// Blocks that are summed before a reduction.
const POWERS: usize = 128;

/// Room behind H^1: the widest register loads three blocks beyond it.
const ROOM: usize = 3;

/// x^127 + x^126 + x^121, and x^0, the polynomial's low part, as two halves: high and low.
const POLYNOMIAL: u128 = 0xc200_0000_0000_0000_0000_0000_0000_0001;

/// The powers of a hash key, for registers `V`. Zeroised on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Powers<V> {
    /// H^128 to H^1, then zeros.
    powers: [Block; POWERS + ROOM],
    /// Of each power the exclusive or of its halves, in both halves.
    sums: [Block; POWERS + ROOM],
    /// Whether products are made Karatsuba's way.
    pub(crate) karatsuba: bool,
    registers: PhantomData<V>,
}

/// One hash on its way, Karatsuba's or the schoolbook's.
pub(crate) struct Hash<'k, V, const KARATSUBA: bool> {
    key: &'k Powers<V>,
    low: V,
    middle: V,
    high: V,
    /// Blocks until the next reduction.
    left: usize,
    /// Blocks until the end, the block of lengths included.
    remaining: usize,
}

impl<V: Clmul> Powers<V> {
    /// Begins the hash of `aad` and then `octets` octets of ciphertext, and takes in `aad`.
    #[inline(always)]
    pub(crate) fn begin<const KARATSUBA: bool>(
        &self,
        aad: &[u8],
        octets: usize,
    ) -> Hash<'_, V, KARATSUBA> {
        let (aad_blocks, blocks) = (aad.len().div_ceil(16), octets.div_ceil(16));
        let mut hash = Hash {
            key: self,
            low: V::zero(),
            middle: V::zero(),
            high: V::zero(),
            left: 0,
            remaining: aad_blocks + blocks + 1,
        };
        if hash.remaining <= POWERS {
            hash.left = hash.remaining;
            hash.absorb(aad);
        } else if !aad.is_empty() {
            // The text's own blocks begin with full powers, whatever the AAD's length was.
            let all = hash.remaining;
            hash.remaining = aad_blocks;
            hash.absorb_long(aad);
            hash.remaining = all - aad_blocks;
        }
        hash
    }
}

impl<V: Clmul, const KARATSUBA: bool> Hash<'_, V, KARATSUBA> {
    /// Makes sure that the next `blocks` blocks, no more than one stripe, meet their powers.
    /// A text's stripes but the last have a number of blocks that divides 128.
    #[inline(always)]
    pub(crate) fn reserve(&mut self) {
        if self.left == 0 {
            let so_far = self.reduced();
            self.left = self.remaining.min(POWERS);
            (self.low, self.middle, self.high) = (V::zero(), V::zero(), V::zero());
            self.add(V::first(&so_far), 0);
        }
    }

    /// Takes in a full register of ciphertext as it lies in memory.
    #[inline(always)]
    pub(crate) fn block(&mut self, ciphertext: V) {
        self.add(ciphertext.reverse(), V::COUNT);
    }

    /// The same between two rounds of a cipher, of whose registers `beside` is one. There it stays:
    /// multiplications that the compiler gathers behind all rounds have nothing beside them.
    #[inline(always)]
    pub(crate) fn block_beside(&mut self, ciphertext: V, beside: &mut V) {
        self.block(ciphertext);
        V::in_order(beside, &mut self.low, &mut self.middle, &mut self.high);
    }

    /// Takes in `octets`, which end where a block may be padded.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, octets: &[u8]) {
        let mut registers = octets.chunks_exact(V::OCTETS);
        for register in &mut registers {
            self.block(V::load(register));
        }
        let rest = registers.remainder();
        if !rest.is_empty() {
            self.add(V::load_part(rest).reverse(), rest.len().div_ceil(16));
        }
    }

    /// The same for texts of any length.
    #[inline(always)]
    pub(crate) fn absorb_long(&mut self, octets: &[u8]) {
        for part in octets.chunks(POWERS * 16) {
            self.reserve();
            self.absorb(part);
        }
    }

    /// Takes in the block of lengths, given in octets, and gives the hash XORed with `mask`: the
    /// tag.
    #[inline(always)]
    pub(crate) fn finish(mut self, aad: usize, ciphertext: usize, mask: &Block) -> Block {
        let lengths = (aad as u128 * 8) << 64 | (ciphertext as u128 * 8);
        self.reserve();
        self.add(V::first(&lengths.to_le_bytes()), 1);
        debug_assert_eq!((self.left, self.remaining), (0, 0));
        let hash = u128::from_le_bytes(self.reduced()) ^ u128::from_be_bytes(*mask);
        hash.to_be_bytes()
    }

    /// Multiplies by the next powers.
    #[inline(always)]
    fn add(&mut self, numbers: V, blocks: usize) {
        // Never more than POWERS - 1; said so that no bound is checked.
        let at = (POWERS - self.left) % POWERS;
        let powers = V::load(self.key.powers[at..].as_flattened());
        self.left -= blocks;
        self.remaining -= blocks;
        self.low = self.low.xor(numbers.low_low(powers));
        self.high = self.high.xor(numbers.high_high(powers));
        self.middle = if KARATSUBA {
            let sums = V::load(self.key.sums[at..].as_flattened());
            let halves = numbers.xor(numbers.exchange());
            self.middle.xor(halves.low_low(sums))
        } else {
            let products = (numbers.low_high(powers), numbers.high_low(powers));
            self.middle.xor3(products.0, products.1)
        };
    }

    /// The sum of all products so far, modulo the polynomial.
    #[inline(always)]
    fn reduced(&self) -> Block {
        let (low, high) = (self.low.fold_one(), self.high.fold_one());
        let mut middle = self.middle.fold_one();
        if KARATSUBA {
            middle = middle.xor3(low, high);
        }
        reduce(low, middle, high).fold()
    }
}

/// A product of 256 bits, `middle` lying across its halves, modulo the polynomial: Montgomery's way,
/// from below, 64 bits at a time.
#[inline(always)]
fn reduce<X: Clmul>(low: X, middle: X, high: X) -> X {
    let polynomial = X::splat(&POLYNOMIAL.to_le_bytes());
    let low = low.xor(middle.raise());
    let high = high.xor(middle.lower());
    let low = low.exchange().xor(low.low_high(polynomial));
    let low = low.exchange().xor(low.low_high(polynomial));
    low.xor(high)
}

/// The product of two numbers.
#[inline(always)]
fn multiply<X: Clmul>(a: X, b: X) -> X {
    let middle = a.low_high(b).xor(a.high_low(b));
    reduce(a.low_low(b), middle, a.high_high(b))
}

impl<V: Clmul> Powers<V> {
    /// The powers of H.
    #[inline(always)]
    pub(crate) fn of(h: &Block, karatsuba: bool) -> Self {
        // Multiplied by x, which undoes the shift that reversed bits cost each product.
        let number = u128::from_be_bytes(*h);
        let number = (number << 1) ^ ((number >> 127) * POLYNOMIAL);
        let first = <V::One>::splat(&number.to_le_bytes());

        let (mut powers, mut sums) = ([[0; 16]; POWERS + ROOM], [[0; 16]; POWERS + ROOM]);
        let mut power = first;
        for at in (0..POWERS).rev() {
            powers[at] = power.fold();
            sums[at] = power.xor(power.exchange()).fold();
            power = multiply(power, first);
        }
        Self {
            powers,
            sums,
            karatsuba,
            registers: PhantomData,
        }
    }

    /// [`Ghash::tag`], in one of the two ways.
    #[inline(always)]
    pub(crate) fn hash<const KARATSUBA: bool>(
        &self,
        aad: &[u8],
        ciphertext: &[u8],
        mask: &Block,
    ) -> Block {
        let mut hash = self.begin::<KARATSUBA>(aad, ciphertext.len());
        hash.absorb_long(ciphertext);
        hash.finish(aad.len(), ciphertext.len(), mask)
    }
}

impl<B: Backend, V: Clmul> Ghash<B> for Powers<V> {
    #[inline(always)]
    fn new(h: &Block) -> Self {
        Self::of(h, Level::karatsuba_pays())
    }

    #[inline(always)]
    fn tag(&self, aad: &[u8], ciphertext: &[u8], mask: &Block) -> Block {
        if self.karatsuba {
            self.hash::<true>(aad, ciphertext, mask)
        } else {
            self.hash::<false>(aad, ciphertext, mask)
        }
    }
}
