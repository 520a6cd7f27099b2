//! Super-frames and their virtio headers, of any content, and sound ones that were changed.
//!
//! Half of the inputs are a header and a frame as they are; the others describe a super-frame that is
//! built here as a stack would, and then changed in places or not. What must hold:
//!
//! - whatever is cut gives pieces in order that are the whole payload, none longer than the segment;
//! - of what comes before the payload only the fields change that a segment changes;
//! - the frames of a sound super-frame have right lengths, numbers and checksums;
//! - completing a checksum changes two octets at most, and of a sound frame makes the right ones.

use qloak_port::fuzzing;

use crate::choices::{Choices, client_frame};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a segment changes: of IPv4 length, identification and checksum; of TCP the sequence number, one
/// octet of flags and the checksum. IPv6 and UDP change fewer.
const CHANGED_OCTETS_MAX: usize = 2 + 2 + 2 + 4 + 1 + 2;

/// Takes any octets.
pub fn run(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    if choices.octet() & 1 == 0 {
        let header = choices.array();
        let frame = choices.rest().to_vec();
        any(&header, &frame);
        return;
    }
    let sound = Sound::build(&mut choices);
    let mut changed = sound.frame.clone();
    if choices.is_over() {
        sound.check();
    } else {
        choices.change(&mut changed, sound.payload);
    }
    any(&sound.header, &changed);
}

/// What holds for any header and any frame.
fn any(header: &[u8; 10], frame: &[u8]) {
    let mut completed = frame.to_vec();
    let done = fuzzing::complete(header, &mut completed, 0);
    let differing = completed.iter().zip(frame).filter(|(a, b)| a != b);
    assert!(completed.len() == frame.len() && differing.count() <= 2 * usize::from(done));

    let Some(pieces) = fuzzing::cut(header, frame) else {
        return;
    };
    let segment = usize::from(u16::from_ne_bytes([header[4], header[5]]));
    let Some(pieces) = pieces.into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    // All pieces begin with what is not payload, so they tell its length; one alone does not.
    let together: usize = pieces.iter().map(Vec::len).sum();
    let Some(before) = (together - frame.len()).checked_div(pieces.len() - 1) else {
        assert_eq!(together, frame.len());
        return;
    };
    let mut payload = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let (head, part) = piece.split_at(before);
        assert!(part.len() <= segment, "a piece longer than a segment");
        assert!(part.len() == segment || index + 1 == pieces.len());
        let changed = head.iter().zip(frame).filter(|(a, b)| a != b).count();
        assert!(changed <= CHANGED_OCTETS_MAX, "{changed} octets of headers");
        payload.extend_from_slice(part);
    }
    assert!(payload == frame[before..], "the payload is not all there");
}

/// A super-frame as a stack hands it over.
struct Sound {
    header: [u8; 10],
    frame: Vec<u8>,
    ipv4: bool,
    protocol: u8,
    network: usize,
    transport: usize,
    payload: usize,
}

