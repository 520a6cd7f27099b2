//! Mux: client frames of many ports become records of few line frames. Outbound, second link.
//!
//! A line frame before it is protected, and its records, one behind the other:
//!
//! ```text
//!   | DA: far line port | SA: own line port | 0x88B6 | record | record | ... |
//!
//!   record    octet 0       1       2       3       4       5       6       7
//!                  +-------+-------+-------+-------+-------+-------+-------+-------+-- - -
//!   whole frame    | 0xC0  |client | length        | the client frame, DA onward
//!                  +-------+-------+-------+-------+-------+-------+-------+-------+-- - -
//!   fragment       | F L 0 |client | length        | fragment sequence             | piece
//!                  +-------+-------+-------+-------+-------+-------+-------+-------+-- - -
//!   F (0x80) first piece, L (0x40) last piece; both set: the frame is whole and there is no sequence.
//!   client 1 to 64; length in octets of what follows the header, 1 or more; the other bits are zero.
//!   Behind the last record zeros may fill the line frame to its end: all line frames of a channel of one
//!   size have them, those of others none.
//! ```
//!
//! A frame that does not fit the rest of a line frame is split: the first piece fills the rest, the
//! others go into line frames of their own, the last of which is open for more records. The fragment
//! sequence counts the fragments of a channel. All fragments of a frame are made by one call and leave
//! in one batch, so they are under one SA; the far end joins pieces only of consecutive sequence under
//! one SA, so a lost line frame never joins wrong halves.
//!
//! Nothing here waits: a client frame is written at once, into the room that the caller's line batch
//! lends. The reading side is [`crate::demux`].

use qloak_api::{ClientPort, MacAddress};

use crate::{ChannelRef, LineConfig, Outbound, Room, frame::ETHERTYPE_MUX, limits};

/// Flag of the first piece.
pub(crate) const FIRST: u8 = 0x80;
/// Flag of the last piece.
pub(crate) const LAST: u8 = 0x40;
/// Octets before a whole frame.
pub(crate) const WHOLE_HEADER: usize = 4;
/// Octets before a fragment.
pub(crate) const FRAGMENT_HEADER: usize = 8;
/// Octets of a line frame before its records: addresses and EtherType.
pub(crate) const LINE_HEADER: usize = 14;

/// The line batch of one channel, as the mux sees it: frames to write into, one after the other.
///
/// With `qloak-port`'s batch: `free` is `spare()`, `begin` is `extend()`, `last` is the last of
/// `frames_mut()`.
pub trait LineFrames {
    /// How many frames can still be begun.
    fn free(&self) -> usize;

    /// Begins the next frame and lends its room. The range is empty and starts where the frame shall
    /// start, with [`limits::HEADROOM`] before it. `None` when none is free.
    fn begin(&mut self) -> Option<Room<'_>>;

    /// Lends the frame begun last again; `None` when the batch is empty.
    fn last(&mut self) -> Option<Room<'_>>;
}

/// What became of a client frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Muxed {
    /// Written into the line batch.
    Taken,
    /// Not written: protect and transmit the line batch, then give the same frame again. Never the
    /// answer of an empty batch of [`limits::LINE_BATCH_FRAMES_MIN`] frames.
    LineFull,
    /// Discarded and counted: no SA is allowed to encode.
    NoSa,
    /// Discarded and counted: does not fit the line even in pieces, or the rooms are too small.
    TooLong,
    /// Discarded: under 14 octets, so no frame. Counted by nobody else.
    Runt,
}

/// What a channel's mux remembers.
#[derive(Debug, Default)]
pub(crate) struct MuxState {
    /// The line frame that takes more records, if there is one.
    open: Option<Open>,
    /// The sequence of the next fragment.
    sequence: u32,
    /// How long a line frame may wait for more records.
    pub(crate) wait_ns: u64,
    /// When the last client frame came.
    last_ns: Option<u64>,
    /// Whether every line frame is filled to the same size.
    pub(crate) one_size: bool,
}

/// A line frame that takes more records.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Where it ends in its storage.
    end: usize,
    /// When its first record came; none when it waits for nobody: it is full, begins with a piece, or its first
    /// record came long after the one before.
    since_ns: Option<u64>,
}

