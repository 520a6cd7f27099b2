//! Frame after frame, eight registers at a time, without a block ever leaving its register: AES.
//!
//! GHASH of one stripe of ciphertext runs between the rounds of the next stripe, because AES and
//! the carry-less multiplier are different parts of a CPU:
//!
//! ```text
//!   sealing   AES of stripe i  |  GHASH of stripe i-1      then GHASH of the last
//!   opening   AES of stripe i  |  GHASH of stripe i
//! ```
//!
//! Each block is held beside its round ([`Blocks::in_order`](crate::lanes::Blocks::in_order)).
//!
//! A frame shorter than a stripe has nothing to hash between; such frames are enciphered one after the
//! other and hashed one after the other, so that the CPU has several under way in either pass.

use super::{Cipher, counter_block, counters, load, store};
use crate::aead::Job;
use crate::backend::{Backend, Block};
use crate::cipher::aes::{Aes, RoundKeys, last_round, round, rounds};
use crate::ghash::{Hash, Powers};
use crate::lanes::{Clmul, Rounds};
use crate::limits::NONCE_OCTETS;
use crate::mode::Offsets;

/// Registers of a full stripe: enough to keep two AES units busy through the latency of a round,
/// and no more than AES-128 has rounds to hash between.
const WIDE: usize = 8;

impl<B, V, const K: usize> Cipher<B> for Aes<V, K>
where
    B: Backend<Ghash = Powers<V>>,
    V: Rounds + Clmul,
{
    #[inline(always)]
    fn encrypt(&self, _: B, blocks: &mut [Block]) {
        alone::<V, K, false>(self.keys(), blocks.as_flattened_mut());
    }

    #[inline(always)]
    fn decrypt(&self, _: B, blocks: &mut [Block]) {
        alone::<V, K, true>(self.inverse_keys(), blocks.as_flattened_mut());
    }

    #[inline(always)]
    fn counter<J: Job>(&self, _: B, first: u32, batch: &mut [&mut J]) {
        let keys = self.keys();
        for job in batch {
            let mut stream = Stream::new(keys, job.nonce(), first);
            let mut stripes = job.data_mut().chunks_exact_mut(WIDE * V::OCTETS);
            for stripe in &mut stripes {
                stream.full(stripe, &mut Nothing);
            }
            stream.rest(stripes.into_remainder(), &mut Nothing);
        }
    }

    #[inline(always)]
    fn counter_and_hash<J: Job, const SEAL: bool>(
        &self,
        _: B,
        ghash: &Powers<V>,
        batch: &mut [&mut J],
        tags: &mut [Block],
    ) {
        let keys = self.keys();
        if ghash.karatsuba {
            hashed::<J, V, K, SEAL, true>(keys, ghash, batch, tags);
        } else {
            hashed::<J, V, K, SEAL, false>(keys, ghash, batch, tags);
        }
    }

    #[inline(always)]
    fn offset<J: Job, const SEAL: bool>(
        &self,
        _: B,
        offsets: &Offsets,
        batch: &mut [&mut J],
        sums: &mut [u128],
    ) {
        let keys = if SEAL {
            self.keys()
        } else {
            self.inverse_keys()
        };
        for (job, sum) in batch.iter_mut().zip(sums) {
            let data = job.data_mut();
            let whole = data.len() & !15;
            *sum = if SEAL {
                masked::<V, K, false>(keys, offsets, *sum, &mut data[..whole])
            } else {
                masked::<V, K, true>(keys, offsets, *sum, &mut data[..whole])
            };
        }
    }
}

