//! Frames handled at once, in storage that is made once and used for ever.
//!
//! ```text
//!   frames  [ filled 0 | filled 1 | ... | spare | spare ]
//!             <------- len ------------>
//! ```
//!
//! Filling takes the next spare frame, `clear` makes all of them spare again. Frames may be swapped
//! with another batch's: then only pointers move. Nothing here allocates after `new`.

use crate::Frame;

/// How large the frames of a port and its batches are, in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Kept free before a frame.
    pub headroom: usize,
    /// The longest frame, without FCS.
    pub octets_max: usize,
    /// Kept free behind a frame.
    pub tailroom: usize,
}

/// A fixed number of frames, the first `len` of which are filled.
pub struct Batch {
    frames: Vec<Frame>,
    len: usize,
    sizes: Sizes,
}

impl Batch {
    /// A batch of `frames` spare frames, each with `headroom`, `octets_max` and `tailroom` octets.
    pub fn new(frames: usize, headroom: usize, octets_max: usize, tailroom: usize) -> Self {
        Self::with_sizes(
            frames,
            Sizes {
                headroom,
                octets_max,
                tailroom,
            },
        )
    }

    /// The same from [`Sizes`].
    pub fn with_sizes(frames: usize, sizes: Sizes) -> Self {
        let make = || Frame::with_capacity(sizes.headroom, sizes.octets_max, sizes.tailroom);
        Self {
            frames: (0..frames).map(|_| make()).collect(),
            len: 0,
            sizes,
        }
    }

    /// The sizes that its frames were made with.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The filled frames, oldest first.
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.len]
    }

    /// The filled frames, to be changed in place.
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.len]
    }

    /// Count of filled frames.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no frame is filled.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most frames that it holds.
    pub fn capacity(&self) -> usize {
        self.frames.len()
    }

    /// Count of spare frames.
    pub fn spare(&self) -> usize {
        self.frames.len() - self.len
    }

    /// Whether no frame is spare.
    pub fn is_full(&self) -> bool {
        self.spare() == 0
    }

    /// Makes every frame spare. The octets stay in the storage.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes all frames from `len` on spare.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Copies a frame into the next spare one. False, and nothing done, when the batch is full or the
    /// frame longer than `octets_max`.
    #[must_use]
    pub fn push(&mut self, octets: &[u8]) -> bool {
        let longest = self.sizes.octets_max;
        match self
            .spare_octets()
            .and_then(|room| room.get_mut(..octets.len()))
        {
            Some(room) if octets.len() <= longest => {
                room.copy_from_slice(octets);
                self.commit(octets.len());
                true
            }
            _ => false,
        }
    }

    /// Room of the next spare frame behind its headroom, tailroom included, so that a reader can see
    /// that a frame was longer than `octets_max`. None when the batch is full.
    pub fn spare_octets(&mut self) -> Option<&mut [u8]> {
        let headroom = self.sizes.headroom;
        self.frames
            .get_mut(self.len)
            .and_then(|frame| frame.storage.get_mut(headroom..))
    }

    /// Takes the first `octets` of [`Self::spare_octets`] as a filled frame.
    pub fn commit(&mut self, octets: usize) {
        let start = self.sizes.headroom;
        if let Some(frame) = self.frames.get_mut(self.len) {
            frame.range = start..(start + octets).min(frame.storage.len());
            self.len += 1;
        }
    }

    /// Makes the next spare frame a filled, empty one and lends it: for a writer that places its own
    /// range. None when the batch is full.
    pub fn extend(&mut self) -> Option<&mut Frame> {
        let start = self.sizes.headroom;
        let frame = self.frames.get_mut(self.len)?;
        frame.range = start..start;
        self.len += 1;
        Some(frame)
    }

    /// Moves filled frame `index` to the end of `other` by exchanging storage with a spare frame
    /// there; the place in this batch then holds an empty frame. Both batches should be made with the same
    /// sizes, else the storages change hands with the sizes they have. False when `other` is full or
    /// there is no such frame.
    #[must_use]
    pub fn give(&mut self, index: usize, other: &mut Batch) -> bool {
        let headroom = self.sizes.headroom;
        let (Some(mine), Some(theirs)) = (
            self.frames[..self.len].get_mut(index),
            other.frames.get_mut(other.len),
        ) else {
            return false;
        };
        std::mem::swap(mine, theirs);
        let start = headroom.min(mine.storage.len());
        mine.range = start..start;
        other.len += 1;
        true
    }

    /// Forgets the first `count` filled frames; the others keep their order.
    pub fn drop_front(&mut self, count: usize) {
        let count = count.min(self.len);
        if count < self.len {
            self.frames[..self.len].rotate_left(count);
        }
        self.len -= count;
    }

    /// Keeps the filled frames that `keep` likes, in order; the others become spare.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Frame) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            if keep(&mut self.frames[index]) {
                self.frames.swap(kept, index);
                kept += 1;
            }
        }
        self.len = kept;
    }
}
