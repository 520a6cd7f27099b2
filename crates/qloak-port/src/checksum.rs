//! Finishing a checksum that the sender left to hardware, where nothing says that it did.
//!
//! A virtual interface (veth) hands over frames as the sender's stack made them. A packet socket gets a
//! virtio header that says what is left to do; an AF_XDP socket gets the octets alone. But a checksum that
//! is only begun can be recognised: its field holds the sum of the pseudo header (RFC 9293, 3.1; RFC 768;
//! RFC 8200, 8.1), not inverted.
//!
//! A frame whose checksum is right may hold that very number by chance. Then finishing it gives the same number
//! again, so nothing is ever made wrong. What is damaged stays damaged, but for one in 65536 of those
//! frames; a line with an FCS drops them long before.
//!
//! Left alone: fragments, extension headers of IPv6, frames that UDP itself carries (VXLAN), protocols other
//! than TCP and UDP.

use crate::headers::{
    IPV4_FRAGMENT, IPV4_OCTETS, IPV6_OCTETS, TCP, TCP_CHECKSUM, UDP, UDP_CHECKSUM, fold, get,
    network_header, pseudo,
};
use crate::offload::complete;

/// Finishes the TCP or UDP checksum of a frame if it is only begun.
pub(crate) fn finish(frame: &mut [u8]) {
    let Some(begun) = Begun::find(frame) else {
        return;
    };
    // The padding to 60 octets does not count.
    if let Some(covered) = frame.get_mut(..begun.end) {
        let _fits = complete(covered, begun.transport, begun.field);
    }
}

/// Where a checksum that is only begun lies, and what it covers.
struct Begun {
    transport: usize,
    field: usize,
    end: usize,
}

impl Begun {
    fn find(frame: &[u8]) -> Option<Self> {
        let network = network_header(frame)?;
        let ip = frame.get(network..)?;
        let (protocol, addresses, header_octets, octets) = match get(frame, network - 2)? {
            0x0800 if get(ip, 6)? & IPV4_FRAGMENT == 0 => {
                let header_octets = usize::from(ip.first()? & 0xf) * 4;
                (
                    *ip.get(9)?,
                    ip.get(12..20)?,
                    header_octets,
                    get(ip, 2)?.into(),
                )
            }
            0x86dd => {
                let octets = IPV6_OCTETS + usize::from(get(ip, 4)?);
                (*ip.get(6)?, ip.get(8..IPV6_OCTETS)?, IPV6_OCTETS, octets)
            }
            _ => return None,
        };
        let (transport, end) = (network + header_octets, network + octets);
        let field = transport
            + match protocol {
                TCP => TCP_CHECKSUM,
                UDP => UDP_CHECKSUM,
                _ => return None,
            };
        let sound = header_octets >= IPV4_OCTETS && end <= frame.len() && field + 2 <= end;
        let begun = fold(pseudo(addresses, protocol, end.checked_sub(transport)?));
        (sound && get(frame, field)? == begun).then_some(Self {
            transport,
            field,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The one's complement sum of everything that a checksum covers, by the RFCs, one word after the other.
    fn covered(pseudo: &[u8], segment: &[u8]) -> u16 {
        let mut sum = 0_u64;
        for part in [pseudo, segment] {
            for word in part.chunks(2) {
                let low = word.get(1).copied().unwrap_or(0);
                sum += u64::from(u16::from_be_bytes([word[0], low]));
            }
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    struct Made {
        frame: Vec<u8>,
        transport: usize,
        end: usize,
        field: usize,
        pseudo: Vec<u8>,
    }

    /// A frame whose checksum is begun.
    fn begun(ipv4: bool, tcp: bool, tags: usize, payload: &[u8], addresses: [u8; 32]) -> Made {
        let transport_octets = if tcp { 20 } else { 8 };
        let length = transport_octets + payload.len();
        let protocol = if tcp { TCP } else { UDP };
        let mut frame = vec![2; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0, 0, 5]);
        }
        let mut pseudo;
        if ipv4 {
            let total = (20 + length) as u16;
            frame.extend([0x08, 0, 0x45, 0]);
            frame.extend(total.to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend(&addresses[..8]);
            pseudo = addresses[..8].to_vec();
            pseudo.extend([0, protocol]);
            pseudo.extend((length as u16).to_be_bytes());
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(addresses);
            pseudo = addresses.to_vec();
            pseudo.extend((length as u32).to_be_bytes());
            pseudo.extend([0, 0, 0, protocol]);
        }
        let transport = frame.len();
        frame.extend(vec![0; transport_octets]);
        let field = transport + if tcp { 16 } else { 6 };
        frame[field..field + 2].copy_from_slice(&covered(&pseudo, &[]).to_be_bytes());
        frame.extend(payload);
        let end = frame.len();
        frame.resize(end.max(60), 0xee);
        Made {
            frame,
            transport,
            end,
            field,
            pseudo,
        }
    }

    proptest! {
        #[test]
        fn what_was_begun_is_finished_and_what_is_finished_stays(
            ipv4: bool, tcp: bool, tags in 0_usize..3, addresses: [u8; 32],
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let Made { mut frame, transport, end, field, pseudo } =
                begun(ipv4, tcp, tags, &payload, addresses);
            let before = frame.clone();
            finish(&mut frame);
            prop_assert_eq!(covered(&pseudo, &frame[transport..end]), 0xffff);
            let done = frame.clone();
            finish(&mut frame);
            prop_assert_eq!(&frame, &done);
            // Nothing but the field has changed.
            frame[field..field + 2].copy_from_slice(&before[field..field + 2]);
            prop_assert_eq!(frame, before);
        }

        #[test]
        fn a_checksum_that_is_wrong_stays_wrong(
            ipv4: bool, tcp: bool, addresses: [u8; 32], change in 1_u16..,
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let Made { mut frame, field, .. } = begun(ipv4, tcp, 0, &payload, addresses);
            let begun = u16::from_be_bytes([frame[field], frame[field + 1]]);
            frame[field..field + 2].copy_from_slice(&(begun ^ change).to_be_bytes());
            let before = frame.clone();
            finish(&mut frame);
            prop_assert_eq!(frame, before);
        }

        #[test]
        fn nonsense_does_not_panic(
            mut frame in proptest::collection::vec(any::<u8>(), 0..120), ipv4: bool, version: u8,
        ) {
            if let Some(place) = frame.get_mut(12..15) {
                place.copy_from_slice(&[if ipv4 { 0x08 } else { 0x86 }, if ipv4 { 0 } else { 0xdd }, version]);
            }
            finish(&mut frame);
        }
    }

    #[test]
    fn a_fragment_is_left_alone() {
        let Made { mut frame, .. } = begun(true, false, 0, b"part", [1; 32]);
        frame[20] = 0x20;
        let before = frame.clone();
        finish(&mut frame);
        assert_eq!(frame, before);
    }
}