/// Counter mode from counter 2 on, and GHASH.
#[inline(always)]
fn hashed<J, V, const K: usize, const SEAL: bool, const KARATSUBA: bool>(
    keys: RoundKeys<'_, V, K>,
    ghash: &Powers<V>,
    batch: &mut [&mut J],
    tags: &mut [Block],
) where
    J: Job,
    V: Rounds + Clmul,
{
    let is_short = |job: &J| job.data().len() < WIDE * V::OCTETS;
    for (job, tag) in batch.iter_mut().zip(&mut *tags) {
        let mut stream = Stream::new(keys, job.nonce(), 2);
        if !is_short(job) {
            let octets = job.data().len();
            let mut hash = ghash.begin::<KARATSUBA>(job.aad(), octets);
            if SEAL {
                stream.seal(&mut hash, job.data_mut());
            } else {
                stream.open(&mut hash, job.data_mut());
            }
            *tag = hash.finish(job.aad().len(), octets, tag);
        } else if SEAL {
            stream.rest(job.data_mut(), &mut Nothing);
        } else {
            *tag = ghash.hash::<KARATSUBA>(job.aad(), job.data(), tag);
        }
    }
    for (job, tag) in batch.iter_mut().zip(tags) {
        if !is_short(job) {
            continue;
        }
        if SEAL {
            *tag = ghash.hash::<KARATSUBA>(job.aad(), job.data(), tag);
        } else {
            Stream::new(keys, job.nonce(), 2).rest(job.data_mut(), &mut Nothing);
        }
    }
}

/// Work that goes on between the rounds of a stripe.
trait Between<V> {
    /// After a round, counted from 0; `data` is what the stripe will change, `N` registers of it;
    /// `stream` is the first of the registers in work.
    fn round<const N: usize>(&mut self, round: usize, data: &[u8], stream: &mut V);
    /// After the rounds.
    fn end(&mut self, data: &[u8]);
}

/// Nothing goes on.
struct Nothing;

impl<V> Between<V> for Nothing {
    #[inline(always)]
    fn round<const N: usize>(&mut self, _: usize, _: &[u8], _: &mut V) {}

    #[inline(always)]
    fn end(&mut self, _: &[u8]) {}
}

/// The full stripe before this one is hashed.
struct HashBefore<'h, 'k, 'd, V, const KARATSUBA: bool>(&'h mut Hash<'k, V, KARATSUBA>, &'d [u8]);

impl<V: Clmul, const KARATSUBA: bool> Between<V> for HashBefore<'_, '_, '_, V, KARATSUBA> {
    #[inline(always)]
    fn round<const N: usize>(&mut self, round: usize, _: &[u8], stream: &mut V) {
        if round < WIDE {
            let ciphertext = V::load(&self.1[round * V::OCTETS..]);
            self.0.block_beside(ciphertext, stream);
        }
    }

    #[inline(always)]
    fn end(&mut self, data: &[u8]) {
        // Without rounds, there was nothing to hash between.
        if data.is_empty() {
            self.0.absorb(self.1);
        }
    }
}

/// This stripe is hashed before it changes.
struct HashThis<'h, 'k, V, const KARATSUBA: bool>(&'h mut Hash<'k, V, KARATSUBA>);

impl<V: Clmul, const KARATSUBA: bool> Between<V> for HashThis<'_, '_, V, KARATSUBA> {
    #[inline(always)]
    fn round<const N: usize>(&mut self, round: usize, data: &[u8], stream: &mut V) {
        if round < N && data.len() >= (round + 1) * V::OCTETS {
            let ciphertext = V::load(&data[round * V::OCTETS..]);
            self.0.block_beside(ciphertext, stream);
        }
    }

    #[inline(always)]
    fn end(&mut self, data: &[u8]) {
        self.0.absorb(&data[data.len() / V::OCTETS * V::OCTETS..]);
    }
}

/// The key stream of one frame.
struct Stream<'k, V, const K: usize> {
    keys: RoundKeys<'k, V, K>,
    /// Nonce and first round key.
    base: V,
    counter: u32,
}

