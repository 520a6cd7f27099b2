//! Serpent (Anderson, Biham and Knudsen, the AES submission of 1998), bit-sliced over 32-bit words.
//!
//! The submission gives two forms of the cipher; this is its "bitslice mode", in which IP and FP
//! vanish: a block is four words, and the S-boxes work on bit `i` of all four at once.
//!
//! ```text
//!   four registers of blocks        transposed: a group         32 rounds
//!   +----+----+----+----+           +----+----+----+----+
//!   | a0 | a1 | a2 | a3 |           | a0 | b0 | c0 | d0 |       key -> S-box -> mix
//!   | b0 | b1 | b2 | b3 |   <--->   | a1 | b1 | c1 | d1 |       the last one: key -> S-box -> key
//!   | c0 | c1 | c2 | c3 |           | a2 | b2 | c2 | d2 |
//!   | d0 | d1 | d2 | d3 |           | a3 | b3 | c3 | d3 |
//!   +----+----+----+----+           +----+----+----+----+
//! ```
//!
//! Everything is logic on whole registers, so its time depends on neither key nor data. Keys and
//! blocks are octet strings in the order of the NESSIE vectors; the submission prints them reversed.

mod sbox;
mod schedule;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::lanes::{LaneCipher, STRIPE, Words};

/// The words of one round's key.
type RoundKey = [u32; 4];

/// A key of 128, 192 or 256 bits, as 33 round keys.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Serpent {
    /// Four turns through the eight S-boxes.
    turns: [[RoundKey; 8]; 4],
    last: RoundKey,
}

impl Serpent {
    /// The schedule of a key of 16, 24 or 32 octets.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut serpent = Self {
            turns: [[[0; 4]; 8]; 4],
            last: [0; 4],
        };
        schedule::fill(key, &mut serpent.turns, &mut serpent.last);
        serpent
    }

    #[inline(always)]
    fn encrypt_groups<V: Words, const G: usize>(&self, groups: &mut [[V; 4]; G]) {
        for (turn, keys) in self.turns.iter().enumerate() {
            if turn > 0 {
                mix(groups);
            }
            round::<V, G, 0>(groups, &keys[0]);
            mix(groups);
            round::<V, G, 1>(groups, &keys[1]);
            mix(groups);
            round::<V, G, 2>(groups, &keys[2]);
            mix(groups);
            round::<V, G, 3>(groups, &keys[3]);
            mix(groups);
            round::<V, G, 4>(groups, &keys[4]);
            mix(groups);
            round::<V, G, 5>(groups, &keys[5]);
            mix(groups);
            round::<V, G, 6>(groups, &keys[6]);
            mix(groups);
            round::<V, G, 7>(groups, &keys[7]);
        }
        add_key(groups, &self.last);
    }

    #[inline(always)]
    fn decrypt_groups<V: Words, const G: usize>(&self, groups: &mut [[V; 4]; G]) {
        add_key(groups, &self.last);
        for (turn, keys) in self.turns.iter().enumerate().rev() {
            inverse_round::<V, G, 7>(groups, &keys[7]);
            inverse_mix(groups);
            inverse_round::<V, G, 6>(groups, &keys[6]);
            inverse_mix(groups);
            inverse_round::<V, G, 5>(groups, &keys[5]);
            inverse_mix(groups);
            inverse_round::<V, G, 4>(groups, &keys[4]);
            inverse_mix(groups);
            inverse_round::<V, G, 3>(groups, &keys[3]);
            inverse_mix(groups);
            inverse_round::<V, G, 2>(groups, &keys[2]);
            inverse_mix(groups);
            inverse_round::<V, G, 1>(groups, &keys[1]);
            inverse_mix(groups);
            inverse_round::<V, G, 0>(groups, &keys[0]);
            if turn > 0 {
                inverse_mix(groups);
            }
        }
    }

    /// Groups of four registers, `G` at a time.
    #[inline(always)]
    fn pass<V: Words, const G: usize, const ENCRYPT: bool>(&self, fours: &mut [[V; 4]]) {
        for groups in fours.as_chunks_mut::<G>().0 {
            let mut sliced = *groups;
            transpose(&mut sliced);
            if ENCRYPT {
                self.encrypt_groups(&mut sliced);
            } else {
                self.decrypt_groups(&mut sliced);
            }
            transpose(&mut sliced);
            *groups = sliced;
        }
    }

    /// The groups that hold the first `used` registers; as many together as the registers of the
    /// CPU bear, and fewer for a lone small frame.
    #[inline(always)]
    fn stripe<V: Words, const ENCRYPT: bool>(&self, stripe: &mut [V; STRIPE], used: usize) {
        let fours = stripe.as_chunks_mut().0;
        let groups = used.div_ceil(4);
        match V::GROUPS.min(groups) {
            0 | 1 => self.pass::<V, 1, ENCRYPT>(&mut fours[..groups]),
            2 => self.pass::<V, 2, ENCRYPT>(&mut fours[..groups.next_multiple_of(2)]),
            _ => self.pass::<V, 4, ENCRYPT>(fours),
        }
    }
}

