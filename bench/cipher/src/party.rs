//! Who is measured: one key of one suite in somebody's hands, ours or a peer's.
//!
//! All take the same batches in the words of `qloak-cipher`: nonce, AAD, data in place, tag. A
//! library that knows no batches is called once for each frame, behind this trait, so that the one
//! virtual call per batch costs everyone the same.

use qloak_cipher::{Open, Seal, SuiteKey};

/// Seals and opens batches under one key that was set up before.
pub(crate) trait Party {
    /// Seals each frame in place and writes its tag.
    fn seal(&mut self, batch: &mut [Seal<'_>]);
    /// Opens each frame in place and says in `valid` whether its tag was right.
    fn open(&mut self, batch: &mut [Open<'_>]);
}

/// Ours needs no wrapping: this is the product's own way in.
impl Party for SuiteKey {
    fn seal(&mut self, batch: &mut [Seal<'_>]) {
        // A batch that is refused stays as it was; the check against another level finds that.
        let _ = SuiteKey::seal(self, batch);
    }

    fn open(&mut self, batch: &mut [Open<'_>]) {
        // A batch that is refused has no valid frame, and the measurement looks at that.
        let _ = SuiteKey::open(self, batch);
    }
}

/// A library that takes one frame a call.
pub(crate) trait OneByOne {
    /// Seals a frame; one that it refuses stays as it was, and the check finds that.
    fn seal_one(&mut self, one: &mut Seal<'_>);
    /// Opens a frame and says whether its tag was right.
    fn open_one(&mut self, one: &mut Open<'_>) -> bool;
}

/// Such a library as a party: the frames of a batch one after another.
pub(crate) struct Each<T>(pub(crate) T);

impl<T: OneByOne> Party for Each<T> {
    fn seal(&mut self, batch: &mut [Seal<'_>]) {
        for one in batch {
            self.0.seal_one(one);
        }
    }

    fn open(&mut self, batch: &mut [Open<'_>]) {
        for one in batch {
            one.valid = self.0.open_one(one);
        }
    }
}