impl<'k, V: Rounds, const K: usize> Stream<'k, V, K> {
    #[inline(always)]
    fn new(keys: RoundKeys<'k, V, K>, nonce: &[u8; NONCE_OCTETS], counter: u32) -> Self {
        Self {
            keys,
            base: V::splat(&counter_block(nonce, 0)).xor(keys.get(0)),
            counter,
        }
    }

    /// A full stripe in place.
    #[inline(always)]
    fn full(&mut self, data: &mut [u8], between: &mut impl Between<V>) {
        self.stripe::<WIDE>(&mut data[..WIDE * V::OCTETS], between);
    }

    /// Whatever is left, less than a full stripe.
    #[inline(always)]
    fn rest(&mut self, data: &mut [u8], between: &mut impl Between<V>) {
        match data.len().div_ceil(V::OCTETS) {
            0 => between.end(data),
            1 => self.stripe::<1>(data, between),
            2 => self.stripe::<2>(data, between),
            3 | 4 => self.stripe::<4>(data, between),
            5 | 6 => self.stripe::<6>(data, between),
            _ => self.stripe::<8>(data, between),
        }
    }

    /// At most `N` registers in place, of which the last may be part of one.
    #[inline(always)]
    fn stripe<const N: usize>(&mut self, data: &mut [u8], between: &mut impl Between<V>) {
        let keys = self.keys.afresh();
        let mut stream: [V; N] = counters(self.base, self.counter);
        self.counter = self.counter.wrapping_add((N * V::COUNT) as u32);
        // Unrolled by hand: what is hashed after each round must be known when this is compiled.
        macro_rules! rounds {
            ($($number:literal)*) => {$(
                if $number < K - 1 {
                    round::<V, N, false>(&mut stream, keys.get($number));
                    between.round::<N>($number - 1, data, &mut stream[0]);
                }
            )*};
        }
        rounds!(1 2 3 4 5 6 7 8 9 10 11 12 13);
        between.end(data);

        // The last round key and the data go in together: one operation less.
        let last = keys.get(K - 1);
        for (register, part) in stream.iter().zip(data.chunks_mut(V::OCTETS)) {
            store(register.last_round(last.xor(load(part))), part);
        }
    }
}

impl<V: Rounds + Clmul, const K: usize> Stream<'_, V, K> {
    /// Enciphers a frame of at least one stripe and hashes what comes out.
    #[inline(always)]
    fn seal<const KARATSUBA: bool>(&mut self, hash: &mut Hash<'_, V, KARATSUBA>, data: &mut [u8]) {
        let stripe = WIDE * V::OCTETS;
        let full = data.len() / stripe * stripe;
        self.full(data, &mut Nothing);
        for at in (stripe..full).step_by(stripe) {
            let (done, now) = data.split_at_mut(at);
            hash.reserve();
            self.full(now, &mut HashBefore(hash, last(done, stripe)));
        }
        let (done, rest) = data.split_at_mut(full);
        hash.reserve();
        self.rest(rest, &mut HashBefore(hash, last(done, stripe)));
        hash.reserve();
        hash.absorb(&data[full..]);
    }

    /// Hashes a frame and deciphers it.
    #[inline(always)]
    fn open<const KARATSUBA: bool>(&mut self, hash: &mut Hash<'_, V, KARATSUBA>, data: &mut [u8]) {
        let mut stripes = data.chunks_exact_mut(WIDE * V::OCTETS);
        for stripe in &mut stripes {
            hash.reserve();
            self.full(stripe, &mut HashThis(hash));
        }
        hash.reserve();
        self.rest(stripes.into_remainder(), &mut HashThis(hash));
    }
}

/// The last `octets` octets of what is done.
#[inline(always)]
fn last(done: &[u8], octets: usize) -> &[u8] {
    &done[done.len() - octets..][..octets]
}

