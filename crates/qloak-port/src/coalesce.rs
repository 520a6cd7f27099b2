//! Frames of one TCP flow put together, so that they cross the kernel once: the way back of `offload`.
//!
//! ```text
//!   frames       | head | payload 0 |   | head | payload 1 |   | head | payload 2 |
//!   super-frame  | virtio header | head | payload 0 | payload 1 | payload 2 |
//! ```
//!
//! What always holds: cutting the super-frame gives back the frames, octet for octet. So only frames are put
//! together that follow one another and whose headers differ in nothing but what cutting makes: lengths, IPv4
//! identification (one more each), sequence number, PSH at the end, checksums. The checksums are verified here,
//! because the super-frame's are made anew: a frame with a wrong one goes alone, as it is. Only the frame right
//! behind a run continues it, so that no frame overtakes another. No system calls here.

use std::io::IoSlice;

use crate::{
    Frame,
    headers::{
        IPV4_FRAGMENT, IPV4_OCTETS, IPV6_OCTETS, TCP, TCP_CHECKSUM, TCP_PSH, fold, get,
        network_header, pseudo, put, sum,
    },
    limits,
    offload::{VIRTIO_OCTETS, Virtio},
};

/// Where the flags stand in a TCP header.
const TCP_FLAGS: usize = 13;
const TCP_ACK: u8 = 0x10;
const TCP_ECE: u8 = 0x40;

/// Longest header of a frame that is put together: two VLAN tags, IPv6, TCP with all its options.
const HEAD_OCTETS_MAX: usize = 14 + 8 + IPV6_OCTETS + 60;

/// Parts of a super-frame: virtio header, header, payloads.
pub(crate) const PARTS_MAX: usize = 2 + limits::SUPER_FRAME_SEGMENTS_MAX;

/// Frames that are put together, the first of those they were found in.
pub(crate) struct Run {
    count: usize,
    virtio: [u8; VIRTIO_OCTETS],
    head: [u8; HEAD_OCTETS_MAX],
    /// How much of `head` is used: where the payload begins in each frame.
    head_octets: usize,
}

impl Run {
    /// The run that begins with the first frame; none when that one goes alone.
    pub(crate) fn find(frames: &[Frame]) -> Option<Self> {
        let (first, rest) = frames.split_first()?;
        let first = Segment::parse(first.octets())?;
        let (mut count, mut octets, mut pushed) = (1, first.octets(), first.pushed);
        for frame in rest.iter().take(limits::SUPER_FRAME_SEGMENTS_MAX - 1) {
            if pushed || octets < count * first.octets() {
                break;
            }
            let Some(next) = Segment::parse(frame.octets()) else {
                break;
            };
            let continues = next.continues(&first, count, octets);
            if !continues || (count == 1 && !first.is_sound()) || !next.is_sound() {
                break;
            }
            count += 1;
            octets += next.octets();
            pushed = next.pushed;
        }
        if count == 1 {
            return None;
        }
        Some(Self {
            count,
            virtio: first.virtio()?,
            head: first.head(octets, pushed)?,
            head_octets: first.payload,
        })
    }

    /// How many frames it has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The super-frame with its virtio header, in parts; `frames` are those that it was found in. Parts that
    /// are not needed are empty.
    pub(crate) fn parts<'a>(&'a self, frames: &'a [Frame]) -> [IoSlice<'a>; PARTS_MAX] {
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let [virtio, head, payloads @ ..] = &mut parts;
        *virtio = IoSlice::new(&self.virtio);
        *head = IoSlice::new(self.head.get(..self.head_octets).unwrap_or_default());
        for (part, frame) in payloads.iter_mut().zip(frames.iter().take(self.count)) {
            let payload = frame.octets().get(self.head_octets..);
            *part = IoSlice::new(payload.unwrap_or_default());
        }
        parts
    }
}

/// A frame that holds a TCP segment with payload and nothing unusual.
struct Segment<'a> {
    frame: &'a [u8],
    /// The header, zero where the frames of a run may differ.
    common: [u8; HEAD_OCTETS_MAX],
    ipv4: bool,
    /// Where IP, TCP and the payload begin.
    network: usize,
    transport: usize,
    payload: usize,
    identification: u16,
    sequence: u32,
    pushed: bool,
}

