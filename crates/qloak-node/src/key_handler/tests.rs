//! One key handler alone: bad configurations, bad KMEs, bad frames. Two of them on a line are tried in
//! `qloak-sim`.

use proptest::prelude::*;
use qloak_api::{An, Limits, MacAddress};
use qloak_cipher::suite::SUITES;
use qloak_keys::{Key, NamedKey};

use super::*;

const MS: u64 = 1_000_000;

fn channel(n: u16) -> ChannelNumber {
    ChannelNumber::try_from(n).unwrap_or_else(|e| panic!("{e}"))
}

fn suite(name: &str) -> &'static Suite {
    Suite::by_name(name).unwrap_or_else(|| panic!("no suite {name}"))
}

fn config() -> KeyHandlerConfig {
    let sae = |name: &str| name.parse().unwrap_or_else(|e| panic!("{e}"));
    KeyHandlerConfig {
        address: MacAddress([2, 0x51, 0x4C, 0, 0, 0x0A]),
        peer_address: MacAddress([2, 0x51, 0x4C, 0, 0, 0x0B]),
        sae_id: sae("node-a"),
        peer_sae_id: sae("node-b"),
        ram_slots: 32,
        fill_keys: 8,
        keys_per_request: 4,
        channels: vec![AgreeChannel {
            number: channel(1),
            suite: suite("aes-256-gcm"),
            limits: Limits::default(),
            xpn: true,
            carriage: qloak_api::Carriage::Transparent,
        }],
        offered: SUITES.iter().filter(|suite| !suite.hazmat).collect(),
        boot: [7; 16],
        timings: Timings::default(),
    }
}

fn refused(change: impl FnOnce(&mut KeyHandlerConfig)) -> Option<String> {
    let mut config = config();
    change(&mut config);
    KeyHandler::new(config)
        .err()
        .map(|refusal| refusal.to_string())
}

fn handler() -> KeyHandler {
    KeyHandler::new(config()).unwrap_or_else(|e| panic!("{e}"))
}

fn named(octet: u8, octets: usize) -> NamedKey {
    NamedKey {
        id: KeyId([octet; 16]),
        key: Key::from_slice(&vec![octet; octets]).unwrap_or_else(|e| panic!("{e}")),
    }
}

fn takes(actions: &[Action]) -> Vec<u64> {
    let take = |action: &Action| match action {
        Action::Take { request, .. } => Some(*request),
        _ => None,
    };
    actions.iter().filter_map(take).collect()
}

fn kinds(handler: &KeyHandler, now_ns: u64) -> Vec<AlarmKind> {
    let alarms = handler.state(now_ns).alarms;
    alarms.iter().map(|alarm| alarm.kind).collect()
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    assert_eq!(refused(|_| {}), None);
    type Change = fn(&mut KeyHandlerConfig);
    let cases: [(Change, &str); 6] = [
        (
            |c| c.ram_slots = 7,
            "the key RAM has 8 to 65536 slots; 7 were asked for",
        ),
        (
            |c| c.keys_per_request = 0,
            "0 keys were asked for; 1 to 128 can be loaded now",
        ),
        (
            |c| c.channels.push(c.channels[0]),
            "channel 1 is configured twice",
        ),
        (
            |c| c.offered.clear(),
            "suite aes-256-gcm is not offered by this node",
        ),
        (
            |c| {
                c.channels[0].suite = suite("aes-256-ocb");
                c.channels[0].xpn = false;
            },
            "suite aes-256-ocb needs 64-bit packet numbers; channel 1 has 32-bit ones (aes-128-gcm and aes-256-gcm can)",
        ),
        (
            |c| c.channels[0].limits.rekey_at_percent = 100,
            "limits must be at least 1 frame, 1 octet and 1 second, rekey_at_percent 1 to 99; given 4294967296 frames, 4398046511104 octets, 3600 s, 100 %",
        ),
    ];
    for (change, words) in cases {
        assert_eq!(refused(change).as_deref(), Some(words));
    }
}

