//! Where the work is done: one file per way of running the ciphers, and the one place that
//! chooses among them.
//!
//! A [`Backend`] is a value that proves what the CPU can do; holding one, a [`Kernel`] may use it. A
//! kernel is one batch under one key in one mode, or the making of a key, written once. `Backend::run`
//! is the only place where a backend enters its `#[target_feature]` function: per batch, never inside
//! the loop. What the registers of a backend can do, they say by implementing [`crate::lanes`].
//!
//! ```text
//!            Lanes (Serpent, Camellia, XOR)   AES and GHASH
//!   soft     Portable, four blocks            the crates `aes` and `ghash`
//!   armv8    Neon, one block                  Neon
//!   aesni    Ymm, two blocks (AVX2)           Xmm, one block
//!   vaes256  Ymm                              Ymm
//!   gfni256  Ymm, GFNI for Camellia           Ymm
//!   vaes512  Zmm, four blocks                 Zmm
//! ```
//!
//! [`Schedule`] is what the door holds: the key in whatever form a backend likes best. A library, a
//! GPU or a card implements it whole and needs no Kernel.

use std::marker::PhantomData;

use crate::aead::{Open, Seal};
use crate::bulk::{Cipher, gather::Gather};
use crate::cipher::{aes::Aes, camellia::Camellia, camellia::octets::Octets, serpent::Serpent};
use crate::ghash::Powers;
use crate::hazmat::{Ctr, Plain, RawBlock, Xor};
use crate::lanes::{Blocks, Clmul, Rounds, Words};
use crate::level::Level;
use crate::mode::{Gcm, Modal, Ocb};
use crate::suite::{Mode, Suite};

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

/// [`Blocks::in_order`] for x86's registers of one class.
#[cfg(target_arch = "x86_64")]
macro_rules! in_order {
    ($class:ident, $vector:ty: $a:expr, $b:expr, $c:expr, $d:expr) => {{
        // A function of its own, for only one with AVX may name such registers.
        #[inline]
        #[target_feature(enable = "avx")]
        fn in_order(a: &mut $vector, b: &mut $vector, c: &mut $vector, d: &mut $vector) {
            // SAFETY: there is no instruction, only a comment that names the registers.
            #[allow(unsafe_code)]
            unsafe {
                std::arch::asm! {
                    "/* {} {} {} {} */",
                    inout($class) *a, inout($class) *b, inout($class) *c, inout($class) *d,
                    options(nomem, nostack, preserves_flags)
                }
            }
        }
        simd!(in_order($a, $b, $c, $d));
    }};
}