impl<'a> Segment<'a> {
    /// None when the frame is not one that can be put together with others. The checksums are not looked at.
    fn parse(frame: &'a [u8]) -> Option<Self> {
        let network = network_header(frame)?;
        let ipv4 = match (get(frame, network - 2)?, *frame.get(network)?) {
            (0x0800, 0x45) => true,
            (0x86dd, 0x60..=0x6f) => false,
            _ => return None,
        };
        let (octets, protocol, transport) = if ipv4 {
            let octets = get(frame, network + 2)?.into();
            (octets, *frame.get(network + 9)?, network + IPV4_OCTETS)
        } else {
            let octets = IPV6_OCTETS + usize::from(get(frame, network + 4)?);
            (octets, *frame.get(network + 6)?, network + IPV6_OCTETS)
        };
        let payload = transport + usize::from(*frame.get(transport + 12)? >> 4) * 4;
        let flags = *frame.get(transport + TCP_FLAGS)?;
        let usual = protocol == TCP
            && network + octets == frame.len()
            && (transport + 20..frame.len()).contains(&payload)
            && flags & !(TCP_PSH | TCP_ECE) == TCP_ACK
            && !(ipv4 && get(frame, network + 6)? & IPV4_FRAGMENT != 0);
        if !usual {
            return None;
        }
        let mut common = [0; HEAD_OCTETS_MAX];
        common
            .get_mut(..payload)?
            .copy_from_slice(frame.get(..payload)?);
        let mut identification = 0;
        if ipv4 {
            identification = get(frame, network + 4)?;
            common.get_mut(network + 2..network + 6)?.fill(0);
            put(&mut common, network + 10, 0)?;
        } else {
            put(&mut common, network + 4, 0)?;
        }
        let sequence: &mut [u8; 4] = common
            .get_mut(transport + 4..transport + 8)?
            .try_into()
            .ok()?;
        let sequence = u32::from_be_bytes(std::mem::take(sequence));
        *common.get_mut(transport + TCP_FLAGS)? &= !TCP_PSH;
        put(&mut common, transport + TCP_CHECKSUM, 0)?;
        Some(Self {
            frame,
            common,
            ipv4,
            network,
            transport,
            payload,
            identification,
            sequence,
            pushed: flags & TCP_PSH != 0,
        })
    }

    /// Octets of its payload, at least one.
    fn octets(&self) -> usize {
        self.frame.len() - self.payload
    }

    /// Whether it is what cutting would make as frame `index` of a run of whose payload `octets` came before.
    fn continues(&self, first: &Self, index: usize, octets: usize) -> bool {
        let whole = first.payload - first.network + octets + self.octets();
        // The headers first zero what may differ, so that whatever is not named there must be the same.
        self.common == first.common
            && self.octets() <= first.octets()
            && self.sequence == first.sequence.wrapping_add(octets as u32)
            && (!self.ipv4
                || self.identification == first.identification.wrapping_add(index as u16))
            && whole <= usize::from(u16::MAX)
    }

    /// Whether its checksums are those that cutting would write.
    fn is_sound(&self) -> bool {
        let (Some(header), Some(segment)) = (
            self.frame.get(self.network..self.transport),
            self.frame.get(self.transport..),
        ) else {
            return false;
        };
        (!self.ipv4 || is_right(sum(header), get(header, 10)))
            && is_right(
                self.pseudo(segment.len()) + sum(segment),
                get(segment, TCP_CHECKSUM),
            )
    }

    fn pseudo(&self, octets: usize) -> u64 {
        let addresses = if self.ipv4 { 12 } else { 8 };
        let addresses = self.frame.get(self.network + addresses..self.transport);
        pseudo(addresses.unwrap_or_default(), TCP, octets)
    }

    fn virtio(&self) -> Option<[u8; VIRTIO_OCTETS]> {
        Some(Virtio::tcp(
            self.ipv4,
            self.transport.try_into().ok()?,
            self.payload.try_into().ok()?,
            self.octets().try_into().ok()?,
        ))
    }

    /// The header of a run that begins with this segment and has so many octets of payload.
    fn head(&self, octets: usize, pushed: bool) -> Option<[u8; HEAD_OCTETS_MAX]> {
        let (network, transport) = (self.network, self.transport);
        let mut head = self.common;
        let octets = self.payload + octets;
        if self.ipv4 {
            put(&mut head, network + 2, (octets - network).try_into().ok()?)?;
            put(&mut head, network + 4, self.identification)?;
            let checksum = !fold(sum(head.get(network..transport)?));
            put(&mut head, network + 10, checksum)?;
        } else {
            let octets = octets - transport;
            put(&mut head, network + 4, octets.try_into().ok()?)?;
        }
        head.get_mut(transport + 4..transport + 8)?
            .copy_from_slice(&self.sequence.to_be_bytes());
        if pushed {
            *head.get_mut(transport + TCP_FLAGS)? |= TCP_PSH;
        }
        let begun = fold(self.pseudo(octets - transport));
        put(&mut head, transport + TCP_CHECKSUM, begun)?;
        Some(head)
    }
}

/// Whether a sum with its checksum in it comes out right. All ones stand for zero and would be right too, but nobody who
/// cuts writes them.
fn is_right(sum: u64, checksum: Option<u16>) -> bool {
    fold(sum) == 0xffff && checksum != Some(0xffff)
}

#[cfg(test)]
pub(crate) mod tests;