#[test]
fn a_refused_command_changes_nothing() {
    let mut handler = handler();
    let mut actions = Vec::new();
    let before = handler.state(0);
    let hazmat = SUITES.iter().find(|suite| suite.hazmat);
    for command in [
        Command::Rekey {
            channel: channel(2),
        },
        Command::SetSuite {
            channel: channel(1),
            suite: hazmat.unwrap_or_else(|| panic!("no hazmat suite")),
        },
        Command::SetLimits {
            channel: channel(1),
            limits: Limits {
                frames: 0,
                ..Limits::default()
            },
        },
        Command::Resize { slots: 65_537 },
        Command::LoadOutbound { count: 0 },
        Command::LoadOutbound { count: 17 },
        Command::LoadInbound {
            key_ids: vec![KeyId([1; 16]); 2],
        },
    ] {
        let shown = format!("{command:?}");
        assert!(
            handler.command(0, command, &mut actions).is_err(),
            "{shown}"
        );
    }
    let after = handler.state(0);
    assert_eq!(after.channels, before.channels);
    assert_eq!(after.key_handler.ram_slots, 32);
}

#[test]
fn a_full_key_ram_is_called_full() {
    let words = |allowed| Refusal::Count { given: 1, allowed }.to_string();
    assert_eq!(
        words(0),
        "1 keys were asked for; the key RAM is full: none can be loaded now"
    );
    assert_eq!(words(9), "1 keys were asked for; 1 to 9 can be loaded now");
}

#[test]
fn keys_that_a_kme_should_not_give_are_not_taken() {
    let mut handler = handler();
    let mut actions = Vec::new();
    handler.handle(0, Event::Tick, &mut actions);
    let requests = takes(&actions);
    assert!(!requests.is_empty());
    let result = Ok(vec![named(1, 32), named(1, 32), named(2, 16), named(3, 32)]);
    let request = requests[0];
    handler.handle(MS, Event::Taken { request, result }, &mut actions);
    // One of the two good ones says hello already; the double and the short one are zeroised.
    let state = handler.state(MS).key_handler;
    assert_eq!((state.outbound_keys, state.zeroised), (1, 2));
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::Send(_)))
    );
    // An answer that nobody waits for.
    let result = Ok(vec![named(4, 32)]);
    handler.handle(2 * MS, Event::Taken { request, result }, &mut actions);
    let result = Ok(vec![named(5, 32)]);
    handler.handle(
        2 * MS,
        Event::Fetched {
            request: 999,
            result,
        },
        &mut actions,
    );
    let state = handler.state(2 * MS).key_handler;
    assert_eq!(
        (state.outbound_keys, state.inbound_keys, state.zeroised),
        (1, 0, 4)
    );
}

#[test]
fn fetched_keys_must_be_those_that_were_asked_for() {
    let mut handler = handler();
    let mut actions = Vec::new();
    let key_ids = vec![KeyId([1; 16]), KeyId([2; 16])];
    let load = Command::LoadInbound { key_ids };
    assert_eq!(handler.command(0, load.clone(), &mut actions), Ok(()));
    let twice = handler.command(0, load, &mut actions);
    assert_eq!(twice, Err(Refusal::KnownKey(KeyId([1; 16]))));
    let fetch = |action: &Action| match action {
        Action::Fetch { request, .. } => Some(*request),
        _ => None,
    };
    let Some(request) = actions.iter().find_map(fetch) else {
        panic!("nothing is fetched");
    };
    let result = Ok(vec![named(2, 32), named(9, 32)]);
    handler.handle(MS, Event::Fetched { request, result }, &mut actions);
    let state = handler.state(MS).key_handler;
    assert_eq!((state.inbound_keys, state.zeroised), (1, 1));
}

