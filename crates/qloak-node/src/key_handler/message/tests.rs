//! Messages read back, and nothing else reads.

use proptest::prelude::*;
use qloak_api::SaeId;
use qloak_keys::{
    Key,
    derive::{self, Parties},
};

use super::*;

const OWN: MacAddress = MacAddress([2, 0x51, 0x4c, 0, 0, 0x0a]);
const PEER: MacAddress = MacAddress([2, 0x51, 0x4c, 0, 0, 0x0b]);

fn mac_key(octet: u8) -> MacKey {
    let sae = |name: &str| name.parse::<SaeId>().unwrap_or_else(|e| panic!("{e}"));
    let key = Key::from_slice(&[octet; 32]).unwrap_or_else(|e| panic!("{e}"));
    let (a, b) = (sae("node-a"), sae("node-b"));
    derive::hello(
        &key,
        Parties {
            initiator: &a,
            target: &b,
        },
    )
}

fn sealed(body: &Body) -> Vec<u8> {
    let envelope = Envelope {
        to: OWN,
        from: PEER,
        tag: [7; 8],
        counter: 99,
    };
    write(envelope, body, &mac_key(1))
}

fn bodies() -> impl Strategy<Value = Body> {
    let ids = |most| prop::collection::vec(any::<[u8; 16]>().prop_map(KeyId), 0..=most);
    let entry = (any::<u16>(), any::<u8>(), any::<u64>(), any::<u64>()).prop_map(
        |(channel, an, suite, change)| SyncChannel {
            channel,
            an: An::from_low_bits(an),
            suite: SuiteId(suite),
            change,
        },
    );
    prop_oneof![
        any::<([u8; 16], [u8; 16])>().prop_map(|(boot, id)| Body::Hello(Hello {
            boot,
            key_id: KeyId(id)
        })),
        any::<([u8; 16], [u8; 16], [u8; 16])>().prop_map(|(a, id, b)| Body::Welcome(Welcome {
            initiator_boot: a,
            key_id: KeyId(id),
            target_boot: b
        })),
        (
            any::<(u16, u8, u64, [u8; 8], u64, u64, [u8; 16], bool)>(),
            ids(limits::AHEAD_MAX)
        )
            .prop_map(
                |((channel, an, suite, sci, change, encoding, id, aggregated), ahead)| {
                    Body::Announce(Announce {
                        channel,
                        an: An::from_low_bits(an),
                        carriage: if aggregated {
                            Carriage::Aggregated
                        } else {
                            Carriage::Transparent
                        },
                        suite: SuiteId(suite),
                        sci: Sci::from_octets(sci),
                        change,
                        encoding,
                        key_id: KeyId(id),
                        ahead,
                    })
                }
            ),
        any::<(u16, u8, u64, [u8; 16], [u8; 32])>().prop_map(|(channel, an, change, id, proof)| {
            Body::Ready(Ready {
                channel,
                an: An::from_low_bits(an),
                change,
                key_id: KeyId(id),
                proof,
            })
        }),
        any::<(u16, u64, [u8; 16])>().prop_map(|(channel, change, id)| Body::Refuse(Refuse {
            channel,
            reason: Reason::NoSa,
            change,
            key_id: KeyId(id)
        })),
        (
            any::<[u8; 8]>(),
            prop::collection::vec(entry, 0..=limits::SYNC_CHANNELS_MAX),
            ids(limits::AHEAD_MAX)
        )
            .prop_map(|(hears, channels, ahead)| Body::Sync(Sync {
                hears,
                channels,
                ahead
            })),
    ]
}

proptest! {
    #[test]
    fn every_message_reads_back_and_fits_a_standard_frame(body in bodies()) {
        let frame = sealed(&body);
        prop_assert!((60..=limits::FRAME_OCTETS_MAX).contains(&frame.len()));
        let read = Received::read(&frame, OWN, PEER);
        let read = read.map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
        prop_assert_eq!(&read.body, &body);
        prop_assert_eq!((read.tag, read.counter), ([7; 8], 99));
        prop_assert!(read.authentic(&mac_key(1)));
        prop_assert!(!read.authentic(&mac_key(2)));
    }

    #[test]
    fn one_changed_octet_is_noticed(body in bodies(), at: prop::sample::Index, bit in 0..8u8) {
        let mut frame = sealed(&body);
        let length = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let at = at.index(length);
        frame[at] ^= 1 << bit;
        if let Ok(read) = Received::read(&frame, OWN, PEER) {
            prop_assert!(!read.authentic(&mac_key(1)));
        }
    }

    #[test]
    fn a_truncated_frame_is_no_message(body in bodies(), at: prop::sample::Index) {
        let frame = sealed(&body);
        let length = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let short = &frame[..at.index(length)];
        prop_assert!(Received::read(short, OWN, PEER).is_err());
    }

    #[test]
    fn any_octets_are_read_without_panic(octets in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Received::read(&octets, OWN, PEER);
        let mut frame = sealed(&Body::Hello(Hello { boot: [0; 16], key_id: KeyId([0; 16]) }));
        frame.truncate(15);
        frame.extend_from_slice(&octets);
        let _ = Received::read(&frame, OWN, PEER);
    }
}

#[test]
fn strangers_and_other_versions_are_told_apart() {
    let hello = Body::Hello(Hello {
        boot: [0; 16],
        key_id: KeyId([0; 16]),
    });
    let frame = sealed(&hello);
    assert_eq!(
        Received::read(&frame, PEER, OWN).err(),
        Some(Unread::Stranger)
    );
    for (at, octet) in [(12, 0x88), (13, 0xb6), (14, 2), (15, 0), (15, 7), (16, 255)] {
        let mut other = frame.clone();
        other[at] = octet;
        if other != frame {
            assert_eq!(
                Received::read(&other, OWN, PEER).err(),
                Some(Unread::Malformed)
            );
        }
    }
    let mut long = frame;
    long.resize(limits::FRAME_OCTETS_MAX + 1, 0);
    assert_eq!(
        Received::read(&long, OWN, PEER).err(),
        Some(Unread::Malformed)
    );
}
