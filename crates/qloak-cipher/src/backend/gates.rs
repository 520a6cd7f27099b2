//! Any function of three bits out of functions of two, for registers without a three-input gate.

use crate::lanes::Blocks;

/// What two-input logic a register has.
pub(crate) trait Gates: Blocks {
    /// All ones.
    fn ones() -> Self;
    /// Both.
    fn and(self, other: Self) -> Self;
    /// Either.
    fn or(self, other: Self) -> Self;
    /// The other without this: `!self & other`.
    fn and_not(self, other: Self) -> Self;
}

/// The function of three bits whose value is bit `4a + 2b + c` of `TABLE`.
///
/// Split by `a`: `f0 ^ (a & (f0 ^ f1))`, where f0 and f1 are functions of `b` and `c`. `TABLE` is a
/// constant, so only the gates of one arm are left.
#[inline(always)]
pub(crate) fn lut<const TABLE: i32, V: Gates>(a: V, b: V, c: V) -> V {
    let (without, with) = (TABLE & 0xf, TABLE >> 4 & 0xf);
    match without ^ with {
        0x0 => of_two(without, b, c),
        0xf => a.xor(of_two(without, b, c)),
        change if without == 0 => a.and(of_two(change, b, c)),
        change => of_two(without, b, c).xor(a.and(of_two(change, b, c))),
    }
}

/// The function of two bits whose value is bit `2b + c` of `table`.
#[inline(always)]
fn of_two<V: Gates>(table: i32, b: V, c: V) -> V {
    match table {
        0x0 => V::zero(),
        0x1 => b.or(c).xor(V::ones()),
        0x2 => b.and_not(c),
        0x3 => b.xor(V::ones()),
        0x4 => c.and_not(b),
        0x5 => c.xor(V::ones()),
        0x6 => b.xor(c),
        0x7 => b.and(c).xor(V::ones()),
        0x8 => b.and(c),
        0x9 => b.xor(c).xor(V::ones()),
        0xa => c,
        0xb => c.and_not(b).xor(V::ones()),
        0xc => b,
        0xd => b.and_not(c).xor(V::ones()),
        0xe => b.or(c),
        _ => V::ones(),
    }
}