impl MuxState {
    /// The open line frame leaves.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Whether client frames come so fast that one may well come while a line frame waits.
    fn flows(&self, now_ns: u64) -> bool {
        self.last_ns
            .is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < self.wait_ns)
    }

    /// When the open line frame has waited for long enough; `None` when none waits.
    pub(crate) fn leaves_at(&self) -> Option<u64> {
        let since_ns = self.open?.since_ns?;
        (self.wait_ns > 0).then(|| since_ns.saturating_add(self.wait_ns))
    }
}

impl LineConfig {
    /// Octets of the longest muxed line frame before it is protected.
    pub(crate) fn mux_octets(&self) -> usize {
        self.frame_octets_max - limits::HEADROOM - limits::TAILROOM
    }

    /// What a muxed line frame to a far node begins with.
    pub(crate) fn mux_header(&self, peer: MacAddress) -> [u8; LINE_HEADER] {
        let mut header = [0; LINE_HEADER];
        header[..6].copy_from_slice(&peer.0);
        header[6..12].copy_from_slice(&self.address.0);
        header[12..].copy_from_slice(&ETHERTYPE_MUX.to_be_bytes());
        header
    }
}

impl Outbound {
    /// Writes a client frame into the line frames of its channel: muxed if the channel is aggregated,
    /// else as a line frame of its own. (The frames of a transparent channel can also be protected
    /// where they are, without this copy.)
    pub fn mux<L: LineFrames + ?Sized>(
        &mut self,
        channel: ChannelRef,
        client: ClientPort,
        frame: &[u8],
        line: &mut L,
        now_ns: u64,
    ) -> Muxed {
        let capacity = self.line.mux_octets();
        let Some(state) = self.channels.get_mut(usize::from(channel.index)) else {
            return Muxed::NoSa;
        };
        let header = self.line.mux_header(state.peer);
        let muxed = if !state.may_encode(now_ns) {
            Muxed::NoSa
        } else if frame.len() < limits::FRAME_OCTETS_MIN {
            Muxed::Runt
        } else if state.transparent {
            carry(frame, capacity, line)
        } else {
            let mut writer = Writer {
                state: &mut state.mux,
                line,
                header,
                records: capacity - LINE_HEADER,
                client: client.number(),
                now_ns,
            };
            writer.write(frame)
        };
        match muxed {
            Muxed::Taken if !state.transparent => {
                state.mux.last_ns = Some(now_ns);
                state.counters.client_frames += 1;
                state.counters.client_octets += frame.len() as u64;
            }
            Muxed::NoSa => state.counters.no_sa += 1,
            Muxed::TooLong => state.counters.too_long += 1,
            Muxed::Taken | Muxed::LineFull | Muxed::Runt => {}
        }
        muxed
    }
}

/// A transparent frame copied into a line frame of its own.
fn carry<L: LineFrames + ?Sized>(frame: &[u8], capacity: usize, line: &mut L) -> Muxed {
    if frame.len() > capacity {
        return Muxed::TooLong;
    }
    let Some(mut room) = line.begin() else {
        return Muxed::LineFull;
    };
    if append(&mut room, &[frame]) {
        Muxed::Taken
    } else {
        Muxed::TooLong
    }
}

/// Writes one client frame.
struct Writer<'a, L: ?Sized> {
    state: &'a mut MuxState,
    line: &'a mut L,
    header: [u8; LINE_HEADER],
    /// Octets of records that a line frame takes.
    records: usize,
    client: u8,
    now_ns: u64,
}

