//! Finishing in software what a sender left to hardware that is not there.
//!
//! A virtual interface hands over frames as the sender's stack made them: with a checksum that is only
//! begun, and several TCP segments or UDP datagrams in one super-frame. Each received frame comes with a virtio header
//! that says what is left to do (virtio 1.2, 5.1.6):
//!
//! ```text
//!   flags(1) type(1) header octets(2) segment octets(2) checksum start(2) checksum offset(2)
//! ```
//!
//! Here the checksum is completed and the super-frame cut into the frames that a network card would
//! have sent. Of a segment change: IPv4 total length, identification and header checksum, or IPv6 payload
//! length; TCP sequence number and flags, or UDP length; and the checksum. `coalesce` is the way back, and
//! `super_frame` keeps a super-frame while it is cut.

use std::ops::Range;

use crate::headers::{
    IPV6_OCTETS, TCP_CHECKSUM, TCP_PSH, UDP_CHECKSUM, fold, get, network_header, put, sum,
};

/// Octets of the virtio header before a frame.
pub(crate) const VIRTIO_OCTETS: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const TYPE_TCP_IPV4: u8 = 1;
const TYPE_TCP_IPV6: u8 = 4;
const TYPE_UDP: u8 = 5;
/// Or-ed to a type: the sender uses explicit congestion notification.
const TYPE_ECN: u8 = 0x80;

const TCP_FIN: u8 = 0x01;
const TCP_CWR: u8 = 0x80;

/// What is left to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Virtio {
    kind: u8,
    segment_octets: usize,
    /// Where the checksum starts to count, and where it stands; both from the frame's beginning.
    checksum: Option<(usize, usize)>,
}

impl Virtio {
    /// From the header's octets, which are in the order of the machine.
    pub(crate) fn parse(header: &[u8; VIRTIO_OCTETS]) -> Self {
        let [flags, kind, _, _, s0, s1, start0, start1, offset0, offset1] = *header;
        let half = |a, b| usize::from(u16::from_ne_bytes([a, b]));
        let start = half(start0, start1);
        Self {
            kind: kind & !TYPE_ECN,
            segment_octets: half(s0, s1),
            checksum: (flags & NEEDS_CHECKSUM != 0)
                .then(|| (start, start + half(offset0, offset1))),
        }
    }

    /// The header of a super-frame of TCP whose checksum is only begun, for the kernel: where TCP and the payload
    /// begin, and how many octets of payload its frames have.
    pub(crate) fn tcp(
        ipv4: bool,
        transport: u16,
        payload: u16,
        segment_octets: u16,
    ) -> [u8; VIRTIO_OCTETS] {
        let mut header = [0; VIRTIO_OCTETS];
        header[0] = NEEDS_CHECKSUM;
        header[1] = if ipv4 { TYPE_TCP_IPV4 } else { TYPE_TCP_IPV6 };
        header[2..4].copy_from_slice(&payload.to_ne_bytes());
        header[4..6].copy_from_slice(&segment_octets.to_ne_bytes());
        header[6..8].copy_from_slice(&transport.to_ne_bytes());
        header[8..].copy_from_slice(&(TCP_CHECKSUM as u16).to_ne_bytes());
        header
    }

    /// Whether the frame is a super-frame, to be cut.
    pub(crate) fn is_super(&self) -> bool {
        self.kind != 0
    }

    /// Completes the checksum of a frame into which `inserted` octets were put before the network header.
    /// False when the header does not fit the frame.
    #[must_use]
    pub(crate) fn complete(&self, frame: &mut [u8], inserted: usize) -> bool {
        match self.checksum {
            None => true,
            Some((start, field)) => complete(frame, start + inserted, field + inserted),
        }
    }
}

