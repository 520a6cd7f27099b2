//! Serpent's S-boxes and their inverses as circuits of gates with three inputs.
//!
//! A line is a gate: its wire, its table, its inputs. Bit `4a + 2b + c` of the table is the gate's
//! value, as for the instruction vpternlogd. Inputs of a circuit are `v0` (the least significant
//! bit) to `v3`; its outputs stand after it in that order. `examples/serpent_circuits.rs` finds
//! circuits like these, which take 58 gates for all S-boxes and 60 for their inverses.
//!
//! A CPU with two-input gates alone builds each gate of up to four of its own, and the compiler
//! finds what they share; circuits made for such a CPU saved 3 to 7 % of the instructions, too little for a
//! second set.

use crate::lanes::Logic;

macro_rules! circuits {
    (
        $(#[$story:meta])* $name:ident
        $($number:literal: $($input:ident)* {
            $($wire:ident = $table:literal $a:ident $b:ident $c:ident;)*
        } $($output:ident)*;)*
    ) => {
        $(#[$story])*
        #[inline(always)]
        pub(super) fn $name<V: Logic, const BOX: usize>(inputs: [V; 4]) -> [V; 4] {
            match BOX {
                $($number => {
                    let [$($input),*] = inputs;
                    $(let $wire = V::lut::<$table>($a, $b, $c);)*
                    [$($output),*]
                })*
                _ => unreachable!("Serpent has eight S-boxes"),
            }
        }
    };
}

circuits! {
    /// S-box `BOX` on the bits of four words.
    forward
    0: v0 v1 v2 v3 {
        v4 = 0x36 v0 v1 v3;
        v5 = 0x66 v0 v2 v4;
        v6 = 0x4e v0 v1 v3;
        v7 = 0xd4 v0 v1 v3;
        v8 = 0xc9 v2 v6 v7;
        v9 = 0x96 v5 v7 v8;
        v10 = 0xe1 v4 v8 v9;
    } v8 v9 v10 v5;
    1: v0 v1 v2 v3 {
        v4 = 0xa6 v0 v1 v2;
        v5 = 0x99 v0 v3 v4;
        v6 = 0x1e v0 v1 v3;
        v7 = 0xd8 v0 v1 v3;
        v8 = 0x93 v5 v6 v7;
        v9 = 0x27 v4 v7 v8;
        v10 = 0x96 v4 v7 v8;
    } v9 v10 v5 v8;
    2: v0 v1 v2 v3 {
        v4 = 0x16 v0 v1 v2;
        v5 = 0x95 v1 v3 v4;
        v6 = 0x36 v0 v1 v3;
        v7 = 0x6a v0 v2 v3;
        v8 = 0x96 v1 v2 v7;
        v9 = 0x65 v5 v6 v7;
        v10 = 0x6a v4 v6 v7;
    } v8 v9 v10 v5;
    3: v0 v1 v2 v3 {
        v4 = 0xb6 v0 v1 v3;
        v5 = 0x1a v0 v1 v2;
        v6 = 0x6a v3 v4 v5;
        v7 = 0x3a v0 v1 v3;
        v8 = 0x62 v0 v2 v3;
        v9 = 0x66 v0 v4 v8;
        v10 = 0x16 v1 v5 v8;
        v11 = 0xc6 v6 v7 v9;
    } v11 v9 v6 v10;
    4: v0 v1 v2 v3 {
        v4 = 0x96 v0 v1 v3;
        v5 = 0xb8 v0 v1 v3;
        v6 = 0x36 v0 v2 v3;
        v7 = 0x69 v1 v5 v6;
        v8 = 0x8d v4 v5 v7;
        v9 = 0xc9 v1 v4 v7;
        v10 = 0xc6 v4 v6 v8;
    } v7 v10 v8 v9;
    5: v0 v1 v2 v3 {
        v4 = 0x56 v0 v1 v2;
        v5 = 0x96 v0 v1 v3;
        v6 = 0x9c v0 v4 v5;
        v7 = 0x59 v1 v5 v6;
        v8 = 0x36 v3 v5 v7;
        v9 = 0x93 v4 v5 v7;
        v10 = 0x87 v3 v4 v6;
    } v7 v8 v9 v10;
    6: v0 v1 v2 v3 {
        v4 = 0x96 v0 v1 v2;
        v5 = 0x65 v0 v3 v4;
        v6 = 0x4e v0 v3 v4;
        v7 = 0xd2 v2 v3 v4;
        v8 = 0x59 v1 v6 v7;
        v9 = 0x87 v4 v6 v7;
        v10 = 0xb4 v6 v8 v9;
    } v8 v5 v9 v10;
    7: v0 v1 v2 v3 {
        v4 = 0xd2 v1 v2 v3;
        v5 = 0xca v1 v2 v3;
        v6 = 0x1a v0 v1 v3;
        v7 = 0xb6 v1 v2 v3;
        v8 = 0x59 v0 v4 v7;
        v9 = 0x9a v0 v5 v7;
        v10 = 0x2d v4 v6 v8;
        v11 = 0x36 v2 v6 v10;
    } v8 v11 v9 v10;
}

circuits! {
    /// The inverse of S-box `BOX`.
    inverse
    0: v0 v1 v2 v3 {
        v4 = 0xd2 v0 v1 v3;
        v5 = 0x56 v0 v1 v2;
        v6 = 0x99 v0 v3 v5;
        v7 = 0x4e v0 v1 v3;
        v8 = 0x87 v4 v6 v7;
        v9 = 0x96 v5 v7 v8;
        v10 = 0xb1 v5 v7 v8;
    } v9 v10 v6 v8;
    1: v0 v1 v2 v3 {
        v4 = 0x5c v0 v1 v3;
        v5 = 0xd2 v0 v1 v3;
        v6 = 0x66 v0 v2 v5;
        v7 = 0xb4 v0 v1 v3;
        v8 = 0x1d v4 v6 v7;
        v9 = 0x74 v4 v6 v7;
        v10 = 0x2d v5 v8 v9;
    } v8 v9 v10 v6;
    2: v0 v1 v2 v3 {
        v4 = 0xd2 v1 v2 v3;
        v5 = 0x78 v0 v1 v3;
        v6 = 0x56 v1 v2 v5;
        v7 = 0xb8 v1 v2 v3;
        v8 = 0x39 v0 v4 v7;
        v9 = 0xc6 v6 v7 v8;
        v10 = 0x69 v4 v5 v9;
    } v6 v10 v9 v8;
    3: v0 v1 v2 v3 {
        v4 = 0xd8 v0 v1 v2;
        v5 = 0x9a v0 v1 v2;
        v6 = 0x5e v0 v2 v3;
        v7 = 0xb6 v0 v1 v2;
        v8 = 0x56 v3 v4 v7;
        v9 = 0x6a v3 v5 v7;
        v10 = 0x94 v5 v6 v9;
        v11 = 0xc6 v1 v6 v10;
    } v10 v8 v11 v9;
    4: v0 v1 v2 v3 {
        v4 = 0x76 v0 v1 v2;
        v5 = 0x2c v0 v1 v3;
        v6 = 0x9a v2 v3 v5;
        v7 = 0x18 v0 v2 v3;
        v8 = 0xb6 v0 v1 v3;
        v9 = 0x65 v2 v7 v8;
        v10 = 0x29 v5 v7 v9;
        v11 = 0x93 v3 v4 v8;
    } v9 v10 v11 v6;
    5: v0 v1 v2 v3 {
        v4 = 0x36 v0 v2 v3;
        v5 = 0x4e v1 v2 v3;
        v6 = 0x6c v0 v1 v3;
        v7 = 0xca v0 v1 v2;
        v8 = 0xc9 v2 v6 v7;
        v9 = 0xc9 v1 v4 v8;
        v10 = 0x69 v7 v8 v9;
        v11 = 0xd2 v5 v7 v9;
    } v9 v10 v11 v8;
    6: v0 v1 v2 v3 {
        v4 = 0xa6 v0 v2 v3;
        v5 = 0x99 v0 v1 v4;
        v6 = 0x9a v0 v2 v3;
        v7 = 0xd4 v0 v2 v3;
        v8 = 0x93 v1 v6 v7;
        v9 = 0xc9 v1 v6 v7;
        v10 = 0x78 v4 v8 v9;
    } v8 v5 v10 v9;
    7: v0 v1 v2 v3 {
        v4 = 0x36 v0 v2 v3;
        v5 = 0x4e v0 v2 v3;
        v6 = 0xc9 v1 v4 v5;
        v7 = 0xac v0 v2 v3;
        v8 = 0x1c v0 v1 v3;
        v9 = 0xa6 v2 v4 v8;
        v10 = 0x96 v6 v7 v9;
        v11 = 0xb4 v5 v9 v10;
    } v6 v10 v9 v11;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The S-boxes of the submission, appendix A.5.
    const TABLES: [[u8; 16]; 8] = [
        [3, 8, 15, 1, 10, 6, 5, 11, 14, 13, 4, 2, 7, 0, 9, 12],
        [15, 12, 2, 7, 9, 0, 5, 10, 1, 11, 14, 8, 6, 13, 3, 4],
        [8, 6, 7, 9, 3, 12, 10, 15, 13, 1, 14, 4, 0, 11, 5, 2],
        [0, 15, 11, 8, 12, 9, 6, 3, 13, 1, 2, 4, 10, 7, 5, 14],
        [1, 15, 8, 3, 12, 0, 11, 6, 2, 5, 4, 10, 9, 14, 7, 13],
        [15, 5, 2, 11, 4, 10, 9, 12, 0, 3, 14, 8, 13, 6, 7, 1],
        [7, 2, 12, 5, 8, 4, 6, 11, 14, 9, 1, 15, 13, 3, 10, 0],
        [1, 13, 15, 0, 14, 8, 2, 11, 7, 4, 12, 10, 9, 3, 5, 6],
    ];

    /// Bit `i` of input `j` is bit `j` of the number `i`: all sixteen values at once.
    const ALL: [u32; 4] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

    fn values(outputs: [u32; 4]) -> [u8; 16] {
        std::array::from_fn(|value| {
            (0..4).fold(0, |sum, bit| {
                sum | ((outputs[bit] >> value & 1) as u8) << bit
            })
        })
    }

    fn holds<const BOX: usize>() {
        let table = TABLES[BOX];
        let mut back = [0; 16];
        for (value, output) in (0..).zip(table) {
            back[usize::from(output)] = value;
        }
        assert_eq!(values(forward::<_, BOX>(ALL)), table, "S{BOX}");
        assert_eq!(values(inverse::<_, BOX>(ALL)), back, "S{BOX}'");
    }

    #[test]
    fn each_circuit_is_its_table_or_the_inverse_of_it() {
        holds::<0>();
        holds::<1>();
        holds::<2>();
        holds::<3>();
        holds::<4>();
        holds::<5>();
        holds::<6>();
        holds::<7>();
    }
}
