//! The frames of key agreement on the line: their bytes, drawn, and nothing else.
//!
//! ```text
//!  0      6      12     14   15   16    18        26        34
//!  +------+------+------+----+----+-----+---------+---------+------ ... ------+--------- ... ---+
//!  |  DA  |  SA  | 88B5 | v1 |type| len |   tag   | counter |      body       |   MAC (32)      |
//!  +------+------+------+----+----+-----+---------+---------+------ ... ------+--------- ... ---+
//!   `len` counts the octets from v1 to the end of the MAC; what follows is Ethernet padding.
//!   The MAC covers everything before it, addresses included. All numbers are big endian.
//!
//!  type 1 hello     boot 16 | key ID 16                                          tag 0
//!       2 welcome   boot 16 | key ID 16 | boot of the target 16
//!       3 announce  channel 2 | C+AN 1 | suite 8 | SCI 8 | change 8 | encoding 8 | key ID 16 | ahead
//!       4 ready     channel 2 | AN 1 | change 8 | key ID 16 | proof 32
//!       5 refuse    channel 2 | reason 1 | change 8 | key ID 16
//!       6 sync      hears 8 | n 1 | n x (channel 2 | AN 1 | suite 8 | change 8) | ahead
//!  ahead: n 1 | n x key ID 16
//!  C+AN:  | C | 0 0 0 0 0 | AN |   C (0x80): the channel is aggregated, otherwise transparent
//! ```
//!
//! What always holds: a frame that does not have exactly this form is no message, whatever its octets;
//! nothing is allocated before a count was checked. Who may say what is left to the link.

use qloak_api::{An, Carriage, KeyId, MacAddress, Sci, SuiteId};
use qloak_keys::derive::{MAC_OCTETS, MacKey};

use super::limits;

const ETHER_TYPE: [u8; 2] = [0x88, 0xB5];
const VERSION: u8 = 1;
const HEADER_OCTETS: usize = 34;
/// The bit above the AN of an announce: the channel is aggregated.
const AGGREGATED: u8 = 0x80;
/// Least octets of an Ethernet frame without FCS (IEEE 802.3-2018, 4A.4.2).
const FRAME_OCTETS_MIN: usize = 60;

/// Why a frame is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// Truncated, oversized, or of an unknown version, type or form.
    Malformed,
    /// Between other addresses than ours.
    Stranger,
}

/// A message as it came, not yet authenticated.
pub(super) struct Received<'a> {
    pub(super) tag: [u8; 8],
    pub(super) counter: u64,
    pub(super) body: Body,
    signed: &'a [u8],
    mac: [u8; MAC_OCTETS],
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Hello(Hello),
    Welcome(Welcome),
    Announce(Announce),
    Ready(Ready),
    Refuse(Refuse),
    Sync(Sync),
}

/// The first announce of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) boot: [u8; 16],
    pub(super) key_id: KeyId,
}

/// Its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Welcome {
    pub(super) initiator_boot: [u8; 16],
    pub(super) key_id: KeyId,
    pub(super) target_boot: [u8; 16],
}

/// The next SA of a channel, as its sender proposes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announce {
    pub(super) channel: u16,
    pub(super) an: An,
    pub(super) carriage: Carriage,
    pub(super) suite: SuiteId,
    pub(super) sci: Sci,
    pub(super) change: u64,
    /// The change whose SA encodes now; 0 for none.
    pub(super) encoding: u64,
    pub(super) key_id: KeyId,
    pub(super) ahead: Vec<KeyId>,
}

/// The target has the key and accepts frames under the SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) channel: u16,
    pub(super) an: An,
    pub(super) change: u64,
    pub(super) key_id: KeyId,
    pub(super) proof: [u8; MAC_OCTETS],
}

/// The target will not, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refuse {
    /// 0 when a key is meant and no channel.
    pub(super) channel: u16,
    pub(super) reason: Reason,
    pub(super) change: u64,
    pub(super) key_id: KeyId,
}

/// Why a target refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Reason {
    UnknownChannel = 1,
    UnknownSuite = 2,
    PnForm = 3,
    WrongSci = 4,
    KeyUnknown = 5,
    NoSa = 6,
    Carriage = 7,
}

/// I am here; this is what I hear and what I encode with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sync {
    /// The tag of the peer's association that this node listens to; 0 for none.
    pub(super) hears: [u8; 8],
    pub(super) channels: Vec<SyncChannel>,
    pub(super) ahead: Vec<KeyId>,
}

/// The encoding SA of one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyncChannel {
    pub(super) channel: u16,
    pub(super) an: An,
    pub(super) suite: SuiteId,
    pub(super) change: u64,
}

