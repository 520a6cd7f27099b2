//! What the key handler's driver asks of the data plane beside its rings: what a key becomes there, and a way
//! out for agreement frames. The pipeline's answers are here; the kernel's are in `crate::kernel`.

use std::time::Duration;

use qloak_api::KeyId;
use qloak_cipher::{level::Level, suite::Suite};
use qloak_keys::derive::SakMaterial;
use qloak_port::{Batch, Port, capture::Way};
use qloak_secy::{Sa, SaError};

use crate::capture::witness::Witness;

/// What a key becomes for the data plane, made off its way.
pub(crate) trait Association: Sized {
    /// From the SAK and salt of an SA.
    fn make(
        suite: &'static Suite,
        level: Level,
        material: SakMaterial,
        key_id: KeyId,
    ) -> Result<Self, SaError>;
}

impl Association for Box<Sa> {
    /// The key schedule is made here.
    fn make(
        suite: &'static Suite,
        level: Level,
        material: SakMaterial,
        key_id: KeyId,
    ) -> Result<Self, SaError> {
        Sa::new(suite, level, &material.sak, material.salt, key_id).map(Self::new)
    }
}

/// Where agreement frames leave.
pub(crate) trait Outlet {
    /// An agreement frame that is not taken is lost, as it may be on any line; the state machine repeats
    /// what matters.
    fn send(&mut self, frame: &[u8]);
}

/// Straight to the line, by a handle of its own.
pub(crate) struct LineOutlet {
    pub(crate) line: Box<dyn Port>,
    pub(crate) batch: Batch,
    pub(crate) witness: Witness,
}

impl Outlet for LineOutlet {
    fn send(&mut self, frame: &[u8]) {
        const TRIES: u32 = 10;
        self.batch.clear();
        if !self.batch.push(frame) {
            return tracing::error!(octets = frame.len(), "an agreement frame is too long");
        }
        self.witness.look();
        self.witness.line(Way::Transmitted, self.batch.frames());
        for _ in 0..TRIES {
            match self.line.transmit(&mut self.batch) {
                Ok(1..) => return,
                Ok(0) => std::thread::sleep(Duration::from_micros(20)),
                Err(error) => return tracing::debug!(%error, "an agreement frame was not sent"),
            }
        }
    }
}
