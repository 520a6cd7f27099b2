//! OCB3 with a 96-bit nonce and a 128-bit tag (RFC 7253).
//!
//! ```text
//!   offset_0 = 128 bits of stretch(E(nonce block)), shifted by the nonce's last six bits
//!   offset_i = offset_(i-1) xor L[trailing zeros of i]
//!   C_i      = offset_i xor E(P_i xor offset_i)          checksum = xor of all P_i
//!   tail     : C_* = P_* xor E(offset_*),  offset_* = offset_m xor L_*
//!   T        = E(checksum xor offset xor L_$) xor HASH(AAD)
//! ```
//!
//! We write it ourselves and do not take the `ocb3` crate, because that keeps its L table in
//! memory after the key is gone and enciphers block by block; the tests hold both side by side.
//! Offsets are `u128` in the machine's own byte order: only doubling and the stretch need the
//! octets as a number, and those are rare.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Modal, tags_equal, wipe};
use crate::aead::{Open, Seal};
use crate::backend::{Backend, Block, BlockCipher};
use crate::limits::{AAD_OCTETS_MAX, DATA_OCTETS_MAX, NONCE_OCTETS, WIDE};

/// L values that the longest data need: trailing zeros of a block's number, 0 to 16.
const L_VALUES: usize = 17;
const _: () = assert!(DATA_OCTETS_MAX / 16 <= 1 << (L_VALUES - 1));
const _: () = assert!(AAD_OCTETS_MAX / 16 <= 1 << (L_VALUES - 1));

/// One key in OCB3.
pub(crate) struct Ocb<C> {
    cipher: C,
    masks: Masks,
}

/// RFC 7253, 4.1: what depends on the key alone.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Masks {
    l_star: u128,
    l_dollar: u128,
    l: [u128; L_VALUES],
}

impl<C> Ocb<C> {
    /// Makes the L table of the cipher's key.
    pub(crate) fn new<B: Backend>(backend: B, cipher: C) -> Self
    where
        C: BlockCipher<B>,
    {
        let mut zero = Zeroizing::new([[0; 16]]);
        cipher.encrypt(backend, &mut *zero);
        let l_star = u128::from_ne_bytes(zero[0]);
        let l_dollar = double(l_star);
        let mut l = [double(l_dollar); L_VALUES];
        for i in 1..L_VALUES {
            l[i] = double(l[i - 1]);
        }
        let masks = Masks {
            l_star,
            l_dollar,
            l,
        };
        Self { cipher, masks }
    }

    /// RFC 7253, 4.2: `Offset_0`. The nonce block's first seven bits are TAGLEN mod 128, here 0.
    #[inline(always)]
    fn first_offset<B: Backend>(&self, backend: B, nonce: &[u8; NONCE_OCTETS]) -> u128
    where
        C: BlockCipher<B>,
    {
        let mut top = [[0; 16]];
        top[0][3] = 1;
        top[0][4..].copy_from_slice(nonce);
        let bottom = u32::from(top[0][15] & 0x3f);
        top[0][15] &= 0xc0;
        self.cipher.encrypt(backend, &mut top);
        let top = u128::from_be_bytes(top[0]);
        // Stretch = Ktop || (Ktop[1..64] xor Ktop[9..72]); only its first 64 bits beyond Ktop.
        let more = (top >> 64) as u64 ^ (top >> 56) as u64;
        let offset = (top << bottom) | (u128::from(more) >> (64 - bottom));
        u128::from_ne_bytes(offset.to_be_bytes())
    }

    /// The next offset of each block, `number` being the last block done, and the masks applied.
    #[inline(always)]
    fn mask(
        &self,
        blocks: &mut [Block],
        offsets: &mut [u128],
        offset: &mut u128,
        number: &mut u32,
    ) {
        for (block, kept) in blocks.iter_mut().zip(offsets) {
            *number += 1;
            *offset ^= self.masks.l[number.trailing_zeros() as usize];
            *kept = *offset;
            *block = xor(block, *offset);
        }
    }

    /// RFC 7253, 4.1: HASH(K, A).
    #[inline(always)]
    fn hash<B: Backend>(&self, backend: B, aad: &[u8]) -> u128
    where
        C: BlockCipher<B>,
    {
        let (mut offset, mut number, mut sum) = (0, 0, 0);
        let (blocks, tail) = aad.as_chunks::<16>();
        for blocks in blocks.chunks(WIDE) {
            let mut wide = [[0; 16]; WIDE];
            let wide = &mut wide[..blocks.len()];
            wide.copy_from_slice(blocks);
            self.mask(wide, &mut [0; WIDE], &mut offset, &mut number);
            self.cipher.encrypt(backend, wide);
            sum ^= checksum(wide);
        }
        if !tail.is_empty() {
            let mut last = [xor(&padded(tail), offset ^ self.masks.l_star)];
            self.cipher.encrypt(backend, &mut last);
            sum ^= checksum(&last);
        }
        sum
    }