impl<L: LineFrames + ?Sized> Writer<'_, L> {
    fn write(&mut self, frame: &[u8]) -> Muxed {
        if frame.len() > limits::CLIENT_FRAME_OCTETS_MAX {
            return Muxed::TooLong;
        }
        let space = self.space();
        if frame.len() + WHOLE_HEADER <= space {
            return self.whole(frame);
        }
        // What goes into the open line frame, and how many line frames the rest takes.
        let mut head = match space.saturating_sub(FRAGMENT_HEADER) {
            room if room >= limits::FRAGMENT_OCTETS_MIN => room.min(frame.len() - 1),
            _ => 0,
        };
        let per_line = self.records - FRAGMENT_HEADER;
        let rest = frame.len() - head;
        let begins = if head == 0 && frame.len() + WHOLE_HEADER <= self.records {
            1
        } else {
            rest.div_ceil(per_line)
        };
        if begins > limits::FRAGMENTS_MAX {
            return Muxed::TooLong;
        }
        if begins > self.line.free() {
            return Muxed::LineFull;
        }
        if head == 0 {
            if !self.begin() {
                return Muxed::TooLong;
            }
            if frame.len() + WHOLE_HEADER <= self.records {
                return self.whole(frame);
            }
            head = per_line;
        }
        let (piece, mut rest) = frame.split_at(head);
        let mut written = self.fragment(FIRST, piece);
        while written && !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(per_line));
            let flags = if after.is_empty() { LAST } else { 0 };
            written = self.begin() && self.fragment(flags, piece);
            rest = after;
        }
        if written {
            Muxed::Taken
        } else {
            Muxed::TooLong
        }
    }

    /// Octets left in the open line frame; 0 when none is open.
    fn space(&mut self) -> usize {
        let Some(Open { end, .. }) = self.state.open else {
            return 0;
        };
        // The caller may have sent or cleared its batch without a word; then nothing is open.
        match self.line.last() {
            Some(room) if room.range.end == end => {
                (LINE_HEADER + self.records).saturating_sub(room.range.len())
            }
            _ => 0,
        }
    }

    /// Begins a line frame; false when its room cannot hold a full one.
    fn begin(&mut self) -> bool {
        self.state.open = None;
        let octets = LINE_HEADER + self.records;
        if self.state.one_size
            && let Some(mut full) = self.line.last()
        {
            fill_up(&mut full, octets);
        }
        begin(self.line, &self.header, octets)
    }

    fn whole(&mut self, frame: &[u8]) -> Muxed {
        let [a, b] = (frame.len() as u16).to_be_bytes();
        if self.append(true, &[&[FIRST | LAST, self.client, a, b], frame]) {
            Muxed::Taken
        } else {
            Muxed::TooLong
        }
    }

    fn fragment(&mut self, flags: u8, piece: &[u8]) -> bool {
        let [a, b] = (piece.len() as u16).to_be_bytes();
        let sequence = self.state.sequence.to_be_bytes();
        self.state.sequence = self.state.sequence.wrapping_add(1);
        self.append(
            flags & FIRST != 0,
            &[&[flags, self.client, a, b], &sequence, piece],
        )
    }

    /// Puts the parts behind what the line frame begun last holds. `waits`: the line frame may wait for
    /// more records if this is its first one.
    fn append(&mut self, waits: bool, parts: &[&[u8]]) -> bool {
        let Some(mut room) = self.line.last() else {
            return false;
        };
        let written = append(&mut room, parts);
        let first = (waits && self.state.flows(self.now_ns)).then_some(self.now_ns);
        let since_ns = self.state.open.map_or(first, |open| open.since_ns);
        let left = (LINE_HEADER + self.records).saturating_sub(room.range.len());
        let is_full = left < FRAGMENT_HEADER + limits::FRAGMENT_OCTETS_MIN;
        self.state.open = Some(Open {
            end: room.range.end,
            since_ns: since_ns.filter(|_| !is_full),
        });
        written
    }
}

/// Begins a line frame of the line batch; false when its room cannot hold one of `octets`.
pub(crate) fn begin<L: LineFrames + ?Sized>(line: &mut L, header: &[u8], octets: usize) -> bool {
    let Some(mut room) = line.begin() else {
        return false;
    };
    let start = room.range.start;
    room.range.end = start;
    let needed = octets + limits::TAILROOM;
    if start < limits::HEADROOM || room.storage.len().saturating_sub(start) < needed {
        return false;
    }
    append(&mut room, &[header])
}

/// Puts zeros behind a room's frame until it has so many octets.
pub(crate) fn fill_up(room: &mut Room<'_>, octets: usize) {
    let end = room.range.start + octets;
    if let Some(rest) = room.storage.get_mut(room.range.end..end) {
        rest.fill(0);
        room.range.end = end;
    }
}

/// Puts the parts behind a room's frame; false, and nothing written, when they do not fit.
fn append(room: &mut Room<'_>, parts: &[&[u8]]) -> bool {
    let octets: usize = parts.iter().map(|part| part.len()).sum();
    let end = room.range.end;
    let Some(mut place) = room.storage.get_mut(end..end + octets) else {
        return false;
    };
    for part in parts {
        let (here, after) = place.split_at_mut(part.len());
        here.copy_from_slice(part);
        place = after;
    }
    room.range.end = end + octets;
    true
}
