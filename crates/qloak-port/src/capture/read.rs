//! Reading pcap and pcapng.
//!
//! ```text
//!   pcap    header(24)  { seconds fraction captured original octets }...
//!   pcapng  SHB  IDB..  { EPB | SPB | obsolete packet block | others, skipped }...   SHB ...
//! ```
//!
//! Either byte order; stamps of any resolution become nanoseconds. A capture's FCS, where the file
//! says that there is one, is taken off.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use super::CaptureError;
use crate::limits;

const ETHERNET: u16 = 1;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

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

/// Reads a capture file frame by frame.
pub struct Reader<R> {
    source: R,
    form: Form,
    buffer: Vec<u8>,
    /// Where in `buffer` the present frame lies.
    range: std::ops::Range<usize>,
    stamp_ns: u64,
    wire_octets: usize,
    /// Frames that were begun.
    frames: u64,
}

enum Form {
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

/// What a pcapng interface description says.
struct Interface {
    link_type: u16,
    snap_octets: u32,
    /// Ticks of a stamp in a second.
    ticks_per_s: u128,
    offset_s: i64,
    fcs_octets: usize,
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

    /// Reads one block. Some when it was a frame or the end of the file.
    fn advance_block(&mut self) -> Result<Option<bool>, CaptureError> {
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
        match kind {
            INTERFACE_DESCRIPTION => self.interface(body, big).map(|()| None),
            ENHANCED_PACKET => {
                let interface = self.field(0)? as usize;
                self.packet(interface, 20, (4, 8), (12, 16), body).map(Some)
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
        self.within(octets, captured, body)?;
        self.settle(octets, captured, original, fcs)
    }

    fn within(&self, start: usize, octets: usize, body: usize) -> Result<(), CaptureError> {
        if start + octets > body {
            return Err(self.damaged(format!("a frame of {octets} octets in a block of {body}")));
        }
        Ok(())
    }

    /// Takes note of a frame that lies in the buffer.
    fn settle(
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

    /// The rest of a section header block, whose type has been read.
    fn section(&mut self) -> Result<(), CaptureError> {
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
        let mut interface = Interface {
            link_type: half(&self.buffer, 0, big).unwrap_or_default(),
            snap_octets: self.field(4)?,
            ticks_per_s: 1_000_000,
            offset_s: 0,
            fcs_octets: 0,
        };
        let mut at = 8;
        while let (Some(code), Some(length)) =
            (half(&self.buffer, at, big), half(&self.buffer, at + 2, big))
        {
            let length = usize::from(length);
            if code == 0 || at + 4 + length > body {
                break;
            }
            let value = self.buffer.get(at + 4..at + 4 + length).unwrap_or_default();
            match (code, value) {
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
            at += 4 + length.next_multiple_of(4);
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

    /// Reads this many octets into the buffer.
    fn take(&mut self, octets: usize) -> Result<usize, CaptureError> {
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

    fn field(&self, at: usize) -> Result<u32, CaptureError> {
        word(&self.buffer, at, self.big_endian())
            .ok_or_else(|| self.damaged("a block too short for what it is".into()))
    }

    fn big_endian(&self) -> bool {
        match self.form {
            Form::Pcap { big_endian, .. } | Form::PcapNg { big_endian, .. } => big_endian,
        }
    }

    fn interfaces(&self) -> &[Interface] {
        match &self.form {
            Form::Pcap { .. } => &[],
            Form::PcapNg { interfaces, .. } => interfaces,
        }
    }

    fn damaged(&self, what: String) -> CaptureError {
        CaptureError::Damaged {
            frame: self.frames.max(1),
            what,
        }
    }
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

/// Reads until the room is full or the file ends; says how much.
fn fill(source: &mut impl Read, room: &mut [u8]) -> Result<usize, CaptureError> {
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

fn word(octets: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let octets = octets.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big_endian {
        u32::from_be_bytes(octets)
    } else {
        u32::from_le_bytes(octets)
    })
}

fn half(octets: &[u8], at: usize, big_endian: bool) -> Option<u16> {
    let octets = octets.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if big_endian {
        u16::from_be_bytes(octets)
    } else {
        u16::from_le_bytes(octets)
    })
}