impl Reason {
    fn read(octet: u8) -> Option<Self> {
        [
            Self::UnknownChannel,
            Self::UnknownSuite,
            Self::PnForm,
            Self::WrongSci,
            Self::KeyUnknown,
            Self::NoSa,
            Self::Carriage,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == octet)
    }

    /// What the other end lacks, for an alarm at either end.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::UnknownChannel => "it has no such channel",
            Self::UnknownSuite => "it does not offer the suite",
            Self::PnForm => "its channel has packet numbers of another length",
            Self::WrongSci => "it expects another line port address (SCI)",
            Self::KeyUnknown => "its KME does not have the key",
            Self::NoSa => "it has no such SA",
            Self::Carriage => "its channel has the other carriage",
        }
    }
}

impl<'a> Received<'a> {
    /// Reads a whole Ethernet frame that came for `own` from `peer`.
    pub(super) fn read(frame: &'a [u8], own: MacAddress, peer: MacAddress) -> Result<Self, Unread> {
        if frame.len() > limits::FRAME_OCTETS_MAX {
            return Err(Unread::Malformed);
        }
        let mut reader = Reader { rest: frame };
        let (to, from) = (reader.array::<6>()?, reader.array::<6>()?);
        if reader.array()? != ETHER_TYPE || reader.u8()? != VERSION {
            return Err(Unread::Malformed);
        }
        let kind = reader.u8()?;
        let length = usize::from(u16::from_be_bytes(reader.array()?));
        let end = 14 + length;
        let body_end = end.checked_sub(MAC_OCTETS).ok_or(Unread::Malformed)?;
        let signed = frame.get(..body_end).ok_or(Unread::Malformed)?;
        let mac = frame.get(body_end..end).ok_or(Unread::Malformed)?;
        if to != own.0 || from != peer.0 {
            return Err(Unread::Stranger);
        }
        let (tag, counter) = (reader.array()?, reader.u64()?);
        let mut reader = Reader {
            rest: signed.get(HEADER_OCTETS..).ok_or(Unread::Malformed)?,
        };
        let body = reader.body(kind)?;
        if !reader.rest.is_empty() {
            return Err(Unread::Malformed);
        }
        Ok(Self {
            tag,
            counter,
            body,
            signed,
            mac: mac.try_into().map_err(|_| Unread::Malformed)?,
        })
    }

    /// Whether the message was made with this key.
    pub(super) fn authentic(&self, key: &MacKey) -> bool {
        key.verify(&[self.signed], &self.mac)
    }

    /// The MAC as it came, to tell an honest copy of a known message from another one.
    pub(super) fn mac(&self) -> &[u8; MAC_OCTETS] {
        &self.mac
    }
}

/// Where a message goes and what it stands under.
#[derive(Clone, Copy)]
pub(super) struct Envelope {
    pub(super) to: MacAddress,
    pub(super) from: MacAddress,
    pub(super) tag: [u8; 8],
    pub(super) counter: u64,
}

/// The whole Ethernet frame of a message, padded to its least size.
pub(super) fn write(envelope: Envelope, body: &Body, key: &MacKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(&envelope.to.0);
    out.extend_from_slice(&envelope.from.0);
    out.extend_from_slice(&ETHER_TYPE);
    out.extend_from_slice(&[VERSION, body.kind(), 0, 0]);
    out.extend_from_slice(&envelope.tag);
    out.extend_from_slice(&envelope.counter.to_be_bytes());
    body.write(&mut out);
    // The lists are bounded by AHEAD_MAX and SYNC_CHANNELS_MAX, so that the frame stays under 1514.
    let length = (out.len() - 14 + MAC_OCTETS) as u16;
    out[16..18].copy_from_slice(&length.to_be_bytes());
    let mac = key.tag(&[&out]);
    out.extend_from_slice(&mac);
    out.resize(out.len().max(FRAME_OCTETS_MIN), 0);
    out
}

