//! The table of cipher suites: what may be named in a configuration and on the line.
//!
//! A suite is a cipher, a mode and a tag length, with a name for people and an identifier for the
//! line. Ids of the four standard suites are those of IEEE 802.1AE-2018, table 14-1; ours carry a
//! locally administered OUI, 02-51-4C ("QL"):
//!
//! ```text
//!   octet   0  1  2   3  4  5   6   7
//!          02 51 4C  00 00 01  MM  CC      00 00 01: first version of this table
//!                               |   |
//!                               |   cipher: 1k AES, 2k Camellia, 3k Serpent (k = 1, 2, 3 for
//!                               |           128, 192, 256 bits), 40 ChaCha20, 00 none
//!                               mode: 01 GCM, 02 OCB3, 03 Poly1305; hazmat from 80 up:
//!                                     81 CTR, 82 raw block, 83 XOR, 84 plain
//! ```
//!
//! The form of the PN is the channel's matter, not the suite's: GCM-AES carries the identifier of
//! its XPN form and, beside it, that of its 32-bit form.

use crate::limits::TAG_OCTETS;

mod table;

pub use table::SUITES;

/// How a cipher is used on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Galois/counter mode (SP 800-38D), 96-bit nonce.
    Gcm,
    /// Offset codebook mode, third version (RFC 7253), 96-bit nonce.
    Ocb3,
    /// ChaCha20 with Poly1305 (RFC 8439).
    Poly1305,
    /// Counter mode alone (SP 800-38A, counter block of RFC 3686). Does not authenticate.
    Ctr,
    /// The key over the data, repeated. Hides nothing once a plaintext is known.
    Xor,
    /// The data as they are.
    Plain,
    /// Each block alone (ECB), as the seeds do it. Equal blocks stay equal.
    RawBlock,
}

impl Mode {
    /// The name that people read.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Gcm => "GCM",
            Mode::Ocb3 => "OCB3",
            Mode::Poly1305 => "Poly1305",
            Mode::Ctr => "CTR",
            Mode::Xor => "XOR",
            Mode::Plain => "plain",
            Mode::RawBlock => "raw block",
        }
    }
}

/// One entry of the table. Public facts only: no key, no state.
#[derive(Debug, PartialEq, Eq)]
pub struct Suite {
    /// The name that people use, such as `aes-256-gcm`.
    pub name: &'static str,
    /// The identifier on the line; for GCM-AES that of its XPN form.
    pub id: u64,
    /// The identifier with 32-bit PNs, where a standard gives one.
    pub id_pn32: Option<u64>,
    /// The cipher, such as `AES-256`; `none` for XOR and plain.
    pub cipher: &'static str,
    /// The mode.
    pub mode: Mode,
    /// Octets of the SAK. XOR takes what it XORs; plain agrees a key all the same and ignores it,
    /// so that it runs through the same key agreement.
    pub key_octets: usize,
    /// Octets of the tag: 16, or 0 for a suite that does not authenticate.
    pub tag_octets: usize,
    /// True for a suite that does not authenticate. Off unless a node's configuration names it.
    pub hazmat: bool,
    /// True when another vendor's MACsec station understands its frames.
    pub macsec: bool,
    /// One sentence: what it gives, what it costs.
    pub about: &'static str,
}

impl Suite {
    /// The suite of this name, exactly as written in the table.
    pub fn by_name(name: &str) -> Option<&'static Suite> {
        SUITES.iter().find(|suite| suite.name == name)
    }

    /// The suite of this identifier, in either form of PN.
    pub fn by_id(id: u64) -> Option<&'static Suite> {
        SUITES
            .iter()
            .find(|suite| suite.id == id || suite.id_pn32 == Some(id))
    }

    /// True for a suite that authenticates: its tag has [`TAG_OCTETS`].
    pub const fn authenticates(&self) -> bool {
        self.tag_octets == TAG_OCTETS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn nineteen_suites_authenticate_and_twelve_are_hazmat() {
        assert_eq!(SUITES.iter().filter(|s| !s.hazmat).count(), 19);
        assert_eq!(SUITES.iter().filter(|s| s.hazmat).count(), 12);
        for suite in &SUITES {
            assert_eq!(suite.authenticates(), !suite.hazmat, "{}", suite.name);
            assert_eq!(suite.tag_octets, if suite.hazmat { 0 } else { 16 });
        }
    }

    #[test]
    fn names_and_identifiers_are_used_once() {
        let mut names = HashSet::new();
        let mut ids = HashSet::new();
        for suite in &SUITES {
            assert!(names.insert(suite.name), "{}", suite.name);
            assert!(ids.insert(suite.id), "{}", suite.name);
            if let Some(id) = suite.id_pn32 {
                assert!(ids.insert(id), "{}", suite.name);
            }
        }
    }

    #[test]
    fn every_suite_is_found_by_what_names_it() {
        for suite in &SUITES {
            assert_eq!(Suite::by_name(suite.name), Some(suite));
            assert_eq!(Suite::by_id(suite.id), Some(suite));
        }
        assert!(Suite::by_name("AES-256-GCM").is_none());
        assert!(Suite::by_name("").is_none());
        assert!(Suite::by_id(0).is_none());
    }

    /// IEEE 802.1AE-2018, table 14-1.
    #[test]
    fn the_standard_suites_have_their_standard_identifiers() {
        for (id, name) in [
            (0x0080_c200_0100_0001, "aes-128-gcm"),
            (0x0080_c200_0100_0002, "aes-256-gcm"),
            (0x0080_c200_0100_0003, "aes-128-gcm"),
            (0x0080_c200_0100_0004, "aes-256-gcm"),
        ] {
            assert_eq!(Suite::by_id(id).map(|s| s.name), Some(name));
        }
        assert!(SUITES.iter().all(|s| s.macsec == s.id_pn32.is_some()));
        assert_eq!(SUITES.iter().filter(|s| s.macsec).count(), 2);
    }

    #[test]
    fn our_identifiers_are_locally_administered_unicast() {
        for suite in SUITES.iter().filter(|s| !s.macsec) {
            assert_eq!(suite.id >> 16, 0x0251_4c00_0001, "{}", suite.name);
            assert_eq!((suite.id >> 56) & 0b11, 0b10, "{}", suite.name);
            assert_eq!(suite.id & 0x8000 != 0, suite.hazmat, "{}", suite.name);
        }
    }

    #[test]
    fn key_octets_say_what_the_name_says() {
        for suite in &SUITES {
            let bits = suite
                .name
                .split('-')
                .find_map(|word| word.parse::<usize>().ok());
            if let Some(bits) = bits.filter(|bits| *bits >= 128) {
                assert_eq!(suite.key_octets * 8, bits, "{}", suite.name);
            }
        }
    }
}
