//! Lanes filled across frames: Serpent, Camellia and portable AES.
//!
//! Such a cipher takes sixteen registers of blocks and is no quicker with fewer. So the registers
//! are filled with block after block of frame after frame; a frame begins in a new register, because
//! a register meets memory in one piece.
//!
//! ```text
//!   frames     aaaaaaaaa a    bbb b       cccccccccccccccccc c
//!   stripes  [ a a a a a a | b b | c c c c c c c c ] [ c c c c c c ... ]
//! ```
//!
//! Each stripe is walked over twice, before the cipher and after it; the [`Walk`] gives both times
//! the same pieces.

use arrayvec::ArrayVec;

use super::{Cipher, counter_block, counters, load, store};
use crate::aead::Job;
use crate::backend::{Backend, Block, FromKey, Kernel};
use crate::lanes::{Blocks, LaneCipher, STRIPE};
use crate::limits::FRAMES_AT_ONCE;
use crate::mode::Offsets;

/// A cipher of many lanes.
pub(crate) struct Gather<C>(pub(crate) C);

impl<C: FromKey> FromKey for Gather<C> {
    #[inline(always)]
    fn from_key(key: &[u8]) -> Option<Self> {
        C::from_key(key).map(Self)
    }
}

/// A place in a batch's data, and in the stripe that it fills.
#[derive(Clone, Copy)]
struct Walk {
    frame: usize,
    octet: usize,
    /// Registers of the stripe in use.
    used: usize,
    /// Only whole blocks are walked over.
    whole: bool,
}

/// Neighbouring registers of one frame in a stripe.
struct Piece {
    frame: usize,
    /// Where it begins in the frame's data.
    octet: usize,
    /// Octets of it; the last register may hold fewer than it could.
    octets: usize,
    /// Its first register in the stripe.
    at: usize,
}

impl Walk {
    /// From the first frame's first octet on.
    #[inline(always)]
    fn new(whole: bool) -> Self {
        Self {
            frame: 0,
            octet: 0,
            used: 0,
            whole,
        }
    }

    /// The next piece of the stripe; None when the stripe is full or the batch ends.
    #[inline(always)]
    fn next<V: Blocks, J: Job>(&mut self, batch: &[&mut J]) -> Option<Piece> {
        while self.used < STRIPE && self.frame < batch.len() {
            let mut end = batch[self.frame].data().len();
            if self.whole {
                end &= !15;
            }
            let octets = (end - self.octet).min((STRIPE - self.used) * V::OCTETS);
            let piece = Piece {
                frame: self.frame,
                octet: self.octet,
                octets,
                at: self.used,
            };
            self.used += octets.div_ceil(V::OCTETS);
            self.octet += octets;
            if self.octet == end {
                self.frame += 1;
                self.octet = 0;
            }
            if octets > 0 {
                return Some(piece);
            }
        }
        None
    }
}

/// One stripe through the cipher: a kernel of its own, so that its long row of instructions is there
/// once for a backend and not once for each mode.
struct Stripe<'s, V, C, const ENCRYPT: bool> {
    cipher: &'s C,
    registers: &'s mut [V; STRIPE],
    used: usize,
}

impl<B, C, const ENCRYPT: bool> Kernel<B> for Stripe<'_, B::Lanes, C, ENCRYPT>
where
    B: Backend,
    C: LaneCipher<B::Lanes>,
{
    type Output = ();

    #[inline(always)]
    fn run(self, _: B) {
        if ENCRYPT {
            self.cipher.encrypt(self.registers, self.used);
        } else {
            self.cipher.decrypt(self.registers, self.used);
        }
    }
}

impl<C> Gather<C> {
    #[inline(always)]
    fn stripe<B: Backend, const ENCRYPT: bool>(
        &self,
        backend: B,
        registers: &mut [B::Lanes; STRIPE],
        used: usize,
    ) where
        C: LaneCipher<B::Lanes>,
    {
        backend.run(Stripe::<B::Lanes, C, ENCRYPT> {
            cipher: &self.0,
            registers,
            used,
        });
    }

    /// Each block alone.
    #[inline(always)]
    fn alone<B: Backend, const ENCRYPT: bool>(&self, backend: B, blocks: &mut [Block])
    where
        C: LaneCipher<B::Lanes>,
    {
        for blocks in blocks.chunks_mut(STRIPE * B::Lanes::COUNT) {
            let octets = blocks.as_flattened_mut();
            let used = octets.len().div_ceil(B::Lanes::OCTETS);
            let mut stripe = [B::Lanes::zero(); STRIPE];
            for (register, part) in stripe.iter_mut().zip(octets.chunks(B::Lanes::OCTETS)) {
                *register = load(part);
            }
            self.stripe::<B, ENCRYPT>(backend, &mut stripe, used);
            for (register, part) in stripe.into_iter().zip(octets.chunks_mut(B::Lanes::OCTETS)) {
                store(register, part);
            }
        }
    }
}

