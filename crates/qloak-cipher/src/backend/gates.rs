//! Any function of three bits out of functions of two, for registers without a three-input gate.
//!
//! One input selects between two functions of the others: `f0 ^ (a & (f0 ^ f1))`, or less. Which one
//! is chosen while compiling, so that the gates are few.

use crate::lanes::Logic;

/// What two-input logic a register has, and perhaps one gate more.
pub(crate) trait Gates: Copy {
    /// Whether [`select`](Self::select) is one instruction.
    const SELECTS: bool = false;

    /// All zeros.
    fn zero() -> Self;
    /// All ones.
    fn ones() -> Self;
    /// One of both.
    fn xor(self, other: Self) -> Self;
    /// Both.
    fn and(self, other: Self) -> Self;
    /// Either.
    fn or(self, other: Self) -> Self;
    /// The other without this: `!self & other`.
    fn and_not(self, other: Self) -> Self;
    /// Where this is one the one, where it is zero the other.
    fn select(self, one: Self, zero: Self) -> Self {
        zero.xor(self.and(one.xor(zero)))
    }
}

impl Gates for u32 {
    fn zero() -> Self {
        0
    }

    fn ones() -> Self {
        u32::MAX
    }

    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    fn and(self, other: Self) -> Self {
        self & other
    }

    fn or(self, other: Self) -> Self {
        self | other
    }

    fn and_not(self, other: Self) -> Self {
        !self & other
    }
}

/// One number is the register of a key schedule.
impl Logic for u32 {
    fn lut<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
        lut::<TABLE, Self>(a, b, c)
    }
}

/// The function of three bits whose value is bit `4a + 2b + c` of `TABLE`. It is a constant, so only
/// the gates of one arm are left.
#[inline(always)]
pub(crate) fn lut<const TABLE: i32, V: Gates>(a: V, b: V, c: V) -> V {
    of_three(const { split(TABLE, V::SELECTS) }, a, b, c)
}

/// Which input selects between two functions of the others, and the table with that input first.
#[derive(Clone, Copy)]
enum Split {
    ByA(i32),
    ByB(i32),
    ByC(i32),
}

/// The split that takes fewest gates.
const fn split(table: i32, selects: bool) -> Split {
    let by_b = pick(table, [0, 1, 4, 5, 2, 3, 6, 7]);
    let by_c = pick(table, [0, 2, 4, 6, 1, 3, 5, 7]);
    let [a, b, c] = [
        gates(table, selects),
        gates(by_b, selects),
        gates(by_c, selects),
    ];
    if a <= b && a <= c {
        Split::ByA(table)
    } else if b <= c {
        Split::ByB(by_b)
    } else {
        Split::ByC(by_c)
    }
}

/// The table whose bits are those of `table` at these places.
const fn pick(table: i32, places: [i32; 8]) -> i32 {
    let (mut picked, mut at) = (0, 0);
    while at < 8 {
        picked |= (table >> places[at] & 1) << at;
        at += 1;
    }
    picked
}

/// How many gates [`of_three`] takes when it selects by the first input.
const fn gates(table: i32, selects: bool) -> i32 {
    let (without, with) = (table & 0xf, table >> 4);
    match without ^ with {
        0x0 => gates_of_two(without),
        0xf => 1 + gates_of_two(without),
        change if without == 0x0 || with == 0x0 => 1 + gates_of_two(change),
        _ if with == 0xf => 1 + gates_of_two(without),
        _ if is_selected(without, with, selects) => 1 + gates_of_two(with) + gates_of_two(without),
        change => 2 + gates_of_two(change) + gates_of_two(without),
    }
}

/// Whether it takes fewer gates to make both functions and select one of them.
const fn is_selected(without: i32, with: i32, selects: bool) -> bool {
    selects && gates_of_two(with) <= 1 + gates_of_two(without ^ with)
}

/// How many gates [`of_two`] takes.
const fn gates_of_two(table: i32) -> i32 {
    match table {
        0x0 | 0xa | 0xc | 0xf => 0,
        0x1 | 0x7 | 0x9 | 0xb | 0xd => 2,
        _ => 1,
    }
}

#[inline(always)]
fn of_three<V: Gates>(split: Split, a: V, b: V, c: V) -> V {
    let (table, a, b, c) = match split {
        Split::ByA(table) => (table, a, b, c),
        Split::ByB(table) => (table, b, a, c),
        Split::ByC(table) => (table, c, a, b),
    };
    let (without, with) = (table & 0xf, table >> 4);
    match without ^ with {
        0x0 => of_two(without, b, c),
        0xf => a.xor(of_two(without, b, c)),
        change if without == 0x0 => a.and(of_two(change, b, c)),
        change if with == 0x0 => a.and_not(of_two(change, b, c)),
        _ if with == 0xf => a.or(of_two(without, b, c)),
        _ if is_selected(without, with, V::SELECTS) => {
            a.select(of_two(with, b, c), of_two(without, b, c))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits that are selected in one gate, of which the masked form is no part.
    #[derive(Clone, Copy)]
    struct Selecting(u32);

    impl Gates for Selecting {
        const SELECTS: bool = true;

        fn zero() -> Self {
            Self(0)
        }

        fn ones() -> Self {
            Self(u32::MAX)
        }

        fn xor(self, other: Self) -> Self {
            Self(self.0 ^ other.0)
        }

        fn and(self, other: Self) -> Self {
            Self(self.0 & other.0)
        }

        fn or(self, other: Self) -> Self {
            Self(self.0 | other.0)
        }

        fn and_not(self, other: Self) -> Self {
            Self(!self.0 & other.0)
        }

        fn select(self, one: Self, zero: Self) -> Self {
            Self(self.0 & one.0 | !self.0 & zero.0)
        }
    }

    /// Bit `i` of an input is its value in the index `i`, so the output is the table itself.
    #[test]
    fn every_table_of_three_bits_holds_with_a_gate_that_selects_and_without() {
        let [a, b, c] = [0xf0_u32, 0xcc, 0xaa];
        for table in 0..=0xff {
            let word = of_three(split(table, false), a, b, c);
            assert_eq!(word & 0xff, table.cast_unsigned(), "{table:#04x}");
            let [a, b, c] = [a, b, c].map(Selecting);
            let word = of_three(split(table, true), a, b, c).0;
            assert_eq!(word & 0xff, table.cast_unsigned(), "{table:#04x}");
        }
    }

    #[test]
    fn a_gate_that_selects_is_used_where_it_saves_one() {
        for (table, without, with) in [(0xca, 3, 1), (0xe4, 3, 1), (0xd4, 4, 3), (0x96, 2, 2)] {
            let cost = |selects| match split(table, selects) {
                Split::ByA(table) | Split::ByB(table) | Split::ByC(table) => gates(table, selects),
            };
            assert_eq!((cost(false), cost(true)), (without, with), "{table:#04x}");
        }
    }
}
