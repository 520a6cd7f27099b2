//! Capture files in their oldest form, little-endian, link type Ethernet: written by the demo's
//! recorder in microseconds, read in those or in nanoseconds (magic a1b23c4d).

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const MAGIC: u32 = 0xA1B2_C3D4;
const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
const ETHERNET: u32 = 1;
const FILE_HEADER_OCTETS: usize = 24;
const RECORD_HEADER_OCTETS: usize = 16;

/// Octets of a record that we take: no frame of the demo is longer.
const FRAME_OCTETS_MAX: usize = 16 * 1024;

/// A file being written.
pub(super) struct Writer {
    file: BufWriter<File>,
    snap: usize,
}

impl Writer {
    /// Begins a file; of each frame at most `snap` octets are kept.
    pub(super) fn create(path: &Path, snap: usize) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&MAGIC.to_le_bytes())?;
        file.write_all(&2u16.to_le_bytes())?;
        file.write_all(&4u16.to_le_bytes())?;
        file.write_all(&[0; 8])?;
        file.write_all(&(snap as u32).to_le_bytes())?;
        file.write_all(&ETHERNET.to_le_bytes())?;
        Ok(Self { file, snap })
    }

    /// Appends a frame seen now.
    pub(super) fn frame(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.frame_at(now, frame)
    }

    /// Appends a frame seen at a time since 1970.
    pub(super) fn frame_at(&mut self, time: Duration, frame: &[u8]) -> io::Result<()> {
        let kept = &frame[..frame.len().min(self.snap)];
        for number in [
            time.as_secs() as u32,
            time.subsec_micros(),
            kept.len() as u32,
            frame.len() as u32,
        ] {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.write_all(kept)
    }

    /// Makes sure that all of it is in the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// All frames of a file with their times, in order.
pub(super) fn read(path: &Path) -> io::Result<Vec<(Duration, Vec<u8>)>> {
    let mut octets = Vec::new();
    File::open(path)?.read_to_end(&mut octets)?;
    parse(&octets).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} is no capture of Ethernet in the little-endian pcap form",
                path.display()
            ),
        )
    })
}

fn parse(octets: &[u8]) -> Option<Vec<(Duration, Vec<u8>)>> {
    let fraction = match word(octets, 0)? {
        MAGIC => Duration::from_micros(1),
        MAGIC_NANOSECONDS => Duration::from_nanos(1),
        _ => return None,
    };
    if word(octets, 20)? != ETHERNET {
        return None;
    }
    let mut frames = Vec::new();
    let mut at = FILE_HEADER_OCTETS;
    while at < octets.len() {
        let time = Duration::from_secs(word(octets, at)?.into()) + fraction * word(octets, at + 4)?;
        let kept = word(octets, at + 8)? as usize;
        if kept > FRAME_OCTETS_MAX {
            return None;
        }
        let begin = at + RECORD_HEADER_OCTETS;
        frames.push((time, octets.get(begin..begin + kept)?.to_vec()));
        at = begin + kept;
    }
    Some(frames)
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    let four = octets.get(at..at + 4)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_cut_at_the_snap() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let mut writer = Writer::create(&path, 64).expect("a file");
        let time = Duration::new(1_700_000_000, 5_000);
        writer.frame_at(time, &[7; 20]).expect("written");
        writer.frame_at(time, &[9; 100]).expect("written");
        writer.finish().expect("flushed");
        let frames = read(&path).expect("read");
        assert_eq!(frames, [(time, vec![7; 20]), (time, vec![9; 64])]);
    }

    #[test]
    fn nanoseconds_are_read() {
        let mut octets = vec![0; 24];
        octets[..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        octets[20..].copy_from_slice(&ETHERNET.to_le_bytes());
        for number in [7u32, 9, 2, 2] {
            octets.extend(number.to_le_bytes());
        }
        octets.extend([1, 2]);
        assert_eq!(
            parse(&octets),
            Some(vec![(Duration::new(7, 9), vec![1, 2])])
        );
    }

    #[test]
    fn nonsense_and_cut_files_are_refused() {
        assert!(parse(b"").is_none());
        assert!(parse(&[0; 64]).is_none());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let mut writer = Writer::create(&path, 64).expect("a file");
        writer.frame(&[7; 20]).expect("written");
        writer.finish().expect("flushed");
        let octets = std::fs::read(&path).expect("read");
        assert!(parse(&octets).is_some());
        assert!(parse(&octets[..octets.len() - 1]).is_none());
    }
}
