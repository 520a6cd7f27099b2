//! The portable backend: plain Rust, in constant time, on any CPU.
//!
//! Every suite runs here, so it is what every other backend is held against. AES, Serpent and
//! GHASH are RustCrypto's; its AES and GHASH find instructions for them by themselves. Its Camellia looks
//! octets up in tables, which a neighbour on the core may observe, so that Camellia is ours.

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16,
};
use aes::{Aes128, Aes192, Aes256};
use chacha20poly1305::ChaCha20Poly1305;
use ghash::{GHash, universal_hash::UniversalHash};
use serpent::Serpent;

use super::planes::Planes;
use super::portable::Portable;
use super::{Backend, Block, FromKey, Ghash, Kernel, Schedule, keyed, prepare, without_cipher};
use crate::bulk::gather::Gather;
use crate::cipher::camellia::Camellia;
use crate::lanes::{Blocks, LaneCipher, STRIPE};
use crate::suite::{Mode, Suite};

mod chacha;

/// The backend's name where people read it.
pub(super) const NAME: &str = "soft";

/// Proof of nothing: this backend runs anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Soft;

impl Backend for Soft {
    type Lanes = Portable;
    type Ghash = SoftGhash;

    #[inline(never)]
    fn run<K: Kernel<Self>>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// The schedule of `key` under `suite`; None when its length is not the cipher's.
pub(super) fn schedule(suite: &Suite, key: &[u8]) -> Option<Box<dyn Schedule>> {
    match suite.cipher {
        "AES-128" => prepare::<Gather<Crypto<Aes128>>, _>(Soft, suite.mode, key),
        "AES-192" => prepare::<Gather<Crypto<Aes192>>, _>(Soft, suite.mode, key),
        "AES-256" => prepare::<Gather<Crypto<Aes256>>, _>(Soft, suite.mode, key),
        // One type takes keys of every length; the door has seen to the suite's own.
        "Camellia-128" | "Camellia-192" | "Camellia-256" => {
            prepare::<Gather<Camellia<Planes>>, _>(Soft, suite.mode, key)
        }
        "Serpent-128" | "Serpent-192" | "Serpent-256" => {
            prepare::<Gather<Crypto<Serpent>>, _>(Soft, suite.mode, key)
        }
        _ if suite.mode == Mode::Poly1305 => {
            let key = ChaCha20Poly1305::new_from_slice(key).ok()?;
            keyed(Soft, chacha::ChaCha(key))
        }
        _ => without_cipher(Soft, suite.mode, key),
    }
}

/// A block cipher of RustCrypto's, for a stripe at a time.
pub(crate) struct Crypto<C>(C);

impl<C: KeyInit> FromKey for Crypto<C> {
    fn from_key(key: &[u8]) -> Option<Self> {
        C::new_from_slice(key).ok().map(Self)
    }
}

impl<C> LaneCipher<Portable> for Crypto<C>
where
    C: BlockCipherEncrypt
        + BlockCipherDecrypt
        + BlockSizeUser<BlockSize = U16>
        + aes::cipher::zeroize::ZeroizeOnDrop
        + Send
        + Sync
        + 'static,
{
    #[inline(always)]
    fn encrypt(&self, stripe: &mut [Portable; STRIPE], used: usize) {
        each(stripe, used, |blocks| {
            self.0
                .encrypt_blocks(Array::cast_slice_from_core_mut(blocks));
        });
    }

    #[inline(always)]
    fn decrypt(&self, stripe: &mut [Portable; STRIPE], used: usize) {
        each(stripe, used, |blocks| {
            self.0
                .decrypt_blocks(Array::cast_slice_from_core_mut(blocks));
        });
    }
}

/// The blocks of a stripe as RustCrypto likes them.
#[inline(always)]
fn each(stripe: &mut [Portable; STRIPE], used: usize, cipher: impl FnOnce(&mut [Block])) {
    let mut blocks = [[0; 16]; STRIPE * Portable::COUNT];
    let octets = blocks.as_flattened_mut();
    for (part, register) in octets.chunks_exact_mut(Portable::OCTETS).zip(&*stripe) {
        register.store(part);
    }
    cipher(&mut blocks[..used * Portable::COUNT]);
    let octets = blocks.as_flattened();
    for (register, part) in stripe.iter_mut().zip(octets.chunks_exact(Portable::OCTETS)) {
        *register = Portable::load(part);
    }
}

/// RustCrypto's GHASH, which finds carry-less multiplication by itself.
pub(crate) struct SoftGhash(GHash);

impl Ghash<Soft> for SoftGhash {
    fn new(h: &Block) -> Self {
        Self(GHash::new(&Array(*h)))
    }

    #[inline(always)]
    fn tag(&self, aad: &[u8], ciphertext: &[u8], mask: &Block) -> Block {
        let bits = |octets: &[u8]| octets.len() as u128 * 8;
        let lengths = bits(aad) << 64 | bits(ciphertext);

        let mut ghash = self.0.clone();
        ghash.update_padded(aad);
        ghash.update_padded(ciphertext);
        ghash.update(&[Array(lengths.to_be_bytes())]);
        let hash = u128::from_ne_bytes(ghash.finalize().0);
        (hash ^ u128::from_ne_bytes(*mask)).to_ne_bytes()
    }
}
