//! Bytes in, bytes out: every cipher suite. Knows no frame, file or clock.
//!
//! A SAK and a suite make a [`SuiteKey`]. A batch of frames' bytes goes in, sealed or opened in
//! place, and nothing is allocated on the way.
//!
//! ```text
//!   suite name -> suite::SUITES -> SuiteKey::new(suite, SAK, level) -> backend::schedule
//!                                        |                    the one place that chooses
//!   [Seal], [Open] -> SuiteKey (batch: looked at, cut) -- one virtual call per 64 frames -->
//!     mode::{gcm,ocb}, hazmat    what happens once a frame
//!     bulk::{stream,gather}      how its blocks reach the registers
//!     cipher, ghash              written once over lanes.rs, what a register can do
//!     backend/*                  the registers of a kind of CPU
//! ```
//!
//! What always holds:
//! - a frame that fails to open leaves zeros, never plaintext and never the forged text;
//! - key material is zeroised on drop and has no Debug, Clone or text form;
//! - the crate reads no environment: the CPU level is an argument.
//!
//! What it leaves to others: nonces are the caller's (`qloak-secy` never uses a PN twice; one that
//! stands twice in a batch is refused here), and so is the decision to allow a `hazmat` suite, which seals without authenticating.
//!
//! Sources: FIPS 197 (AES), RFC 3713 (Camellia), the Serpent submission of 1998, SP 800-38A (CTR),
//! SP 800-38D (GCM), RFC 7253 (OCB3), RFC 8439 (ChaCha20-Poly1305).

mod aead;
mod backend;
pub mod batch;
mod bulk;
mod cipher;
mod ghash;
mod hazmat;
mod key;
mod lanes;
pub mod level;
pub mod limits;
mod measure;
mod mode;
pub mod selftest;
pub mod suite;

pub use aead::{Open, Seal};
pub use batch::{BatchError, Under};
pub use key::{KeyLengthError, PonKeyError, SuiteKey};
pub use level::Level;
pub use measure::measure;
pub use suite::{Mode, Suite};
