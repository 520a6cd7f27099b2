//! The block ciphers, each written once over the traits of [`crate::lanes`].

pub(crate) mod aes;
pub(crate) mod camellia;
pub(crate) mod serpent;
