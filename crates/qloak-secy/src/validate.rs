//! Validate: a line frame becomes the frame it was before protection, or is discarded. Inbound, first
//! link.
//!
//! ```text
//!   SecTAG -> SCI -> AN -> PN      sound? known? late? seen before?          no cipher so far
//!   open                           the frames of a batch under one SA at once
//!   window                         accept the PN, move                       only after the ICV held
//!   | DA | SA | SecTAG | sealed | ICV |   ->   | DA | SA | EtherType, payload |
//! ```
//!
//! Each frame gets one verdict and each verdict counts once. A discarded frame's range is empty before
//! anyone could deliver it. A suite without ICV (hazmat) opens whatever it is given, so anyone on the
//! line can also move its replay window. IEEE 802.1AE-2018, 10.6.

use std::ops::Range;

use qloak_api::An;
use qloak_cipher::Open;

use crate::{
    ChannelRef, Inbound, Room, counters,
    frame::ADDRESSES,
    inbound::InboundChannel,
    limits::CHUNK_FRAMES,
    replay,
    sectag::{self, SecTag},
    xpn,
};

/// A frame that verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Valid {
    /// Its channel.
    pub channel: ChannelRef,
    /// Its association number.
    pub an: An,
}

/// What was found about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The ICV verified and the PN is new. The room holds the frame as it was before protection.
    Valid(Valid),
    /// Not a protected frame.
    NoTag,
    /// SecTAG malformed, or frame truncated.
    BadTag,
    /// Key agreement: left as it is for the key handler, and counted there.
    Agreement,
    /// The SCI names no channel of the peer.
    UnknownSci,
    /// No SA of that AN.
    NoSa,
    /// Below the replay window.
    Late,
    /// In the window and seen before.
    Replayed,
    /// The ICV did not verify.
    NotValid,
}

/// A frame that is worth opening. Offsets are from the start of the frame.
struct Work {
    channel: ChannelRef,
    an: An,
    sci: qloak_api::Sci,
    pn: u64,
    secure: Range<usize>,
}

