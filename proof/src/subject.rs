//! A batch of frames and the octets behind them, so that both checks call the door as its users do.

use qloak_cipher::{Open, Seal, SuiteKey};

/// Frames whose data, AAD and tags lie in places that do not move between two rounds.
pub(crate) struct Frames {
    /// Plaintext or ciphertext of each.
    pub(crate) data: Vec<Vec<u8>>,
    /// The tags.
    pub(crate) tags: Vec<Vec<u8>>,
    aad: Vec<Vec<u8>>,
}

impl Frames {
    /// Frames of these lengths, of zeros. AAD are as long as those of SecTAGs, and some that are not.
    pub(crate) fn new(octets: &[usize], tag_octets: usize) -> Self {
        Self {
            data: octets.iter().map(|octets| vec![0; *octets]).collect(),
            tags: vec![vec![0; tag_octets]; octets.len()],
            aad: [20, 28, 0, 37]
                .into_iter()
                .cycle()
                .map(|octets| vec![0x0a; octets])
                .take(octets.len())
                .collect(),
        }
    }

    /// The batch to seal.
    pub(crate) fn seals(&mut self) -> Vec<Seal<'_>> {
        let parts = self.data.iter_mut().zip(&mut self.tags).zip(&self.aad);
        parts
            .enumerate()
            .map(|(at, ((data, tag), aad))| Seal {
                nonce: nonce(at),
                aad,
                data,
                tag,
            })
            .collect()
    }

    /// The batch to open.
    pub(crate) fn opens(&mut self) -> Vec<Open<'_>> {
        let parts = self.data.iter_mut().zip(&self.tags).zip(&self.aad);
        parts
            .enumerate()
            .map(|(at, ((data, tag), aad))| Open {
                nonce: nonce(at),
                aad,
                data,
                tag,
                valid: false,
            })
            .collect()
    }
}

/// Seals.
#[inline(never)]
pub(crate) fn seal(key: &SuiteKey, batch: &mut [Seal<'_>]) {
    key.seal(batch).expect("lengths and nonces are right");
}

/// Opens.
#[inline(never)]
pub(crate) fn open(key: &SuiteKey, batch: &mut [Open<'_>]) {
    key.open(batch).expect("lengths are right");
}

fn nonce(at: usize) -> [u8; 12] {
    let mut nonce = [0x4e; 12];
    nonce[11] = at as u8;
    nonce
}