    /// Enciphers in place and returns the tag.
    #[inline(always)]
    fn encrypt<B: Backend>(
        &self,
        backend: B,
        nonce: &[u8; NONCE_OCTETS],
        aad: &[u8],
        data: &mut [u8],
    ) -> Block
    where
        C: BlockCipher<B>,
    {
        let mut offset = self.first_offset(backend, nonce);
        let (mut number, mut sum) = (0, 0);
        let mut offsets = [0; WIDE];
        let (blocks, tail) = data.as_chunks_mut::<16>();
        for blocks in blocks.chunks_mut(WIDE) {
            sum ^= checksum(blocks);
            self.mask(blocks, &mut offsets, &mut offset, &mut number);
            self.cipher.encrypt(backend, blocks);
            unmask(blocks, &offsets);
        }
        if !tail.is_empty() {
            sum ^= u128::from_ne_bytes(padded(tail));
            offset ^= self.masks.l_star;
            self.apply_pad(backend, offset, tail);
        }
        self.tag(backend, sum, offset, aad)
    }

    /// Deciphers in place and returns the tag that the plaintext ought to have.
    #[inline(always)]
    fn decrypt<B: Backend>(
        &self,
        backend: B,
        nonce: &[u8; NONCE_OCTETS],
        aad: &[u8],
        data: &mut [u8],
    ) -> Block
    where
        C: BlockCipher<B>,
    {
        let mut offset = self.first_offset(backend, nonce);
        let (mut number, mut sum) = (0, 0);
        let mut offsets = [0; WIDE];
        let (blocks, tail) = data.as_chunks_mut::<16>();
        for blocks in blocks.chunks_mut(WIDE) {
            self.mask(blocks, &mut offsets, &mut offset, &mut number);
            self.cipher.decrypt(backend, blocks);
            unmask(blocks, &offsets);
            sum ^= checksum(blocks);
        }
        if !tail.is_empty() {
            offset ^= self.masks.l_star;
            self.apply_pad(backend, offset, tail);
            sum ^= u128::from_ne_bytes(padded(tail));
        }
        self.tag(backend, sum, offset, aad)
    }

    #[inline(always)]
    fn apply_pad<B: Backend>(&self, backend: B, offset: u128, tail: &mut [u8])
    where
        C: BlockCipher<B>,
    {
        let mut pad = [offset.to_ne_bytes()];
        self.cipher.encrypt(backend, &mut pad);
        for (octet, mask) in tail.iter_mut().zip(pad[0]) {
            *octet ^= mask;
        }
    }

    #[inline(always)]
    fn tag<B: Backend>(&self, backend: B, sum: u128, offset: u128, aad: &[u8]) -> Block
    where
        C: BlockCipher<B>,
    {
        let mut tag = [(sum ^ offset ^ self.masks.l_dollar).to_ne_bytes()];
        self.cipher.encrypt(backend, &mut tag);
        xor(&tag[0], self.hash(backend, aad))
    }
}

impl<B: Backend, C: BlockCipher<B>> Modal<B> for Ocb<C> {
    #[inline(always)]
    fn seal(&self, backend: B, batch: &mut [Seal<'_>]) {
        for one in batch {
            let tag = self.encrypt(backend, &one.nonce, one.aad, one.data);
            one.tag.copy_from_slice(&tag);
        }
    }

    #[inline(always)]
    fn open(&self, backend: B, batch: &mut [Open<'_>]) {
        for one in batch {
            let tag = self.decrypt(backend, &one.nonce, one.aad, one.data);
            one.valid = tags_equal(&tag, one.tag);
            if !one.valid {
                wipe(one.data);
            }
        }
    }
}

/// RFC 7253, 2: multiplication by x in GF(2^128), without a branch on the value.
fn double(value: u128) -> u128 {
    let number = u128::from_be_bytes(value.to_ne_bytes());
    let doubled = (number << 1) ^ ((number >> 127) * 0x87);
    u128::from_ne_bytes(doubled.to_be_bytes())
}

#[inline(always)]
fn xor(block: &Block, mask: u128) -> Block {
    (u128::from_ne_bytes(*block) ^ mask).to_ne_bytes()
}

#[inline(always)]
fn unmask(blocks: &mut [Block], offsets: &[u128; WIDE]) {
    for (block, offset) in blocks.iter_mut().zip(offsets) {
        *block = xor(block, *offset);
    }
}

#[inline(always)]
fn checksum(blocks: &[Block]) -> u128 {
    blocks
        .iter()
        .fold(0, |sum, block| sum ^ u128::from_ne_bytes(*block))
}

/// `tail || 1 || zeros`, `tail` being shorter than a block.
#[inline(always)]
fn padded(tail: &[u8]) -> Block {
    let mut block = [0; 16];
    block[..tail.len()].copy_from_slice(tail);
    block[tail.len()] = 0x80;
    block
}
