//! Capture files of any content.
//!
//! The octets are the file. What must hold:
//!
//! - the reader ends, with as many frames as the file has room for, and an error names the frame it met;
//! - a source that gives one octet at a time is read the same;
//! - what was read, written as pcap and read again, is the same, and written a second time the same file.

use std::io::Read;

use qloak_port::capture::{CaptureError, Reader, Writer};

/// The fewest octets that a frame takes in a file: the header of a pcap record, or a simple block.
const RECORD_OCTETS_MIN: usize = 16;
/// Octets of a frame that the writer keeps: the snap length that its header states.
const SNAP_OCTETS: usize = 262_144;
/// What a pcap stamp can say: 32 bits of seconds.
const STAMP_NS_END: u64 = 1_000_000_000 << 32;

/// A frame as it was read: stamp, octets, whether it was cut.
type Seen = (u64, Vec<u8>, bool);

/// Takes any octets.
pub fn run(octets: &[u8]) {
    let (frames, error) = read(octets);
    assert!(frames.len() * RECORD_OCTETS_MIN <= octets.len());
    match &error {
        Some(CaptureError::Truncated { frame } | CaptureError::Damaged { frame, .. }) => {
            let met = frames.len() as u64;
            assert!(
                (met.max(1)..=met + 1).contains(frame),
                "{frame} after {met}"
            );
        }
        Some(CaptureError::Io { .. }) => panic!("memory can be read"),
        Some(CaptureError::NotCapture { .. } | CaptureError::NotEthernet { .. }) | None => {}
    }

    let (trickled, second_error) = read(Trickle(octets));
    assert!(frames == trickled, "short reads change what is read");
    let words = |error: Option<CaptureError>| error.map(|error| error.to_string());
    assert_eq!(words(error), words(second_error));

    let file = write(&frames);
    let (again, error) = read(&file[..]);
    assert!(error.is_none(), "what we write reads");
    assert_eq!(again.len(), frames.len());
    for (again, frame) in again.iter().zip(&frames) {
        assert_eq!(again.0, frame.0 % STAMP_NS_END);
        assert!(again.1 == frame.1[..frame.1.len().min(SNAP_OCTETS)]);
    }
    assert!(write(&again) == file || again.iter().any(|frame| frame.2));
}

fn read(source: impl Read) -> (Vec<Seen>, Option<CaptureError>) {
    let mut frames = Vec::new();
    let mut reader = match Reader::new(source) {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(frame)) => {
                assert!(frame.octets.len() <= frame.wire_octets);
                frames.push((frame.stamp_ns, frame.octets.to_vec(), frame.is_cut()));
            }
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

fn write(frames: &[Seen]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).expect("memory takes it");
    for (stamp_ns, octets, _) in frames {
        writer.frame(*stamp_ns, octets).expect("memory takes it");
    }
    writer.flush().expect("memory takes it");
    file
}

/// Gives one octet at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let one = room.len().min(1);
        self.0.read(&mut room[..one])
    }
}
