//! A super-frame while it is cut: the batch may have no room for all of its frames at once.
//!
//! ```text
//!   storage  [ virtio header | super-frame, 64 KiB at most ]
//!   batch    ... | frame 0 | frame 1 |      the rest comes with the next `receive`
//! ```
//!
//! AF_PACKET and TAP hand over super-frames alike; packet sockets take the VLAN tag out first, which is
//! put back into each frame. The storage is made once, and no octet is read beyond what was received.

use crate::{
    Batch, limits,
    offload::{Cut, VIRTIO_OCTETS, Virtio},
};

/// A VLAN tag: TPID and TCI.
pub(crate) type Tag = (u16, u16);

/// Room for one super-frame, and how far it is cut.
pub(crate) struct SuperFrame {
    /// The virtio header, and behind it the super-frame.
    storage: Box<[u8]>,
    octets: usize,
    /// The VLAN tag that was taken out of it.
    tag: Option<Tag>,
    /// How it is cut and which frame comes next; none when it is used up.
    cut: Option<(Cut, usize)>,
}

impl SuperFrame {
    pub(crate) fn new() -> Self {
        Self {
            storage: vec![0; VIRTIO_OCTETS + limits::SUPER_FRAME_OCTETS_MAX].into(),
            octets: 0,
            tag: None,
            cut: None,
        }
    }

    /// Room for a virtio header and a frame, to be received into when the last super-frame is used up.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.storage
    }

    /// The virtio header and the frame that were received into the room, `got` octets together; none when that
    /// is less than a header, or the room is full: then the end of the frame may be lost.
    pub(crate) fn received(&mut self, got: usize) -> Option<(Virtio, &mut [u8])> {
        if got >= self.storage.len() {
            return None;
        }
        let (header, frame) = self.storage.get_mut(..got)?.split_first_chunk_mut()?;
        Some((Virtio::parse(header), frame))
    }

    /// Begins to cut what was received into the room. False when that is not possible.
    #[must_use]
    pub(crate) fn begin(&mut self, got: usize, tag: Option<Tag>) -> bool {
        let cut = self
            .received(got)
            .and_then(|(virtio, frame)| Cut::new(frame, virtio));
        self.octets = got;
        self.tag = tag;
        self.cut = cut.map(|cut| (cut, 0));
        self.cut.is_some()
    }

    /// Begins to cut a copy of a super-frame that lies elsewhere. False when that is not possible.
    #[must_use]
    pub(crate) fn take(&mut self, frame: &[u8], tag: Option<Tag>, virtio: Virtio) -> bool {
        let got = VIRTIO_OCTETS + frame.len();
        let Some(room) = self.storage.get_mut(VIRTIO_OCTETS..got) else {
            return false;
        };
        room.copy_from_slice(frame);
        self.octets = got;
        self.tag = tag;
        self.cut = Cut::new(frame, virtio).map(|cut| (cut, 0));
        self.cut.is_some()
    }

    /// Puts the next frame into the batch, which must not be full. None when all of them are through; false
    /// when that one is longer than `octets_max`.
    pub(crate) fn next(&mut self, batch: &mut Batch, octets_max: usize) -> Option<bool> {
        let (cut, index) = self.cut?;
        self.cut = (index + 1 < cut.count).then_some((cut, index + 1));
        let frame = self.storage.get(VIRTIO_OCTETS..self.octets)?;
        let shift = if self.tag.is_some() { 4 } else { 0 };
        let written = batch
            .spare_octets()
            .and_then(|room| room.get_mut(shift..octets_max))
            .and_then(|room| cut.write(frame, index, room));
        let Some(octets) = written else {
            return Some(false);
        };
        if let (Some(tag), Some(room)) = (self.tag, batch.spare_octets()) {
            room.copy_within(4..16, 0);
            put_tag(room, tag);
        }
        batch.commit(octets + shift);
        Some(true)
    }
}

/// Writes a VLAN tag behind the addresses.
pub(crate) fn put_tag(room: &mut [u8], (tpid, tci): Tag) {
    if let Some(tag) = room.get_mut(12..16) {
        tag[..2].copy_from_slice(&tpid.to_be_bytes());
        tag[2..].copy_from_slice(&tci.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Sizes,
        coalesce::tests::{Flow, PLAIN},
    };

    const OCTETS: usize = VIRTIO_OCTETS + limits::SUPER_FRAME_OCTETS_MAX;

    #[test]
    fn what_does_not_fit_the_room_is_refused() {
        let mut long = SuperFrame::new();
        assert_eq!(long.room().len(), OCTETS);
        for got in [0, VIRTIO_OCTETS - 1, OCTETS, OCTETS + 1, usize::MAX] {
            assert!(long.received(got).is_none(), "{got}");
            assert!(!long.begin(got, None), "{got}");
        }
        assert_eq!(long.received(OCTETS - 1).unwrap().1.len(), OCTETS - 1 - 10);
        let virtio = Virtio::parse(&Virtio::tcp(true, 34, 66, 1000));
        assert!(!long.take(&vec![0; limits::SUPER_FRAME_OCTETS_MAX + 1], None, virtio));
    }

    #[test]
    fn frames_come_in_order_with_their_tag_and_too_long_ones_do_not() {
        let (tagged, plain) = (
            Flow { vlans: 1, ..PLAIN }.frames(3, 400),
            PLAIN.frames(1, 1200),
        );
        let sizes = Sizes {
            headroom: 8,
            octets_max: tagged[0].len(),
            tailroom: 8,
        };
        // One super-frame of which the tag was taken out, as long as three frames.
        let mut whole = plain[0].clone();
        whole[..12].copy_from_slice(&tagged[0][..12]);
        let virtio = Virtio::parse(&Virtio::tcp(true, 34, 66, 400));
        let tag = Some((
            u16::from_be_bytes([tagged[0][12], tagged[0][13]]),
            u16::from_be_bytes([tagged[0][14], tagged[0][15]]),
        ));
        let mut long = SuperFrame::new();
        let mut batch = Batch::with_sizes(4, sizes);
        assert!(long.take(&whole, tag, virtio));
        for _ in 0..3 {
            assert_eq!(long.next(&mut batch, sizes.octets_max), Some(true));
        }
        assert_eq!(long.next(&mut batch, sizes.octets_max), None);
        for (got, sent) in batch.frames().iter().zip(&tagged) {
            assert_eq!(got.len(), sent.len());
            // Addresses, tag and the length of the header are those of a frame that was sent so.
            assert_eq!(got.octets()[..20], sent[..20]);
        }
        assert_eq!(batch.len(), 3);
        assert!(long.take(&whole, tag, virtio));
        for _ in 0..3 {
            assert_eq!(long.next(&mut batch, sizes.octets_max - 1), Some(false));
        }
        assert_eq!((long.next(&mut batch, 0), batch.len()), (None, 3));
    }
}
