//! The blocks of pcapng.
//!
//! ```text
//!   SHB  IDB..  { EPB | SPB | obsolete packet block | others, skipped }...   SHB ...
//!   block  type(4) length(4) body length(4)
//! ```
//!
//! Each section has its own byte order and interfaces; each interface its own link type and unit of stamps,
//! all of which become nanoseconds.
//! Blocks keep the names that the format gives them (tidy: allow packet in this file).

use std::io::Read;

use super::{
    CaptureError, Origin, Reader, Statistics, Way,
    read::{ETHERNET, Form, SECTION_HEADER, fill, half, word},
};
use crate::limits;

pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;
/// Link type, two reserved octets and snap length of an interface description.
const INTERFACE_OCTETS_MIN: usize = 8;

/// What a pcapng interface description says.
pub(super) struct Interface {
    link_type: u16,
    snap_octets: u32,
    /// Ticks of a stamp in a second.
    ticks_per_s: u128,
    offset_s: i64,
    fcs_octets: usize,
    pub(super) name: String,
    pub(super) statistics: Option<Statistics>,
}

impl<R: Read> Reader<R> {
    /// Reads one block. Some when it was a frame or the end of the file.
    pub(super) fn advance_block(&mut self) -> Result<Option<bool>, CaptureError> {
        let mut kind = [0; 4];
        match fill(&mut self.source, &mut kind)? {
            0 => return Ok(Some(false)),
            4 => {}
            _ => {
                return Err(CaptureError::Truncated {
                    frame: self.frames + 1,
                });
            }
        }
        // A new section may have the other byte order; its type reads the same in both.
        if u32::from_be_bytes(kind) == SECTION_HEADER {
            self.section()?;
            return Ok(None);
        }
        let big = self.big_endian();
        let kind = word(&kind, 0, big).unwrap_or_default();
        let is_frame = matches!(kind, ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET);
        if is_frame {
            self.frames += 1;
        }
        let length = self.length(big)?;
        let body = self.take(length.saturating_sub(8))?;
        let Some(body) = body.checked_sub(4) else {
            return Err(self.damaged(format!("a block of {length} octets")));
        };
        if word(&self.buffer, body, big) != Some(length as u32) {
            return Err(self.damaged("a block whose two lengths differ".into()));
        }
        self.origin = Origin::default();
        match kind {
            INTERFACE_DESCRIPTION => self.interface(body, big).map(|()| None),
            INTERFACE_STATISTICS => {
                self.statistics(body, big);
                Ok(None)
            }
            ENHANCED_PACKET => {
                let interface = self.field(0)? as usize;
                let found = self.packet(interface, 20, (4, 8), (12, 16), body)?;
                let captured = self.field(12)? as usize;
                self.origin.way = self.way(20 + captured.next_multiple_of(4), body, big);
                Ok(Some(found))
            }
            OBSOLETE_PACKET => {
                let id = half(&self.buffer, 0, big).unwrap_or_default().into();
                self.packet(id, 20, (4, 8), (12, 16), body).map(Some)
            }
            SIMPLE_PACKET => {
                let original = self.field(0)?;
                let Some(interface) = self.interfaces().first() else {
                    return Err(self.damaged("a frame before any interface".into()));
                };
                let (link_type, fcs, snap) = (
                    interface.link_type,
                    interface.fcs_octets,
                    interface.snap_octets,
                );
                if link_type != ETHERNET {
                    return Err(CaptureError::not_ethernet(link_type));
                }
                let captured = if snap == 0 {
                    original
                } else {
                    original.min(snap)
                };
                self.stamp_ns = 0;
                self.within(4, captured as usize, body)?;
                self.settle(4, captured as usize, original as usize, fcs)
                    .map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A packet block: where its stamp (high, low), its lengths (captured, original) and its octets lie.
    fn packet(
        &mut self,
        interface: usize,
        octets: usize,
        stamp: (usize, usize),
        lengths: (usize, usize),
        body: usize,
    ) -> Result<bool, CaptureError> {
        let ticks = u64::from(self.field(stamp.0)?) << 32 | u64::from(self.field(stamp.1)?);
        let captured = self.field(lengths.0)? as usize;
        let original = self.field(lengths.1)? as usize;
        let Some(description) = self.interfaces().get(interface) else {
            return Err(self.damaged(format!(
                "a frame of interface {interface}, which the file does not describe"
            )));
        };
        let (link_type, fcs) = (description.link_type, description.fcs_octets);
        let stamp_ns = description.nanoseconds(ticks);
        if link_type != ETHERNET {
            return Err(CaptureError::not_ethernet(link_type));
        }
        self.stamp_ns = stamp_ns;
        self.origin.interface = interface;
        self.within(octets, captured, body)?;
        self.settle(octets, captured, original, fcs)
    }

    fn within(&self, start: usize, octets: usize, body: usize) -> Result<(), CaptureError> {
        if start + octets > body {
            return Err(self.damaged(format!("a frame of {octets} octets in a block of {body}")));
        }
        Ok(())
    }

    /// The rest of a section header block, whose type has been read.
    pub(super) fn section(&mut self) -> Result<(), CaptureError> {
        let mut head = [0; 8];
        if fill(&mut self.source, &mut head)? < head.len() {
            return Err(CaptureError::Truncated {
                frame: self.frames + 1,
            });
        }
        let big_endian = match head[4..] {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Err(self.damaged("a section without a byte order".into())),
        };
        let length = word(&head, 0, big_endian).unwrap_or_default() as usize;
        if length < 28 || !length.is_multiple_of(4) {
            return Err(self.damaged(format!("a section header of {length} octets")));
        }
        self.take(length - 12)?;
        if word(&self.buffer, length - 16, big_endian) != Some(length as u32) {
            return Err(self.damaged("a section header whose two lengths differ".into()));
        }
        self.form = Form::PcapNg {
            big_endian,
            interfaces: Vec::new(),
        };
        Ok(())
    }

    /// Takes note of an interface description that lies in the buffer.
    fn interface(&mut self, body: usize, big: bool) -> Result<(), CaptureError> {
        // What lies behind a shorter one in the buffer is of an earlier block.
        if body < INTERFACE_OCTETS_MIN {
            return Err(self.damaged(format!("an interface description of {body} octets")));
        }
        let mut interface = Interface {
            link_type: half(&self.buffer, 0, big).unwrap_or_default(),
            snap_octets: self.field(4)?,
            ticks_per_s: 1_000_000,
            offset_s: 0,
            fcs_octets: 0,
            name: String::new(),
            statistics: None,
        };
        for (code, value) in options(self.buffer.get(..body).unwrap_or_default(), 8, big) {
            match (code, value) {
                (2, name) => interface.name = String::from_utf8_lossy(name).into_owned(),
                (9, [resolution, ..]) => {
                    let exponent = u32::from(resolution & 0x7f);
                    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    match base.checked_pow(exponent) {
                        Some(ticks) => interface.ticks_per_s = ticks,
                        None => {
                            return Err(self.damaged(format!("stamps of 1/{base}^{exponent} s")));
                        }
                    }
                }
                (13, [fcs, ..]) => interface.fcs_octets = usize::from(*fcs),
                (14, [a, b, c, d, e, f, g, h, ..]) => {
                    let octets = [*a, *b, *c, *d, *e, *f, *g, *h];
                    interface.offset_s = if big {
                        i64::from_be_bytes(octets)
                    } else {
                        i64::from_le_bytes(octets)
                    };
                }
                _ => {}
            }
        }
        let too_many = self.interfaces().len() >= limits::CAPTURE_INTERFACES_MAX;
        if too_many {
            return Err(self.damaged(format!(
                "more than {} interfaces",
                limits::CAPTURE_INTERFACES_MAX
            )));
        }
        if let Form::PcapNg { interfaces, .. } = &mut self.form {
            interfaces.push(interface);
        }
        Ok(())
    }

    /// Takes note of the statistics of an interface; those of one that is not described are nobody's.
    fn statistics(&mut self, body: usize, big: bool) {
        let block = self.buffer.get(..body).unwrap_or_default();
        let mut read = Statistics::default();
        for (code, value) in options(block, 12, big) {
            let Ok(octets) = value.try_into() else {
                continue;
            };
            let count = if big {
                u64::from_be_bytes(octets)
            } else {
                u64::from_le_bytes(octets)
            };
            match code {
                4 => read.passed = count,
                5 => read.dropped = count,
                _ => {}
            }
        }
        let interface = word(block, 0, big).unwrap_or(u32::MAX) as usize;
        if let Form::PcapNg { interfaces, .. } = &mut self.form
            && let Some(interface) = interfaces.get_mut(interface)
        {
            interface.statistics = Some(read);
        }
    }

    /// Which way a frame went, where its options say so.
    fn way(&self, at: usize, body: usize, big: bool) -> Option<Way> {
        let block = self.buffer.get(..body).unwrap_or_default();
        let flags = options(block, at, big).find(|(code, _)| *code == 2);
        match word(flags?.1, 0, big)? & 3 {
            1 => Some(Way::Received),
            2 => Some(Way::Transmitted),
            _ => None,
        }
    }

    fn length(&mut self, big: bool) -> Result<usize, CaptureError> {
        let mut length = [0; 4];
        if fill(&mut self.source, &mut length)? < 4 {
            return Err(CaptureError::Truncated {
                frame: self.frames.max(1),
            });
        }
        let length = word(&length, 0, big).unwrap_or_default() as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(self.damaged(format!("a block of {length} octets")));
        }
        Ok(length)
    }

    fn field(&self, at: usize) -> Result<u32, CaptureError> {
        word(&self.buffer, at, self.big_endian())
            .ok_or_else(|| self.damaged("a block too short for what it is".into()))
    }

    fn big_endian(&self) -> bool {
        match self.form {
            Form::Pcap { big_endian, .. } | Form::PcapNg { big_endian, .. } => big_endian,
        }
    }

    pub(super) fn interfaces(&self) -> &[Interface] {
        match &self.form {
            Form::Pcap { .. } => &[],
            Form::PcapNg { interfaces, .. } => interfaces,
        }
    }
}

/// The options of a block, from `at` on: codes and values, up to the end of the options or the first that lies.
pub(super) fn options(
    block: &[u8],
    mut at: usize,
    big: bool,
) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (code, length) = (half(block, at, big)?, half(block, at + 2, big)?);
        let length = usize::from(length);
        let value = block.get(at + 4..at + 4 + length)?;
        at += 4 + length.next_multiple_of(4);
        (code != 0).then_some((code, value))
    })
}

impl Interface {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let since_ns = u128::from(ticks) * 1_000_000_000 / self.ticks_per_s;
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let total = i128::try_from(since_ns)
            .unwrap_or(i128::MAX)
            .saturating_add(offset);
        u64::try_from(total.max(0)).unwrap_or(u64::MAX)
    }
}
