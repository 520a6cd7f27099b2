//! Made-up TCP senders, honest and lying: what is put together and cut again is what went in.

use proptest::prelude::*;

use super::*;
use crate::offload::Cut;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const URG: u8 = 0x20;
const CWR: u8 = 0x80;

/// A sender of one flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) ipv4: bool,
    pub(crate) vlans: usize,
    /// Words of TCP options.
    pub(crate) options: u8,
    pub(crate) port: u16,
    pub(crate) flags: u8,
}

pub(crate) const PLAIN: Flow = Flow {
    ipv4: true,
    vlans: 0,
    options: 3,
    port: 80,
    flags: TCP_ACK,
};

impl Flow {
    fn network(&self) -> usize {
        14 + 4 * self.vlans
    }

    fn transport(&self) -> usize {
        self.network() + if self.ipv4 { IPV4_OCTETS } else { IPV6_OCTETS }
    }

    fn frame(&self, flags: u8, identification: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for vlan in 0..self.vlans {
            frame.extend([if vlan == 0 { 0x88 } else { 0x81 }]);
            frame.extend([if vlan == 0 { 0xa8 } else { 0 }, 0x60, 5]);
        }
        let octets = 20 + 4 * usize::from(self.options) + payload.len();
        if self.ipv4 {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend(((IPV4_OCTETS + octets) as u16).to_be_bytes());
            frame.extend(identification.to_be_bytes());
            frame.extend([0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 1]);
            frame.extend((octets as u16).to_be_bytes());
            frame.extend([TCP, 64]);
            frame.extend(1..=32);
        }
        frame.extend(self.port.to_be_bytes());
        frame.extend([1, 0]);
        frame.extend(sequence.to_be_bytes());
        frame.extend([0, 0, 0, 1, (5 + self.options) << 4, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(vec![7; 4 * usize::from(self.options)]);
        frame.extend(payload);
        self.finish(&mut frame);
        frame
    }

    /// Makes the checksums right.
    fn finish(&self, frame: &mut [u8]) {
        let (network, transport) = (self.network(), self.transport());
        if self.ipv4 {
            put(frame, network + 10, 0).unwrap();
            let checksum = !fold(sum(&frame[network..transport]));
            put(frame, network + 10, checksum).unwrap();
        }
        put(frame, transport + TCP_CHECKSUM, 0).unwrap();
        let checksum = !self.sum(frame);
        put(frame, transport + TCP_CHECKSUM, checksum).unwrap();
    }

    fn sum(&self, frame: &[u8]) -> u16 {
        let (network, transport) = (self.network(), self.transport());
        let addresses = network + if self.ipv4 { 12 } else { 8 };
        let octets = frame.len() - transport;
        let pseudo = sum(&frame[addresses..transport]) + 6 + octets as u64;
        fold(pseudo + sum(&frame[transport..]))
    }

    /// `count` frames that follow one another, `octets` of payload each.
    pub(crate) fn frames(&self, count: usize, octets: usize) -> Vec<Vec<u8>> {
        let begun = 0_u32.wrapping_sub(octets as u32);
        (0..count)
            .map(|index| {
                let payload: Vec<u8> = (0..octets).map(|at| (at * 7 + index) as u8).collect();
                let sequence = begun.wrapping_add((index * octets) as u32);
                self.frame(
                    self.flags,
                    0xffff_u16.wrapping_add(index as u16),
                    sequence,
                    &payload,
                )
            })
            .collect()
    }
}

fn batch(octets: &[Vec<u8>]) -> Vec<Frame> {
    octets
        .iter()
        .map(|octets| {
            let mut frame = Frame::with_capacity(3, octets.len(), 5);
            frame.range = 3..3 + octets.len();
            frame.octets_mut().copy_from_slice(octets);
            frame
        })
        .collect()
}

/// What the kernel would be given is cut again. Says the frames, and how many went together each time.
fn through(frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<usize>) {
    let frames = batch(frames);
    let (mut rest, mut out, mut counts) = (&frames[..], Vec::new(), Vec::new());
    while let Some(first) = rest.first() {
        let count = match Run::find(rest) {
            None => {
                out.push(first.octets().to_vec());
                1
            }
            Some(run) => {
                let parts = run.parts(rest);
                let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                let (header, whole) = whole.split_first_chunk().unwrap();
                let cut = Cut::new(whole, Virtio::parse(header)).unwrap();
                assert_eq!(cut.count, run.count());
                assert!(run.count() > 1);
                let mut room = vec![0; whole.len()];
                for index in 0..cut.count {
                    let octets = cut.write(whole, index, &mut room).unwrap();
                    out.push(room[..octets].to_vec());
                }
                // The header of the super-frame itself is sound too: the kernel looks at it.
                let network = network_header(whole).unwrap();
                if whole[network] == 0x45 {
                    assert_eq!(fold(sum(&whole[network..network + 20])), 0xffff);
                    assert_eq!(
                        usize::from(get(whole, network + 2).unwrap()),
                        whole.len() - network
                    );
                } else {
                    assert_eq!(
                        usize::from(get(whole, network + 4).unwrap()),
                        whole.len() - network - 40
                    );
                }
                run.count()
            }
        };
        counts.push(count);
        rest = &rest[count..];
    }
    (out, counts)
}

#[test]
fn frames_that_follow_one_another_go_together() {
    for ipv4 in [true, false] {
        for (vlans, options, flags) in
            [(0, 3, TCP_ACK), (1, 0, TCP_ACK | TCP_ECE), (2, 10, TCP_ACK)]
        {
            let flow = Flow {
                ipv4,
                vlans,
                options,
                port: 443,
                flags,
            };
            let mut frames = flow.frames(20, 1448);
            // The last may be short, and ends with PSH.
            frames.push(flow.frame(flags | TCP_PSH, 0x13, 19 * 1448, &[9; 5]));
            assert_eq!(through(&frames), (frames.clone(), vec![21]), "{flow:?}");
        }
    }
}

#[test]
fn a_super_frame_ends_where_it_must() {
    let counts = |frames: &[Vec<u8>]| {
        let (out, counts) = through(frames);
        assert!(out == frames);
        counts
    };
    // 65535 octets of IP: 45 frames of 1448 and 52 of header.
    assert_eq!(counts(&PLAIN.frames(50, 1448)), [45, 5]);
    assert_eq!(counts(&PLAIN.frames(16, 8948)), [7, 7, 2]);
    assert_eq!(counts(&PLAIN.frames(130, 100)), [64, 64, 2]);
    assert_eq!(counts(&PLAIN.frames(2, 65_535 - 52)), [1, 1]);
    // A short frame is the last.
    let mut frames = PLAIN.frames(6, 1000);
    frames[2] = PLAIN.frame(TCP_ACK, 1, 1000, &[1; 999]);
    frames[3] = PLAIN.frame(TCP_ACK, 2, 1999, &[1; 999]);
    assert_eq!(counts(&frames), [3, 1, 2]);
    // A longer one is not part of it.
    frames[1] = PLAIN.frame(TCP_ACK, 0, 0, &[1; 1001]);
    assert_eq!(counts(&frames[..2]), [1, 1]);
    // PSH is the end, and a frame without payload is alone.
    let mut frames = PLAIN.frames(6, 1000);
    frames[1] = PLAIN.frame(TCP_ACK | TCP_PSH, 0, 0, &[1; 1000]);
    frames[4] = PLAIN.frame(TCP_ACK, 3, 3000, &[]);
    assert_eq!(counts(&frames), [2, 2, 1, 1]);
    assert_eq!(counts(&[]), [0; 0]);
}

#[test]
fn other_flows_in_between_keep_their_place() {
    let (a, b) = (
        PLAIN.frames(4, 500),
        Flow { port: 81, ..PLAIN }.frames(4, 500),
    );
    let mixed = [&a[..2], &b[..2], &b[2..], &a[2..3], &b[..1], &a[3..]].concat();
    assert_eq!(through(&mixed), (mixed.clone(), vec![2, 4, 1, 1, 1]));
}

/// What a second frame may not be: its name, and how it becomes so. Checksums are made right afterwards.
type Oddity = (
    &'static str,
    fn(&mut [u8], network: usize, transport: usize),
);

const ODDITIES: [Oddity; 17] = [
    ("a gap", |frame, _, tcp| frame[tcp + 7] ^= 1),
    ("another port", |frame, _, tcp| frame[tcp + 1] ^= 1),
    ("another ack", |frame, _, tcp| frame[tcp + 8] ^= 1),
    ("another window", |frame, _, tcp| frame[tcp + 15] ^= 1),
    ("another option", |frame, _, tcp| frame[tcp + 25] ^= 1),
    ("an urgent pointer", |frame, _, tcp| frame[tcp + 19] ^= 1),
    ("another reserved bit", |frame, _, tcp| frame[tcp + 12] ^= 1),
    ("FIN", |frame, _, tcp| frame[tcp + 13] |= FIN),
    ("SYN", |frame, _, tcp| frame[tcp + 13] |= SYN),
    ("RST", |frame, _, tcp| frame[tcp + 13] |= RST),
    ("URG", |frame, _, tcp| frame[tcp + 13] |= URG),
    ("CWR", |frame, _, tcp| frame[tcp + 13] |= CWR),
    ("ECE", |frame, _, tcp| frame[tcp + 13] |= TCP_ECE),
    ("no ACK", |frame, _, tcp| frame[tcp + 13] &= !TCP_ACK),
    ("congestion experienced", |frame, ip, _| {
        frame[ip + 1] ^= 0x30
    }),
    ("another station", |frame, _, _| frame[5] ^= 1),
    ("another hop limit or TTL", |frame, ip, _| {
        // IPv6's stands where IPv4 has the fourth octet of identification and flags.
        let at = if frame[ip] == 0x45 { 8 } else { 7 };
        frame[ip + at] ^= 1;
    }),
];

/// The same for IPv4 alone.
const ODDITIES_IPV4: [Oddity; 4] = [
    ("identification", |frame, ip, _| frame[ip + 5] ^= 1),
    ("more fragments", |frame, ip, _| frame[ip + 6] |= 0x20),
    ("a fragment's offset", |frame, ip, _| frame[ip + 7] |= 1),
    ("may be fragmented", |frame, ip, _| frame[ip + 6] ^= 0x40),
];

#[test]
fn a_frame_that_differs_goes_alone() {
    for ipv4 in [true, false] {
        let flow = Flow { ipv4, ..PLAIN };
        let only_ipv4 = ODDITIES_IPV4.iter().filter(|_| ipv4);
        for (name, change) in ODDITIES.iter().chain(only_ipv4) {
            let mut frames = flow.frames(3, 700);
            assert_eq!(through(&frames).1, [3]);
            change(&mut frames[1], flow.network(), flow.transport());
            flow.finish(&mut frames[1]);
            let (out, counts) = through(&frames);
            assert_eq!(out, frames, "{name}");
            assert_eq!(counts[0], 1, "{name}");
        }
    }
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    for (ipv4, at) in [
        (true, 10),
        (true, 20 + 16),
        (true, 60),
        (false, 40 + 16),
        (false, 80),
    ] {
        for bad in 0..3 {
            let flow = Flow { ipv4, ..PLAIN };
            let mut frames = flow.frames(3, 700);
            frames[bad][flow.network() + at] ^= 4;
            let (out, counts) = through(&frames);
            assert_eq!(out, frames);
            assert_eq!(counts, [&[1, 2][..], &[1, 1, 1], &[2, 1]][bad]);
        }
    }
}

#[test]
fn both_zeroes_of_a_checksum_stay() {
    for ipv4 in [true, false] {
        let flow = Flow { ipv4, ..PLAIN };
        let mut frames = flow.frames(2, 700);
        // The payload makes up for all the rest.
        let at = flow.transport() + 32;
        put(&mut frames[1], at, 0).unwrap();
        put(&mut frames[1], flow.transport() + TCP_CHECKSUM, 0).unwrap();
        let missing = !flow.sum(&frames[1]);
        put(&mut frames[1], at, missing).unwrap();
        assert_eq!(flow.sum(&frames[1]), 0xffff);
        assert_eq!(through(&frames), (frames.clone(), vec![2]));
        put(&mut frames[1], flow.transport() + TCP_CHECKSUM, 0xffff).unwrap();
        assert_eq!(through(&frames), (frames.clone(), vec![1, 1]));
    }
}

#[test]
fn lengths_that_lie_go_alone() {
    for ipv4 in [true, false] {
        let flow = Flow { ipv4, ..PLAIN };
        let lengths = flow.network() + if ipv4 { 2 } else { 4 };
        let lies: [fn(&mut Vec<u8>, usize, usize); 6] = [
            |frame, at, _| frame[at + 1] ^= 1,
            |frame, at, _| frame[at] = 0xff,
            |frame, at, _| frame[at..at + 2].fill(0),
            // Padding behind the datagram.
            |frame, _, _| frame.push(0),
            // A header that ends behind the frame.
            |frame, _, tcp| {
                frame.truncate(tcp + 21);
                frame[tcp + 12] = 0xf0;
            },
            // A header that is shorter than TCP's.
            |frame, _, tcp| frame[tcp + 12] = 0x40,
        ];
        for (number, lie) in lies.iter().enumerate() {
            for bad in 0..2 {
                let mut frames = flow.frames(2, 700);
                lie(&mut frames[bad], lengths, flow.transport());
                flow.finish(&mut frames[bad]);
                let expected = (frames.clone(), vec![1, 1]);
                assert_eq!(through(&frames), expected, "lie {number} in frame {bad}");
            }
        }
        // Options of IP, which the length of its header tells.
        if ipv4 {
            let mut frames = flow.frames(2, 700);
            frames.iter_mut().for_each(|frame| frame[14] = 0x46);
            assert_eq!(through(&frames).1, [1, 1]);
        }
    }
}

fn flow() -> impl Strategy<Value = Flow> {
    let flags = prop_oneof![4 => Just(TCP_ACK), 1 => any::<u8>()];
    (any::<bool>(), 0..4_usize, 0..11_u8, 80..82_u16, flags).prop_map(
        |(ipv4, vlans, options, port, flags)| Flow {
            ipv4,
            vlans,
            options,
            port,
            flags,
        },
    )
}

/// What a sender does next.
#[derive(Debug, Clone)]
struct Step {
    second: bool,
    /// Octets less than a full frame.
    short: usize,
    flags: u8,
    /// An octet that is changed, and whether the checksums are made right afterwards.
    change: Option<(usize, u8, bool)>,
    truncate: Option<usize>,
    lost: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let rare = |odds: u32, value: BoxedStrategy<usize>| prop_oneof![odds => Just(None), 1 => value.prop_map(Some)];
    (
        prop_oneof![6 => Just(false), 1 => Just(true)],
        prop_oneof![6 => Just(0), 1 => 0..300_usize],
        prop_oneof![8 => Just(0), 1 => Just(TCP_PSH), 1 => any::<u8>()],
        prop_oneof![6 => Just(None), 1 => any::<(usize, u8, bool)>().prop_map(Some)],
        rare(30, (0..200_usize).boxed()),
        prop_oneof![20 => Just(false), 1 => Just(true)],
    )
        .prop_map(|(second, short, flags, change, truncate, lost)| Step {
            second,
            short,
            flags,
            change,
            truncate,
            lost,
        })
}

fn made_up(flows: [Flow; 2], octets: usize, steps: &[Step]) -> Vec<Vec<u8>> {
    let mut state = [(0xfff0_u16, 0xffff_ff00_u32); 2];
    let mut frames = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let (flow, (identification, sequence)) = (
            flows[usize::from(step.second)],
            &mut state[usize::from(step.second)],
        );
        let payload = vec![number as u8; octets.saturating_sub(step.short)];
        let flags = flow.flags ^ step.flags;
        let mut frame = flow.frame(flags, *identification, *sequence, &payload);
        *identification = identification.wrapping_add(1);
        *sequence = sequence.wrapping_add(payload.len() as u32);
        if step.lost {
            continue;
        }
        if let Some((at, octet, right)) = step.change {
            // The headers are where it hurts.
            let at = at % frame.len().min(100);
            frame[at] ^= octet;
            if right {
                flow.finish(&mut frame);
            }
        }
        if let Some(octets) = step.truncate {
            frame.truncate(octets);
        }
        frames.push(frame);
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_put_together_and_cut_is_what_went_in(
        flows in [flow(), flow()],
        octets in 1..400_usize,
        steps in proptest::collection::vec(step(), 0..90),
    ) {
        let frames = made_up(flows, octets, &steps);
        prop_assert_eq!(through(&frames).0, frames);
    }

    #[test]
    fn nonsense_goes_through_as_it_is(
        octets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..150), 0..5),
    ) {
        prop_assert_eq!(through(&octets).0, octets);
    }
}
