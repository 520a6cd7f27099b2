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
//! Each stripe is walked over twice, before the cipher and after it; the [`Walk`] says both times
//! the same pieces.

use super::{Cipher, counter_block, counters};
use crate::aead::Job;
use crate::backend::{Backend, Block};
use crate::lanes::{Blocks, LaneCipher, STRIPE};
use crate::mode::Offsets;

/// A cipher of many lanes.
pub(crate) struct Gather<C>(pub(crate) C);

/// Where the next stripe begins.
#[derive(Clone, Copy)]
struct Walk {
    frame: usize,
    octet: usize,
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
    const START: Self = Self { frame: 0, octet: 0 };

    /// Calls `each` for the pieces of the next stripe; gives the number of registers in use.
    #[inline(always)]
    fn stripe<V: Blocks, J: Job>(
        &mut self,
        batch: &mut [&mut J],
        length: impl Fn(usize) -> usize,
        mut each: impl FnMut(&mut J, Piece),
    ) -> usize {
        let mut at = 0;
        while at < STRIPE && self.frame < batch.len() {
            let job = &mut *batch[self.frame];
            let left = length(job.data().len()) - self.octet;
            let octets = left.min((STRIPE - at) * V::OCTETS);
            let (frame, octet) = (self.frame, self.octet);
            if octets == left {
                *self = Self {
                    frame: frame + 1,
                    octet: 0,
                };
            } else {
                self.octet += octets;
            }
            if octets > 0 {
                each(
                    job,
                    Piece {
                        frame,
                        octet,
                        octets,
                        at,
                    },
                );
                at += octets.div_ceil(V::OCTETS);
            }
        }
        at
    }
}

impl<B: Backend, C: LaneCipher<B::Lanes>> Cipher<B> for Gather<C> {
    #[inline(always)]
    fn encrypt(&self, _: B, blocks: &mut [Block]) {
        alone(blocks, |stripe, used| self.0.encrypt(stripe, used));
    }

    #[inline(always)]
    fn decrypt(&self, _: B, blocks: &mut [Block]) {
        alone(blocks, |stripe, used| self.0.decrypt(stripe, used));
    }

    #[inline(always)]
    fn counter<J: Job>(&self, _: B, first: u32, batch: &mut [&mut J]) {
        let all = |octets: usize| octets;
        let mut walk = Walk::START;
        loop {
            let mut stripe = [B::Lanes::zero(); STRIPE];
            let mut again = walk;
            let used = walk.stripe::<B::Lanes, J>(batch, all, |job, piece| {
                let nonce = B::Lanes::splat(&counter_block(job.nonce(), 0));
                let mut counter = first.wrapping_add((piece.octet / 16) as u32);
                let registers = piece.octets.div_ceil(B::Lanes::OCTETS);
                for register in &mut stripe[piece.at..][..registers] {
                    *register = nonce.xor(counters(counter));
                    counter = counter.wrapping_add(B::Lanes::COUNT as u32);
                }
            });
            if used == 0 {
                return;
            }
            self.0.encrypt(&mut stripe, used);
            again.stripe::<B::Lanes, J>(batch, all, |job, piece| {
                let data = &mut job.data_mut()[piece.octet..][..piece.octets];
                let mut registers = stripe[piece.at..].iter();
                let mut parts = data.chunks_exact_mut(B::Lanes::OCTETS);
                for (part, register) in (&mut parts).zip(&mut registers) {
                    register.xor(B::Lanes::load(part)).store(part);
                }
                let part = parts.into_remainder();
                if let (false, Some(register)) = (part.is_empty(), registers.next()) {
                    register.xor(B::Lanes::load_part(part)).store_part(part);
                }
            });
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
        let whole = |octets: usize| octets & !15;
        // The first offsets are needed to the end; the sums grow beside them.
        let mut plain = [0; crate::limits::FRAMES_AT_ONCE];
        let mut walk = Walk::START;
        loop {
            let mut stripe = [B::Lanes::zero(); STRIPE];
            let mut masks = [B::Lanes::zero(); STRIPE];
            let mut again = walk;
            let used = walk.stripe::<B::Lanes, J>(batch, whole, |job, piece| {
                let mut run = offsets.run(sums[piece.frame], piece.octet / 16);
                let mut sum = B::Lanes::zero();
                let data = &job.data()[piece.octet..][..piece.octets];
                for (i, part) in data.chunks(B::Lanes::OCTETS).enumerate() {
                    let block = load(part);
                    sum = sum.xor(block);
                    [masks[piece.at + i]] = run.next();
                    stripe[piece.at + i] = block.xor(masks[piece.at + i]);
                }
                if SEAL {
                    plain[piece.frame] ^= u128::from_ne_bytes(sum.fold());
                }
            });
            if used == 0 {
                break;
            }
            if SEAL {
                self.0.encrypt(&mut stripe, used);
            } else {
                self.0.decrypt(&mut stripe, used);
            }
            again.stripe::<B::Lanes, J>(batch, whole, |job, piece| {
                let mut sum = B::Lanes::zero();
                let data = &mut job.data_mut()[piece.octet..][..piece.octets];
                for (i, part) in data.chunks_mut(B::Lanes::OCTETS).enumerate() {
                    let block = stripe[piece.at + i].xor(masks[piece.at + i]);
                    sum = sum.xor(store(block, part));
                }
                if !SEAL {
                    plain[piece.frame] ^= u128::from_ne_bytes(sum.fold());
                }
            });
        }
        sums.copy_from_slice(&plain[..sums.len()]);
    }
}

/// A register of whole blocks, full or not.
#[inline(always)]
fn load<V: Blocks>(part: &[u8]) -> V {
    if part.len() == V::OCTETS {
        V::load(part)
    } else {
        V::load_part(part)
    }
}

/// The same back; gives what was stored, with zeros behind it.
#[inline(always)]
fn store<V: Blocks>(register: V, part: &mut [u8]) -> V {
    if part.len() == V::OCTETS {
        register.store(part);
        register
    } else {
        register.store_part(part);
        register.keep(part.len())
    }
}

/// Each block alone.
#[inline(always)]
fn alone<V: Blocks>(blocks: &mut [Block], cipher: impl Fn(&mut [V; STRIPE], usize)) {
    for blocks in blocks.chunks_mut(STRIPE * V::COUNT) {
        let octets = blocks.as_flattened_mut();
        let mut stripe = [V::zero(); STRIPE];
        for (register, part) in stripe.iter_mut().zip(octets.chunks(V::OCTETS)) {
            *register = load(part);
        }
        cipher(&mut stripe, octets.len().div_ceil(V::OCTETS));
        for (register, part) in stripe.into_iter().zip(octets.chunks_mut(V::OCTETS)) {
            store(register, part);
        }
    }
}