impl Inbound {
    /// Validates a batch in place, any channels mixed. Writes one verdict for each frame and stops
    /// where either ends; gives how many were looked at.
    pub fn validate<'a>(
        &mut self,
        batch: impl IntoIterator<Item = Room<'a>>,
        verdicts: &mut [Verdict],
    ) -> usize {
        let mut batch = batch.into_iter();
        let mut total = 0;
        for verdicts in verdicts.chunks_mut(CHUNK_FRAMES) {
            let mut rooms: [Option<Room<'a>>; CHUNK_FRAMES] = [const { None }; CHUNK_FRAMES];
            let mut frames = 0;
            for (place, room) in rooms.iter_mut().zip(batch.by_ref().take(verdicts.len())) {
                *place = Some(room);
                frames += 1;
            }
            self.validate_chunk(&mut rooms[..frames], verdicts);
            total += frames;
            if frames < verdicts.len() {
                break;
            }
        }
        total
    }

    fn validate_chunk(&mut self, rooms: &mut [Option<Room<'_>>], verdicts: &mut [Verdict]) {
        let mut works: [Option<Work>; CHUNK_FRAMES] = [const { None }; CHUNK_FRAMES];
        for ((room, work), verdict) in rooms
            .iter_mut()
            .flatten()
            .zip(&mut works)
            .zip(&mut *verdicts)
        {
            match self.admit(room.frame()) {
                Ok(admitted) => *work = Some(admitted),
                Err((refused, channel)) => {
                    let counters = channel
                        .and_then(|c| self.channels.get_mut(usize::from(c.index)))
                        .map(|state| &mut state.counters);
                    counters::count(refused, &mut self.strays, counters);
                    *verdict = refused;
                    if refused != Verdict::Agreement {
                        room.discard();
                    }
                }
            }
        }
        // One call of the cipher for each SA in the chunk; most chunks have one.
        while let Some((channel, an)) = works.iter().flatten().map(|w| (w.channel, w.an)).next() {
            self.open(channel, an, rooms, &mut works, verdicts);
        }
    }

    /// Everything about a frame that costs no cipher.
    fn admit(&self, frame: &[u8]) -> Result<Work, (Verdict, Option<ChannelRef>)> {
        let tag = SecTag::parse(frame).map_err(|refused| {
            let verdict = match refused {
                sectag::Refused::NoTag => Verdict::NoTag,
                sectag::Refused::Agreement => Verdict::Agreement,
                sectag::Refused::BadTag => Verdict::BadTag,
            };
            (verdict, None)
        })?;
        //= IEEE 802.1AE-2018 10.6.1
        // The SCI finds the SC, the AN its SA.
        let known = tag.sci.and_then(|sci| Some((sci, self.by_sci(sci)?)));
        let (sci, state) = known.ok_or((Verdict::UnknownSci, None))?;
        let channel = state.reference;
        let place = &state.sas[tag.an.index()];
        let sa = place.sa.as_ref().ok_or((Verdict::NoSa, Some(channel)))?;

        let secure = tag
            .secure_data(frame.len(), sa.sa.suite().tag_octets)
            .ok_or((Verdict::BadTag, None))?;
        let pn = if state.xpn {
            xpn::recover(place.window.lowest(), tag.pn)
        } else {
            u64::from(tag.pn)
        };
        //= IEEE 802.1AE-2018 9.8
        // Without XPN a PN of 0 is never sent.
        if pn == 0 && !state.xpn {
            return Err((Verdict::BadTag, None));
        }
        //= IEEE 802.1AE-2018 10.6.2
        // Late and replayed frames are discarded before they cost a cipher.
        place
            .window
            .check(pn)
            .map_err(|refused| (refused.into(), Some(channel)))?;
        Ok(Work {
            channel,
            an: tag.an,
            sci,
            pn,
            secure,
        })
    }

    /// Opens the frames of one SA and takes them off the work list.
    fn open(
        &mut self,
        channel: ChannelRef,
        an: An,
        rooms: &mut [Option<Room<'_>>],
        works: &mut [Option<Work>; CHUNK_FRAMES],
        verdicts: &mut [Verdict],
    ) {
        let mine = |work: &Work| work.channel == channel && work.an == an;
        let state = &mut self.channels[usize::from(channel.index)];
        let valid = open_group(state, an, rooms, works, mine);

        let mut first = false;
        let members = rooms.iter_mut().zip(works).zip(verdicts).zip(valid);
        for (((room, work), verdict), valid) in members {
            let Some((room, work)) = room.as_mut().zip(work.take_if(|work| mine(work))) else {
                continue;
            };
            let place = &mut state.sas[an.index()];
            //= IEEE 802.1AE-2018 10.6.4
            // The window moves only for frames that verified. The PN is looked at again, since a frame
            // before this one may have moved it.
            *verdict = if !valid {
                Verdict::NotValid
            } else if let Err(refused) = place.window.accept(work.pn) {
                refused.into()
            } else {
                Verdict::Valid(Valid { channel, an })
            };
            counters::count(*verdict, &mut self.strays, Some(&mut state.counters));
            if let Verdict::Valid(_) = verdict {
                state.counters.octets += work.secure.len() as u64;
                if let Some(sa) = &mut place.sa {
                    first |= sa.frames == 0;
                    sa.frames += 1;
                }
                strip(room, &work.secure);
                if state.client.is_some() {
                    state.counters.client_frames += 1;
                    state.counters.client_octets += room.range.len() as u64;
                }
            } else {
                room.discard();
            }
        }
        if first {
            self.hear(channel.number, an);
        }
    }
}

/// Opens the frames of one SA in place; says which verified, by position.
fn open_group(
    state: &InboundChannel,
    an: An,
    rooms: &mut [Option<Room<'_>>],
    works: &[Option<Work>; CHUNK_FRAMES],
    mine: impl Fn(&Work) -> bool,
) -> [bool; CHUNK_FRAMES] {
    let mut valid = [false; CHUNK_FRAMES];
    let Some(sa) = &state.sas[an.index()].sa else {
        return valid;
    };
    let icv = sa.sa.suite().tag_octets;
    let mut opens: [Open<'_>; CHUNK_FRAMES] = std::array::from_fn(|_| nothing());
    let mut positions = [0; CHUNK_FRAMES];
    let mut filled = 0;
    for (position, (room, work)) in rooms.iter_mut().zip(works).enumerate() {
        let Some((room, work)) = room.as_mut().zip(work.as_ref().filter(|work| mine(work))) else {
            continue;
        };
        let Some(frame) = room.storage.get_mut(room.range.clone()) else {
            continue;
        };
        //= IEEE 802.1AE-2018 10.6.3
        // Authenticated: addresses and SecTAG. Confidential: what follows, up to the ICV.
        let (aad, rest) = frame.split_at_mut(work.secure.start);
        let (data, rest) = rest.split_at_mut(work.secure.len());
        let nonce = if state.xpn {
            xpn::nonce(sa.sa.salt(), work.pn)
        } else {
            xpn::nonce_pn32(work.sci, work.pn as u32)
        };
        opens[filled] = Open {
            nonce,
            aad,
            data,
            tag: &rest[..icv],
            valid: false,
        };
        positions[filled] = position;
        filled += 1;
    }
    // The lengths were checked; should the cipher refuse them, nothing is valid.
    if sa.sa.key().open(&mut opens[..filled]).is_ok() {
        for (open, position) in opens[..filled].iter().zip(positions) {
            valid[position] = open.valid;
        }
    }
    valid
}

/// Takes the SecTAG and the ICV away: the addresses move back to what they were before.
fn strip(room: &mut Room<'_>, secure: &Range<usize>) {
    let start = room.range.start;
    let moved = start + secure.start - ADDRESSES;
    room.storage.copy_within(start..start + ADDRESSES, moved);
    *room.range = moved..start + secure.end;
}

impl From<replay::Refused> for Verdict {
    fn from(refused: replay::Refused) -> Self {
        match refused {
            replay::Refused::Late => Self::Late,
            replay::Refused::Replayed => Self::Replayed,
        }
    }
}

/// An empty place in the work list.
fn nothing<'a>() -> Open<'a> {
    Open {
        nonce: [0; 12],
        aad: &[],
        data: &mut [],
        tag: &[],
        valid: false,
    }
}
