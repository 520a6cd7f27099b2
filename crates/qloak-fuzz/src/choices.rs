//! The fuzzer's octets, read as choices from the front; zeros once they have run out.
//!
//! One octet for one choice, so that a changed octet changes one thing and what stands behind it keeps
//! its meaning.

/// What is left to choose with.
pub(crate) struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    /// Whether only zeros would follow.
    pub(crate) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn octet(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Two octets, big endian.
    pub(crate) fn number(&mut self) -> usize {
        usize::from(self.octet()) << 8 | usize::from(self.octet())
    }

    /// A number under `end`, from one octet where that is enough; 0 when there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let chosen = if end > 256 {
            self.number()
        } else {
            self.octet().into()
        };
        chosen.checked_rem(end).unwrap_or(0)
    }

    /// Up to so many octets as they are.
    pub(crate) fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Exactly so many.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.octet())
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Changes octets here and there, cuts or lengthens. Places under `head` are hit as often as all
    /// others, since most of what a parser decides stands there.
    pub(crate) fn change(&mut self, octets: &mut Vec<u8>, head: usize) {
        for _ in 0..=self.below(4) {
            let how = self.octet();
            let place = self.below(octets.len());
            match how % 6 {
                0 | 1 => {
                    if let Some(octet) = octets.get_mut(place) {
                        *octet ^= 1 << (how >> 5);
                    }
                }
                2 | 3 => {
                    let value = self.octet();
                    if let Some(octet) = octets.get_mut(place % head.max(1)) {
                        *octet = value;
                    }
                }
                4 => octets.truncate(place),
                _ => octets.extend(std::iter::repeat_n(how >> 4, place % 64)),
            }
        }
    }
}

/// A client frame of this length whose octets tell it from every other number's.
pub(crate) fn client_frame(octets: usize, number: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x99, 0x02, 0, 0, 0, 0, 0x88, 0x08, 0x00];
    let mut state = number as u32;
    while frame.len() < octets {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        frame.push((state >> 24) as u8);
    }
    frame.truncate(octets);
    frame
}
