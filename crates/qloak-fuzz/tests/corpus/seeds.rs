//! The inputs that a fuzzer begins with: for each target a few that reach what is worth reaching.
//!
//! An input is the choices that its target reads, one behind the other; the modules of `src` say in which
//! order.

/// Target, name, octets.
pub(crate) type Seed = (&'static str, String, Vec<u8>);

/// All of them.
pub(crate) fn all() -> Vec<Seed> {
    let seeds = [line(), mux(), agreement(), capture(), offload()];
    seeds.into_iter().flatten().collect()
}

fn named(target: &'static str, seeds: Vec<(&str, Vec<u8>)>) -> Vec<Seed> {
    let seed = |(name, octets): (&str, Vec<u8>)| (target, name.to_owned(), octets);
    seeds.into_iter().map(seed).collect()
}

fn line() -> Vec<Seed> {
    const VALIDATE: [u8; 1] = [11];
    // Who speaks (1: a peer that lies), and a line of 1506 octets.
    let speaker = |lies: u8| vec![lies, 250];
    let send = |client: u8, octets: u16| {
        let [a, b] = octets.to_be_bytes();
        vec![0, client - 1, a, b, 0]
    };
    let present = |at: u8| vec![3, at];
    let three: Vec<u8> = [send(1, 60), send(9, 14), send(10, 1200)].concat();
    let sent: Vec<u8> = [present(0), present(1), present(2)].concat();
    let record = |flags, client, sequence: &[u8], octets: &[u8]| -> Vec<u8> {
        let length = (octets.len() as u16).to_be_bytes();
        [&[flags, client][..], &length, sequence, octets].concat()
    };
    let lie = |records: &[Vec<u8>]| {
        let records = records.concat();
        [vec![9, records.len() as u8], records].concat()
    };
    let pieces = [
        lie(&[record(0x80, 2, &[0, 0, 0, 7], &[7; 20])]),
        lie(&[record(0x00, 2, &[0, 0, 0, 8], &[8; 20])]),
        lie(&[
            record(0x40, 2, &[0, 0, 0, 9], &[9; 20]),
            record(0xc0, 3, &[], &[3; 14]),
            vec![0; 9],
        ]),
    ];
    let bad = [
        lie(&[record(0xc0, 3, &[], &[3; 20]), vec![0xc0, 3, 0]]),
        lie(&[record(0xe0, 3, &[], &[3; 20])]),
        lie(&[record(0xc0, 9, &[], &[3; 20])]),
        lie(&[record(0x40, 3, &[0, 0, 0, 1], &[3; 20])]),
        lie(&[vec![0xc0, 3, 0xff, 0xff, 1, 2, 3]]),
    ];
    // Flags of a made-up frame: a SecTAG of channel 1, of channel 3, of none of ours; none at all.
    let made_up = |kind: u8| [&[8, kind, 0, 0, 0, 0, 1, 40][..], &[0x5a; 40]].concat();
    named(
        "line",
        vec![
            (
                "sound",
                [&speaker(0)[..], &three, &sent, &VALIDATE].concat(),
            ),
            (
                "replayed",
                [
                    &speaker(0)[..],
                    &three,
                    &sent,
                    &VALIDATE,
                    &sent,
                    &sent,
                    &VALIDATE,
                ]
                .concat(),
            ),
            (
                "changed",
                [
                    &speaker(0)[..],
                    &three,
                    // One bit; the AN; cut; lengthened with zeros; a tag of another channel.
                    &[4, 0, 0, 0x40, 30],
                    &[5, 1, 0, 2, 14, 0x2d],
                    &[4, 0, 0, 4, 40],
                    &[4, 1, 0, 5, 7],
                    &[7, 0, 2],
                    &VALIDATE,
                ]
                .concat(),
            ),
            (
                "rekeyed-in-pieces",
                [
                    &[0, 0][..],
                    &[0, 1, 4, 0, 1],
                    &[10, 0],
                    &send(2, 2000),
                    &[10, 0],
                    &send(3, 300),
                    &(0..20).flat_map(present).collect::<Vec<u8>>(),
                    &VALIDATE,
                ]
                .concat(),
            ),
            (
                "lying-pieces",
                [
                    &[speaker(1)][..],
                    &pieces,
                    &[present(0), present(1), present(2), VALIDATE.to_vec()],
                ]
                .concat()
                .concat(),
            ),
            (
                "lying-records",
                [
                    &[speaker(1)][..],
                    &bad,
                    &[(0..5).flat_map(present).collect(), VALIDATE.to_vec()],
                ]
                .concat()
                .concat(),
            ),
            (
                "made-up",
                [
                    speaker(0),
                    made_up(1 | 1 << 3),
                    made_up(1 | 3 << 3 | 1 << 1),
                    made_up(1),
                    vec![8, 0, 20],
                    [&[0; 12][..], &[0x88, 0xb5], &[1; 6]].concat(),
                    VALIDATE.to_vec(),
                ]
                .concat(),
            ),
        ],
    )
}

fn mux() -> Vec<Seed> {
    let line = |octets: u16| {
        let [a, b] = (octets - 256).to_be_bytes();
        vec![a, b, 0]
    };
    let give = |client: u8, octets: u16| {
        let [a, b] = octets.to_be_bytes();
        vec![0, client - 1, a, b]
    };
    let sizes = [14, 13, 64, 1400, 60, 1472, 1468, 9000, 16_000, 16_001, 100];
    let all = |sizes: &[u16]| -> Vec<u8> {
        let clients = (1..=64).cycle();
        let frames = clients.zip(sizes).map(|(client, size)| give(client, *size));
        frames.flatten().collect()
    };
    let ordinary = [line(1514), all(&sizes)].concat();
    let jumbo = [line(9018), all(&sizes)].concat();
    // On the shortest line 32 pieces carry 6464 octets and no more.
    let narrow = [line(256), all(&[6464, 6465, 14, 206, 205, 207, 400])].concat();
    let lossy = [
        line(600),
        all(&[3000]),
        vec![192, 240],
        all(&[1500, 800]),
        vec![192, 241, 224],
        all(&[2000, 60]),
    ]
    .concat();
    named(
        "mux",
        vec![
            ("ordinary", ordinary),
            ("jumbo", jumbo),
            ("narrow", narrow),
            ("lossy", lossy),
        ],
    )
}

/// An agreement frame from its EtherType on, with a MAC of zeros.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (2 + 2 + 8 + 8 + body.len() + 32) as u16;
    let mut frame = vec![0x88, 0xb5, 1, kind];
    frame.extend(length.to_be_bytes());
    frame.extend([0x77; 8]);
    frame.extend(9_u64.to_be_bytes());
    frame.extend(body);
    frame.extend([0; 32]);
    frame
}

