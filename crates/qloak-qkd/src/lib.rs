//! An emulated QKD link: from a fibre's length and loss to a secret key rate, and key blocks at that rate.
//!
//! It lies at the very beginning of a key's way: what [`Emulator`] emits at one KME is carried to the
//! other, and both put it into their ledgers. In place of photons there is the caller's randomness;
//! what is modelled is how many bits a real link of this kind would have given ([`model`]).
//!
//! What always holds: everything that comes from here is labelled [`LABEL`]; time and randomness are
//! arguments; equal time and equal randomness give equal blocks. An emulated key is as random as the
//! caller's randomness, but it was carried by an ordinary connection: it shows how a network works
//! and protects nothing that quantum physics would. Photons, sifting, error correction and privacy
//! amplification are left to later.

mod emulator;
pub mod limits;
pub mod model;

pub use emulator::{Block, Emulator, EmulatorError, Random, RandomFailed};
pub use model::{Fibre, FibreError, Figures};

/// The word that marks every key, figure and screen that comes from an emulated link.
pub const LABEL: &str = "emulated";
