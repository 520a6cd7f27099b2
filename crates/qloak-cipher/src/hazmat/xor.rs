//! The key over the data, repeated from each frame's first octet on, whatever the nonce: the XOR
//! cipher of the first hardware, one gate a bit over its 256-bit word. Two frames XORed give the
//! XOR of their plaintexts, and one known plaintext gives the key.

use zeroize::Zeroizing;

use crate::aead::{Open, Seal};
use crate::backend::Backend;
use crate::limits::KEY_OCTETS_MAX;
use crate::mode::Modal;

/// The key itself.
pub(crate) struct Xor {
    key: Zeroizing<[u8; KEY_OCTETS_MAX]>,
}

impl Xor {
    /// `key` has the suite's 32 octets; the door has seen to it.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut own = Zeroizing::new([0; KEY_OCTETS_MAX]);
        for (own, octet) in own.iter_mut().zip(key) {
            *own = *octet;
        }
        Self { key: own }
    }

    #[inline(always)]
    fn apply(&self, data: &mut [u8]) {
        for part in data.chunks_mut(KEY_OCTETS_MAX) {
            for (octet, key) in part.iter_mut().zip(self.key.iter()) {
                *octet ^= key;
            }
        }
    }
}

impl<B: Backend> Modal<B> for Xor {
    fn seal(&self, _: B, batch: &mut [Seal<'_>]) {
        for one in batch {
            self.apply(one.data);
        }
    }

    fn open(&self, _: B, batch: &mut [Open<'_>]) {
        for one in batch {
            self.apply(one.data);
            one.valid = true;
        }
    }
}
