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
//! All that is once a frame goes through the cipher side by side for the whole batch: first Ktop, which
//! is the same for 64 nonces in a row and is made once for them, with the blocks of the AAD; then the
//! pads of the tails; last the tags.

use zeroize::Zeroizing;

use super::{Modal, Offsets, PerFrame, give, judge};
use crate::aead::{Job, Open, Seal};
use crate::backend::{Backend, Block, part};
use crate::bulk::Cipher;
use crate::limits::NONCE_OCTETS;

/// One key in OCB3.
pub(crate) struct Ocb<C> {
    cipher: C,
    offsets: Offsets,
}

/// What is known of each frame before its data are seen.
struct Start {
    /// The first offset.
    offset: u128,
    /// HASH(AAD).
    hash: u128,
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
        tags: &mut PerFrame<Block>,
    ) where
        C: Cipher<B>,
    {
        let mut starts = PerFrame::new();
        self.start(backend, batch, &mut starts);
        let (mut sums, mut ends, mut pads) = (PerFrame::new(), PerFrame::new(), PerFrame::new());
        for (start, one) in starts.iter().zip(batch.iter()) {
            let octets = one.data().len();
            let mut end = self.offsets.after(start.offset, octets / 16);
            if octets % 16 != 0 {
                end ^= self.offsets.l_star;
                pads.push(end.to_ne_bytes());
            }
            sums.push(start.offset);
            ends.push(end);
        }
        self.cipher.encrypt(backend, &mut pads);
        self.cipher
            .offset::<J, SEAL>(backend, &self.offsets, batch, &mut sums);

        let mut pads = pads.iter();
        for ((one, sum), end) in batch.iter_mut().zip(&sums).zip(&ends) {
            let (_, tail) = one.data_mut().as_chunks_mut::<16>();
            let mut sum = *sum;
            // Each tail has its pad.
            if !tail.is_empty()
                && let Some(pad) = pads.next()
            {
                let before = part::read(tail);
                let after = before ^ u128::from_le_bytes(*pad);
                part::write(after, tail);
                sum ^= padded(if SEAL { before } else { after }, tail.len());
            }
            tags.push((sum ^ end ^ self.offsets.l_dollar).to_ne_bytes());
        }
        self.cipher.encrypt(backend, tags);
        for (tag, start) in tags.iter_mut().zip(&starts) {
            *tag = (u128::from_ne_bytes(*tag) ^ start.hash).to_ne_bytes();
        }
    }

    /// RFC 7253, 4.1 and 4.2: HASH(K, A) and `Offset_0` of each frame.
    #[inline(always)]
    fn start<B: Backend, J: Job>(&self, backend: B, batch: &[&mut J], starts: &mut PerFrame<Start>)
    where
        C: Cipher<B>,
    {
        // The blocks of Ktop, as often as one differs from the frame's before; then blocks of AAD, of
        // any frames side by side, and whose they are.
        let (mut blocks, mut owners) = (PerFrame::new(), PerFrame::<u8>::new());
        let (mut tops, mut which) = (PerFrame::new(), PerFrame::<u8>::new());
        for one in batch {
            let block = top(one.nonce());
            if blocks.last() != Some(&block) {
                blocks.push(block);
            }
            which.push((blocks.len() - 1) as u8);
            starts.push(Start { offset: 0, hash: 0 });
        }
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
                if blocks.is_full() {
                    self.encipher(backend, &mut blocks, &mut owners, &mut tops, starts);
                }
                blocks.push((block ^ offset).to_ne_bytes());
                owners.push(owner as u8);
            }
        }
        self.encipher(backend, &mut blocks, &mut owners, &mut tops, starts);
        for ((start, which), one) in starts.iter_mut().zip(&which).zip(batch) {
            let top = u128::from_be_bytes(tops[usize::from(*which)]);
            start.offset = offset_0(top, one.nonce());
        }
    }

    /// Enciphers the blocks that have been gathered. Those of Ktop, which are first and have no owners,
    /// go to `tops`; the others to their owners' hashes.
    #[inline(always)]
    fn encipher<B: Backend>(
        &self,
        backend: B,
        blocks: &mut PerFrame<Block>,
        owners: &mut PerFrame<u8>,
        tops: &mut PerFrame<Block>,
        starts: &mut PerFrame<Start>,
    ) where
        C: Cipher<B>,
    {
        self.cipher.encrypt(backend, blocks);
        let (own, aad) = blocks.split_at(blocks.len() - owners.len());
        for block in own {
            tops.push(*block);
        }
        for (block, owner) in aad.iter().zip(&*owners) {
            starts[usize::from(*owner)].hash ^= u128::from_ne_bytes(*block);
        }
        blocks.clear();
        owners.clear();
    }
}

impl<B: Backend, C: Cipher<B>> Modal<B> for Ocb<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [&mut Seal<'_>]) {
        let mut tags = PerFrame::new();
        self.run::<B, _, true>(backend, batch, &mut tags);
        give(batch, &tags);
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [&mut Open<'_>]) {
        let mut tags = PerFrame::new();
        self.run::<B, _, false>(backend, batch, &mut tags);
        judge(batch, &tags);
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

/// RFC 7253, 4.2: `Offset_0` from Ktop. The nonce block's first seven bits are TAGLEN mod 128, here 0.
#[inline(always)]
fn offset_0(top: u128, nonce: &[u8; NONCE_OCTETS]) -> u128 {
    // Stretch = Ktop || (Ktop[1..64] xor Ktop[9..72]); only its first 64 bits beyond Ktop.
    let more = (top >> 64) as u64 ^ (top >> 56) as u64;
    let bottom = u32::from(nonce[NONCE_OCTETS - 1] & 0x3f);
    let shifted = (top << bottom) | (u128::from(more) >> (64 - bottom));
    u128::from_ne_bytes(shifted.to_be_bytes())
}

/// `tail || 1 || zeros`: the first `octets` octets of `tail`, fewer than a block, as a block.
#[inline(always)]
fn padded(tail: u128, octets: usize) -> u128 {
    let below = (1 << (8 * octets)) - 1;
    u128::from_ne_bytes(((tail & below) | 0x80 << (8 * octets)).to_le_bytes())
}
