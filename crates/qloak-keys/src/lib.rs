//! What a key is: its container, its life, its derivations and its delivery format. No I/O.
//!
//! A key is born in a QKD link, is named by a key ID, is delivered twice (once at each end, as ETSI
//! GS QKD 014 says), and dies the moment a secure association has been derived from it. This crate
//! holds the container that wipes itself ([`Key`]), what may be derived from a key ([`mod@derive`]), how
//! several secrets become one ([`combine`]) and the JSON in which keys travel ([`etsi014`]).
//!
//! What always holds: key material has no `Debug`, `Clone` or `Serialize`, is zeroised on drop, is
//! compared in constant time, and appears in no error. Time and randomness are arguments.

pub mod combine;
pub mod derive;
pub mod etsi014;
mod key;
pub mod limits;

pub use key::{Key, KeyLengthError, NamedKey};
