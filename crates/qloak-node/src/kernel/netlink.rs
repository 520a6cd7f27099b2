//! Netlink: requests to the kernel's tables, and its answers (netlink(7), linux/netlink.h).
//!
//! ```text
//!   message     | length 4 | type 2 | flags 2 | sequence 4 | sender 4 | family's own header | attributes |
//!   attribute   | length 2 | kind 2 | content | zeros up to a multiple of 4 |       (may hold attributes)
//! ```
//!
//! Numbers are in the machine's own order. A request may hold a key: its memory is wiped when it goes, and
//! it never moves while it grows. The kernel answers at once, from its own memory; nobody else can write to
//! these sockets.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with, sockopt,
};
use zeroize::Zeroizing;

/// Octets of the header of a message.
const HEADER: usize = 16;

/// Most octets of a request; the longest, an SA with key and salt, has 150.
const REQUEST_OCTETS_MAX: usize = 512;

/// Room for what the kernel says at once. It says as much as fits 32 KiB when asked for a table.
const ANSWER_OCTETS: usize = 64 << 10;

/// The kernel answers within microseconds, unless it holds the lock of all interfaces for something slow.
const PATIENCE: Duration = Duration::from_secs(5);

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;
/// For a new entry: fail if it is there, make it if not.
pub(super) const CREATE: u16 = 0x200 | 0x400;

/// Kinds of message: the outcome of a request, and the end of a table.
const OUTCOME: u16 = 2;
const DONE: u16 = 3;

/// Bits of an attribute's kind that say something else (holds attributes, big endian).
const KIND_MASK: u16 = 0x3fff;

/// Which of the kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// Interfaces.
    Route,
    /// What registered itself by a name.
    Generic,
}

/// A request under construction.
pub(super) struct Request {
    octets: Zeroizing<Vec<u8>>,
}

impl Request {
    /// A request of this type with the family's own header.
    pub(super) fn new(kind: u16, header: &[u8]) -> Self {
        let mut octets = Zeroizing::new(Vec::with_capacity(REQUEST_OCTETS_MAX));
        octets.extend([0; HEADER]);
        octets[4..6].copy_from_slice(&kind.to_ne_bytes());
        let mut request = Self { octets };
        request.append(header);
        request
    }

    /// A request of a generic family.
    pub(super) fn generic(family: u16, command: u8, version: u8) -> Self {
        Self::new(family, &[command, version, 0, 0])
    }

    /// With an attribute.
    pub(super) fn with(mut self, kind: u16, content: &[u8]) -> Self {
        let octets = u16::try_from(4 + content.len()).unwrap_or(u16::MAX);
        self.append(&octets.to_ne_bytes());
        self.append(&kind.to_ne_bytes());
        self.append(content);
        let whole = self.octets.len().next_multiple_of(4);
        self.append(&[0; 3][..whole - self.octets.len()]);
        self
    }

    /// With an attribute that holds attributes.
    pub(super) fn nest(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.octets.len();
        self = fill(self.with(kind, &[]));
        let octets = u16::try_from(self.octets.len() - start).unwrap_or(u16::MAX);
        self.octets[start..start + 2].copy_from_slice(&octets.to_ne_bytes());
        self
    }

    /// Copies behind what is there. Beyond the room it is cut, so that the memory with the key never moves;
    /// the kernel then refuses the request as malformed.
    fn append(&mut self, octets: &[u8]) {
        let room = REQUEST_OCTETS_MAX - self.octets.len();
        self.octets
            .extend_from_slice(&octets[..octets.len().min(room)]);
    }

    fn finished(mut self, flags: u16, sequence: u32) -> Self {
        let octets = self.octets.len() as u32;
        self.octets[..4].copy_from_slice(&octets.to_ne_bytes());
        self.octets[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.octets[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self
    }
}

/// A socket to one of the tables.
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl Netlink {
    /// Opens it, in the network namespace of the calling thread.
    pub(super) fn open(table: Table) -> io::Result<Self> {
        let protocol: Option<Protocol> = match table {
            Table::Route => None,
            Table::Generic => Some(netlink::GENERIC),
        };
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
        Ok(Self {
            socket,
            sequence: 0,
            answer: vec![0; ANSWER_OCTETS],
        })
    }

    /// Asks for something to be done; the error is the kernel's.
    pub(super) fn order(&mut self, request: Request) -> io::Result<()> {
        self.ask(request, ACKNOWLEDGE, |_| {})
    }

    /// The same for something new.
    pub(super) fn create(&mut self, request: Request) -> io::Result<()> {
        self.ask(request, ACKNOWLEDGE | CREATE, |_| {})
    }

    /// Asks for one entry, which `take` gets without the message's header.
    pub(super) fn get(&mut self, request: Request, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(request, ACKNOWLEDGE, take)
    }

    /// Asks for all entries, one after the other.
    pub(super) fn dump(&mut self, request: Request, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(request, DUMP, take)
    }

    fn ask(&mut self, request: Request, flags: u16, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request.finished(REQUEST | flags, self.sequence);
        send(&self.socket, &request.octets, SendFlags::empty())?;
        loop {
            let (got, _) = recv(&self.socket, &mut self.answer[..], RecvFlags::empty())?;
            let mut rest = self.answer.get(..got).unwrap_or_default();
            while let Some((message, behind)) = Message::first(rest) {
                rest = behind;
                // What an earlier request that timed out left behind.
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    OUTCOME => return message.outcome(),
                    DONE => return Ok(()),
                    _ => take(message.content),
                }
            }
        }
    }
}

/// One message of an answer.
struct Message<'a> {
    kind: u16,
    sequence: u32,
    content: &'a [u8],
}

