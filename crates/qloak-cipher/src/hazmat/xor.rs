//! The key over the data, repeated from each frame's first octet on, whatever the nonce: the XOR
//! cipher of the first hardware, one gate a bit over its 256-bit word. Two frames XORed give the
//! XOR of their plaintexts, and one known plaintext gives the key.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::aead::{Open, Seal};
use crate::backend::Backend;
use crate::lanes::Blocks;
use crate::limits::KEY_OCTETS_MAX;
use crate::mode::Modal;

/// The key itself, four times, which fills two of the widest registers.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Xor([u8; 4 * KEY_OCTETS_MAX]);

impl Xor {
    /// `key` has the suite's 32 octets; the door has seen to it.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut keys = [0; 4 * KEY_OCTETS_MAX];
        for (own, octet) in keys.iter_mut().zip(key.iter().cycle()) {
            *own = *octet;
        }
        Self(keys)
    }

    #[inline(always)]
    fn apply<V: Blocks>(&self, data: &mut [u8]) {
        // A key is one register, two, or half of one: two registers hold a whole number of keys.
        let keys = [V::load(&self.0), V::load(&self.0[V::OCTETS..])];
        let mut parts = data.chunks_exact_mut(2 * V::OCTETS);
        for part in &mut parts {
            let (first, second) = part.split_at_mut(V::OCTETS);
            V::load(first).xor(keys[0]).store(first);
            V::load(second).xor(keys[1]).store(second);
        }
        for (octet, key) in parts.into_remainder().iter_mut().zip(self.0) {
            *octet ^= key;
        }
    }
}

impl<B: Backend> Modal<B> for Xor {
    #[inline(always)]
    fn seal(&self, _: B, batch: &mut [&mut Seal<'_>]) {
        for one in batch {
            self.apply::<B::Lanes>(one.data);
        }
    }

    #[inline(always)]
    fn open(&self, _: B, batch: &mut [&mut Open<'_>]) {
        for one in batch {
            self.apply::<B::Lanes>(one.data);
            one.valid = true;
        }
    }
}
