//! Frames in their storage: slots that begin on a cache line, each with its data and room for its tag.

use qloak_cipher::{Open, Seal, limits::TAG_OCTETS};

use crate::{limits::RING_OCTETS_MIN, plan::Load};

const LINE: usize = 64;

/// A ring of batches. One round works through all of it once.
pub(crate) struct Frames {
    storage: Vec<u8>,
    begin: usize,
    slots: Vec<Slot>,
    tag_octets: usize,
}

struct Slot {
    start: usize,
    octets: usize,
}

impl Frames {
    /// Frames of a load, enough for whole batches, whole patterns and the least size of a ring.
    pub(crate) fn new(load: &Load, batch: usize, tag_octets: usize) -> Self {
        let pattern_octets: usize = load.pattern.iter().map(|octets| slot_octets(*octets)).sum();
        let step = least_common_multiple(batch, load.pattern.len());
        let step_octets = pattern_octets * step / load.pattern.len();
        let count = step * RING_OCTETS_MIN.div_ceil(step_octets);
        let mut slots = Vec::with_capacity(count);
        let mut start = 0;
        for octets in load.pattern.iter().copied().cycle().take(count) {
            slots.push(Slot { start, octets });
            start += slot_octets(octets);
        }
        let storage: Vec<u8> = (0..start + LINE).map(|n| (n * 7 + n / 251) as u8).collect();
        let begin = storage.as_ptr().align_offset(LINE).min(LINE);
        Self {
            storage,
            begin,
            slots,
            tag_octets,
        }
    }

    /// Octets of data of one round.
    pub(crate) fn data_octets(&self) -> usize {
        self.slots.iter().map(|slot| slot.octets).sum()
    }

    /// What one round touches.
    pub(crate) fn storage_octets(&self) -> usize {
        self.storage.len() - LINE
    }

    /// All frames to seal, each with its own nonce.
    pub(crate) fn seals<'a>(&'a mut self, aad: &'a [u8]) -> Vec<Seal<'a>> {
        let tag_octets = self.tag_octets;
        let parts = split(&mut self.storage[self.begin..], &self.slots);
        let seal = |(position, (data, tag)): (usize, (&'a mut [u8], &'a mut [u8]))| Seal {
            nonce: nonce(position as u64),
            aad,
            data,
            tag: &mut tag[..tag_octets],
        };
        parts.enumerate().map(seal).collect()
    }

    /// All frames to open, as [`Frames::seals`] numbered them.
    pub(crate) fn opens<'a>(&'a mut self, aad: &'a [u8]) -> Vec<Open<'a>> {
        let tag_octets = self.tag_octets;
        let parts = split(&mut self.storage[self.begin..], &self.slots);
        let open = |(position, (data, tag)): (usize, (&'a mut [u8], &'a mut [u8]))| Open {
            nonce: nonce(position as u64),
            aad,
            data,
            tag: &tag[..tag_octets],
            valid: false,
        };
        parts.enumerate().map(open).collect()
    }

    /// A copy of each frame's data.
    pub(crate) fn data(&self) -> Vec<Vec<u8>> {
        let data = |slot: &Slot| self.storage[self.begin + slot.start..][..slot.octets].to_vec();
        self.slots.iter().map(data).collect()
    }
}

/// The nonce of a frame by its number, as a channel makes them: a salt and a PN that counts up.
#[inline]
pub(crate) fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0x51, 0x4c, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

fn slot_octets(octets: usize) -> usize {
    (octets + TAG_OCTETS).next_multiple_of(LINE)
}

fn split<'a>(
    mut rest: &'a mut [u8],
    slots: &'a [Slot],
) -> impl Iterator<Item = (&'a mut [u8], &'a mut [u8])> {
    slots.iter().map(move |slot| {
        let (own, behind) = std::mem::take(&mut rest).split_at_mut(slot_octets(slot.octets));
        rest = behind;
        own.split_at_mut(slot.octets)
    })
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_holds_whole_batches_and_whole_patterns() {
        for (load, batch) in [(Load::imix(), 64), (Load::imix(), 1), (Load::of(64), 8)] {
            let frames = Frames::new(&load, batch, 16);
            assert_eq!(frames.slots.len() % batch, 0);
            assert_eq!(frames.slots.len() % load.pattern.len(), 0);
            assert!(frames.storage_octets() >= RING_OCTETS_MIN);
        }
    }

    #[test]
    fn frames_begin_on_a_cache_line_and_do_not_touch_one_another() {
        let mut frames = Frames::new(&Load::imix(), 8, 16);
        let octets = frames.data_octets();
        let seals = frames.seals(&[]);
        assert_eq!(
            seals.iter().map(|seal| seal.data.len()).sum::<usize>(),
            octets
        );
        for seal in &seals {
            assert_eq!(seal.data.as_ptr() as usize % LINE, 0);
            assert_eq!(seal.tag.len(), 16);
            assert_eq!(seal.data.as_ptr_range().end, seal.tag.as_ptr());
        }
    }

    #[test]
    fn a_suite_without_tag_gets_none() {
        let mut frames = Frames::new(&Load::of(64), 1, 0);
        assert!(frames.opens(&[]).iter().all(|open| open.tag.is_empty()));
    }

    #[test]
    fn every_frame_has_its_own_nonce() {
        let mut frames = Frames::new(&Load::of(64), 8, 16);
        let mut nonces: Vec<_> = frames.seals(&[]).iter().map(|seal| seal.nonce).collect();
        let count = nonces.len();
        nonces.dedup();
        assert_eq!(nonces.len(), count);
    }
}
