//! A silent line and a forger who says hello each second with a key that nobody has.

use qloak_api::{ChannelNumber, KeyId, Limits, MacAddress};
use qloak_cipher::suite::{SUITES, Suite};
use qloak_node::key_handler::*;

const A: [u8; 6] = [2, 0x51, 0x4C, 0, 0, 0x0A];
const B: [u8; 6] = [2, 0x51, 0x4C, 0, 0, 0x0B];

fn hello(n: u128) -> Vec<u8> {
    let mut f = Vec::new();
    f.extend(A);
    f.extend(B);
    f.extend([0x88, 0xB5, 1, 1, 0, 0]);
    f.extend([0; 16]);
    f.extend([9; 16]);
    f.extend(n.to_be_bytes());
    f.extend([0; 32]);
    let len = (f.len() - 14) as u16;
    f[16..18].copy_from_slice(&len.to_be_bytes());
    f
}

#[test]
fn forged_hellos_do_not_keep_an_honest_one_out_for_good() {
    let mut h = KeyHandler::new(KeyHandlerConfig {
        address: MacAddress(A),
        peer_address: MacAddress(B),
        sae_id: "node-a".parse().unwrap(),
        peer_sae_id: "node-b".parse().unwrap(),
        ram_slots: 32,
        fill_keys: 8,
        keys_per_request: 4,
        channels: vec![AgreeChannel {
            number: ChannelNumber::try_from(1).unwrap(),
            suite: Suite::by_name("aes-256-gcm").unwrap(),
            limits: Limits::default(),
            xpn: true,
            carriage: qloak_api::Carriage::Transparent,
        }],
        offered: SUITES.iter().filter(|s| !s.hazmat).collect(),
        boot: [7; 16],
        timings: Timings::default(),
    })
    .ok()
    .unwrap();
    let mut actions = Vec::new();
    let mut fetches = 0u32;
    for second in 0..4000u64 {
        let now = second * 1_000_000_000;
        h.handle(
            now,
            Event::Frame(&hello(1000 + second as u128)),
            &mut actions,
        );
        for a in std::mem::take(&mut actions) {
            if let Action::Fetch { request, key_ids } = a {
                fetches += 1;
                assert_eq!(key_ids, [KeyId((1000 + second as u128).to_be_bytes())]);
                h.handle(
                    now + 1000,
                    Event::Fetched {
                        request,
                        result: Err(SourceFailure::Refused("no".into())),
                    },
                    &mut Vec::new(),
                );
            }
        }
    }
    // A day of peace, then an honest hello.
    let mut asked = false;
    for copy in 0..100u64 {
        h.handle(
            (100_000 + copy) * 1_000_000_000,
            Event::Frame(&hello(1)),
            &mut actions,
        );
        asked |= actions.drain(..).any(|a| matches!(a, Action::Fetch { .. }));
    }
    assert!(
        fetches > 1100,
        "the flood cost {fetches} requests; it should cost one a second"
    );
    assert!(asked, "the honest hello was never asked for at the KME");
}