/// A backend whose registers need CPU features: its value, and the one function that has them on.
macro_rules! backend {
    (
        $(#[$docs:meta])*
        $name:ident, $features:literal, Lanes = $lanes:ty, Aes = $aes:ty, Octets = $octets:ty
    ) => {
        $(#[$docs])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(());

        impl $name {
            /// The value, where this CPU has every feature: its level stands for them.
            pub(crate) fn new() -> Option<Self> {
                let needed = crate::level::Level::$name;
                (crate::level::Level::of_this_cpu() >= needed).then_some(Self(()))
            }
        }

        impl crate::backend::Backend for $name {
            type Lanes = $lanes;
            type Ghash = crate::ghash::Powers<$aes>;

            #[inline]
            fn run<K: crate::backend::Kernel<Self>>(self, kernel: K) -> K::Output {
                #[inline(never)]
                #[target_feature(enable = $features)]
                fn with_features<K: crate::backend::Kernel<$name>>(
                    backend: $name,
                    kernel: K,
                ) -> K::Output {
                    kernel.run(backend)
                }
                // SAFETY: a value of this backend is only made where the CPU has the features.
                #[allow(unsafe_code)]
                unsafe {
                    with_features(self, kernel)
                }
            }
        }

        impl crate::backend::Registers for $name {
            type Aes = $aes;
            type Octets = $octets;
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) mod affine;
#[cfg(target_arch = "aarch64")]
pub(crate) mod armv8;
mod aws_lc;
pub(crate) mod gates;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gfni256;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub(crate) mod nibbles;
pub(crate) mod part;
pub(crate) mod planes;
pub(crate) mod portable;
mod soft;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vaes256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vaes512;
mod wiped;

use wiped::Wiped;

/// 16 octets: the block of AES, Camellia and Serpent.
pub(crate) type Block = [u8; 16];

/// A key's schedule as some backend likes it. One virtual call per batch goes through here.
/// Lengths are checked before: tags fit, data and AAD are inside the limits, and a batch has at most
/// [`FRAMES_AT_ONCE`](crate::limits::FRAMES_AT_ONCE) frames.
pub(crate) trait Schedule: Send + Sync {
    /// Seals each frame of the batch.
    fn seal(&self, batch: &mut [&mut Seal<'_>]);
    /// Opens each frame of the batch; sets `valid`, wipes what fails.
    fn open(&self, batch: &mut [&mut Open<'_>]);
}

/// A way to run ciphers on this machine. The value proves that the machine can.
pub(crate) trait Backend: Copy + Send + Sync + 'static {
    /// Registers for ciphers of many lanes.
    type Lanes: Blocks;
    /// What GCM's hash key looks like here.
    type Ghash: Ghash<Self>;

    /// Runs a kernel with this backend's CPU features on.
    fn run<K: Kernel<Self>>(self, kernel: K) -> K::Output;
}

/// A backend that runs every cipher on registers of its own.
pub(crate) trait Registers: Backend<Ghash = Powers<Self::Aes>, Lanes: Words> {
    /// Registers for AES and GHASH.
    type Aes: Rounds + Clmul;
    /// Registers for Camellia.
    type Octets: Octets<Memory = Self::Lanes>;
}

/// Work for a backend. Implementations are `#[inline(always)]`, so that they compile inside
/// `Backend::run` with its features.
pub(crate) trait Kernel<B: Backend> {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run(self, backend: B) -> Self::Output;
}

/// GHASH under one hash key (SP 800-38D, 6.4). Zeroised on drop.
pub(crate) trait Ghash<B: Backend>: Send + Sync + 'static {
    /// The hash key H.
    fn new(h: &Block) -> Self;
    /// GHASH of AAD and ciphertext, each padded with zeros, and their two lengths in bits; XORed
    /// with `mask`.
    fn tag(&self, aad: &[u8], ciphertext: &[u8], mask: &Block) -> Block;
}

/// A mode's key on backend `B`: the schedule that the door holds for everything but libraries.
struct Keyed<B, M> {
    backend: B,
    key: Wiped<M>,
}

struct SealBatch<'r, 'b, 'f, M> {
    key: &'r M,
    batch: &'r mut [&'b mut Seal<'f>],
}

struct OpenBatch<'r, 'b, 'f, M> {
    key: &'r M,
    batch: &'r mut [&'b mut Open<'f>],
}

impl<B: Backend, M: Modal<B>> Schedule for Keyed<B, M> {
    fn seal(&self, batch: &mut [&mut Seal<'_>]) {
        let key = &*self.key;
        self.backend.run(SealBatch { key, batch });
    }

    fn open(&self, batch: &mut [&mut Open<'_>]) {
        let key = &*self.key;
        self.backend.run(OpenBatch { key, batch });
    }
}

impl<B: Backend, M: Modal<B>> Kernel<B> for SealBatch<'_, '_, '_, M> {
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        self.key.seal(backend, self.batch);
    }
}

impl<B: Backend, M: Modal<B>> Kernel<B> for OpenBatch<'_, '_, '_, M> {
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        self.key.open(backend, self.batch);
    }
}

/// A cipher's key out of a SAK. Runs inside `Backend::run`.
pub(crate) trait FromKey: Sized {
    /// None when the SAK has another length than the cipher's.
    fn from_key(key: &[u8]) -> Option<Self>;
}

/// The making of a cipher's key, and of its mode's tables.
struct Prepare<'k, C> {
    mode: Mode,
    key: &'k [u8],
    cipher: PhantomData<C>,
}

impl<B: Backend, C: Cipher<B> + FromKey> Kernel<B> for Prepare<'_, C> {
    type Output = Option<Box<dyn Schedule>>;

    #[inline(always)]
    fn run(self, backend: B) -> Self::Output {
        let cipher = C::from_key(self.key)?;
        match self.mode {
            Mode::Gcm => keyed(backend, Gcm::new(backend, cipher)),
            Mode::Ocb3 => keyed(backend, Ocb::new(backend, cipher)),
            Mode::Ctr => keyed(backend, Ctr(cipher)),
            Mode::RawBlock => keyed(backend, RawBlock(cipher)),
            Mode::Poly1305 | Mode::Xor | Mode::Plain => None,
        }
    }
}

