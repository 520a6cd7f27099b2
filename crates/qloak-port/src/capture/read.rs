//! Reading pcap and pcapng.
//!
//! ```text
//!   pcap    header(24)  { seconds(4) fraction(4) captured(4) original(4) octets }...
//! ```
//!
//! Either byte order, stamps in micro- or nanoseconds. The blocks of pcapng are read in `pcapng`. A capture's FCS, where the file
//! says that there is one, is taken off.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use super::{CaptureError, Statistics, Way, pcapng::Interface};
use crate::limits;

pub(super) const ETHERNET: u16 = 1;

/// Type of a pcapng section header, the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;

/// A frame of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When it was seen, nanoseconds since 1970 in UTC; 0 where the file does not say.
    pub stamp_ns: u64,
    /// Its octets without FCS, as far as they were captured.
    pub octets: &'a [u8],
    /// Its length on the wire without FCS: more than `octets` when the capture cut it short.
    pub wire_octets: usize,
}

impl Captured<'_> {
    /// Whether the capture cut the frame short (snap length).
    pub fn is_cut(&self) -> bool {
        self.wire_octets > self.octets.len()
    }
}

/// Where a frame was seen, as far as the file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Number of its interface; pcap files have one alone.
    pub interface: usize,
    /// Which way it passed there.
    pub way: Option<Way>,
}

/// Reads a capture file frame by frame.
pub struct Reader<R> {
    pub(super) source: R,
    pub(super) form: Form,
    pub(super) buffer: Vec<u8>,
    /// Where in `buffer` the present frame lies.
    range: std::ops::Range<usize>,
    pub(super) stamp_ns: u64,
    pub(super) origin: Origin,
    wire_octets: usize,
    /// Frames that were begun.
    pub(super) frames: u64,
}

pub(super) enum Form {
    Pcap {
        big_endian: bool,
        nanoseconds: bool,
        fcs_octets: usize,
    },
    PcapNg {
        big_endian: bool,
        interfaces: Vec<Interface>,
    },
}

impl Reader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened or is no capture of Ethernet frames.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let file = File::open(path).map_err(|error| CaptureError::Io {
            what: "open the file",
            error,
        })?;
        Self::new(BufReader::with_capacity(1 << 18, file))
    }
}

impl<R: Read> Reader<R> {
    /// Reads the head of a capture.
    ///
    /// # Errors
    /// When it is no capture of Ethernet frames.
    pub fn new(mut source: R) -> Result<Self, CaptureError> {
        let mut magic = [0; 4];
        let got = fill(&mut source, &mut magic)?;
        let not_capture = |got: &[u8]| CaptureError::NotCapture {
            begins: match got {
                [] => "is empty".into(),
                _ => format!("begins with {got:02x?}"),
            },
        };
        let form = match (got, u32::from_le_bytes(magic)) {
            (4, 0xa1b2_c3d4) => Self::pcap(&mut source, false, false)?,
            (4, 0xa1b2_3c4d) => Self::pcap(&mut source, false, true)?,
            (4, 0xd4c3_b2a1) => Self::pcap(&mut source, true, false)?,
            (4, 0x4d3c_b2a1) => Self::pcap(&mut source, true, true)?,
            (4, SECTION_HEADER) => Form::PcapNg {
                big_endian: false,
                interfaces: Vec::new(),
            },
            _ => return Err(not_capture(&magic[..got])),
        };
        let mut reader = Self {
            source,
            form,
            buffer: Vec::new(),
            range: 0..0,
            stamp_ns: 0,
            origin: Origin::default(),
            wire_octets: 0,
            frames: 0,
        };
        if matches!(reader.form, Form::PcapNg { .. }) {
            reader.section()?;
        }
        Ok(reader)
    }

    fn pcap(source: &mut R, big_endian: bool, nanoseconds: bool) -> Result<Form, CaptureError> {
        let mut head = [0; 20];
        if fill(source, &mut head)? < head.len() {
            return Err(CaptureError::Truncated { frame: 1 });
        }
        // The last word: link type below; above it, if bit 26 is set, the FCS in units of 16 bits.
        let link = word(&head, 16, big_endian).unwrap_or_default();
        let link_type = (link & 0xffff) as u16;
        if link_type != ETHERNET {
            return Err(CaptureError::not_ethernet(link_type));
        }
        let fcs_octets = if link & (1 << 26) == 0 {
            0
        } else {
            (link >> 28) as usize * 2
        };
        Ok(Form::Pcap {
            big_endian,
            nanoseconds,
            fcs_octets,
        })
    }

