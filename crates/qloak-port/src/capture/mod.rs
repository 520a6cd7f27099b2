//! Capture files: pcap and pcapng, read and written, stamps in nanoseconds.
//!
//! Frames are read one after the other into one buffer; a file of any length takes the same memory.
//! A damaged file gives an error that names the frame, never a panic. Formats:
//! draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng (as of 2024).

mod blocks;
mod error;
mod pcapng;
mod read;
mod write;
mod write_ng;

pub use blocks::Blocks;
pub use error::CaptureError;
pub use read::{Captured, Origin, Reader};
pub use write::Writer;
pub use write_ng::{NgWriter, Recorded, Statistics, Way};
