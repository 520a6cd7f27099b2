//! The block ciphers, each written once over the traits of [`crate::lanes`].

pub(crate) mod camellia;
