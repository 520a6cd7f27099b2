//! OCB3 with a 96-bit nonce and a 128-bit tag (RFC 7253).
//!
//! ```text
//!   offset_0 = 128 bits of stretch(Ktop), shifted by the nonce's last six bits
//!   offset_i = offset_(i-1) xor L[trailing zeros of i]
//!   C_i      = offset_i xor E(P_i xor offset_i)          checksum = xor of all P_i
//!   tail     : C_* = P_* xor E(offset_*),  offset_* = offset_m xor L_*
//!   T        = E(checksum xor offset xor L_$) xor HASH(AAD)
//! ```
//!
//! All that is once a frame goes through the cipher side by side for the whole batch: Ktop, which
//! is the same for 64 nonces in a row and is made once for them; the blocks of the AAD; the pads of
//! the tails; the tags.

use zeroize::Zeroizing;

use super::{Modal, Offsets, give, judge};
use crate::aead::{Job, Open, Seal};
use crate::backend::{Backend, Block, part};
use crate::bulk::Cipher;
use crate::limits::{FRAMES_AT_ONCE, NONCE_OCTETS};

/// One key in OCB3.
pub(crate) struct Ocb<C> {
    cipher: C,
    offsets: Offsets,
}

/// What is known of each frame of a batch, in the order of the batch.
struct Frames {
    /// The first offset; the checksum, after the bulk.
    sums: [u128; FRAMES_AT_ONCE],
    /// The last offset.
    ends: [u128; FRAMES_AT_ONCE],
    /// HASH(AAD).
    hashes: [u128; FRAMES_AT_ONCE],
    /// What the tail is XORed with.
    pads: [Block; FRAMES_AT_ONCE],
}

impl<C> Ocb<C> {
    /// Makes the tables of the cipher's key.
    #[inline(always)]
    pub(crate) fn new<B: Backend>(backend: B, cipher: C) -> Self
    where
        C: Cipher<B>,
    {
        let mut zero = Zeroizing::new([[0; 16]]);
        cipher.encrypt(backend, &mut *zero);
        let offsets = Offsets::new(&zero[0]);
        Self { cipher, offsets }
    }

    /// Ciphers the data and makes the tags.
    #[inline(always)]
    fn run<B: Backend, J: Job, const SEAL: bool>(
        &self,
        backend: B,
        batch: &mut [&mut J],
        tags: &mut [Block],
    ) where
        C: Cipher<B>,
    {
        let count = batch.len();
        let mut frames = Frames {
            sums: [0; FRAMES_AT_ONCE],
            ends: [0; FRAMES_AT_ONCE],
            hashes: [0; FRAMES_AT_ONCE],
            pads: [[0; 16]; FRAMES_AT_ONCE],
        };
        self.first_offsets(backend, batch, &mut frames.sums, tags);
        self.hash(backend, batch, &mut frames.hashes);
        for (i, one) in batch.iter().enumerate() {
            let octets = one.data().len();
            frames.ends[i] = self.offsets.after(frames.sums[i], octets / 16);
            if octets % 16 != 0 {
                frames.ends[i] ^= self.offsets.l_star;
                frames.pads[i] = frames.ends[i].to_ne_bytes();
            }
        }
        self.cipher.encrypt(backend, &mut frames.pads[..count]);
        self.cipher
            .offset::<J, SEAL>(backend, &self.offsets, batch, &mut frames.sums[..count]);

        for (i, one) in batch.iter_mut().enumerate() {
            let data = one.data_mut();
            let (_, tail) = data.as_chunks_mut::<16>();
            let mut sum = frames.sums[i];
            if !tail.is_empty() {
                let before = part::read(tail);
                let after = before ^ u128::from_le_bytes(frames.pads[i]);
                part::write(after, tail);
                sum ^= padded(if SEAL { before } else { after }, tail.len());
            }
            tags[i] = (sum ^ frames.ends[i] ^ self.offsets.l_dollar).to_ne_bytes();
        }
        self.cipher.encrypt(backend, tags);
        for (tag, hash) in tags.iter_mut().zip(frames.hashes) {
            *tag = (u128::from_ne_bytes(*tag) ^ hash).to_ne_bytes();
        }
    }

