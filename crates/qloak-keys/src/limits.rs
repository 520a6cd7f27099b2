//! Every bound of this crate, and why.

/// Octets of a delivered key. ETSI GS QKD 014 lets a KME state its own sizes: 64 bits is the least
/// that any deployment states, 1024 bits is four of our keys and the most that HKDF gains from.
pub const KEY_OCTETS: std::ops::RangeInclusive<usize> = 8..=128;

/// Octets of a derived SAK. No suite has more than 256 bits; raw XOR uses a 512-bit word.
pub const SAK_OCTETS_MAX: usize = 64;

/// Keys in one key container or one list of key IDs. One request of a node stays at 128; a KME that
/// answers with more than this is not believed.
pub const KEYS_PER_CONTAINER_MAX: usize = 1024;

/// Octets of an ETSI GS QKD 014 document: 1024 keys of 1024 bits in base64 with their names are about
/// 240 KiB, and vendor extensions need room too.
pub const DOCUMENT_OCTETS_MAX: usize = 512 * 1024;

/// Target SAEs that one key request may name beside the first (multicast keys).
pub const ADDITIONAL_SAES_MAX: usize = 64;

/// Extensions of one key request. The standard has none of its own.
pub const EXTENSIONS_MAX: usize = 32;

/// Secrets that are combined into one key: QKD, a post-quantum exchange, a classical one, a PSK.
pub const COMBINED_MAX: usize = 8;

/// Characters of the longest key in base64.
pub const KEY_OCTETS_BASE64: usize = KEY_OCTETS.end().div_ceil(3) * 4;
