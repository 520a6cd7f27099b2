//! One Ethernet frame in storage of its own.
//!
//! ```text
//!   storage  | headroom |  DA SA EtherType ... (without FCS)  | tailroom |
//!                       ^ range.start                         ^ range.end
//! ```
//!
//! Protecting a frame grows the range into both rooms, validating shrinks it again; the octets of the
//! frame themselves stay where the kernel put them.

use std::ops::Range;

/// One Ethernet frame without FCS, with room before and behind it.
pub struct Frame {
    /// The whole storage: headroom, frame, tailroom.
    pub storage: Box<[u8]>,
    /// Where in `storage` the frame lies.
    pub range: Range<usize>,
}

impl Frame {
    /// An empty frame with `headroom` octets before it, room for `octets`, and `tailroom` behind.
    pub fn with_capacity(headroom: usize, octets: usize, tailroom: usize) -> Self {
        Self {
            storage: vec![0; headroom + octets + tailroom].into_boxed_slice(),
            range: headroom..headroom,
        }
    }

    /// The frame's octets, from its destination address on; empty if the range lies outside the storage.
    pub fn octets(&self) -> &[u8] {
        self.storage.get(self.range.clone()).unwrap_or_default()
    }

    /// The same, to be changed in place.
    pub fn octets_mut(&mut self) -> &mut [u8] {
        self.storage.get_mut(self.range.clone()).unwrap_or_default()
    }

    /// Length in octets, without FCS.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is no octet in it.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}
