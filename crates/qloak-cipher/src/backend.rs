//! Where the work is done: one file per way of running the ciphers, and the one place that
//! chooses among them.
//!
//! A [`Backend`] is a zero-size value that proves what the CPU can do; holding one, a [`Kernel`]
//! may use it. A kernel is one batch under one key in one mode, written once. `Backend::run` is
//! the only place where a SIMD backend enters its `#[target_feature]` function: per batch, never
//! inside the loop. The modes ask a backend for block ciphers ([`BlockCipher`]) and for GHASH.
//!
//! [`Schedule`] is what the door holds: the key in whatever form a backend likes best. A GPU or a
//! card implements it whole and needs no Kernel.
//!
//! A new CPU level is one new file here, one `impl` per primitive and one arm in [`schedule`].

use crate::aead::{Open, Seal};
use crate::level::Level;
use crate::mode::Modal;
use crate::suite::Suite;

/// An intrinsic, or several in a row.
macro_rules! simd {
    ($work:expr) => {{
        // SAFETY: registers are made inside `Backend::run` of a backend whose value proves that the
        // CPU has these instructions; each pointer comes from a slice or an array of that length.
        #[allow(unsafe_code)]
        unsafe {
            $work
        }
    }};
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
pub(crate) mod affine;
mod aws_lc;
pub(crate) mod gates;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gfni256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod nibbles;
pub(crate) mod planes;
pub(crate) mod portable;
mod soft;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vaes256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vaes512;

/// 16 octets: the block of AES, Camellia and Serpent.
pub(crate) type Block = [u8; 16];

/// A key's schedule as some backend likes it. One virtual call per batch goes through here.
/// Lengths are checked before: tags fit, data and AAD are inside the limits.
pub(crate) trait Schedule: Send + Sync {
    /// Seals each frame of the batch.
    fn seal(&self, batch: &mut [Seal<'_>]);
    /// Opens each frame of the batch; sets `valid`, wipes what fails.
    fn open(&self, batch: &mut [Open<'_>]);
}

/// A way to run ciphers on this machine. The value proves that the machine can.
pub(crate) trait Backend: Copy + Send + Sync + 'static {
    /// What GCM's hash key looks like here.
    type Ghash: Ghash;

    /// Runs a kernel with this backend's CPU features on.
    #[inline(always)]
    fn run<K: Kernel<Self>>(self, kernel: K) {
        kernel.run(self);
    }
}

/// One batch through one mode under one key. Implementations are `#[inline(always)]`, so that they
/// compile inside `Backend::run` with its features.
pub(crate) trait Kernel<B: Backend> {
    /// Does the batch.
    fn run(self, backend: B);
}

/// A block cipher's key schedule on backend `B`. Zeroised on drop.
pub(crate) trait BlockCipher<B: Backend>: Send + Sync + 'static {
    /// Enciphers each block alone, any number of them.
    fn encrypt(&self, backend: B, blocks: &mut [Block]);
    /// Deciphers each block alone.
    fn decrypt(&self, backend: B, blocks: &mut [Block]);
}

/// GHASH under one hash key (SP 800-38D, 6.4). Zeroised on drop.
pub(crate) trait Ghash: Send + Sync + 'static {
    /// The hash key H.
    fn new(h: &Block) -> Self;
    /// GHASH of AAD and ciphertext, each padded with zeros, and their two lengths in bits.
    fn hash(&self, aad: &[u8], ciphertext: &[u8]) -> Block;
}

/// A mode's key on backend `B`: the schedule that the door holds for everything but libraries.
struct Keyed<B, M> {
    backend: B,
    key: M,
}

struct SealBatch<'r, 'f, M> {
    key: &'r M,
    batch: &'r mut [Seal<'f>],
}

struct OpenBatch<'r, 'f, M> {
    key: &'r M,
    batch: &'r mut [Open<'f>],
}

impl<B: Backend, M: Modal<B>> Schedule for Keyed<B, M> {
    fn seal(&self, batch: &mut [Seal<'_>]) {
        let key = &self.key;
        self.backend.run(SealBatch { key, batch });
    }

    fn open(&self, batch: &mut [Open<'_>]) {
        let key = &self.key;
        self.backend.run(OpenBatch { key, batch });
    }
}

impl<B: Backend, M: Modal<B>> Kernel<B> for SealBatch<'_, '_, M> {
    #[inline(always)]
    fn run(self, backend: B) {
        self.key.seal(backend, self.batch);
    }
}

impl<B: Backend, M: Modal<B>> Kernel<B> for OpenBatch<'_, '_, M> {
    #[inline(always)]
    fn run(self, backend: B) {
        self.key.open(backend, self.batch);
    }
}

/// Chooses the backend for a suite at a level and makes the key's schedule there.
/// Returns the backend's name with it; None when the key's length is not the suite's.
pub(crate) fn schedule(
    suite: &Suite,
    key: &[u8],
    tag_octets: usize,
    level: Level,
) -> Option<(&'static str, Box<dyn Schedule>)> {
    if level > Level::Soft
        && let Some(schedule) = aws_lc::schedule(suite, key, tag_octets)
    {
        return Some((aws_lc::NAME, schedule));
    }
    soft::schedule(suite, key, tag_octets).map(|schedule| (soft::NAME, schedule))
}
