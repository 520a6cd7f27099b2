//! The block ciphers, each written once over the traits of [`crate::lanes`].

use crate::backend::FromKey;

pub(crate) mod aes;
pub(crate) mod camellia;
pub(crate) mod serpent;

impl<Y: camellia::octets::Octets> FromKey for camellia::Camellia<Y> {
    fn from_key(key: &[u8]) -> Option<Self> {
        Self::new(key)
    }
}

impl FromKey for serpent::Serpent {
    fn from_key(key: &[u8]) -> Option<Self> {
        matches!(key.len(), 16 | 24 | 32).then(|| Self::new(key))
    }
}
