//! Where things stand in the headers of a frame, and the sum that their checksums are made of.
//!
//! What `offload`, `coalesce` and `checksum` know alike of IPv4, IPv6, TCP and UDP. Nothing here trusts a
//! length: what is not there is none.

/// The protocol numbers.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

pub(crate) const IPV4_OCTETS: usize = 20;
pub(crate) const IPV6_OCTETS: usize = 40;

/// Where the checksum stands in a TCP header, and in a UDP header.
pub(crate) const TCP_CHECKSUM: usize = 16;
pub(crate) const UDP_CHECKSUM: usize = 6;

/// Of the flags of TCP.
pub(crate) const TCP_PSH: u8 = 0x08;

/// More fragments, or the fragment's offset: the frame does not hold a whole datagram.
pub(crate) const IPV4_FRAGMENT: u16 = 0x3fff;

/// Where the IP header begins: behind the addresses, the VLAN tags and the EtherType.
pub(crate) fn network_header(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    while matches!(get(frame, at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    Some(at + 2)
}

pub(crate) fn get(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn put(octets: &mut [u8], at: usize, value: u16) -> Option<()> {
    octets
        .get_mut(at..at + 2)?
        .copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// The sum of the pseudo header (RFC 9293, 3.1; RFC 768; RFC 8200, 8.1), not yet folded: `addresses` are both, one
/// behind the other; `octets` are those of the segment.
pub(crate) fn pseudo(addresses: &[u8], protocol: u8, octets: usize) -> u64 {
    sum(addresses) + u64::from(protocol) + octets as u64
}

/// The one's complement sum of the 16-bit words (RFC 1071), not yet folded.
pub(crate) fn sum(octets: &[u8]) -> u64 {
    let (words, rest) = octets.as_chunks::<4>();
    let sum: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    let mut last = [0; 4];
    for (slot, octet) in last.iter_mut().zip(rest) {
        *slot = *octet;
    }
    // In the machine's order, and turned round once at the end: the sum does not mind (RFC 1071, 2 (B)).
    fold(sum + u64::from(u32::from_ne_bytes(last)))
        .to_be()
        .into()
}

/// A sum folded to 16 bits; zero only when all that was summed is zero.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