impl<'a> Message<'a> {
    /// The first message, and what follows it.
    fn first(octets: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (length, rest) = octets.split_first_chunk::<4>()?;
        let length = u32::from_ne_bytes(*length) as usize;
        let (kind, rest) = rest.split_first_chunk::<2>()?;
        let sequence = rest.get(2..6)?.first_chunk::<4>()?;
        let message = Self {
            kind: u16::from_ne_bytes(*kind),
            sequence: u32::from_ne_bytes(*sequence),
            content: octets.get(HEADER..length)?,
        };
        let behind = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((message, behind))
    }

    /// What became of the request: 0, or an error's number below it.
    fn outcome(&self) -> io::Result<()> {
        match self.content.first_chunk::<4>() {
            Some(number) => match i32::from_ne_bytes(*number) {
                0 => Ok(()),
                number => Err(io::Error::from_raw_os_error(number.saturating_neg())),
            },
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The attributes in a piece of an answer, in order. One that does not fit ends them.
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk::<2>()?;
        let (kind, _) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        let content = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes(*kind) & KIND_MASK, content))
    }
}

impl<'a> Attributes<'a> {
    /// The content of the first attribute of a kind.
    pub(super) fn of(octets: &'a [u8], kind: u16) -> Option<&'a [u8]> {
        Self(octets)
            .find(|attribute| attribute.0 == kind)
            .map(|attribute| attribute.1)
    }
}

/// A number of 1, 2, 4 or 8 octets; 0 when it has another size.
pub(super) fn number(content: &[u8]) -> u64 {
    match *content {
        [a] => a.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// A name as the kernel takes it: with a zero behind it.
pub(super) fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_laid_out_as_the_kernel_reads_it() {
        let request = Request::generic(0x1c, 4, 1)
            .with(1, &7_u32.to_ne_bytes())
            .nest(3, |request| request.with(2, &[9]).with(5, &[1, 2]))
            .finished(5, 6);
        let octets = &request.octets[..];
        assert_eq!(octets.len(), 16 + 4 + 8 + (4 + 8 + 8));
        assert_eq!(number(&octets[..4]), octets.len() as u64);
        assert_eq!(number(&octets[4..6]), 0x1c);
        assert_eq!(number(&octets[6..8]), 5);
        assert_eq!(number(&octets[8..12]), 6);
        assert_eq!(octets[16..20], [4, 1, 0, 0]);
        let all: Vec<_> = Attributes(&octets[20..]).collect();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].0, number(all[0].1)), (1, 7));
        let nested: Vec<_> = Attributes(all[1].1).collect();
        assert_eq!(nested, [(2, &[9][..]), (5, &[1, 2][..])]);
    }

    #[test]
    fn memory_with_a_key_never_moves() {
        let mut request = Request::new(1, &[]);
        let place = request.octets.as_ptr();
        for _ in 0..100 {
            request = request.with(4, &[0x5a; 32]);
        }
        assert_eq!(request.octets.as_ptr(), place);
        assert_eq!(request.octets.len(), REQUEST_OCTETS_MAX);
    }

    #[test]
    fn answers_that_lie_about_their_length_end() {
        let octets = Request::new(2, &[1, 0, 0, 0]).finished(0, 1).octets;
        assert!(Message::first(&octets).is_some());
        for length in [0_u32, 15, 21, u32::MAX] {
            let mut octets = octets.clone();
            octets[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(Message::first(&octets).is_none(), "{length}");
        }
        for cut in 0..octets.len() {
            assert!(Message::first(&octets[..cut]).is_none());
        }
        for attribute in [&[3_u8, 0, 1, 0][..], &[9, 0, 1, 0, 1], &[4, 0, 1]] {
            assert_eq!(Attributes(attribute).count(), 0, "{attribute:?}");
        }
    }

    #[test]
    fn the_kernel_answers_and_refuses() {
        let mut route = Netlink::open(Table::Route).expect("a socket");
        // All interfaces: there is always lo.
        let mut seen = Vec::new();
        route
            .dump(Request::new(18, &[0; 16]), |link| {
                seen.extend(Attributes::of(&link[16..], 3).map(<[u8]>::to_vec));
            })
            .expect("a table");
        assert!(seen.contains(&text("lo")), "{seen:?}");
        let nobody = route.get(Request::new(18, &[0; 16]).with(3, &text("no-such")), |_| {});
        assert_eq!(
            nobody.map_err(|error| error.raw_os_error()),
            Err(Some(libc::ENODEV))
        );
    }
}
