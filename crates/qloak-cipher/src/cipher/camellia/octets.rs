//! What a register can do that holds one octet of each of many blocks.
//!
//! Camellia's rounds treat octets as wholes, so a stripe of blocks is turned on its side: sixteen
//! registers, each with the octets of one place. Between two S-boxes everything is linear, and this
//! is used three times.
//!
//! - **Bases.** A register holds not the octet x but its image under a linear map, which the backend
//!   chooses for each half of the block such that the half's S-boxes need nothing in front of their
//!   inversion. The maps are free: the exclusive ors between S-boxes do not notice.
//! - **Offsets.** A register holds not x but x plus whatever the S-box that reads it next wants added:
//!   its round key and the constant of its inversion. Keys therefore enter as differences.
//! - **Layers.** FL and its inverse are affine once the key is known. The registers go through the
//!   linear part, as key-dependent maps of octets in their bases; the offsets go through the rest.
//!
//! Loops are plain here and in the backends: a closure that the standard library calls is compiled
//! without a backend's CPU features.
//!
//! What a backend needs: an inversion in GF(2^8) (GFNI has it; the last round of AES, either way, is
//! one between linear maps; a circuit will do), linear maps of octets (GFNI, or byte shuffles of half
//! octets), exclusive or, and the transposition. Where blocks move within a register on the way through
//! an S-box, as ShiftRows does, the left half's boxes may move them one way and the right half's boxes
//! back: then `slice` puts the right half's blocks where the left half's boxes will send theirs.

use zeroize::Zeroize;

use super::field::Matrix;
use crate::lanes::{Blocks, STRIPE};

/// The half of a block that goes first, and that the first round reads.
pub(crate) const LEFT: usize = 0;
/// The other half.
pub(crate) const RIGHT: usize = 1;

/// Registers whose octets can be dealt out like cards.
pub(crate) trait Unpack: Blocks {
    /// Of each block the first eight octets, in turn from this and the other.
    fn unpack_low(self, other: Self) -> Self;
    /// Of each block the last eight.
    fn unpack_high(self, other: Self) -> Self;
}

/// Sixteen rows of blocks: in each column of blocks, row and octet change places. Its own inverse.
#[inline(always)]
pub(crate) fn transposed<V: Unpack>(rows: &[V; STRIPE]) -> [V; STRIPE] {
    dealt(&dealt(&dealt(&dealt(rows))))
}

/// One perfect shuffle of all octets of a column: the highest bit of the row's number moves to the
/// lowest place in the octet's, and the highest of the octet's to the lowest in the row's.
#[inline(always)]
fn dealt<V: Unpack>(rows: &[V; STRIPE]) -> [V; STRIPE] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *rows;
    [
        a.unpack_low(i),
        a.unpack_high(i),
        b.unpack_low(j),
        b.unpack_high(j),
        c.unpack_low(k),
        c.unpack_high(k),
        d.unpack_low(l),
        d.unpack_high(l),
        e.unpack_low(m),
        e.unpack_high(m),
        f.unpack_low(n),
        f.unpack_high(n),
        g.unpack_low(o),
        g.unpack_high(o),
        h.unpack_low(p),
        h.unpack_high(p),
    ]
}

/// The registers of one half of a stripe.
pub(crate) type Half<Y> = [Y; 8];

/// An octet for each register of a half, four times over.
pub(crate) type Splats = [u32; 8];

/// One octet of each block of a stripe.
pub(crate) trait Octets: Copy + Send + Sync + 'static {
    /// The register that holds whole blocks.
    type Memory: Blocks;
    /// What FL or its inverse needs of its key.
    type Layer: Zeroize + Send + Sync + 'static;

    /// The linear map that the octets of each half have gone through.
    const BASES: [Matrix; 2];
    /// The octet that, added to one of each half, makes the first S-box invert zero where it is zero.
    const SINGULAR: [u8; 2];

    /// The octets of a stripe, turned on its side and into the bases.
    fn slice(stripe: &[Self::Memory; STRIPE]) -> [Half<Self>; 2];
    /// The way back, the right half first: Camellia ends with its halves exchanged.
    fn unslice(halves: [Half<Self>; 2]) -> [Self::Memory; STRIPE];
    /// The same octet everywhere.
    fn splat(octets: u32) -> Self;
    /// Exclusive or.
    fn xor(self, other: Self) -> Self;

    /// What [`round`](Self::round) takes to add a difference to the half that it writes.
    fn round_key<const FROM: usize>(difference: u64) -> Splats;
    /// S-boxes and P of the half `FROM`, and the difference, added to the other. What the S-boxes add in the
    /// end is in the difference, and so they need not.
    fn round<const FROM: usize>(from: &Half<Self>, to: &mut Half<Self>, key: &Splats);

    /// What [`pass`](Self::pass) takes for a half's key.
    fn layer<const HALF: usize>(key: u64) -> Self::Layer;
    /// The linear part of FL for the left half, of its inverse for the right.
    fn pass<const HALF: usize>(half: &mut Half<Self>, layer: &Self::Layer);
}