/// Completes a checksum: the field holds the sum of the pseudo header.
pub(crate) fn complete(frame: &mut [u8], start: usize, field: usize) -> bool {
    let Some(checksum) = frame
        .get(start..)
        .filter(|covered| !covered.is_empty())
        .map(|covered| !fold(sum(covered)))
    else {
        return false;
    };
    // A sum of zero is written as all ones: for UDP zero would mean "none", for TCP both are equal.
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    put(frame, field, checksum).is_some()
}

/// How a super-frame is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    ipv4: bool,
    tcp: bool,
    /// Where the IP header begins.
    network: usize,
    /// Where the TCP or UDP header begins.
    transport: usize,
    /// Where the payload begins: the octets before it come before every segment.
    payload: usize,
    segment_octets: usize,
    octets: usize,
    /// How many frames it gives.
    pub(crate) count: usize,
}

impl Cut {
    /// How to cut this super-frame; none when it is not what its header says.
    pub(crate) fn new(frame: &[u8], virtio: Virtio) -> Option<Self> {
        let (transport, field) = virtio.checksum?;
        let network = network_header(frame)?;
        let version = frame.get(network)? >> 4;
        let (ipv4, tcp) = match (virtio.kind, version) {
            (TYPE_TCP_IPV4, 4) => (true, true),
            (TYPE_TCP_IPV6, 6) => (false, true),
            (TYPE_UDP, 4) => (true, false),
            (TYPE_UDP, 6) => (false, false),
            _ => return None,
        };
        let network_octets = if ipv4 {
            usize::from(frame.get(network)? & 0xf) * 4
        } else {
            IPV6_OCTETS
        };
        let transport_octets = if tcp {
            usize::from(frame.get(transport + 12)? >> 4) * 4
        } else {
            8
        };
        let payload = transport + transport_octets;
        let sound = network_octets >= 20
            && network + network_octets <= transport
            && transport_octets >= if tcp { 20 } else { 8 }
            && field == transport + if tcp { TCP_CHECKSUM } else { UDP_CHECKSUM }
            && payload < frame.len()
            && virtio.segment_octets > 0;
        sound.then(|| Self {
            ipv4,
            tcp,
            network,
            transport,
            payload,
            segment_octets: virtio.segment_octets,
            octets: frame.len(),
            count: (frame.len() - payload).div_ceil(virtio.segment_octets),
        })
    }

    /// Writes frame `index` to the beginning of `room` and says its length; none when the room is too
    /// small or there is no such frame.
    pub(crate) fn write(&self, frame: &[u8], index: usize, room: &mut [u8]) -> Option<usize> {
        let part = self.part(index)?;
        let length = self.payload + part.len();
        let out = room.get_mut(..length)?;
        let (head, body) = out.split_at_mut(self.payload);
        head.copy_from_slice(frame.get(..self.payload)?);
        body.copy_from_slice(frame.get(part.clone())?);
        if self.ipv4 {
            self.ipv4_header(head, length, index)?;
        } else {
            let octets = u16::try_from(length - self.network - IPV6_OCTETS).ok()?;
            put(head, self.network + 4, octets)?;
        }
        if self.tcp {
            self.tcp_header(head, part.start - self.payload, index)?;
        } else {
            put(
                head,
                self.transport + 4,
                u16::try_from(length - self.transport).ok()?,
            )?;
        }
        let field = self.transport + if self.tcp { TCP_CHECKSUM } else { UDP_CHECKSUM };
        // The field holds the sum of the pseudo header with the length of the whole super-frame: that
        // length goes out and the segment's comes in (RFC 1624).
        let before = self.octets - self.transport;
        let after = length - self.transport;
        let begun = u64::from(get(head, field)?) + after as u64 + u64::from(!fold(before as u64));
        put(head, field, fold(begun))?;
        if self.tcp {
            // Zero stays zero, as where the kernel cuts.
            let checksum = !fold(sum(out.get(self.transport..)?));
            put(out, field, checksum)?;
        } else if !complete(out, self.transport, field) {
            return None;
        }
        Some(length)
    }