    /// RFC 7253, 4.2: `Offset_0` of each frame. The nonce block's first seven bits are TAGLEN mod
    /// 128, here 0. `tops` is room for as many blocks as there are frames.
    #[inline(always)]
    fn first_offsets<B: Backend, J: Job>(
        &self,
        backend: B,
        batch: &[&mut J],
        offsets: &mut [u128; FRAMES_AT_ONCE],
        tops: &mut [Block],
    ) where
        C: Cipher<B>,
    {
        // Frames whose nonces differ in the last six bits alone share a block.
        let mut which = [0_u8; FRAMES_AT_ONCE];
        let mut used = 0;
        for (which, one) in which.iter_mut().zip(batch) {
            let block = top(one.nonce());
            if used == 0 || tops[used - 1] != block {
                tops[used] = block;
                used += 1;
            }
            *which = (used - 1) as u8;
        }
        self.cipher.encrypt(backend, &mut tops[..used]);
        for ((offset, which), one) in offsets.iter_mut().zip(which).zip(batch) {
            let top = u128::from_be_bytes(tops[usize::from(which)]);
            // Stretch = Ktop || (Ktop[1..64] xor Ktop[9..72]); only its first 64 bits beyond Ktop.
            let more = (top >> 64) as u64 ^ (top >> 56) as u64;
            let bottom = u32::from(one.nonce()[NONCE_OCTETS - 1] & 0x3f);
            let shifted = (top << bottom) | (u128::from(more) >> (64 - bottom));
            *offset = u128::from_ne_bytes(shifted.to_be_bytes());
        }
    }

    /// RFC 7253, 4.1: HASH(K, A) of each frame.
    #[inline(always)]
    fn hash<B: Backend, J: Job>(
        &self,
        backend: B,
        batch: &[&mut J],
        hashes: &mut [u128; FRAMES_AT_ONCE],
    ) where
        C: Cipher<B>,
    {
        // Blocks of any frames side by side, and whose they are.
        let (mut blocks, mut owners) = ([[0; 16]; FRAMES_AT_ONCE], [0_u8; FRAMES_AT_ONCE]);
        let mut used = 0;
        for (owner, one) in batch.iter().enumerate() {
            let mut offset = 0;
            for (i, part) in one.aad().chunks(16).enumerate() {
                let block = if part.len() == 16 {
                    offset = self.offsets.after(0, i + 1);
                    u128::from_ne_bytes(part::read(part).to_le_bytes())
                } else {
                    offset ^= self.offsets.l_star;
                    padded(part::read(part), part.len())
                };
                blocks[used] = (block ^ offset).to_ne_bytes();
                owners[used] = owner as u8;
                used += 1;
                if used == FRAMES_AT_ONCE {
                    self.hash_blocks(backend, &mut blocks, &owners, hashes);
                    used = 0;
                }
            }
        }
        self.hash_blocks(backend, &mut blocks[..used], &owners, hashes);
    }

    /// Enciphers blocks and adds each to its owner's hash.
    #[inline(always)]
    fn hash_blocks<B: Backend>(
        &self,
        backend: B,
        blocks: &mut [Block],
        owners: &[u8; FRAMES_AT_ONCE],
        hashes: &mut [u128; FRAMES_AT_ONCE],
    ) where
        C: Cipher<B>,
    {
        self.cipher.encrypt(backend, blocks);
        for (block, owner) in blocks.iter().zip(owners) {
            hashes[usize::from(*owner)] ^= u128::from_ne_bytes(*block);
        }
    }
}

impl<B: Backend, C: Cipher<B>> Modal<B> for Ocb<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [&mut Seal<'_>]) {
        let mut tags = [[0; 16]; FRAMES_AT_ONCE];
        let tags = &mut tags[..batch.len()];
        self.run::<B, _, true>(backend, batch, tags);
        give(batch, tags);
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [&mut Open<'_>]) {
        let mut tags = [[0; 16]; FRAMES_AT_ONCE];
        let tags = &mut tags[..batch.len()];
        self.run::<B, _, false>(backend, batch, tags);
        judge(batch, tags);
    }
}

/// The block that Ktop is made of: the nonce without its last six bits.
#[inline(always)]
fn top(nonce: &[u8; NONCE_OCTETS]) -> Block {
    let mut block = [0; 16];
    block[3] = 1;
    block[4..].copy_from_slice(nonce);
    block[15] &= 0xc0;
    block
}

/// `tail || 1 || zeros`: the first `octets` octets of `tail`, fewer than a block, as a block.
#[inline(always)]
fn padded(tail: u128, octets: usize) -> u128 {
    let below = (1 << (8 * octets)) - 1;
    u128::from_ne_bytes(((tail & below) | 0x80 << (8 * octets)).to_le_bytes())
}