/// Registers on which each S-box stands alone, the same for both halves.
pub(crate) trait Boxes: Octets {
    /// S-box `NUMBER`, but for what it adds in the end.
    fn substituted<const NUMBER: usize>(self) -> Self;
}

/// The S-boxes of a half, in their order (RFC 3713, 2.4.1).
#[inline(always)]
pub(crate) fn through_boxes<Y: Boxes>(from: &Half<Y>) -> Half<Y> {
    [
        from[0].substituted::<1>(),
        from[1].substituted::<2>(),
        from[2].substituted::<3>(),
        from[3].substituted::<4>(),
        from[4].substituted::<2>(),
        from[5].substituted::<3>(),
        from[6].substituted::<4>(),
        from[7].substituted::<1>(),
    ]
}

/// A word's octets, each through the map, for the registers of a half.
pub(crate) fn splats(word: u64, map: Matrix) -> Splats {
    map.each(word)
        .to_be_bytes()
        .map(|octet| u32::from(octet) * 0x0101_0101)
}

/// P of what the S-boxes give, added to a half, with exclusive ors of two: four steps of four octets.
#[inline(always)]
pub(crate) fn spread<Y: Octets>(boxes: Half<Y>, to: &mut Half<Y>) {
    let [a, b, c, d, e, f, g, h] = boxes;
    let (mut first, mut last) = ([a, b, c, d], [e, f, g, h]);
    for i in 0..4 {
        first[i] = first[i].xor(last[(i + 1) % 4]);
    }
    for i in 0..4 {
        last[i] = last[i].xor(first[(i + 2) % 4]);
    }
    for i in 0..4 {
        first[i] = first[i].xor(last[(i + 3) % 4]);
    }
    for i in 0..4 {
        to[i] = to[i].xor(last[i]).xor(first[(i + 3) % 4]);
        to[i + 4] = to[i + 4].xor(first[i]);
    }
}

/// The linear part of FL under a key, as maps of octets in a basis.
pub(crate) struct LayerMaps {
    /// From each octet of the left word to the same place of the right word.
    pub(crate) own: [Matrix; 4],
    /// From the octet after it, whose highest bit the rotation brings over.
    pub(crate) next: [Matrix; 4],
    /// From each octet of the right word to the same place of the left word.
    pub(crate) back: [Matrix; 4],
}

impl LayerMaps {
    /// The maps under `key` in a basis that `base` leads into and `inverse` out of.
    pub(crate) fn new(key: u64, base: Matrix, inverse: Matrix) -> Self {
        let key = key.to_be_bytes();
        let shifted = |bits, at: usize| {
            base.after(Matrix::shift(bits))
                .after(inverse.and(key[at % 4]))
        };
        Self {
            own: std::array::from_fn(|at| shifted(1, at)),
            next: std::array::from_fn(|at| shifted(-7, at + 1)),
            // x | k is x & !k, plus k, which is the offset's.
            back: std::array::from_fn(|at| base.after(inverse.and(!key[at + 4]))),
        }
    }
}

/// What the S-boxes have to add for P to make the difference of it; one map for each box.
pub(crate) fn before_spread(difference: u64, maps: [Matrix; 4]) -> Splats {
    let octets = super::schedule::gathered(difference);
    let keys = maps.map(|map| splats(octets, map));
    std::array::from_fn(|at| keys[super::field::ORDER[at] - 1][at])
}