impl<B: Backend, C: LaneCipher<B::Lanes>> Cipher<B> for Gather<C> {
    #[inline(always)]
    fn encrypt(&self, backend: B, blocks: &mut [Block]) {
        self.alone::<B, true>(backend, blocks);
    }

    #[inline(always)]
    fn decrypt(&self, backend: B, blocks: &mut [Block]) {
        self.alone::<B, false>(backend, blocks);
    }

    #[inline(always)]
    fn counter<J: Job>(&self, backend: B, first: u32, batch: &mut [&mut J]) {
        let mut walk = Walk::new(false);
        loop {
            let mut again = walk;
            let mut stripe = [B::Lanes::zero(); STRIPE];
            while let Some(piece) = walk.next::<B::Lanes, J>(batch) {
                let nonce = B::Lanes::splat(&counter_block(batch[piece.frame].nonce(), 0));
                let mut counter = first.wrapping_add((piece.octet / 16) as u32);
                let registers = piece.octets.div_ceil(B::Lanes::OCTETS);
                for register in &mut stripe[piece.at..][..registers] {
                    [*register] = counters(nonce, counter);
                    counter = counter.wrapping_add(B::Lanes::COUNT as u32);
                }
            }
            if walk.used == 0 {
                return;
            }
            self.stripe::<B, true>(backend, &mut stripe, walk.used);
            walk.used = 0;
            while let Some(piece) = again.next::<B::Lanes, J>(batch) {
                let data = &mut batch[piece.frame].data_mut()[piece.octet..][..piece.octets];
                for (part, register) in data.chunks_mut(B::Lanes::OCTETS).zip(&stripe[piece.at..]) {
                    store(register.xor(load(part)), part);
                }
            }
        }
    }

    #[inline(always)]
    fn offset<J: Job, const SEAL: bool>(
        &self,
        backend: B,
        offsets: &Offsets,
        batch: &mut [&mut J],
        sums: &mut [u128],
    ) {
        // The first offsets are needed to the end; the sums grow beside them.
        let mut plain = ArrayVec::<u128, FRAMES_AT_ONCE>::new();
        for _ in &*sums {
            plain.push(0);
        }
        let mut walk = Walk::new(true);
        loop {
            let mut again = walk;
            let mut stripe = [B::Lanes::zero(); STRIPE];
            let mut masks = [B::Lanes::zero(); STRIPE];
            while let Some(piece) = walk.next::<B::Lanes, J>(batch) {
                let mut run = offsets.run(sums[piece.frame], piece.octet / 16);
                let mut sum = B::Lanes::zero();
                let data = &batch[piece.frame].data()[piece.octet..][..piece.octets];
                for (i, part) in data.chunks(B::Lanes::OCTETS).enumerate() {
                    let block = load(part);
                    sum = sum.xor(block);
                    masks[piece.at + i] = run.next::<1>().get(0);
                    stripe[piece.at + i] = block.xor(masks[piece.at + i]);
                }
                if SEAL {
                    plain[piece.frame] ^= u128::from_ne_bytes(sum.fold());
                }
            }
            if walk.used == 0 {
                break;
            }
            if SEAL {
                self.stripe::<B, true>(backend, &mut stripe, walk.used);
            } else {
                self.stripe::<B, false>(backend, &mut stripe, walk.used);
            }
            walk.used = 0;
            while let Some(piece) = again.next::<B::Lanes, J>(batch) {
                let mut sum = B::Lanes::zero();
                let data = &mut batch[piece.frame].data_mut()[piece.octet..][..piece.octets];
                for (i, part) in data.chunks_mut(B::Lanes::OCTETS).enumerate() {
                    let block = stripe[piece.at + i].xor(masks[piece.at + i]);
                    store(block, part);
                    sum = sum.xor(if part.len() == B::Lanes::OCTETS {
                        block
                    } else {
                        block.keep(part.len())
                    });
                }
                if !SEAL {
                    plain[piece.frame] ^= u128::from_ne_bytes(sum.fold());
                }
            }
        }
        sums.copy_from_slice(&plain);
    }
}