    fn part(&self, index: usize) -> Option<Range<usize>> {
        let start = self.payload + index.checked_mul(self.segment_octets)?;
        (start < self.octets).then(|| start..(start + self.segment_octets).min(self.octets))
    }

    fn ipv4_header(&self, head: &mut [u8], length: usize, index: usize) -> Option<()> {
        let at = self.network;
        put(head, at + 2, u16::try_from(length - at).ok()?)?;
        let identification = get(head, at + 4)?.wrapping_add(index as u16);
        put(head, at + 4, identification)?;
        put(head, at + 10, 0)?;
        let octets = usize::from(head.get(at)? & 0xf) * 4;
        let checksum = !fold(sum(head.get(at..at + octets)?));
        put(head, at + 10, checksum)
    }

    fn tcp_header(&self, head: &mut [u8], offset: usize, index: usize) -> Option<()> {
        let at = self.transport;
        let sequence: &mut [u8; 4] = head.get_mut(at + 4..at + 8)?.try_into().ok()?;
        *sequence = u32::from_be_bytes(*sequence)
            .wrapping_add(offset as u32)
            .to_be_bytes();
        let flags = head.get_mut(at + 13)?;
        if index > 0 {
            *flags &= !TCP_CWR;
        }
        if index + 1 < self.count {
            *flags &= !(TCP_FIN | TCP_PSH);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A super-frame as a stack hands it over, and its virtio header.
    fn super_frame(
        ipv4: bool,
        tcp: bool,
        vlan: bool,
        payload: &[u8],
        segment: u16,
    ) -> (Vec<u8>, [u8; 10]) {
        let mut frame = vec![2; 12];
        if vlan {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend(if ipv4 { [8, 0] } else { [0x86, 0xdd] });
        let network = frame.len();
        let transport_octets = if tcp { 32 } else { 8 } + payload.len();
        let protocol = if tcp { 6 } else { 17 };
        let addresses: Vec<u8> = (1..=if ipv4 { 8 } else { 32 }).collect();
        if ipv4 {
            frame.extend([0x45, 0]);
            frame.extend(((20 + transport_octets) as u16).to_be_bytes());
            frame.extend([0xff, 0xff, 0x40, 0, 64, protocol, 0, 0]);
        } else {
            frame.extend([0x60, 0, 0, 0]);
            frame.extend((transport_octets as u16).to_be_bytes());
            frame.extend([protocol, 64]);
        }
        frame.extend(&addresses);
        let transport = frame.len();
        let pseudo = fold(sum(&addresses) + u64::from(protocol) + transport_octets as u64);
        if tcp {
            frame.extend([
                0, 80, 1, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x80, 0x99, 1, 0,
            ]);
            frame.extend(pseudo.to_be_bytes());
            frame.extend([0; 14]);
        } else {
            frame.extend([0, 80, 1, 0]);
            frame.extend((transport_octets as u16).to_be_bytes());
            frame.extend(pseudo.to_be_bytes());
        }
        frame.extend(payload);
        let kind = match (tcp, ipv4) {
            (false, _) => TYPE_UDP,
            (true, true) => TYPE_TCP_IPV4 | TYPE_ECN,
            (true, false) => TYPE_TCP_IPV6,
        };
        let mut header = [NEEDS_CHECKSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&segment.to_ne_bytes());
        header[6..8].copy_from_slice(&(transport as u16).to_ne_bytes());
        header[8..10].copy_from_slice(&(if tcp { 16_u16 } else { 6 }).to_ne_bytes());
        assert_eq!(network_header(&frame), Some(network));
        (frame, header)
    }

    /// Checks a frame as a receiving stack does and says its payload.
    fn receive(frame: &[u8], tcp: bool) -> (Vec<u8>, Option<u16>, u32, u8) {
        let network = network_header(frame).unwrap();
        let ipv4 = frame[network] >> 4 == 4;
        let (transport, addresses) = if ipv4 {
            assert_eq!(
                fold(sum(&frame[network..network + 20])),
                0xffff,
                "IPv4 header"
            );
            assert_eq!(
                usize::from(get(frame, network + 2).unwrap()),
                frame.len() - network
            );
            (network + 20, &frame[network + 12..network + 20])
        } else {
            assert_eq!(
                usize::from(get(frame, network + 4).unwrap()),
                frame.len() - network - 40
            );
            (network + 40, &frame[network + 8..network + 40])
        };
        let body = &frame[transport..];
        let pseudo = sum(addresses) + if tcp { 6 } else { 17 } + body.len() as u64;
        assert_eq!(fold(pseudo + sum(body)), 0xffff, "transport");
        let identification = ipv4.then(|| get(frame, network + 4).unwrap());
        if tcp {
            let sequence = u32::from_be_bytes(body[4..8].try_into().unwrap());
            (body[32..].to_vec(), identification, sequence, body[13])
        } else {
            assert_eq!(usize::from(get(body, 4).unwrap()), body.len());
            (body[8..].to_vec(), identification, 0, 0)
        }
    }

    proptest! {
        #[test]
        fn a_cut_super_frame_gives_its_payload_in_sound_frames(
            ipv4: bool, tcp: bool, vlan: bool,
            payload in proptest::collection::vec(any::<u8>(), 1..5000),
            segment in 1_u16..1500,
        ) {
            let (frame, header) = super_frame(ipv4, tcp, vlan, &payload, segment);
            let virtio = Virtio::parse(&header);
            prop_assert!(virtio.is_super());
            let cut = Cut::new(&frame, virtio).unwrap();
            let mut whole = Vec::new();
            let mut room = [0; 2000];
            for index in 0..cut.count {
                let octets = cut.write(&frame, index, &mut room).unwrap();
                let (part, identification, sequence, flags) = receive(&room[..octets], tcp);
                prop_assert!(part.len() == usize::from(segment) || index + 1 == cut.count);
                if let Some(identification) = identification {
                    prop_assert_eq!(identification, 0xffff_u16.wrapping_add(index as u16));
                }
                if tcp {
                    prop_assert_eq!(sequence, 0xffff_fff0_u32.wrapping_add(whole.len() as u32));
                    prop_assert_eq!(flags & TCP_CWR != 0, index == 0);
                    prop_assert_eq!(flags & (TCP_FIN | TCP_PSH), if index + 1 == cut.count { 9 } else { 0 });
                }
                whole.extend(part);
            }
            prop_assert_eq!(whole, payload);
            prop_assert!(cut.write(&frame, cut.count, &mut room).is_none());
        }

        #[test]
        fn a_begun_checksum_is_completed(
            ipv4: bool, tcp: bool, payload in proptest::collection::vec(any::<u8>(), 1..3000),
        ) {
            let (mut frame, mut header) = super_frame(ipv4, tcp, false, &payload, 0);
            header[1] = 0;
            let virtio = Virtio::parse(&header);
            prop_assert!(!virtio.is_super());
            if ipv4 {
                let checksum = !fold(sum(&frame[14..34]));
                put(&mut frame, 14 + 10, checksum).unwrap();
            }
            // As behind a VLAN tag that was put back.
            frame.splice(12..12, [0x81, 0, 0, 5]);
            prop_assert!(virtio.complete(&mut frame, 4));
            prop_assert_eq!(receive(&frame, tcp).0, payload);
        }

        #[test]
        fn nonsense_is_refused_without_panic(
            header: [u8; 10], mut frame in proptest::collection::vec(any::<u8>(), 0..200), index in 0_usize..300,
        ) {
            let virtio = Virtio::parse(&header);
            let mut room = [0; 300];
            if let Some(cut) = Cut::new(&frame, virtio) {
                let _ = cut.write(&frame, index, &mut room);
            }
            let _ = virtio.complete(&mut frame, 4);
        }
    }
}