impl Sound {
    fn build(choices: &mut Choices<'_>) -> Self {
        let kind = choices.octet();
        let (ipv4, protocol) = (kind & 1 == 0, [TCP, UDP][usize::from(kind >> 1 & 1)]);
        let segment = choices.number() % 3000 + 1;
        let payload = client_frame(choices.number() % 20_000 + 1, 7);

        let mut frame = client_frame(12, 0);
        for _ in 0..kind >> 2 & 3 {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend(if ipv4 { [8, 0] } else { [0x86, 0xdd] });
        let network = frame.len();
        let options = usize::from(kind >> 4 & 3) * 4;
        let network_octets = if ipv4 { 20 + options } else { 40 };
        let transport = network + network_octets;
        let transport_octets = if protocol == TCP { 20 + options } else { 8 };
        let counted = transport_octets + payload.len();
        let all = (network_octets + counted) as u16;
        frame.resize(transport, 0x11);
        if ipv4 {
            frame[network] = 0x40 | (network_octets / 4) as u8;
            frame[network + 2..network + 4].copy_from_slice(&all.to_be_bytes());
            frame[network + 9] = protocol;
        } else {
            frame[network] = 0x60;
            frame[network + 4..network + 6].copy_from_slice(&(counted as u16).to_be_bytes());
            frame[network + 6] = protocol;
        }
        frame.resize(transport + transport_octets, 0x22);
        let field = if protocol == TCP {
            frame[transport + 4..transport + 8].copy_from_slice(&choices.array::<4>());
            frame[transport + 12] = (transport_octets / 4) as u8 * 16;
            frame[transport + 13] = choices.octet();
            16
        } else {
            frame[transport + 4..transport + 6].copy_from_slice(&(counted as u16).to_be_bytes());
            6
        };
        let begun = fold(pseudo(&frame, ipv4, network, protocol, counted));
        frame[transport + field..transport + field + 2].copy_from_slice(&begun.to_be_bytes());
        frame.extend(payload);

        let gso = match (protocol, ipv4) {
            (UDP, _) => 5,
            (_, true) => 1,
            (_, false) => 4,
        };
        let mut header = [1, gso, 0, 0, 0, 0, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&(segment as u16).to_ne_bytes());
        header[6..8].copy_from_slice(&(transport as u16).to_ne_bytes());
        header[8..10].copy_from_slice(&(field as u16).to_ne_bytes());
        Self {
            header,
            frame,
            ipv4,
            protocol,
            network,
            transport,
            payload: transport + transport_octets,
        }
    }

    /// Each frame as a receiving stack looks at it.
    fn check(&self) {
        let pieces = fuzzing::cut(&self.header, &self.frame).expect("a sound super-frame");
        let mut offset = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let piece = piece.as_ref().expect("there is room");
            let (network, transport) = (self.network, self.transport);
            let counted = piece.len() - transport;
            if self.ipv4 {
                let options = &piece[network..transport];
                assert_eq!(fold(sum(options)), 0xffff, "the IPv4 header's checksum");
                assert_eq!(half(piece, network + 2), piece.len() - network);
                let first = half(&self.frame, network + 4);
                assert_eq!(half(piece, network + 4), (first + index) & 0xffff);
            } else {
                assert_eq!(half(piece, network + 4), counted);
            }
            let pseudo = pseudo(piece, self.ipv4, network, self.protocol, counted);
            assert_eq!(fold(pseudo + sum(&piece[transport..])), 0xffff, "checksum");
            if self.protocol == TCP {
                let sequence = |frame: &[u8]| {
                    (half(frame, transport + 4) << 16 | half(frame, transport + 6)) as u32
                };
                let wanted = sequence(&self.frame).wrapping_add(offset as u32);
                assert_eq!(sequence(piece), wanted);
                let (flags, given) = (piece[transport + 13], self.frame[transport + 13]);
                let first_only = if index == 0 { 0x80 } else { 0 };
                let last_only = if index + 1 == pieces.len() { 0x09 } else { 0 };
                assert_eq!(flags, given & (0x76 | first_only | last_only));
            } else {
                assert_eq!(half(piece, transport + 4), counted);
            }
            offset += piece.len() - self.payload;
        }
        assert_eq!(offset, self.frame.len() - self.payload);
        let mut whole = self.frame.clone();
        assert!(fuzzing::complete(&self.header, &mut whole, 0));
        let counted = whole.len() - self.transport;
        let pseudo = pseudo(&whole, self.ipv4, self.network, self.protocol, counted);
        assert_eq!(fold(pseudo + sum(&whole[self.transport..])), 0xffff);
    }
}

/// The sum of what TCP and UDP cover besides themselves (RFC 9293, 3.1; RFC 8200, 8.1).
fn pseudo(frame: &[u8], ipv4: bool, network: usize, protocol: u8, octets: usize) -> u64 {
    let addresses = if ipv4 {
        network + 12..network + 20
    } else {
        network + 8..network + 40
    };
    sum(&frame[addresses]) + u64::from(protocol) + octets as u64
}

/// Words of 16 bits added up, one by one (RFC 1071).
fn sum(octets: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    octets.chunks(2).map(word).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

fn half(frame: &[u8], at: usize) -> usize {
    usize::from(frame[at]) << 8 | usize::from(frame[at + 1])
}
