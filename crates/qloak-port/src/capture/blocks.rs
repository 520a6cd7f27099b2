//! A pcapng stream of [`super::NgWriter`] on its way into a file: cut into whole blocks, and counted.
//!
//! What comes over a network comes in pieces of any size. Only whole blocks are passed on, so a file is readable
//! wherever the stream ends; and what the blocks say of themselves is read off in passing, for those who wait.
//! Blocks keep the names that the format gives them (tidy: allow packet in this file).

use std::collections::BTreeMap;

use super::{
    CaptureError,
    pcapng::{ENHANCED_PACKET, INTERFACE_STATISTICS, options},
    read::{SECTION_HEADER, word},
};
use crate::limits;

/// Takes a stream in pieces and gives it back in whole blocks.
#[derive(Debug, Default)]
pub struct Blocks {
    waiting: Vec<u8>,
    begun: bool,
    frames: u64,
    dropped: BTreeMap<u32, u64>,
}

impl Blocks {
    /// Takes the next piece; gives the blocks that are whole now.
    ///
    /// # Errors
    /// When the stream is no pcapng of this program's writing.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, CaptureError> {
        self.waiting.extend_from_slice(piece);
        let mut whole = 0;
        while let Some(block) = self.block(whole)? {
            self.begun = true;
            self.count(whole, block);
            whole += block;
        }
        let rest = self.waiting.split_off(whole);
        Ok(std::mem::replace(&mut self.waiting, rest))
    }

    /// Frames in the blocks that were given back.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames that the stream says are missing in it; none where it has not said so yet.
    pub fn dropped(&self) -> Option<u64> {
        (!self.dropped.is_empty()).then(|| self.dropped.values().sum())
    }

    /// Octets of the block that begins there, if it is whole.
    fn block(&self, at: usize) -> Result<Option<usize>, CaptureError> {
        let (Some(kind), Some(length)) = (
            word(&self.waiting, at, false),
            word(&self.waiting, at + 4, false),
        ) else {
            return Ok(None);
        };
        if !self.begun && kind != SECTION_HEADER {
            return Err(CaptureError::NotCapture {
                begins: format!("begins with {:02x?}", kind.to_le_bytes()),
            });
        }
        let length = length as usize;
        if length < 12 || !length.is_multiple_of(4) || length > limits::CAPTURE_BLOCK_OCTETS_MAX {
            return Err(CaptureError::Damaged {
                frame: self.frames + 1,
                what: format!("a block of {length} octets"),
            });
        }
        Ok((self.waiting.len() - at >= length).then_some(length))
    }

    fn count(&mut self, at: usize, length: usize) {
        let body = self
            .waiting
            .get(at + 8..at + length - 4)
            .unwrap_or_default();
        match word(&self.waiting, at, false) {
            Some(ENHANCED_PACKET) => self.frames += 1,
            Some(INTERFACE_STATISTICS) => {
                let interface = word(body, 0, false).unwrap_or_default();
                let dropped = options(body, 12, false).find_map(|(code, value)| {
                    (code == 5).then(|| value.try_into().map(u64::from_le_bytes).ok())?
                });
                if let Some(dropped) = dropped {
                    self.dropped.insert(interface, dropped);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{NgWriter, Recorded, Statistics, Way};

    fn stream() -> Vec<u8> {
        let mut writer = NgWriter::new("test", "");
        writer.interface("line", "", 64);
        for number in 0..5_u8 {
            writer.frame(&Recorded {
                interface: 0,
                stamp_ns: number.into(),
                way: Way::Received,
                wire_octets: 60,
                octets: &[number; 61][..usize::from(number) + 57],
            });
        }
        writer.statistics(
            0,
            9,
            Statistics {
                passed: 7,
                dropped: 1,
            },
        );
        writer.statistics(
            0,
            9,
            Statistics {
                passed: 7,
                dropped: 2,
            },
        );
        writer.take()
    }

    #[test]
    fn whatever_the_pieces_are_only_whole_blocks_come_out() {
        let stream = stream();
        for piece in [1, 3, 50, stream.len()] {
            let mut blocks = Blocks::default();
            let mut file = Vec::new();
            for part in stream.chunks(piece) {
                file.extend(blocks.push(part).expect("sound"));
            }
            assert_eq!(file, stream);
            assert_eq!((blocks.frames(), blocks.dropped()), (5, Some(2)));
        }
        let mut blocks = Blocks::default();
        let most = blocks.push(&stream[..stream.len() - 1]).expect("sound");
        assert_eq!(
            stream.len() - most.len(),
            12 + 12 + 2 * 12 + 4,
            "the last block waits"
        );
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let mut blocks = Blocks::default();
        assert!(blocks.push(b"<html><body>").is_err());
        let mut stream = stream();
        let first = u32::from_le_bytes([stream[4], stream[5], stream[6], stream[7]]) as usize;
        stream[first + 4] = 3;
        let said = Blocks::default().push(&stream).expect_err("damaged");
        assert!(said.to_string().contains("a block of 3 octets"), "{said}");
    }
}
