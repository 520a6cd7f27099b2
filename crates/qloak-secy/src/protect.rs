//! Protect: a client's or a muxed frame becomes a line frame, in place. Outbound, last link.
//!
//! ```text
//!  before             | DA | SA | EtherType, payload      |
//!  after  | DA | SA | SecTAG | EtherType, payload, sealed | ICV |
//!         \_______ AAD ______/ \______ secure data _______/
//! ```
//!
//! The addresses move forward by the length of the SecTAG; the payload stays where it is. A batch is
//! of one channel, so it is under one SA and goes to the cipher as a whole. A suite without ICV
//! (hazmat) keeps the same form with an ICV of no octets. IEEE 802.1AE-2018, 10.5.

use std::ops::Range;

use qloak_api::{Limits, Sci};
use qloak_cipher::Seal;

use crate::{
    ChannelRef, Outbound, Room, demux,
    frame::ADDRESSES,
    limits,
    outbound::{OutboundChannel, OutboundSa},
    sectag::{self, SecTag},
    xpn,
};

/// What became of a batch. The discarded frames have an empty range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Protected {
    /// Frames ready for the line.
    pub frames: usize,
    /// Discarded: no SA was allowed to encode.
    pub no_sa: usize,
    /// Discarded: would not fit the line, or its room.
    pub too_long: usize,
    /// Discarded: under 14 octets, so no frame. Counted by nobody else.
    pub runts: usize,
}

/// Why a frame was not protected.
enum Refusal<'a> {
    /// The frame: its clients are told of their loss.
    NoSa(&'a [u8]),
    TooLong,
    Runt,
}

impl Outbound {
    /// Protects a batch of frames of one channel, in place and in order. Each needs
    /// [`limits::HEADROOM`] and [`limits::TAILROOM`]. `now_ns` is the caller's time in nanoseconds,
    /// the same scale as that of [`Outbound::encode`].
    pub fn protect<'a>(
        &mut self,
        channel: ChannelRef,
        batch: impl IntoIterator<Item = Room<'a>>,
        now_ns: u64,
    ) -> Protected {
        let mut result = Protected::default();
        let mut batch = batch.into_iter();
        let line_octets_max = self.line.frame_octets_max;
        let Some(state) = self.channels.get_mut(usize::from(channel.index)) else {
            batch.for_each(|mut room| {
                room.discard();
                result.no_sa += 1;
            });
            return result;
        };
        while protect_chunk(state, &mut batch, now_ns, line_octets_max, &mut result) {}
        state.counters.no_sa += result.no_sa as u64;
        state.counters.too_long += result.too_long as u64;
        if state.comes_due(now_ns) {
            // As many places as channels, and each channel is in it once.
            self.due.push(channel.number);
        }
        result
    }
}

/// Protects up to a chunk of frames; false when the batch is at its end.
fn protect_chunk<'a>(
    state: &mut OutboundChannel,
    batch: &mut impl Iterator<Item = Room<'a>>,
    now_ns: u64,
    line_octets_max: usize,
    result: &mut Protected,
) -> bool {
    let mut encoding = state
        .encoding
        .and_then(|an| state.sas[an.index()].as_mut())
        .filter(|sa| !sa.usage.too_old(&state.limits, now_ns));
    let mut seals: [Seal<'a>; limits::CHUNK_FRAMES] = std::array::from_fn(|_| nothing());
    let mut ranges: [Option<Ready<'a>>; limits::CHUNK_FRAMES] =
        [const { None }; limits::CHUNK_FRAMES];
    let mut filled = 0;
    let mut more = true;
    while filled < seals.len() {
        let Some(room) = batch.next() else {
            more = false;
            break;
        };
        let client_octets = room.range.len();
        let prepared = match &mut encoding {
            Some(sa) => prepare(
                state.sci,
                state.xpn,
                &state.limits,
                sa,
                room,
                line_octets_max,
            ),
            None => Err(Refusal::NoSa(room.withdraw())),
        };
        match prepared {
            Ok((seal, ready)) => {
                state.counters.protected_frames += 1;
                state.counters.protected_octets += seal.data.len() as u64;
                if state.transparent {
                    state.counters.client_frames += 1;
                    state.counters.client_octets += client_octets as u64;
                }
                seals[filled] = seal;
                ranges[filled] = Some(ready);
                filled += 1;
            }
            Err(Refusal::NoSa(frame)) => {
                result.no_sa += 1;
                if !state.transparent {
                    for client in demux::clients_ending(frame) {
                        state.refused[usize::from(client.number())] += 1;
                    }
                }
            }
            Err(Refusal::TooLong) => result.too_long += 1,
            Err(Refusal::Runt) => result.runts += 1,
        }
    }
    let Some(sa) = encoding else {
        return more;
    };
    // The lengths are ours, so the cipher cannot refuse them; should it, every range stays empty and
    // nothing leaves unsealed.
    if sa.sa.key().seal(&mut seals[..filled]).is_ok() {
        for (range, sealed) in ranges[..filled].iter_mut().flatten() {
            **range = sealed.clone();
        }
        result.frames += filled;
    } else {
        result.no_sa += filled;
    }
    more
}

/// A room's range, and what it becomes when the frame is sealed.
type Ready<'a> = (&'a mut Range<usize>, Range<usize>);

/// Gives a frame its PN, SecTAG and place for the ICV; what is left is to seal it. The room's range
/// is empty until then.
fn prepare<'a>(
    sci: Sci,
    xpn: bool,
    limits: &Limits,
    sa: &mut OutboundSa,
    room: Room<'a>,
    line_octets_max: usize,
) -> Result<(Seal<'a>, Ready<'a>), Refusal<'a>> {
    let Room { storage, range } = room;
    let given = range.clone();
    range.end = range.start;

    let icv = sa.usage.suite.tag_octets;
    let octets = given.len();
    if octets < limits::FRAME_OCTETS_MIN {
        return Err(Refusal::Runt);
    }
    if octets + sectag::OCTETS + icv > line_octets_max
        || given.start < sectag::OCTETS
        || given.end > storage.len()
        || storage.len() - given.end < icv
    {
        return Err(Refusal::TooLong);
    }
    //= IEEE 802.1AE-2018 10.5.2
    // Each frame takes the next PN of the encoding SA.
    let secure_octets = octets - ADDRESSES;
    let Some(pn) = sa.usage.take_pn(limits, secure_octets) else {
        return Err(Refusal::NoSa(&storage[given]));
    };

    //= IEEE 802.1AE-2018 10.5.3
    // The SecTAG is put between the addresses and what followed them.
    let start = given.start - sectag::OCTETS;
    storage.copy_within(given.start..given.start + ADDRESSES, start);
    let tag = SecTag::compose(sci, sa.usage.an, pn as u32, secure_octets);
    let tag_start = start + ADDRESSES;
    storage[tag_start..tag_start + sectag::OCTETS].copy_from_slice(&tag);

    let sealed = start..given.end + icv;
    let (aad, rest) = storage[sealed.clone()].split_at_mut(ADDRESSES + sectag::OCTETS);
    let (data, tag) = rest.split_at_mut(secure_octets);
    let nonce = if xpn {
        xpn::nonce(sa.sa.salt(), pn)
    } else {
        xpn::nonce_pn32(sci, pn as u32)
    };
    let seal = Seal {
        nonce,
        aad,
        data,
        tag,
    };
    Ok((seal, (range, sealed)))
}

/// An empty place in the work list.
fn nothing<'a>() -> Seal<'a> {
    Seal {
        nonce: [0; 12],
        aad: &[],
        data: &mut [],
        tag: &mut [],
    }
}
