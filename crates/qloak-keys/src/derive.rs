//! Everything that is ever derived from a key, each with its own label.
//!
//! HKDF (RFC 5869) over SHA-512, so that a key of up to 512 bits loses nothing, with the empty salt:
//! keys of a KME are uniform already, and the context goes into `info`. Each `info` is the text
//! `qloak 1 `, the label, and then each part of the context behind its length (u16, big endian). Two
//! derivations with different labels or contexts are therefore independent, and no choice of names
//! can make one context read as another. MACs are HMAC-SHA-256 with their whole 32 octets.
//!
//! ```text
//! key --+-- "sak"     SCI, suite, length -------> SAK, salt        one SA (secy)
//!       +-- "hello"   both SAE IDs -------------> MAC key          first announce of a link
//!       +-- "welcome" both SAE IDs -------------> MAC key          its answer
//!       +-- "control" both SAE IDs, both starts > tag, MAC keys    all later agreement frames
//!       +-- "ready"   SCI, AN, suite, key ID, change -> proof      possession of the next key
//! ```

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use qloak_api::{An, KeyId, SaeId, Sci, SuiteId};
use sha2::{Sha256, Sha512};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{Key, limits};

/// Octets of a MAC or a proof.
pub const MAC_OCTETS: usize = 32;

/// What an SA is made of: the SAK in the length that its suite wants, and the salt of its nonces
/// (IEEE 802.1AE-2018, 14.7: 96 bits).
pub struct SakMaterial {
    /// The key of the SA.
    pub sak: Key,
    /// The salt of its nonces; not used by a suite with 32-bit PNs.
    pub salt: [u8; 12],
}

impl Drop for SakMaterial {
    fn drop(&mut self) {
        self.salt.zeroize();
    }
}

/// A key of HMAC-SHA-256.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct MacKey([u8; 32]);

/// The two ends of a control association, by their SAE IDs.
#[derive(Clone, Copy)]
pub struct Parties<'a> {
    /// The node that takes the key and announces it.
    pub initiator: &'a SaeId,
    /// The node that fetches it and answers.
    pub target: &'a SaeId,
}

/// What both ends of a control association hold once they share its key.
pub struct ControlKeys {
    /// Names the association on the line; tells nothing about its keys.
    pub tag: [u8; 8],
    /// Authenticates what the initiator says.
    pub forward: MacKey,
    /// Authenticates what the target answers.
    pub answer: MacKey,
}

/// The SAK and salt of the SA that `key` serves on the SC `sci` under `suite`.
/// `octets` is the key length of the suite, 0 to 64 (more is cut to 64: no suite has it).
pub fn sak(key: &Key, sci: Sci, suite: SuiteId, octets: usize) -> SakMaterial {
    let octets = octets.min(limits::SAK_OCTETS_MAX);
    let length = (octets as u64).to_be_bytes();
    let mut both = Zeroizing::new([0; limits::SAK_OCTETS_MAX + 12]);
    let context: [&[u8]; 3] = [&sci.to_octets(), &suite.0.to_be_bytes(), &length];
    expand(key, b"sak", &context, &mut both[..octets + 12]);
    let mut salt = [0; 12];
    salt.copy_from_slice(&both[octets..octets + 12]);
    let sak = Key::derived(octets, |room| room.copy_from_slice(&both[..octets]));
    SakMaterial { sak, salt }
}

/// The MAC key of the first announce of a link, made of the announced key itself.
pub fn hello(key: &Key, parties: Parties<'_>) -> MacKey {
    mac_key(key, b"hello", &parties.context())
}

/// The MAC key of the answer to the first announce.
pub fn welcome(key: &Key, parties: Parties<'_>) -> MacKey {
    mac_key(key, b"welcome", &parties.context())
}