/// Whole blocks between two applications of their offsets; gives the sum of the plaintext.
#[inline(always)]
fn masked<V: Rounds, const K: usize, const INVERSE: bool>(
    keys: RoundKeys<'_, V, K>,
    offsets: &Offsets,
    start: u128,
    data: &mut [u8],
) -> u128 {
    let mut frame = Masked::<V, K, INVERSE> {
        keys,
        run: offsets.run(start, 0),
        sum: V::zero(),
    };
    let mut stripes = data.chunks_exact_mut(WIDE * V::OCTETS);
    for stripe in &mut stripes {
        frame.stripe::<WIDE>(&mut stripe[..WIDE * V::OCTETS]);
    }
    let rest = stripes.into_remainder();
    match rest.len().div_ceil(V::OCTETS) {
        0 => {}
        1 => frame.stripe::<1>(rest),
        2 => frame.stripe::<2>(rest),
        3 | 4 => frame.stripe::<4>(rest),
        5 | 6 => frame.stripe::<6>(rest),
        _ => frame.stripe::<8>(rest),
    }
    u128::from_ne_bytes(frame.sum.fold())
}

/// One frame of OCB3 on its way.
struct Masked<'k, V, const K: usize, const INVERSE: bool> {
    keys: RoundKeys<'k, V, K>,
    run: crate::mode::Run<'k, V>,
    sum: V,
}

impl<V: Rounds, const K: usize, const INVERSE: bool> Masked<'_, V, K, INVERSE> {
    /// At most `N` registers in place, of which the last may hold fewer blocks.
    #[inline(always)]
    fn stripe<const N: usize>(&mut self, data: &mut [u8]) {
        let keys = self.keys.afresh();
        let (first, last) = (keys.get(0), keys.get(K - 1));
        let masks = self.run.next::<N>();
        let before = masks.with(first);
        let mut registers = [V::zero(); N];
        let parts = data.chunks(V::OCTETS);
        for (i, (register, part)) in registers.iter_mut().zip(parts).enumerate() {
            let block = load(part);
            if !INVERSE {
                self.sum = self.sum.xor(block);
            }
            *register = block.xor(before.get(i));
        }
        rounds::<V, K, N, INVERSE>(keys, &mut registers);
        let after = masks.afresh().with(last);
        let parts = data.chunks_mut(V::OCTETS);
        for (i, (register, part)) in registers.iter().zip(parts).enumerate() {
            let register = last_round::<V, INVERSE>(*register, after.get(i));
            if INVERSE {
                let kept = if part.len() == V::OCTETS {
                    register
                } else {
                    register.keep(part.len())
                };
                self.sum = self.sum.xor(kept);
            }
            store(register, part);
        }
    }
}

/// Each block alone.
#[inline(always)]
fn alone<V: Rounds, const K: usize, const INVERSE: bool>(
    keys: RoundKeys<'_, V, K>,
    octets: &mut [u8],
) {
    let mut stripes = octets.chunks_exact_mut(WIDE * V::OCTETS);
    for stripe in &mut stripes {
        alone_stripe::<V, K, WIDE, INVERSE>(keys, &mut stripe[..WIDE * V::OCTETS]);
    }
    for part in stripes.into_remainder().chunks_mut(2 * V::OCTETS) {
        alone_stripe::<V, K, 2, INVERSE>(keys, part);
    }
}

/// `N` registers of blocks, of which any may hold fewer.
#[inline(always)]
fn alone_stripe<V: Rounds, const K: usize, const N: usize, const INVERSE: bool>(
    keys: RoundKeys<'_, V, K>,
    octets: &mut [u8],
) {
    let keys = keys.afresh();
    let mut registers = [keys.get(0); N];
    for (register, part) in registers.iter_mut().zip(octets.chunks(V::OCTETS)) {
        *register = register.xor(load(part));
    }
    rounds::<V, K, N, INVERSE>(keys, &mut registers);
    for (register, part) in registers.iter().zip(octets.chunks_mut(V::OCTETS)) {
        store(last_round::<V, INVERSE>(*register, keys.get(K - 1)), part);
    }
}
