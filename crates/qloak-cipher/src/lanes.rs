//! What a CPU's registers can do, said in the words of the ciphers.
//!
//! The algorithms of this crate are written once, over these traits; a backend is one file that
//! implements them for its registers. All of them see the same memory: a row of 16-octet blocks.
//!
//! ```text
//!   Blocks      a register holds COUNT whole blocks, in the order of memory
//!     + Rounds  the AES instructions
//!     + Clmul   carry-less multiplication, for GHASH
//!     + Words   32-bit words, for Serpent, bit-sliced over many blocks; with Logic on their bits
//!   Octets      a register holds one octet of each of many blocks, for Camellia
//! ```
//!
//! Everything here is `#[inline(always)]`, so that it compiles inside the one function of a backend
//! that turns its CPU features on (`Backend::run`); calling it elsewhere would be slow, not wrong.

use crate::backend::Block;

/// Registers that a cipher of many lanes takes at once.
pub(crate) const STRIPE: usize = 16;

/// A register of `COUNT` blocks of 16 octets, as they lie in memory.
pub(crate) trait Blocks: Copy + Send + Sync + 'static {
    /// Blocks in a register.
    const COUNT: usize;
    /// Octets in a register.
    const OCTETS: usize = 16 * Self::COUNT;

    /// All zeros.
    fn zero() -> Self;
    /// The same block in every place.
    fn splat(block: &Block) -> Self;
    /// The block in the first place, zeros in the others.
    fn first(block: &Block) -> Self;
    /// The block in the last place, zeros in the others.
    fn last(block: &Block) -> Self;
    /// The first `OCTETS` octets of `from`, which has at least as many.
    fn load(from: &[u8]) -> Self;
    /// The octets of `from`, at most `OCTETS`, then zeros.
    fn load_part(from: &[u8]) -> Self;
    /// Into the first `OCTETS` octets of `to`, which has at least as many.
    fn store(self, to: &mut [u8]);
    /// As many octets as `to` has, at most `OCTETS`.
    fn store_part(self, to: &mut [u8]);
    /// The first `octets` octets, at most `OCTETS`, then zeros.
    fn keep(self, octets: usize) -> Self;
    /// Exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Exclusive or of three.
    #[inline(always)]
    fn xor3(self, second: Self, third: Self) -> Self {
        self.xor(second).xor(third)
    }
    /// Exclusive or of all blocks of the register.
    fn fold(self) -> Block;
    /// Whatever made these four stands before this line of the code, whatever uses them behind it;
    /// their values stay. The compiler sees no reason for an order that only the CPU's units like, and
    /// where registers are few its own order does not even fit them. Elsewhere nothing is done.
    #[inline(always)]
    fn in_order(_: &mut Self, _: &mut Self, _: &mut Self, _: &mut Self) {}
}

/// The instructions for AES (FIPS 197, 5.1 and 5.3.5, with one round key in every place).
pub(crate) trait Rounds: Blocks {
    /// Whether there are registers enough for all round keys beside the blocks in work.
    const KEYS_FIT: bool;

    /// SubBytes, ShiftRows, MixColumns, AddRoundKey.
    fn round(self, key: Self) -> Self;
    /// The last round: without MixColumns.
    fn last_round(self, key: Self) -> Self;
    /// InvSubBytes, InvShiftRows, InvMixColumns, AddRoundKey: the equivalent inverse cipher.
    fn inverse_round(self, key: Self) -> Self;
    /// The last round of the inverse: without InvMixColumns.
    fn last_inverse_round(self, key: Self) -> Self;
    /// InvMixColumns alone, for the keys of the equivalent inverse cipher.
    fn inverse_mix(self) -> Self;
}

/// Carry-less multiplication of the halves of each block, 64 by 64 to 128 bits. A block is a number
/// in the machine's order: octet 0 is the lowest.
pub(crate) trait Clmul: Blocks {
    /// A register of one block.
    type One: Clmul<One = Self::One>;
    /// Low half by low half.
    fn low_low(self, other: Self) -> Self;
    /// High half by high half.
    fn high_high(self, other: Self) -> Self;
    /// Low half of this by the high half of the other.
    fn low_high(self, other: Self) -> Self;
    /// High half of this by the low half of the other.
    fn high_low(self, other: Self) -> Self;
    /// Each block with its halves exchanged.
    fn exchange(self) -> Self;
    /// Each block with its octets in reverse order.
    fn reverse(self) -> Self;
    /// Each block's low half moved to its high half, zeros below.
    fn raise(self) -> Self;
    /// Each block's high half moved to its low half, zeros above.
    fn lower(self) -> Self;
    /// Exclusive or of all blocks of the register, kept in a register.
    fn fold_one(self) -> Self::One;
}

/// Logic on bits, of which a register or a number holds many.
pub(crate) trait Logic: Copy {
    /// Any function of three bits: bit `4a + 2b + c` of `TABLE` is its value.
    fn lut<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self;
}

/// 32-bit words in a register, `4 * COUNT` of them, little-endian. The word operations of Serpent.
pub(crate) trait Words: Blocks + Logic {
    /// Groups of four registers that Serpent keeps in work together, 1, 2 or 4: enough to hide the
    /// latency of the gates, few enough that the registers hold them.
    const GROUPS: usize;

    /// The word in every place.
    fn splat_word(word: u32) -> Self;
    /// Each word rotated to the left.
    fn rotate_left<const BITS: i32>(self) -> Self;
    /// Each word shifted to the left.
    fn shift_left<const BITS: i32>(self) -> Self;
    /// Four registers as rows of words: within each block place, row and column change places.
    /// Its own inverse.
    fn transpose(rows: [Self; 4]) -> [Self; 4];
}

/// A cipher that takes a stripe of blocks at once: its lanes are filled across frames.
/// Zeroised on drop.
pub(crate) trait LaneCipher<V: Blocks>: Send + Sync + 'static {
    /// Enciphers each block of the first `used` registers alone; the others hold nothing of worth,
    /// before and after.
    fn encrypt(&self, stripe: &mut [V; STRIPE], used: usize);
    /// The inverse of [`encrypt`](Self::encrypt).
    fn decrypt(&self, stripe: &mut [V; STRIPE], used: usize);
}