/// The schedule of `key` for the cipher `C` under a mode.
fn prepare<C: Cipher<B> + FromKey, B: Backend>(
    backend: B,
    mode: Mode,
    key: &[u8],
) -> Option<Box<dyn Schedule>> {
    let cipher = PhantomData::<C>;
    backend.run(Prepare { mode, key, cipher })
}

/// What needs no cipher, only registers.
fn without_cipher<B: Backend>(backend: B, mode: Mode, key: &[u8]) -> Option<Box<dyn Schedule>> {
    match mode {
        Mode::Xor => keyed(backend, Xor::new(key)),
        Mode::Plain => keyed(backend, Plain),
        _ => None,
    }
}

fn keyed<B: Backend, M: Modal<B>>(backend: B, key: M) -> Option<Box<dyn Schedule>> {
    let key = Wiped::new(key);
    Some(Box::new(Keyed { backend, key }))
}

/// The schedule of `key` under `suite` on a backend's own registers; None when there is none.
fn on<B: Registers>(backend: B, suite: &Suite, key: &[u8]) -> Option<Box<dyn Schedule>> {
    let mode = suite.mode;
    match suite.cipher {
        "AES-128" => prepare::<Aes<B::Aes, 11>, B>(backend, mode, key),
        "AES-192" => prepare::<Aes<B::Aes, 13>, B>(backend, mode, key),
        "AES-256" => prepare::<Aes<B::Aes, 15>, B>(backend, mode, key),
        // One type takes keys of every length; the door has seen to the suite's own.
        "Camellia-128" | "Camellia-192" | "Camellia-256" => {
            prepare::<Gather<Camellia<B::Octets>>, B>(backend, mode, key)
        }
        "Serpent-128" | "Serpent-192" | "Serpent-256" => {
            prepare::<Gather<Serpent>, B>(backend, mode, key)
        }
        _ => without_cipher(backend, mode, key),
    }
}

/// Chooses the backend for a suite at a level and makes the key's schedule there.
/// Returns the backend's name with it; None when the key's length is not the suite's.
pub(crate) fn schedule(
    suite: &Suite,
    key: &[u8],
    level: Level,
) -> Option<(&'static str, Box<dyn Schedule>)> {
    // A level is anyone's to name; what the CPU has is not.
    let level = level.min(Level::of_this_cpu());
    if suite.mode == Mode::Poly1305 {
        return match level {
            Level::Soft => Some((soft::NAME, soft::schedule(suite, key)?)),
            _ => Some((aws_lc::NAME, aws_lc::schedule(key)?)),
        };
    }
    // GFNI helps Camellia alone; for all else the level below has the same code.
    let level = if level == Level::Gfni256 && !suite.cipher.starts_with("Camellia") {
        Level::Vaes256
    } else {
        level
    };
    let schedule: Option<Box<dyn Schedule>> = match level {
        #[cfg(target_arch = "x86_64")]
        Level::Vaes512 => on(vaes512::Vaes512::new()?, suite, key),
        #[cfg(target_arch = "x86_64")]
        Level::Gfni256 => prepare::<Gather<Camellia<affine::Affine<aesni::Ymm>>>, _>(
            gfni256::Gfni256::new()?,
            suite.mode,
            key,
        ),
        #[cfg(target_arch = "x86_64")]
        Level::Vaes256 => on(vaes256::Vaes256::new()?, suite, key),
        #[cfg(target_arch = "x86_64")]
        Level::Aesni => on(aesni::Aesni::new()?, suite, key),
        #[cfg(target_arch = "aarch64")]
        Level::Armv8 => on(armv8::Armv8::new()?, suite, key),
        _ => return Some((soft::NAME, soft::schedule(suite, key)?)),
    };
    Some((level.name(), schedule?))
}
