//! Writing pcapng: little-endian, stamps in nanoseconds, link type Ethernet, into memory.
//!
//! ```text
//!   section  interface...  { frame | interface | statistics }...
//! ```
//!
//! Each call appends whole blocks, so what was appended can be sent on at any time and is a readable file.
//! Statistics may be appended again and again: the last of an interface counts.
//! Blocks keep the names that the format gives them (tidy: allow packet in this file).

use super::{
    pcapng::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS},
    read::{ETHERNET, SECTION_HEADER},
};

/// Which way a frame passed its interface, as seen from the program that has the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It came in.
    Received,
    /// It went out.
    Transmitted,
}

/// A frame that is written.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// Number of its interface, in the order in which they were described.
    pub interface: u32,
    /// When it passed, nanoseconds since 1970.
    pub stamp_ns: u64,
    /// Which way.
    pub way: Way,
    /// Its length on the wire without FCS.
    pub wire_octets: u32,
    /// Its octets, as far as they were kept.
    pub octets: &'a [u8],
}

/// What passed an interface while it was listened to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that passed, whether they are in the file or not.
    pub passed: u64,
    /// Of them, those that are not in the file since there was no room for them.
    pub dropped: u64,
}

/// A pcapng file that grows in memory; its user takes out what is there.
pub struct NgWriter {
    file: Vec<u8>,
}

impl NgWriter {
    /// A file of one section, which says which program made it and what it shows.
    pub fn new(application: &str, comment: &str) -> Self {
        let mut body = Vec::new();
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        // Version 1.0, and a length of the section that is not known.
        body.extend([1, 0, 0, 0]);
        body.extend([0xff; 8]);
        option(&mut body, 1, comment.as_bytes());
        option(&mut body, 4, application.as_bytes());
        end_of_options(&mut body);
        let mut writer = Self { file: Vec::new() };
        writer.block(SECTION_HEADER, &body);
        writer
    }

    /// Describes an interface; the first is number 0.
    pub fn interface(&mut self, name: &str, description: &str, snap_octets: u32) {
        let mut body = Vec::new();
        body.extend(ETHERNET.to_le_bytes());
        body.extend([0, 0]);
        body.extend(snap_octets.to_le_bytes());
        option(&mut body, 2, name.as_bytes());
        option(&mut body, 3, description.as_bytes());
        // Stamps in units of 10^-9 s.
        option(&mut body, 9, &[9]);
        end_of_options(&mut body);
        self.block(INTERFACE_DESCRIPTION, &body);
    }

    /// Appends a frame.
    pub fn frame(&mut self, frame: &Recorded<'_>) {
        let captured = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
        let length = 44 + captured.next_multiple_of(4);
        let flags: u32 = match frame.way {
            Way::Received => 1,
            Way::Transmitted => 2,
        };
        for word in [
            ENHANCED_PACKET,
            length,
            frame.interface,
            (frame.stamp_ns >> 32) as u32,
            frame.stamp_ns as u32,
            captured,
            frame.wire_octets,
        ] {
            self.file.extend_from_slice(&word.to_le_bytes());
        }
        self.file.extend_from_slice(frame.octets);
        self.pad();
        // One option, the flags, and the end of the options.
        for word in [2 | (4 << 16), flags, 0, length] {
            self.file.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Says what has passed an interface until `stamp_ns`.
    pub fn statistics(&mut self, interface: u32, stamp_ns: u64, statistics: Statistics) {
        let mut body = Vec::new();
        for word in [interface, (stamp_ns >> 32) as u32, stamp_ns as u32] {
            body.extend(word.to_le_bytes());
        }
        option(&mut body, 4, &statistics.passed.to_le_bytes());
        option(&mut body, 5, &statistics.dropped.to_le_bytes());
        end_of_options(&mut body);
        self.block(INTERFACE_STATISTICS, &body);
    }

    /// Octets that wait to be taken.
    pub fn len(&self) -> usize {
        self.file.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// What was appended since the last time: whole blocks.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.file)
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = body.len() as u32 + 12;
        self.file.extend(kind.to_le_bytes());
        self.file.extend(length.to_le_bytes());
        self.file.extend(body);
        self.file.extend(length.to_le_bytes());
    }

    /// Blocks are whole words long, and each begins at one.
    fn pad(&mut self) {
        self.file.resize(self.file.len().next_multiple_of(4), 0);
    }
}

/// A text longer than an option can be is cut.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend(code.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(value.iter().take(length.into()));
    body.resize(body.len().next_multiple_of(4), 0);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}
