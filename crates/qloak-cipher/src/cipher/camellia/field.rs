//! The S-boxes of Camellia taken apart: an inversion in GF(2^8) between two linear maps.
//!
//! The specification of 2000 defines the first S-box as `h(1 / f(x ^ 0xc5)) ^ 0x6e`, where f and h
//! are linear and the inversion is done in a field that it builds for itself; RFC 3713 prints only
//! the table. CPUs invert in the field of AES, and all fields of 256 elements are one, so the way
//! from one to the other is a third linear map. The constants of all backends are computed from
//! this by the compiler; a test holds them against the table of the RFC.
//!
//! Everything here works on the eight octets of a word at once and looks nothing up, so that the
//! key schedule may use it on secrets.

/// One in each octet of a word.
const EACH: u64 = 0x0101_0101_0101_0101;

/// A linear map of octets. Octet i of the word is where bit i goes.
#[derive(Clone, Copy)]
pub(crate) struct Matrix(pub(crate) u64);

impl Matrix {
    /// Every octet stays as it is.
    pub(crate) const IDENTITY: Self = Self(0x8040_2010_0804_0201);

    /// Octets rotated to the left.
    pub(crate) const fn rotation(bits: u32) -> Self {
        Self(Self::IDENTITY.0.rotate_right(8 * bits))
    }

    /// Octets shifted to the left, or, where `bits` is negative, to the right.
    pub(crate) const fn shift(bits: i32) -> Self {
        if bits < 0 {
            Self(Self::IDENTITY.0 << (-8 * bits))
        } else {
            Self(Self::IDENTITY.0 >> (8 * bits))
        }
    }

    /// Eight octets, each taken through the map.
    pub(crate) const fn each(self, octets: u64) -> u64 {
        let mut images = 0;
        let mut bit = 0;
        while bit < 8 {
            images ^= (octets >> bit & EACH) * (self.0 >> (8 * bit) & 0xff);
            bit += 1;
        }
        images
    }

    /// One octet taken through the map.
    pub(crate) const fn of(self, octet: u8) -> u8 {
        self.each(octet as u64) as u8
    }

    /// First the other map, then this.
    pub(crate) const fn after(self, first: Self) -> Self {
        Self(self.each(first.0))
    }

    /// The map, and of what comes out only the bits of `mask`.
    pub(crate) const fn and(self, mask: u8) -> Self {
        Self(self.0 & (EACH * mask as u64))
    }

    /// The way back. For constants only: its time depends on the map.
    pub(crate) const fn inverse(self) -> Self {
        let mut columns = 0;
        let mut octet = 1;
        while octet < 256 {
            let image = self.of(octet as u8);
            if image.is_power_of_two() {
                columns |= octet << (8 * image.trailing_zeros());
            }
            octet += 1;
        }
        Self(columns)
    }

    /// The map as GFNI takes it: octet 7 - i says which bits of the input make bit i.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) const fn rows(self) -> u64 {
        let mut rows = 0;
        let mut bit = 0;
        while bit < 8 {
            // The multiplication gathers bit 8i into bit 56 + i.
            let row = (self.0 >> bit & EACH).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            rows |= row << (8 * (7 - bit));
            bit += 1;
        }
        rows
    }

    /// The map as byte shuffles take it: where each low half of an octet goes, plus a constant, and
    /// where each high half goes.
    pub(crate) const fn nibbles(self, plus: u8) -> [[u8; 16]; 2] {
        let low = self.each(0x0706_0504_0302_0100) ^ (EACH * plus as u64);
        let high = self.each(0x7060_5040_3020_1000);
        [
            row(low, low ^ (EACH * (self.0 >> 24 & 0xff))),
            row(high, high ^ (EACH * (self.0 >> 56))),
        ]
    }
}

/// Two words as sixteen octets.
const fn row(first: u64, second: u64) -> [u8; 16] {
    (first as u128 | (second as u128) << 64).to_le_bytes()
}

/// Eight products in the field of AES (FIPS 197, 4.2).
pub(crate) const fn times(a: u64, b: u64) -> u64 {
    let mut product = 0;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        let carry = product >> 7 & EACH;
        product = ((product ^ (carry << 7)) << 1) ^ (carry * 0x1b);
        product ^= ((b >> bit & EACH) * 0xff) & a;
    }
    product
}