fn agreement() -> Vec<Seed> {
    let sa = |rest: &[u8]| [&[0, 1][..], rest].concat();
    let suite = 0x0080_c200_0100_0004_u64.to_be_bytes();
    let (change, id) = (5_u64.to_be_bytes(), [0x1d; 16]);
    let announce = [
        &[0x81][..],
        &suite,
        &[2; 8],
        &change,
        &change,
        &id,
        &[2],
        &[3; 32],
    ]
    .concat();
    let sync = [&[7; 8][..], &[1, 0, 1, 2], &suite, &change, &[1], &id].concat();
    let bodies = [
        ("hello", 1, vec![0xb0; 32]),
        ("welcome", 2, vec![0xb0; 48]),
        ("announce", 3, sa(&announce)),
        (
            "ready",
            4,
            sa(&[&[1][..], &change, &id, &[0x99; 32]].concat()),
        ),
        ("refuse", 5, sa(&[&[2][..], &change, &id].concat())),
        ("sync", 6, sync),
        ("count-lies", 6, [&[7; 8][..], &[255]].concat()),
        ("unknown", 7, vec![]),
    ];
    // Bit 800 is changed, and the frame is cut behind 40 octets.
    let read = |frame: Vec<u8>| [vec![0, 3, 0x20, 0, 40], frame].concat();
    let mut seeds: Vec<(&str, Vec<u8>)> = bodies
        .into_iter()
        .map(|(name, kind, body)| (name, read(message(kind, &body))))
        .collect();
    // Seed, channels, traffic; then: wait, say again, change, make up, order, break the line, restart.
    let quiet = vec![1, 1, 0, 1, 0, 63, 0, 63, 0, 63];
    seeds.push(("link-opens", quiet.clone()));
    let repeats = [
        4, 0, 4, 1, 4, 2, 5, 0, 0, 2, 20, 7, 0, 20, 6, 1, 1, 1, 60, 3,
    ];
    seeds.push(("link-repeats", [&quiet[..], &repeats, &[0, 63]].concat()));
    let hello = [9, 4, 1, 0, 84, 0, 137, 4, 1, 0, 84, 0];
    let orders = [10, 0, 0, 0, 30, 138, 0, 4, 3, 0, 30, 10, 0, 6, 10, 0, 7, 8];
    seeds.push(("link-orders", [&quiet[..], &hello, &orders].concat()));
    let breaks = [
        11, 40, 0, 63, 11, 100, 11, 170, 143, 220, 0, 63, 11, 40, 0, 40,
    ];
    let restart = [11, 0, 0, 63, 4, 0, 4, 1, 4, 3, 143, 0, 0, 63];
    seeds.push(("link-breaks", [&quiet[..], &breaks, &restart].concat()));
    named("agreement", seeds)
}