impl Body {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Welcome(_) => 2,
            Self::Announce(_) => 3,
            Self::Ready(_) => 4,
            Self::Refuse(_) => 5,
            Self::Sync(_) => 6,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => {
                out.extend_from_slice(&hello.boot);
                out.extend_from_slice(&hello.key_id.0);
            }
            Self::Welcome(welcome) => {
                out.extend_from_slice(&welcome.initiator_boot);
                out.extend_from_slice(&welcome.key_id.0);
                out.extend_from_slice(&welcome.target_boot);
            }
            Self::Announce(announce) => {
                out.extend_from_slice(&announce.channel.to_be_bytes());
                let aggregated = announce.carriage == Carriage::Aggregated;
                out.push(announce.an.number() | if aggregated { AGGREGATED } else { 0 });
                out.extend_from_slice(&announce.suite.0.to_be_bytes());
                out.extend_from_slice(&announce.sci.to_octets());
                out.extend_from_slice(&announce.change.to_be_bytes());
                out.extend_from_slice(&announce.encoding.to_be_bytes());
                out.extend_from_slice(&announce.key_id.0);
                write_ahead(&announce.ahead, out);
            }
            Self::Ready(ready) => {
                out.extend_from_slice(&ready.channel.to_be_bytes());
                out.push(ready.an.number());
                out.extend_from_slice(&ready.change.to_be_bytes());
                out.extend_from_slice(&ready.key_id.0);
                out.extend_from_slice(&ready.proof);
            }
            Self::Refuse(refuse) => {
                out.extend_from_slice(&refuse.channel.to_be_bytes());
                out.push(refuse.reason as u8);
                out.extend_from_slice(&refuse.change.to_be_bytes());
                out.extend_from_slice(&refuse.key_id.0);
            }
            Self::Sync(sync) => {
                out.extend_from_slice(&sync.hears);
                let channels = &sync.channels[..sync.channels.len().min(limits::SYNC_CHANNELS_MAX)];
                out.push(channels.len() as u8);
                for entry in channels {
                    out.extend_from_slice(&entry.channel.to_be_bytes());
                    out.push(entry.an.number());
                    out.extend_from_slice(&entry.suite.0.to_be_bytes());
                    out.extend_from_slice(&entry.change.to_be_bytes());
                }
                write_ahead(&sync.ahead, out);
            }
        }
    }
}

fn write_ahead(ahead: &[KeyId], out: &mut Vec<u8>) {
    let ahead = &ahead[..ahead.len().min(limits::AHEAD_MAX)];
    out.push(ahead.len() as u8);
    for id in ahead {
        out.extend_from_slice(&id.0);
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Unread::Malformed)?;
        self.rest = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, Unread> {
        self.array::<1>().map(|[octet]| octet)
    }

    fn u16(&mut self) -> Result<u16, Unread> {
        self.array().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Unread> {
        self.array().map(u64::from_be_bytes)
    }

    fn an(&mut self) -> Result<An, Unread> {
        An::try_from(self.u8()?).map_err(|_| Unread::Malformed)
    }

    fn key_id(&mut self) -> Result<KeyId, Unread> {
        self.array().map(KeyId)
    }

    fn ahead(&mut self) -> Result<Vec<KeyId>, Unread> {
        let count = usize::from(self.u8()?);
        if count > limits::AHEAD_MAX {
            return Err(Unread::Malformed);
        }
        (0..count).map(|_| self.key_id()).collect()
    }

    fn body(&mut self, kind: u8) -> Result<Body, Unread> {
        Ok(match kind {
            1 => Body::Hello(Hello {
                boot: self.array()?,
                key_id: self.key_id()?,
            }),
            2 => Body::Welcome(Welcome {
                initiator_boot: self.array()?,
                key_id: self.key_id()?,
                target_boot: self.array()?,
            }),
            3 => Body::Announce(self.announce()?),
            4 => Body::Ready(Ready {
                channel: self.u16()?,
                an: self.an()?,
                change: self.u64()?,
                key_id: self.key_id()?,
                proof: self.array()?,
            }),
            5 => Body::Refuse(Refuse {
                channel: self.u16()?,
                reason: Reason::read(self.u8()?).ok_or(Unread::Malformed)?,
                change: self.u64()?,
                key_id: self.key_id()?,
            }),
            6 => Body::Sync(self.sync()?),
            _ => return Err(Unread::Malformed),
        })
    }

    fn announce(&mut self) -> Result<Announce, Unread> {
        let (channel, octet) = (self.u16()?, self.u8()?);
        Ok(Announce {
            channel,
            an: An::try_from(octet & !AGGREGATED).map_err(|_| Unread::Malformed)?,
            carriage: match octet & AGGREGATED {
                0 => Carriage::Transparent,
                _ => Carriage::Aggregated,
            },
            suite: SuiteId(self.u64()?),
            sci: Sci::from_octets(self.array()?),
            change: self.u64()?,
            encoding: self.u64()?,
            key_id: self.key_id()?,
            ahead: self.ahead()?,
        })
    }

    fn sync(&mut self) -> Result<Sync, Unread> {
        let hears = self.array()?;
        let count = usize::from(self.u8()?);
        if count > limits::SYNC_CHANNELS_MAX {
            return Err(Unread::Malformed);
        }
        let mut channels = Vec::with_capacity(count);
        for _ in 0..count {
            channels.push(SyncChannel {
                channel: self.u16()?,
                an: self.an()?,
                suite: SuiteId(self.u64()?),
                change: self.u64()?,
            });
        }
        Ok(Sync {
            hears,
            channels,
            ahead: self.ahead()?,
        })
    }
}

#[cfg(test)]
mod tests;