/// The keys of a control association. Both starts go in, so that neither end alone decides them and
/// a recorded association means nothing to a node that has restarted.
pub fn control(
    key: &Key,
    parties: Parties<'_>,
    initiator_boot: &[u8; 16],
    target_boot: &[u8; 16],
) -> ControlKeys {
    let [initiator, target] = parties.context();
    let context: [&[u8]; 4] = [initiator, target, initiator_boot, target_boot];
    let mut tag = [0; 8];
    expand(key, b"control tag", &context, &mut tag);
    ControlKeys {
        tag,
        forward: mac_key(key, b"control forward", &context),
        answer: mac_key(key, b"control answer", &context),
    }
}

/// The SA that a proof of possession is about: what was announced, word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The SC that it belongs to.
    pub sci: Sci,
    /// Its number.
    pub an: An,
    /// Its suite, in the form of the channel's PNs.
    pub suite: SuiteId,
    /// The name of its key.
    pub key_id: KeyId,
    /// The number of the change on its channel.
    pub change: u64,
}

/// The proof that a target holds `key` and will make of it the very SA that was announced.
pub fn ready_proof(key: &Key, sa: Announced) -> [u8; MAC_OCTETS] {
    mac_key(key, b"ready", &[]).tag(&[&sa.to_octets()])
}

/// Whether `proof` is that of [`ready_proof`], in constant time.
pub fn verify_ready(key: &Key, sa: Announced, proof: &[u8; MAC_OCTETS]) -> bool {
    mac_key(key, b"ready", &[]).verify(&[&sa.to_octets()], proof)
}

impl Announced {
    /// SCI 8, AN 1, suite 8, key ID 16, change 8; big endian.
    fn to_octets(self) -> [u8; 41] {
        let mut octets = [0; 41];
        octets[..8].copy_from_slice(&self.sci.to_octets());
        octets[8] = self.an.number();
        octets[9..17].copy_from_slice(&self.suite.0.to_be_bytes());
        octets[17..33].copy_from_slice(&self.key_id.0);
        octets[33..].copy_from_slice(&self.change.to_be_bytes());
        octets
    }
}

impl Parties<'_> {
    fn context(&self) -> [&[u8]; 2] {
        [
            self.initiator.as_str().as_bytes(),
            self.target.as_str().as_bytes(),
        ]
    }
}

impl MacKey {
    /// HMAC-SHA-256 over the parts one after the other. The caller's parts must read one way only.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; MAC_OCTETS] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is that of the parts, in constant time.
    pub fn verify(&self, parts: &[&[u8]], tag: &[u8; MAC_OCTETS]) -> bool {
        self.mac(parts).verify(&(*tag).into()).is_ok()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block(&self.0));
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

/// RFC 2104, 2: a key shorter than the block is filled up with zeros, which is what HMAC does itself
/// with 32 octets; done here so that the constructor that cannot fail is used.
fn block(key: &[u8; 32]) -> hmac::digest::Key<Hmac<Sha256>> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..32].copy_from_slice(key);
    block
}

fn mac_key(key: &Key, label: &[u8], context: &[&[u8]]) -> MacKey {
    let mut octets = MacKey([0; 32]);
    expand(key, label, context, &mut octets.0);
    octets
}

pub(crate) fn expand(key: &Key, label: &[u8], context: &[&[u8]], out: &mut [u8]) {
    expand_octets(key.as_slice(), label, context, out);
}

pub(crate) fn expand_octets(ikm: &[u8], label: &[u8], context: &[&[u8]], out: &mut [u8]) {
    let mut info = b"qloak 1 ".to_vec();
    for part in std::iter::once(&label).chain(context) {
        // No part is longer than an SAE ID (128 octets), so the length always fits.
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        info.extend_from_slice(&length.to_be_bytes());
        info.extend_from_slice(part);
    }
    let expanded = Hkdf::<Sha512>::new(None, ikm).expand(&info, out);
    // RFC 5869, 2.3: only more than 255 hashes (16320 octets) fail; no caller asks for over 76.
    debug_assert!(expanded.is_ok());
}

#[cfg(test)]
mod tests;