fn capture() -> Vec<Seed> {
    let word = |big: bool, word: u32| {
        if big {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    };
    let pcap = |big: bool, magic: u32, link: u32, frames: &[(u32, u32)]| {
        let version = if big { 2 << 16 | 4 } else { 4 << 16 | 2 };
        let mut words = vec![magic, version, 0, 0, 65_535, link];
        let mut file: Vec<u8> = words.drain(..).flat_map(|w| word(big, w)).collect();
        for (captured, original) in frames {
            let head = [1, 999_999, *captured, *original];
            file.extend(head.into_iter().flat_map(|w| word(big, w)));
            file.extend((0..*captured).map(|at| at as u8));
        }
        file
    };
    let block = |big: bool, kind: u32, body: &[u8]| {
        let length = word(big, body.len() as u32 + 12);
        [&word(big, kind)[..], &length, body, &length].concat()
    };
    let section = |big: bool| {
        let version: [u8; 4] = if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
        let body = [&word(big, 0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat();
        block(big, 0x0a0d_0d0a, &body)
    };
    let half = |big: bool, half: u16| {
        if big {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        }
    };
    let interface = |big: bool, snap: u32, options: &[u8]| {
        let body = [&half(big, 1)[..], &[0, 0], &word(big, snap), options].concat();
        block(big, 1, &body)
    };
    let nanoseconds = |big| [&half(big, 9)[..], &half(big, 1), &[9, 0, 0, 0]].concat();
    let enhanced = |big: bool, interface: u32, captured: u32| {
        let words = [interface, 0x0005_0000, 7, captured, 60];
        let mut body: Vec<u8> = words.into_iter().flat_map(|w| word(big, w)).collect();
        body.extend([0xe0; 60]);
        block(big, 6, &body)
    };
    let simple = |big: bool| block(big, 3, &[&word(big, 60)[..], &[0x50; 60]].concat());
    let ng = |big: bool| {
        let one = interface(big, 64, &nanoseconds(big));
        let two = interface(big, 0, &[]);
        let frames = [enhanced(big, 0, 60), enhanced(big, 1, 40), simple(big)];
        [section(big), one, two, frames.concat()].concat()
    };
    let micro = pcap(false, 0xa1b2_c3d4, 1, &[(60, 60), (14, 1500)]);
    let short_interface = [section(false), block(false, 1, &[]), simple(false)].concat();
    let length_lies = [&section(false)[..], &[6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]].concat();
    let frame_lies = [
        section(false),
        interface(false, 0, &[]),
        enhanced(false, 0, 61),
    ]
    .concat();
    named(
        "capture",
        vec![
            ("micro", micro.clone()),
            ("nano-big", pcap(true, 0xa1b2_3c4d, 1, &[(60, 64)])),
            (
                "fcs",
                pcap(false, 0xa1b2_c3d4, 1 | 1 << 26 | 2 << 28, &[(64, 64)]),
            ),
            ("wifi", pcap(false, 0xa1b2_c3d4, 105, &[])),
            ("truncated", micro[..micro.len() - 3].to_vec()),
            ("ng", ng(false)),
            ("ng-big", ng(true)),
            ("ng-both", [ng(false), ng(true)].concat()),
            ("ng-short-interface", short_interface),
            ("ng-length-lies", length_lies),
            ("ng-frame-lies", frame_lies),
        ],
    )
}

fn offload() -> Vec<Seed> {
    // Kind: bit 0 IPv6, bit 1 UDP, then VLAN tags and options; segment and payload less one each.
    let sound = |kind: u8, segment: u16, payload: u16| {
        let ([a, b], [c, d]) = (segment.to_be_bytes(), payload.to_be_bytes());
        let mut choices = vec![1, kind, a, b, c, d];
        if kind & 2 == 0 {
            // The sequence number wraps; every flag is set.
            choices.extend([0xff, 0xff, 0xff, 0xf0, 0xff]);
        }
        choices
    };
    let changed = [
        sound(0b1_0100, 1447, 4000),
        vec![1, 2, 46, 0x50, 2, 60, 0xff],
    ]
    .concat();
    let mut seeds = vec![
        ("tcp-ipv4", sound(0, 1447, 4000)),
        ("tcp-ipv6-vlan", sound(0b0101, 1427, 2855)),
        ("tcp-ipv4-options", sound(0b11_0000, 99, 1000)),
        ("udp-ipv4", sound(0b10, 999, 999)),
        ("udp-ipv6", sound(0b11, 1, 40)),
        ("segment-of-one", sound(0, 0, 30)),
        ("changed", changed),
    ];
    let mut lies = vec![0, 1, 1, 0, 0, 1, 0, 34, 0, 16, 0];
    lies.extend([2; 12]);
    lies.extend([8, 0, 0x4f]);
    lies.extend([0x55; 60]);
    seeds.push(("header-lies", lies));
    named("offload", seeds)
}
