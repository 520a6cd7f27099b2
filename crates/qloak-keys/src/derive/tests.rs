//! Derivations are independent of one another, and stay what they are.

use super::*;

fn key(octet: u8) -> Key {
    Key::from_slice(&[octet; 32]).unwrap_or_else(|e| panic!("{e}"))
}

fn sae(name: &str) -> SaeId {
    name.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn sci(text: &str) -> Sci {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The same numbers come from an independent program:
/// `python3 docs/key-agreement-vectors.py` (hmac and hashlib only).
#[test]
fn known_answers_of_an_independent_program() {
    let material = sak(
        &key(7),
        sci("02:51:4c:00:00:0a/1"),
        SuiteId(0x0080_C200_0100_0004),
        32,
    );
    assert_eq!(hex(material.sak.as_slice()), SAK);
    assert_eq!(hex(&material.salt), SALT);
    let (a, b) = (sae("node-a"), sae("node-b"));
    let parties = Parties {
        initiator: &a,
        target: &b,
    };
    let control = control(&key(7), parties, &[1; 16], &[2; 16]);
    assert_eq!(hex(&control.tag), TAG);
    assert_eq!(hex(&control.forward.tag(&[b"sync"])), FORWARD);
    let announced = Announced {
        sci: sci("02:51:4c:00:00:0a/1"),
        an: An::from_low_bits(2),
        suite: SuiteId(4),
        key_id: KeyId([9; 16]),
        change: 3,
    };
    let proof = ready_proof(&key(7), announced);
    assert!(verify_ready(&key(7), announced, &proof) && !verify_ready(&key(8), announced, &proof));
    assert_eq!(hex(&proof), PROOF);
}

const SAK: &str = "1932ea3daf8202ed03712880afec653df9d8f12cf802ad021abf74840dfdda07";
const SALT: &str = "8987511fe8a51216e2af5094";
const TAG: &str = "ce0e753176d3a72e";
const FORWARD: &str = "a3094def83c0954de6226fcaa87acb7d151179572ff4d84efaf6b058978d42a5";
const PROOF: &str = "d2d1c56b5a064de6b7b7dea8fe1fc91d21a85764a9232a3ea6cbb01da61df984";

#[test]
fn each_part_of_the_context_counts() {
    let sci_a = sci("02:51:4c:00:00:0a/1");
    let base = sak(&key(1), sci_a, SuiteId(4), 32);
    let others = [
        sak(&key(2), sci_a, SuiteId(4), 32),
        sak(&key(1), sci("02:51:4c:00:00:0a/2"), SuiteId(4), 32),
        sak(&key(1), sci_a, SuiteId(5), 32),
    ];
    for other in &others {
        assert!(!base.sak.same_as(&other.sak));
        assert_ne!(base.salt, other.salt);
    }
    // A shorter SAK is no prefix of a longer one.
    let short = sak(&key(1), sci_a, SuiteId(4), 16);
    assert_ne!(short.sak.as_slice(), &base.sak.as_slice()[..16]);
    assert_eq!(sak(&key(1), sci_a, SuiteId(4), 0).sak.octets(), 0);
}

#[test]
fn the_names_of_the_ends_cannot_be_shifted_into_one_another() {
    let names = [sae("ab"), sae("c"), sae("a"), sae("bc")];
    let one = hello(
        &key(1),
        Parties {
            initiator: &names[0],
            target: &names[1],
        },
    );
    let two = hello(
        &key(1),
        Parties {
            initiator: &names[2],
            target: &names[3],
        },
    );
    assert_ne!(one.tag(&[b"x"]), two.tag(&[b"x"]));
}

#[test]
fn a_tag_verifies_only_under_its_key_and_text() {
    let (a, b) = (sae("node-a"), sae("node-b"));
    let parties = Parties {
        initiator: &a,
        target: &b,
    };
    let mac = hello(&key(1), parties);
    let tag = mac.tag(&[b"one", b"two"]);
    assert!(mac.verify(&[b"onetwo"], &tag));
    assert!(!mac.verify(&[b"onetwp"], &tag));
    assert!(!welcome(&key(1), parties).verify(&[b"onetwo"], &tag));
}
