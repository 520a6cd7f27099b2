//! Every bound of this crate, and why it is what it is.

/// Octets of one frame's data. The longest line frame has 16 000 octets; the rest is room for
/// measuring in bulk. Far below the bounds of the modes: a 32-bit counter (SP 800-38D, 5.2.1.1)
/// and the OCB offset table, which covers 2^16 blocks.
pub const DATA_OCTETS_MAX: usize = 1 << 20;

/// Octets of one frame's AAD: with a SecTAG in front of confidential data it is 20 or 28; without
/// confidentiality the whole frame is AAD.
pub const AAD_OCTETS_MAX: usize = 1 << 20;

/// Octets of a nonce in every suite: 96 bits, the size that GCM, OCB3 and ChaCha20-Poly1305 share.
pub const NONCE_OCTETS: usize = 12;

/// Octets of a tag, and of the ICV of a frame, in every AEAD suite.
pub const TAG_OCTETS: usize = 16;

/// Octets of a tag in the PON profile alone. SP 800-38D, appendix C, asks that such a key opens
/// only few forged frames; the PON profile counts them.
pub const PON_TAG_OCTETS: usize = 8;

/// Octets of the longest key of any suite.
pub const KEY_OCTETS_MAX: usize = 32;

/// Blocks of 16 octets that a mode hands to a block cipher at once: enough to fill the lanes of a
/// wide CPU and to pay for the library's own look at the CPU, little enough to stay in the nearest
/// cache. Measured: with 8 the AES suites lose up to half of their speed, with 64 they gain little
/// on frames of 1500 octets.
pub(crate) const WIDE: usize = 32;

/// Frames of a batch in [`measure`](fn@crate::measure): the batch of the node's pipeline.
pub(crate) const MEASURE_FRAMES: usize = 32;