#[test]
fn one_unknown_key_does_not_spoil_the_others() {
    let mut handler = handler();
    let mut actions = Vec::new();
    let key_ids: Vec<KeyId> = (1..=3).map(|octet| KeyId([octet; 16])).collect();
    let load = Command::LoadInbound { key_ids };
    assert_eq!(handler.command(0, load, &mut actions), Ok(()));
    let fetches = |actions: &[Action]| -> Vec<(u64, Vec<KeyId>)> {
        let fetch = |action: &Action| match action {
            Action::Fetch { request, key_ids } => Some((*request, key_ids.clone())),
            _ => None,
        };
        actions.iter().filter_map(fetch).collect()
    };
    let request = fetches(&actions)[0].0;
    actions.clear();
    let result = Err(SourceFailure::Refused("not found".to_owned()));
    handler.handle(MS, Event::Fetched { request, result }, &mut actions);
    let alone = fetches(&actions);
    assert_eq!(
        alone.iter().map(|(_, ids)| ids.len()).collect::<Vec<_>>(),
        [1, 1, 1]
    );
    for (request, ids) in alone {
        let result = match ids[0].0[0] {
            2 => Err(SourceFailure::Refused("not found".to_owned())),
            octet => Ok(vec![named(octet, 32)]),
        };
        handler.handle(2 * MS, Event::Fetched { request, result }, &mut actions);
    }
    assert_eq!(handler.state(2 * MS).key_handler.inbound_keys, 2);
}

#[test]
fn a_kme_that_never_answers_is_an_alarm_and_requests_stay_few() {
    let mut handler = handler();
    let mut actions = Vec::new();
    for now_ms in 0..60_000 {
        handler.handle(now_ms * MS, Event::Tick, &mut actions);
    }
    assert!(kinds(&handler, 60_000 * MS).contains(&AlarmKind::KeySupply));
    // Ten seconds for each, and a pause after each.
    assert!(takes(&actions).len() < 12, "{}", takes(&actions).len());
    assert!(!handler.state(0).key_handler.kme_reachable);
    // The late answer of the last request is welcome.
    let Some(&request) = takes(&actions).last() else {
        panic!("nothing was taken");
    };
    let result = Ok((1..=4).map(|octet| named(octet, 32)).collect());
    handler.handle(60_000 * MS, Event::Taken { request, result }, &mut actions);
    assert!(!kinds(&handler, 60_000 * MS).contains(&AlarmKind::KeySupply));
}

#[test]
fn a_kme_that_is_empty_while_keys_wait_is_no_alarm() {
    let mut handler = handler();
    let empty = || SourceFailure::Empty("4 keys are asked for, 1 are stored".to_owned());
    let away = || SourceFailure::Unreachable("connection refused".to_owned());
    let mut fails = |from_ms: u64, first: bool, failure: &dyn Fn() -> SourceFailure| {
        let mut given = !first;
        for now_ms in from_ms..from_ms + 5000 {
            let mut actions = Vec::new();
            handler.handle(now_ms * MS, Event::Tick, &mut actions);
            let mut answered = 0;
            while let Some(request) = takes(&actions).get(answered).copied() {
                answered += 1;
                // The hello takes one of the first four.
                let keys = || Ok((1..=4).map(|octet| named(octet, 32)).collect());
                let result = if given { Err(failure()) } else { keys() };
                given = true;
                let event = Event::Taken { request, result };
                handler.handle(now_ms * MS, event, &mut actions);
            }
        }
        kinds(&handler, (from_ms + 5000) * MS).contains(&AlarmKind::KeySupply)
    };
    assert!(!fails(0, true, &empty), "three of eight keys wait");
    assert!(fails(5000, false, &away), "the KME is away");
    assert!(!fails(10_000, false, &empty), "it is there again");
}