impl<V: Words> LaneCipher<V> for Serpent {
    #[inline(always)]
    fn encrypt(&self, stripe: &mut [V; STRIPE], used: usize) {
        self.stripe::<V, true>(stripe, used);
    }

    #[inline(always)]
    fn decrypt(&self, stripe: &mut [V; STRIPE], used: usize) {
        self.stripe::<V, false>(stripe, used);
    }
}

#[inline(always)]
fn transpose<V: Words, const G: usize>(groups: &mut [[V; 4]; G]) {
    for group in groups {
        *group = V::transpose(*group);
    }
}

#[inline(always)]
fn add_key<V: Words, const G: usize>(groups: &mut [[V; 4]; G], key: &RoundKey) {
    for at in 0..4 {
        let word = V::splat_word(key[at]);
        for group in groups.iter_mut() {
            group[at] = group[at].xor(word);
        }
    }
}

/// A round without its linear part.
#[inline(always)]
fn round<V: Words, const G: usize, const BOX: usize>(groups: &mut [[V; 4]; G], key: &RoundKey) {
    add_key(groups, key);
    for group in groups {
        *group = sbox::forward::<V, BOX>(*group);
    }
}

#[inline(always)]
fn inverse_round<V: Words, const G: usize, const BOX: usize>(
    groups: &mut [[V; 4]; G],
    key: &RoundKey,
) {
    for group in groups.iter_mut() {
        *group = sbox::inverse::<V, BOX>(*group);
    }
    add_key(groups, key);
}

/// The linear transformation LT.
#[inline(always)]
fn mix<V: Words, const G: usize>(groups: &mut [[V; 4]; G]) {
    for group in groups {
        let [a, b, c, d] = *group;
        let a = a.rotate_left::<13>();
        let c = c.rotate_left::<3>();
        let b = b.xor3(a, c).rotate_left::<1>();
        let d = d.xor3(c, a.shift_left::<3>()).rotate_left::<7>();
        let a = a.xor3(b, d).rotate_left::<5>();
        let c = c.xor3(d, b.shift_left::<7>()).rotate_left::<22>();
        *group = [a, b, c, d];
    }
}

/// The inverse of LT.
#[inline(always)]
fn inverse_mix<V: Words, const G: usize>(groups: &mut [[V; 4]; G]) {
    for group in groups {
        let [a, b, c, d] = *group;
        let c = c.rotate_left::<10>().xor3(d, b.shift_left::<7>());
        let a = a.rotate_left::<27>().xor3(b, d);
        let d = d.rotate_left::<25>().xor3(c, a.shift_left::<3>());
        let b = b.rotate_left::<31>().xor3(a, c);
        *group = [a.rotate_left::<19>(), b, c.rotate_left::<29>(), d];
    }
}
