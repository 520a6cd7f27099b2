//! AES (FIPS 197) on a CPU's own AES instructions.
//!
//! The key length is the number of round keys: 11, 13 or 15 for 128, 192 or 256 bits. The rounds
//! leave the first and the last key to the caller, who adds masks, counters or data to them in the
//! same operation.

use std::marker::PhantomData;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::backend::{Block, FromKey};
use crate::lanes::Rounds;

/// `K` round keys, for registers `V`. Zeroised on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Aes<V, const K: usize> {
    keys: [Block; K],
    /// Those of the equivalent inverse cipher (FIPS 197, 5.3.5), in the order of their use.
    inverse: [Block; K],
    registers: PhantomData<V>,
}

impl<V: Rounds, const K: usize> Aes<V, K> {
    /// The round keys.
    #[inline(always)]
    pub(crate) fn keys(&self) -> RoundKeys<'_, V, K> {
        RoundKeys(&self.keys, PhantomData)
    }

    /// Those of the inverse.
    #[inline(always)]
    pub(crate) fn inverse_keys(&self) -> RoundKeys<'_, V, K> {
        RoundKeys(&self.inverse, PhantomData)
    }
}

impl<V: Rounds, const K: usize> FromKey for Aes<V, K> {
    /// No octet of the key becomes an address.
    #[inline(always)]
    fn from_key(key: &[u8]) -> Option<Self> {
        if key.len() != 4 * K - 28 {
            return None;
        }
        let keys = expand::<V, K>(key);
        let mut inverse = keys;
        inverse.reverse();
        for key in &mut inverse[1..K - 1] {
            // Zeros beside the key mix to zeros, so folding leaves the key alone.
            *key = V::first(key).inverse_mix().fold();
        }
        Some(Self {
            keys,
            inverse,
            registers: PhantomData,
        })
    }
}

/// Round keys, read from memory where they are used.
pub(crate) struct RoundKeys<'k, V, const K: usize>(&'k [Block; K], PhantomData<V>);

impl<V, const K: usize> Clone for RoundKeys<'_, V, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, const K: usize> Copy for RoundKeys<'_, V, K> {}

impl<V: Rounds, const K: usize> RoundKeys<'_, V, K> {
    /// One key, in every place of a register.
    #[inline(always)]
    pub(crate) fn get(self, number: usize) -> V {
        V::splat(&self.0[number])
    }

    /// The same keys for the next stripe. Where the registers cannot hold all of them, the compiler must
    /// not believe that it has seen them before: it would keep them on the stack and load them twice.
    #[inline(always)]
    pub(crate) fn afresh(self) -> Self {
        if V::KEYS_FIT {
            self
        } else {
            Self(std::hint::black_box(self.0), PhantomData)
        }
    }
}

/// One of the rounds between the first key and the last round.
#[inline(always)]
pub(crate) fn round<V: Rounds, const N: usize, const INVERSE: bool>(
    registers: &mut [V; N],
    key: V,
) {
    for register in registers.iter_mut() {
        *register = if INVERSE {
            register.inverse_round(key)
        } else {
            register.round(key)
        };
    }
}

/// All of them.
#[inline(always)]
pub(crate) fn rounds<V: Rounds, const K: usize, const N: usize, const INVERSE: bool>(
    keys: RoundKeys<'_, V, K>,
    registers: &mut [V; N],
) {
    for number in 1..K - 1 {
        round::<V, N, INVERSE>(registers, keys.get(number));
    }
}

/// The last round, with `key` in place of the last key.
#[inline(always)]
pub(crate) fn last_round<V: Rounds, const INVERSE: bool>(register: V, key: V) -> V {
    if INVERSE {
        register.last_inverse_round(key)
    } else {
        register.last_round(key)
    }
}

/// FIPS 197, 5.2.
#[inline(always)]
fn expand<V: Rounds, const K: usize>(key: &[u8]) -> [Block; K] {
    let mut keys = [[0; 16]; K];
    let (words, _) = keys.as_flattened_mut().as_chunks_mut::<4>();
    let n = key.len() / 4;
    words[..n].as_flattened_mut().copy_from_slice(key);
    let mut constant = 1_u8;
    for i in n..words.len() {
        let mut word = words[i - 1];
        if i % n == 0 {
            word = substitute::<V>(word);
            word.rotate_left(1);
            word[0] ^= constant;
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
        } else if n > 6 && i % n == 4 {
            word = substitute::<V>(word);
        }
        for (octet, before) in word.iter_mut().zip(words[i - n]) {
            *octet ^= before;
        }
        words[i] = word;
    }
    keys
}

/// SubWord: the last round of a block of four equal columns, whose rows do not change by shifting.
#[inline(always)]
fn substitute<V: Rounds>(word: [u8; 4]) -> [u8; 4] {
    let mut block = [0; 16];
    for column in block.as_chunks_mut().0 {
        *column = word;
    }
    let block = V::first(&block).last_round(V::zero());
    let mut octets = [0; 64];
    block.store(&mut octets);
    [octets[0], octets[1], octets[2], octets[3]]
}