    /// Goes to the next frame and lends it. None at the end of the file.
    ///
    /// # Errors
    /// When the file is truncated or damaged, or holds frames that are not Ethernet.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> Result<Option<Captured<'_>>, CaptureError> {
        Ok(if self.advance()? {
            Some(self.frame())
        } else {
            None
        })
    }

    /// The frame that `next` or `advance` went to; empty before the first.
    pub fn frame(&self) -> Captured<'_> {
        Captured {
            stamp_ns: self.stamp_ns,
            octets: self.buffer.get(self.range.clone()).unwrap_or_default(),
            wire_octets: self.wire_octets,
        }
    }

    /// Where the frame that `next` or `advance` went to was seen.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The interfaces of the present section so far: names, empty where they have none, and what the file says
    /// passed there.
    pub fn interfaces_seen(&self) -> impl Iterator<Item = (&str, Option<Statistics>)> {
        self.interfaces()
            .iter()
            .map(|interface| (interface.name.as_str(), interface.statistics))
    }

    /// Goes to the next frame. False at the end of the file.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn advance(&mut self) -> Result<bool, CaptureError> {
        match self.form {
            Form::Pcap {
                big_endian,
                nanoseconds,
                fcs_octets,
            } => self.advance_pcap(big_endian, nanoseconds, fcs_octets),
            Form::PcapNg { .. } => loop {
                if let Some(found) = self.advance_block()? {
                    return Ok(found);
                }
            },
        }
    }

    fn advance_pcap(
        &mut self,
        big: bool,
        nanoseconds: bool,
        fcs: usize,
    ) -> Result<bool, CaptureError> {
        let mut head = [0; 16];
        match fill(&mut self.source, &mut head)? {
            0 => return Ok(false),
            16 => self.frames += 1,
            _ => {
                return Err(CaptureError::Truncated {
                    frame: self.frames + 1,
                });
            }
        }
        let field = |at| word(&head, at, big).unwrap_or_default();
        let (seconds, fraction, captured, original) = (field(0), field(4), field(8), field(12));
        self.take(captured as usize)?;
        let unit = if nanoseconds { 1 } else { 1000 };
        self.stamp_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
        self.settle(0, captured as usize, original as usize, fcs)
    }

    /// Takes note of a frame that lies in the buffer.
    pub(super) fn settle(
        &mut self,
        start: usize,
        captured: usize,
        original: usize,
        fcs: usize,
    ) -> Result<bool, CaptureError> {
        // The FCS is the last of the frame on the wire: of a frame that was cut, it was not captured.
        self.wire_octets = original.max(captured).saturating_sub(fcs);
        self.range = start..start + captured.min(self.wire_octets);
        Ok(true)
    }

    /// Reads this many octets into the buffer.
    pub(super) fn take(&mut self, octets: usize) -> Result<usize, CaptureError> {
        if octets > limits::CAPTURE_BLOCK_OCTETS_MAX {
            return Err(self.damaged(format!("a length of {octets} octets")));
        }
        // At most a megabyte, and once it is as long as the longest block it grows no more.
        if self.buffer.len() < octets {
            self.buffer.resize(octets, 0);
        }
        let room = self.buffer.get_mut(..octets).unwrap_or_default();
        if fill(&mut self.source, room)? < octets {
            return Err(CaptureError::Truncated {
                frame: self.frames.max(1),
            });
        }
        Ok(octets)
    }

    pub(super) fn damaged(&self, what: String) -> CaptureError {
        CaptureError::Damaged {
            frame: self.frames.max(1),
            what,
        }
    }
}

/// Reads until the room is full or the file ends; says how much.
pub(super) fn fill(source: &mut impl Read, room: &mut [u8]) -> Result<usize, CaptureError> {
    let mut done = 0;
    while let Some(rest) = room.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(CaptureError::Io {
                    what: "read the file",
                    error,
                });
            }
        }
    }
    Ok(done)
}

pub(super) fn word(octets: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let octets = octets.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big_endian {
        u32::from_be_bytes(octets)
    } else {
        u32::from_le_bytes(octets)
    })
}

pub(super) fn half(octets: &[u8], at: usize, big_endian: bool) -> Option<u16> {
    let octets = octets.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if big_endian {
        u16::from_be_bytes(octets)
    } else {
        u16::from_le_bytes(octets)
    })
}
