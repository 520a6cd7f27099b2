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

/// Frames that a kernel sees at once; a longer batch is cut. Enough to fill the lanes of the widest
/// cipher with the shortest frames, 64 octets each, little enough for a few tables on the stack.
pub const FRAMES_AT_ONCE: usize = 64;

/// Octets of data that a kernel sees at once, unless a single frame has more: what is deciphered
/// lies still in the nearest caches when it is hashed.
pub(crate) const OCTETS_AT_ONCE: usize = 1 << 17;

/// Frames of a batch in [`measure`](fn@crate::measure): the batch of the node's pipeline.
pub(crate) const MEASURE_FRAMES: usize = FRAMES_AT_ONCE;
