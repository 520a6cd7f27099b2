//! Nobody is measured who does not do the same work: each party seals some frames as our lowest level
//! does, octet for octet, opens them again, and refuses a forged one.

use qloak_cipher::{Open, Seal, Suite, SuiteKey};

use crate::{frames::nonce, limits::AAD_OCTETS, party::Party};

/// Lengths around the edges of blocks and of the groups that wide code works in.
const LENGTHS: [usize; 12] = [1, 15, 16, 17, 64, 65, 127, 300, 570, 1420, 1421, 4100];

struct Frame {
    nonce: [u8; 12],
    data: Vec<u8>,
    tag: Vec<u8>,
}

/// What the party does otherwise, if anything.
pub(crate) fn difference(
    suite: &Suite,
    reference: &mut SuiteKey,
    party: &mut dyn Party,
) -> Option<String> {
    let plain = frames(suite);
    let aad: Vec<u8> = (0..AAD_OCTETS).map(|n| n as u8).collect();
    let (mut wanted, mut found) = (frames(suite), frames(suite));
    Party::seal(reference, &mut seals(&mut wanted, &aad));
    party.seal(&mut seals(&mut found, &aad));
    for (wanted, found) in wanted.iter().zip(&found) {
        let octets = wanted.data.len();
        if wanted.data != found.data {
            return Some(format!("another ciphertext for {octets} octets"));
        }
        if wanted.tag != found.tag {
            return Some(format!("another tag for {octets} octets"));
        }
    }

    let mut opens = opens(&mut found, &aad);
    party.open(&mut opens);
    let all_valid = opens.iter().all(|open| open.valid);
    drop(opens);
    if !all_valid {
        return Some("it does not open what it sealed".into());
    }
    if plain
        .iter()
        .zip(&found)
        .any(|(plain, found)| plain.data != found.data)
    {
        return Some("it opens to something else".into());
    }

    if suite.authenticates() {
        for frame in &mut wanted {
            frame.tag[7] ^= 0x10;
        }
        let mut forged = self::opens(&mut wanted, &aad);
        party.open(&mut forged);
        if forged.iter().any(|open| open.valid) {
            return Some("it opens a forged frame".into());
        }
    }
    None
}

fn frames(suite: &Suite) -> Vec<Frame> {
    let frame = |(number, octets): (usize, usize)| Frame {
        nonce: nonce(0xfe + number as u64),
        data: (0..octets).map(|n| (n * 31 + number) as u8).collect(),
        tag: vec![0; suite.tag_octets],
    };
    LENGTHS.into_iter().enumerate().map(frame).collect()
}

fn seals<'a>(frames: &'a mut [Frame], aad: &'a [u8]) -> Vec<Seal<'a>> {
    let seal = |frame: &'a mut Frame| Seal {
        nonce: frame.nonce,
        aad,
        data: &mut frame.data,
        tag: &mut frame.tag,
    };
    frames.iter_mut().map(seal).collect()
}

fn opens<'a>(frames: &'a mut [Frame], aad: &'a [u8]) -> Vec<Open<'a>> {
    let open = |frame: &'a mut Frame| Open {
        nonce: frame.nonce,
        aad,
        data: &mut frame.data,
        tag: &frame.tag,
        valid: false,
    };
    frames.iter_mut().map(open).collect()
}

#[cfg(test)]
mod tests {
    use qloak_cipher::Level;

    use super::*;
    use crate::peers;

    const KEY: [u8; 32] = [0x51; 32];

    fn ours(suite: &'static Suite) -> SuiteKey {
        SuiteKey::new(suite, &KEY[..suite.key_octets], Level::Soft).expect("a key of the suite")
    }

    #[test]
    fn every_peer_that_is_here_does_the_same_work() {
        let (peers, _) = peers::find(|_| true);
        for suite in &qloak_cipher::suite::SUITES {
            for peer in &peers {
                if let Some(mut party) = peer.party(suite, &KEY[..suite.key_octets]) {
                    let difference = difference(suite, &mut ours(suite), party.as_mut());
                    assert_eq!(difference, None, "{} {}", suite.name, peer.name());
                }
            }
        }
    }

    #[test]
    fn another_key_is_found_out() {
        let suite = Suite::by_name("aes-256-gcm").expect("in the table");
        let mut other = SuiteKey::new(suite, &[7; 32], Level::Soft).expect("a key");
        let difference = difference(suite, &mut ours(suite), &mut other).expect("it differs");
        assert!(difference.contains("another ciphertext"), "{difference}");
    }

    #[test]
    fn one_that_believes_everything_is_found_out() {
        struct Trusting(SuiteKey);
        impl Party for Trusting {
            fn seal(&mut self, batch: &mut [Seal<'_>]) {
                Party::seal(&mut self.0, batch);
            }
            fn open(&mut self, batch: &mut [Open<'_>]) {
                Party::open(&mut self.0, batch);
                batch.iter_mut().for_each(|open| open.valid = true);
            }
        }
        let suite = Suite::by_name("aes-128-gcm").expect("in the table");
        let mut trusting = Trusting(ours(suite));
        let difference = difference(suite, &mut ours(suite), &mut trusting).expect("it differs");
        assert!(difference.contains("forged"), "{difference}");
    }
}
