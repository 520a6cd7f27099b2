//! A frame in its storage, borrowed for the time of one batch.
//!
//! Frames are Ethernet frames without FCS. The storage is longer than the frame: headroom before it
//! takes the SecTAG, tailroom behind it takes the ICV, so that a frame is never copied to grow.
//!
//! ```text
//! storage  |  headroom  | DA | SA | EtherType ...  |  tailroom  |
//!                       ^ range.start              ^ range.end
//! ```

use std::ops::Range;

/// EtherType of a protected frame (IEEE 802.1AE-2018, 9.4).
pub const ETHERTYPE_MACSEC: u16 = 0x88e5;

/// EtherType of key agreement between two nodes (IEEE 802, local experimental 1).
pub const ETHERTYPE_AGREEMENT: u16 = 0x88b5;

/// First two octets of the secure data of an aggregated frame (IEEE 802, local experimental 2).
pub const ETHERTYPE_MUX: u16 = 0x88b6;

/// Octets of the two addresses.
pub const ADDRESSES: usize = 12;

/// One frame's storage and where in it the frame lies.
pub struct Room<'a> {
    /// All of the storage.
    pub storage: &'a mut [u8],
    /// The octets of the frame; empty when the frame has been discarded.
    pub range: &'a mut Range<usize>,
}

impl<'a> Room<'a> {
    /// A room from its two parts.
    pub fn new(storage: &'a mut [u8], range: &'a mut Range<usize>) -> Self {
        Self { storage, range }
    }

    /// The frame; empty when it was discarded or its range lies outside the storage.
    pub fn frame(&self) -> &[u8] {
        self.storage.get(self.range.clone()).unwrap_or_default()
    }

    /// Marks the frame as discarded: nothing of it can be transmitted or delivered any more.
    pub fn discard(&mut self) {
        self.range.end = self.range.start;
    }

    /// Discards the frame and gives back what it was, for whoever must tell of it.
    pub(crate) fn withdraw(mut self) -> &'a [u8] {
        let frame = self.range.clone();
        self.discard();
        self.storage.get(frame).unwrap_or_default()
    }
}

/// The EtherType of a frame, if it is long enough to have one.
pub fn ethertype(frame: &[u8]) -> Option<u16> {
    match frame.get(ADDRESSES..ADDRESSES + 2) {
        Some(&[a, b]) => Some(u16::from_be_bytes([a, b])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_outside_the_storage_is_an_empty_frame() {
        let mut storage = [0; 8];
        let mut range = 4..12;
        assert!(Room::new(&mut storage, &mut range).frame().is_empty());
    }

    #[test]
    fn a_discarded_frame_is_empty() {
        let mut storage = [0; 8];
        let mut range = 2..6;
        let mut room = Room::new(&mut storage, &mut range);
        assert_eq!(room.frame().len(), 4);
        room.discard();
        assert!(room.frame().is_empty());
        assert_eq!(range, 2..2);
    }
}
