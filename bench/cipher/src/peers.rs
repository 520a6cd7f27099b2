//! The libraries that ours stands beside, in the same run on the same frames.
//!
//! Rust ones are linked into this program; those in C are loaded when it starts, so that nothing needs
//! them to build and one that is absent is only said to be so. Each is used in the quickest way that
//! its documentation offers for frames: key set up once, only the nonce new, in place where it can.

use qloak_cipher::Suite;

use crate::party::Party;

mod aws_lc;
mod botan;
mod gcrypt;
mod ipsec_mb;
mod load;
mod nettle;
mod openssl;
mod ring;
mod rustcrypto;

/// A library of somebody else.
pub(crate) trait Peer {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its version, for the record.
    fn version(&self) -> String;
    /// How it is called, where that costs it something or helps it.
    fn manner(&self) -> &'static str;
    /// Its key for a suite; None where it has not that suite.
    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>>;
}

/// One that was to be loaded and could not be.
pub(crate) struct Absent {
    pub(crate) name: &'static str,
    pub(crate) why: String,
}

/// All that a filter lets through, and those of them that are not here.
pub(crate) fn find(wanted: impl Fn(&str) -> bool) -> (Vec<Box<dyn Peer>>, Vec<Absent>) {
    type Find = fn() -> Result<Box<dyn Peer>, String>;
    let all: [(&'static str, Find); 8] = [
        (aws_lc::NAME, || Ok(Box::new(aws_lc::AwsLc))),
        (ring::NAME, || Ok(Box::new(ring::Ring))),
        (rustcrypto::NAME, || Ok(Box::new(rustcrypto::RustCrypto))),
        (openssl::NAME, openssl::find),
        (gcrypt::NAME, gcrypt::find),
        (botan::NAME, botan::find),
        (ipsec_mb::NAME, ipsec_mb::find),
        (nettle::NAME, nettle::find),
    ];
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    for (name, find) in all {
        if !wanted(name) {
            continue;
        }
        match find() {
            Ok(peer) => here.push(peer),
            Err(why) => absent.push(Absent { name, why }),
        }
    }
    (here, absent)
}

/// The first counter block of CTR here: the nonce and a counter that begins at 1 (RFC 3686, 4).
#[inline]
fn counter_block(nonce: [u8; 12]) -> [u8; 16] {
    let mut block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    block[..12].copy_from_slice(&nonce);
    block
}

/// The version of a crate that this program was built with, as `Cargo.lock` has it.
fn locked_version(name: &str) -> String {
    let lock = include_str!("../../../Cargo.lock");
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = \""))
        .and_then(|rest| rest.strip_suffix('"'));
    version.unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_wants_none_finds_none() {
        let (here, absent) = find(|_| false);
        assert!(here.is_empty() && absent.is_empty());
    }

    #[test]
    fn versions_of_linked_crates_come_from_the_lock() {
        assert!(locked_version("ring").starts_with("0."));
        assert_eq!(locked_version("no-such-crate"), "unknown");
    }
}
