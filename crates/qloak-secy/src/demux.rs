//! Demux: the records of a valid line frame become client frames again. Inbound, second link.
//!
//! The form is drawn in [`crate::mux`]. The ICV has verified, so a record that does not parse is the
//! far node's fault and counts as `mux_errors`; the rest of that line frame is left away. Pieces are
//! joined in one buffer for each channel, which bounds what a peer can make this node hold:
//!
//! ```text
//!                 first                    next in sequence, same client, same SA
//!   (nothing) -------------> (pieces held) ------------------------------+
//!       ^                       |   |   ^                                |
//!       |      last: deliver    |   |   +--------------------------------+
//!       +-----------------------+   |
//!       +---------------------------+  any other fragment: given up, counted as lost
//! ```

use qloak_api::ClientPort;

use crate::{
    Inbound, Valid,
    channel::client_bit,
    frame::{ETHERTYPE_MUX, ethertype},
    inbound::InboundChannel,
    limits,
    mux::{FIRST, FRAGMENT_HEADER, LAST, LINE_HEADER, WHOLE_HEADER},
};

/// The far node wrote something that is no record.
struct Malformed;

/// One record of a line frame.
struct Record<'a> {
    first: bool,
    last: bool,
    client: ClientPort,
    sequence: u32,
    octets: &'a [u8],
}

/// The client ports of the frames that end in a line frame, one entry for each frame.
pub(crate) fn clients_ending(line_frame: &[u8]) -> impl Iterator<Item = ClientPort> + '_ {
    let mut rest = line_frame.get(LINE_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || Record::take(&mut rest))
        .filter(|record| record.last)
        .map(|record| record.client)
}

/// The pieces of one client frame so far.
pub(crate) struct Reassembly {
    buffer: Box<[u8]>,
    held: Option<Held>,
    /// The sequence that would go on with a frame whose beginning is lost and counted already.
    orphan_next: Option<u32>,
}

/// Whose pieces are held.
#[derive(Clone, Copy)]
struct Held {
    client: ClientPort,
    octets: usize,
    next: u32,
    generation: u64,
}

impl Inbound {
    /// Gives each client frame of a valid line frame to `deliver`, in order. A transparent frame is one
    /// client frame, handed on as it is. Call it in the order of the batch, before the next change.
    pub fn demux(
        &mut self,
        valid: Valid,
        frame: &[u8],
        mut deliver: impl FnMut(ClientPort, &[u8]),
    ) {
        let meshes = &mut self.meshes;
        let Some(state) = self.channels.get_mut(usize::from(valid.channel.index)) else {
            return;
        };
        if let Some(client) = state.client {
            // Counted by validate, since the caller may hand the frame over without coming here.
            deliver(client, frame);
            return;
        }
        let generation = state.sas[valid.an.index()]
            .sa
            .as_ref()
            .map_or(0, |sa| sa.generation);
        let mut rightly = |client, frame: &[u8]| {
            let admitted = meshes.admit(valid.channel, client, frame);
            if admitted {
                deliver(client, frame);
            }
            admitted
        };
        if state.demux(generation, frame, &mut rightly).is_err() {
            state.counters.mux_errors += 1;
        }
    }
}

impl InboundChannel {
    fn demux(
        &mut self,
        generation: u64,
        frame: &[u8],
        deliver: &mut impl FnMut(ClientPort, &[u8]) -> bool,
    ) -> Result<(), Malformed> {
        if ethertype(frame) != Some(ETHERTYPE_MUX) {
            return Err(Malformed);
        }
        let mut rest = frame.get(LINE_HEADER..).unwrap_or_default();
        while !is_fill(rest) {
            let record = Record::take(&mut rest).ok_or(Malformed)?;
            if self.clients & client_bit(record.client) == 0 {
                return Err(Malformed);
            }
            let whole = if record.first && record.last {
                Some(record.octets)
            } else {
                let reassembly = self.reassembly.as_mut().ok_or(Malformed)?;
                reassembly.join(&record, generation, &mut self.counters.fragments_lost)?
            };
            let Some(whole) = whole else { continue };
            if !(limits::FRAME_OCTETS_MIN..=limits::CLIENT_FRAME_OCTETS_MAX).contains(&whole.len())
            {
                return Err(Malformed);
            }
            if deliver(record.client, whole) {
                self.counters.client_frames += 1;
                self.counters.client_octets += whole.len() as u64;
            } else {
                // A VLAN of another channel: the far node is told otherwise than this one.
                self.counters.mux_errors += 1;
            }
        }
        Ok(())
    }
}

/// Whether nothing comes behind the last record: zeros up to the end, since no record has client 0.
fn is_fill(rest: &[u8]) -> bool {
    // The header alone tells it from a record; the rest is looked at once, and all of it at one go.
    rest.iter().take(WHOLE_HEADER).all(|octet| *octet == 0)
        && rest.iter().fold(0, |seen, octet| seen | octet) == 0
}

impl<'a> Record<'a> {
    /// Takes the next record off the front.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let &[flags, client, a, b] = rest.first_chunk::<WHOLE_HEADER>()?;
        let (first, last) = (flags & FIRST != 0, flags & LAST != 0);
        let octets = usize::from(u16::from_be_bytes([a, b]));
        if flags & !(FIRST | LAST) != 0 || octets == 0 {
            return None;
        }
        let (header, sequence) = if first && last {
            (WHOLE_HEADER, 0)
        } else {
            let sequence = rest.get(WHOLE_HEADER..)?.first_chunk::<4>()?;
            (FRAGMENT_HEADER, u32::from_be_bytes(*sequence))
        };
        let record = Self {
            first,
            last,
            client: ClientPort::try_from(client).ok()?,
            sequence,
            octets: rest.get(header..header + octets)?,
        };
        *rest = &rest[header + octets..];
        Some(record)
    }
}

impl Reassembly {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; limits::CLIENT_FRAME_OCTETS_MAX].into_boxed_slice(),
            held: None,
            orphan_next: None,
        }
    }

    /// Takes a piece; gives the whole frame when it was the last one. `lost` counts each frame that is
    /// given up, once.
    fn join(
        &mut self,
        piece: &Record<'_>,
        generation: u64,
        lost: &mut u64,
    ) -> Result<Option<&[u8]>, Malformed> {
        let next = piece.sequence.wrapping_add(1);
        let held = self.held.take();
        let begun = if piece.first {
            *lost += u64::from(held.is_some());
            Held {
                client: piece.client,
                octets: 0,
                next: piece.sequence,
                generation,
            }
        } else {
            let fits = |held: &Held| {
                held.next == piece.sequence
                    && held.client == piece.client
                    && held.generation == generation
            };
            match held {
                Some(held) if fits(&held) => held,
                other => {
                    let counted = self.orphan_next == Some(piece.sequence);
                    *lost += u64::from(other.is_some()) + u64::from(!counted);
                    self.orphan_next = (!piece.last).then_some(next);
                    return Ok(None);
                }
            }
        };
        self.orphan_next = None;
        let octets = begun.octets + piece.octets.len();
        let place = self.buffer.get_mut(begun.octets..octets).ok_or(Malformed)?;
        place.copy_from_slice(piece.octets);
        if piece.last {
            return Ok(Some(&self.buffer[..octets]));
        }
        self.held = Some(Held {
            octets,
            next,
            ..begun
        });
        Ok(None)
    }
}
