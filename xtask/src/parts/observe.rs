//! Who looks at the line and has no key: writes down when each frame came, how long it was, and whether it was a key
//! agreement frame (its EtherType says so to everybody).
//!
//! ```text
//! | nanoseconds since 1970, 8 | octets without FCS, 4, the highest bit: key agreement |   little endian
//! ```

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::mpsc::{TryRecvError, channel},
    thread,
};

use serde::{Deserialize, Serialize};

use super::raw::{Line, Seen};
use crate::ui::{self, Context, Done, Failure};

const RECORD_OCTETS: usize = 12;
const AGREEMENT_BIT: u32 = 1 << 31;

/// Where and what.
#[derive(clap::Args)]
pub(crate) struct ObserveArguments {
    /// The interface.
    #[arg(long)]
    interface: String,
    /// The record.
    #[arg(long)]
    record: PathBuf,
}

/// What it says at its end.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// Frames in the record.
    pub(crate) frames: u64,
    /// Frames that the kernel had no room for.
    pub(crate) missed: u64,
}

/// A frame of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sighting {
    /// Nanoseconds since 1970.
    pub(crate) at_ns: u64,
    /// Octets without FCS.
    pub(crate) octets: u32,
    /// A key agreement frame.
    pub(crate) agreement: bool,
}

/// Records until standard input closes.
pub(super) fn run(arguments: &ObserveArguments) -> Done {
    let line = Line::open(&arguments.interface).cannot(format_args!(
        "open a packet socket on {}",
        arguments.interface
    ))?;
    line.observe().cannot("hear the line with stamps")?;
    let path = &arguments.record;
    let mut record =
        BufWriter::new(File::create(path).cannot(format_args!("write {}", path.display()))?);
    let (sender, closed) = channel::<()>();
    thread::spawn(move || {
        // Whatever ends the input ends the record.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        drop(sender);
    });
    ui::line("{\"ready\":true}");
    let mut observed = Observed::default();
    let mut seen = Vec::new();
    while closed.try_recv() == Err(TryRecvError::Empty) {
        seen.clear();
        line.see(&mut seen)?;
        observed.frames += seen.len() as u64;
        for frame in &seen {
            record
                .write_all(&octets(*frame))
                .cannot("write the record")?;
        }
    }
    observed.missed = line.drops()?.into();
    record.flush().cannot("finish the record")?;
    ui::line(serde_json::to_string(&observed).cannot("write the report")?);
    Ok(())
}

fn octets(frame: Seen) -> [u8; RECORD_OCTETS] {
    let mut octets = [0; RECORD_OCTETS];
    let bit = if frame.agreement { AGREEMENT_BIT } else { 0 };
    octets[..8].copy_from_slice(&frame.at_ns.to_le_bytes());
    octets[8..].copy_from_slice(&(frame.octets | bit).to_le_bytes());
    octets
}

impl Observed {
    /// From the line that the part printed.
    pub(crate) fn parse(line: &str) -> Done<Self> {
        serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("the observe part said {line:?}: {error}")))
    }
}

impl Sighting {
    /// All frames of a record, in order.
    pub(crate) fn read(path: &Path) -> Done<Vec<Self>> {
        let octets = fs::read(path).cannot(format_args!("read {}", path.display()))?;
        let (records, _) = octets.as_chunks::<RECORD_OCTETS>();
        Ok(records.iter().map(Self::parse).collect())
    }

    fn parse(record: &[u8; RECORD_OCTETS]) -> Self {
        let number = |octets: &[u8]| {
            let place = |number, octet: &u8| number << 8 | u64::from(*octet);
            octets.iter().rev().fold(0, place)
        };
        let (at_ns, word) = (number(&record[..8]), number(&record[8..]) as u32);
        Self {
            at_ns,
            octets: word & !AGREEMENT_BIT,
            agreement: word & AGREEMENT_BIT != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_again() {
        for agreement in [false, true] {
            let (at_ns, seen_octets) = (1_763_000_000_123_456_789, 1514);
            let seen = Seen {
                at_ns,
                octets: seen_octets,
                agreement,
            };
            let read = Sighting::parse(&octets(seen));
            assert_eq!(
                (read.at_ns, read.octets, read.agreement),
                (at_ns, seen_octets, agreement)
            );
        }
    }
}