/// Eight inverses in the field of AES, of zero zero: the 254th powers.
pub(crate) const fn invert(octets: u64) -> u64 {
    let mut power = octets;
    let mut step = 0;
    while step < 6 {
        power = times(times(power, power), octets);
        step += 1;
    }
    times(power, power)
}

/// One element raised to a power, by the slowest way.
const fn power(element: u64, exponent: u32) -> u64 {
    let mut product = 1;
    let mut step = 0;
    while step < exponent {
        product = times(product, element);
        step += 1;
    }
    product
}

/// The linear part of AES's S-box (FIPS 197, 5.1.1).
pub(crate) const AES: Matrix = Matrix(
    Matrix::rotation(0).0
        ^ Matrix::rotation(1).0
        ^ Matrix::rotation(2).0
        ^ Matrix::rotation(3).0
        ^ Matrix::rotation(4).0,
);

/// What AES's S-box adds.
pub(crate) const AES_PLUS: u8 = 0x63;

/// The specification's f, bit by bit: it numbers bits from 1, the highest, to 8.
const F: Matrix = from_rows([
    &[6, 2],
    &[7, 1],
    &[8, 5, 3],
    &[8, 3],
    &[7, 4],
    &[5, 2],
    &[8, 1],
    &[6, 4],
]);

/// The specification's h.
const H: Matrix = from_rows([
    &[5, 6, 2],
    &[6, 2],
    &[7, 4],
    &[8, 2],
    &[7, 3],
    &[8, 1],
    &[5, 1],
    &[6, 3],
]);

const fn from_rows(rows: [&[u32]; 8]) -> Matrix {
    let mut columns = 0;
    let mut to = 0;
    while to < 8 {
        let mut at = 0;
        while at < rows[to].len() {
            columns ^= 1 << (8 * (8 - rows[to][at]) + 7 - to as u32);
            at += 1;
        }
        to += 1;
    }
    Matrix(columns)
}

/// The specification's field in that of AES. It has the elements 1, a, a^2, a^3 and b times these,
/// from the lowest bit up, where b^8 + b^6 + b^5 + b^3 + 1 = 0 and a = b^238. Any root will do.
const FIELD: Matrix = {
    let mut b = 2;
    while power(b, 8) ^ power(b, 6) ^ power(b, 5) ^ power(b, 3) != 1 {
        b += 1;
    }
    let a = power(b, 238);
    let mut columns = 0;
    let mut at = 0;
    while at < 4 {
        let element = power(a, at);
        columns |= element << (8 * at) | times(element, b) << (8 * at + 32);
        at += 1;
    }
    Matrix(columns)
};

/// The octet whose inverse the first S-box cannot take.
pub(crate) const SINGULAR: u8 = 0xc5;
/// The linear map in front of the inversion.
pub(crate) const FRONT: Matrix = FIELD.after(F);
/// The linear map behind it.
pub(crate) const BACK: Matrix = H.after(FIELD.inverse());
/// What the first S-box adds in the end.
pub(crate) const PLUS: u8 = 0x6e;

/// The S-boxes in the order of a half's octets (RFC 3713, 2.4.1), numbered from 1.
pub(crate) const ORDER: [usize; 8] = [1, 2, 3, 4, 2, 3, 4, 1];

/// The S-boxes differ from the first in a rotation: of what goes in, for the fourth, or of what
/// comes out.
pub(crate) const fn rotations(number: usize) -> (Matrix, Matrix) {
    match number {
        2 => (Matrix::IDENTITY, Matrix::rotation(1)),
        3 => (Matrix::IDENTITY, Matrix::rotation(7)),
        4 => (Matrix::rotation(1), Matrix::IDENTITY),
        _ => (Matrix::IDENTITY, Matrix::IDENTITY),
    }
}

/// Eight octets through the first S-box.
pub(crate) const fn first_box(octets: u64) -> u64 {
    let inside = FRONT.each(octets ^ (EACH * SINGULAR as u64));
    BACK.each(invert(inside)) ^ (EACH * PLUS as u64)
}

/// What goes in front of the inversion of an S-box that reads octets in a basis.
pub(crate) const fn in_front(number: usize, from: Matrix) -> Matrix {
    from.after(rotations(number).0).after(from.inverse())
}

/// What goes behind it, into a basis, where the inversion comes with a linear map of its own.
pub(crate) const fn behind(number: usize, inversion: Matrix, to: Matrix) -> Matrix {
    to.after(rotations(number).1)
        .after(BACK)
        .after(inversion.inverse())
}
