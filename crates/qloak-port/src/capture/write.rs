//! Writing pcap: little-endian, stamps in nanoseconds, link type Ethernet.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use super::CaptureError;

/// Snap length that the header states: the largest that tcpdump and Wireshark accept.
const SNAP_OCTETS: u32 = 262_144;

/// Writes a capture file frame by frame.
pub struct Writer<W: Write> {
    sink: W,
}

impl Writer<BufWriter<File>> {
    /// Makes a file, or replaces one.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn create(path: &Path) -> Result<Self, CaptureError> {
        let file = File::create(path).map_err(|error| CaptureError::Io {
            what: "make the file",
            error,
        })?;
        Self::new(BufWriter::with_capacity(1 << 18, file))
    }
}

impl<W: Write> Writer<W> {
    /// Writes the head of a capture.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(sink: W) -> Result<Self, CaptureError> {
        let mut writer = Self { sink };
        let mut head = [0; 24];
        // Magic of nanosecond stamps; version 2.4; two reserved words; snap length; Ethernet.
        head[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        head[4..8].copy_from_slice(&[2, 0, 4, 0]);
        head[16..20].copy_from_slice(&SNAP_OCTETS.to_le_bytes());
        head[20..24].copy_from_slice(&1_u32.to_le_bytes());
        writer.put(&head)?;
        Ok(writer)
    }

    /// Writes a frame (without FCS) that was seen at `stamp_ns` nanoseconds since 1970; after 2106 the stamps
    /// start again, as the format has it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn frame(&mut self, stamp_ns: u64, octets: &[u8]) -> Result<(), CaptureError> {
        let length = u32::try_from(octets.len()).unwrap_or(SNAP_OCTETS);
        let captured = length.min(SNAP_OCTETS);
        let mut head = [0; 16];
        head[..4].copy_from_slice(&((stamp_ns / 1_000_000_000) as u32).to_le_bytes());
        head[4..8].copy_from_slice(&((stamp_ns % 1_000_000_000) as u32).to_le_bytes());
        head[8..12].copy_from_slice(&captured.to_le_bytes());
        head[12..16].copy_from_slice(&length.to_le_bytes());
        self.put(&head)?;
        self.put(octets.get(..captured as usize).unwrap_or_default())
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.sink.flush().map_err(|error| CaptureError::Io {
            what: "write the file",
            error,
        })
    }

    fn put(&mut self, octets: &[u8]) -> Result<(), CaptureError> {
        self.sink
            .write_all(octets)
            .map_err(|error| CaptureError::Io {
                what: "write the file",
                error,
            })
    }
}