#[test]
fn a_silent_peer_is_told_from_one_that_cannot_be_proven() {
    let mut handler = handler();
    let mut far = config();
    std::mem::swap(&mut far.address, &mut far.peer_address);
    std::mem::swap(&mut far.sae_id, &mut far.peer_sae_id);
    let mut far = KeyHandler::new(far).unwrap_or_else(|e| panic!("{e}"));
    let mut actions = Vec::new();
    far.handle(0, Event::Tick, &mut actions);
    let request = takes(&actions)[0];
    let result = Ok(vec![named(1, 32)]);
    far.handle(0, Event::Taken { request, result }, &mut actions);
    let send = |action: &Action| match action {
        Action::Send(frame) => Some(frame.clone()),
        _ => None,
    };
    let Some(hello) = actions.iter().find_map(send) else {
        panic!("it says no hello");
    };
    let mut stranger = hello.clone();
    stranger[11] ^= 0x80;
    let mut said = |now_ms: u64, frame: Option<&[u8]>| {
        let event = frame.map_or(Event::Tick, Event::Frame);
        handler.handle(now_ms * MS, event, &mut Vec::new());
        handler.handle((now_ms + 500) * MS, Event::Tick, &mut Vec::new());
        let alarms = handler.state((now_ms + 500) * MS).alarms;
        let silent = |alarm: &&qloak_api::manage::Alarm| alarm.kind == AlarmKind::PeerSilent;
        alarms.iter().find(silent).map(|alarm| alarm.text.clone())
    };
    assert_eq!(said(0, None), None);
    for (now_ms, frame, words) in [
        (1000, None, "node-b is not heard"),
        (2000, Some(&stranger), "none from 02:51:4c:00:00:0b to"),
        (3000, Some(&hello), "none is proven to be from node-b"),
        (9000, None, "node-b is not heard"),
    ] {
        let text = said(now_ms, frame.map(Vec::as_slice)).unwrap_or_default();
        assert!(text.contains(words), "{text}");
    }
    let supply = |handler: &KeyHandler| {
        let alarms = handler.state(0).alarms;
        let supply = alarms.iter().find(|a| a.kind == AlarmKind::KeySupply);
        supply.map(|alarm| alarm.text.clone()).unwrap_or_default()
    };
    for now_s in 10..40 {
        handler.handle(now_s * 1000 * MS, Event::Tick, &mut Vec::new());
    }
    let text = supply(&handler);
    assert!(
        text.ends_with("0 outbound keys wait; no channel has an SA yet"),
        "{text}"
    );
}

#[test]
fn it_wakes_in_time_and_not_all_the_time() {
    let mut handler = handler();
    let mut actions = Vec::new();
    handler.handle(0, Event::Tick, &mut actions);
    let (mut now_ns, mut rounds) = (0, 0);
    while now_ns < 1000 * MS {
        let wake_ns = handler.next_wake_ns();
        assert!(wake_ns > now_ns, "it would spin");
        now_ns = wake_ns;
        handler.handle(now_ns, Event::Tick, &mut actions);
        rounds += 1;
    }
    assert!((40..=120).contains(&rounds), "{rounds}");
}

fn events() -> impl Strategy<Value = (u8, Vec<u8>, u64, u64)> {
    let octets = prop::collection::vec(any::<u8>(), 0..200);
    (0..8_u8, octets, any::<u64>(), any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_event_panics_at_any_time(events in prop::collection::vec(events(), 0..60)) {
        let mut handler = handler();
        let mut actions = Vec::new();
        for (kind, octets, a, b) in events {
            let an = An::from_low_bits(a as u8);
            let number = channel(1 + (b % 3) as u16);
            let event = match kind {
                0 => Event::Tick,
                1 => Event::Frame(&octets),
                2 => {
                    let keys = octets.iter().map(|octet| named(*octet, 8 + usize::from(*octet % 64)));
                    Event::Taken { request: a % 16, result: Ok(keys.collect()) }
                }
                3 => Event::Fetched {
                    request: a % 16,
                    result: Err(SourceFailure::Refused("no".to_owned())),
                },
                4 => Event::Usage { channel: number, an, frames: a, octets: b },
                5 => Event::Heard { channel: number, an },
                6 => Event::Command(Command::LoadInbound {
                    key_ids: octets.iter().map(|octet| KeyId([*octet; 16])).collect(),
                }),
                _ => Event::Command(Command::HardReset),
            };
            handler.handle(a >> 4, event, &mut actions);
            let _ = handler.state(b);
        }
        for action in &actions {
            if let Action::Note(note) = action {
                prop_assert!(!note.to_string().is_empty());
            }
        }
    }
}
