//! The demo's hand on the line: records what crosses it, and puts frames on it that an attacker would.
//!
//! It sits where the line enters node A's namespace, so a frame that it sends travels to node B as if
//! node A had sent it. It knows the wire format only as an outsider does, from a capture: where the
//! SecTAG lies, and which octet of a key agreement frame tells announces from sync frames.
//!
//! ```text
//! DA 6 | SA 6 | 88E5 | TCI/AN 1 | SL 1 | PN 4 | SCI 8 | secure data | ICV 16
//! ```
//!
//! The record is a sample, so that its size is bounded: twice a second some hundred frames, and every
//! announce and ready.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, BufRead},
    path::PathBuf,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::raw::Line;
use crate::{
    pcap::Writer,
    ui::{self, Context, Done, Failure},
};

const PROTECTED: [u8; 2] = [0x88, 0xE5];
const AGREEMENT: [u8; 2] = [0x88, 0xB5];

/// Where the PN and the SCI of a protected frame lie.
const PN_AT: usize = 16;
const SCI_AT: usize = 20;
const DATA_AT: usize = 28;

/// How often a sample is taken, how long it lasts at most and how many frames it has at most.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
const SAMPLE_TIME_MAX: Duration = Duration::from_millis(60);
const SAMPLE_FRAMES_MAX: usize = 150;

/// Octets of each frame in the record: all of the SecTAG and the begin of the secure data.
const SNAP_OCTETS: usize = 192;

/// Frames of each channel, and announces, that are kept to be injected later.
const KEPT_FRAMES_MAX: usize = 32;

/// How far ahead of the newest PN that was seen a made-up frame claims to be: a frame that the replay
/// check must let through to the ICV, though half a second of frames may have passed since.
const PN_AHEAD: u32 = 1_000_000;

/// Where and what.
#[derive(clap::Args)]
pub(crate) struct LineArguments {
    /// The interface.
    #[arg(long)]
    interface: String,
    /// The node at this end: its address on the line.
    #[arg(long)]
    address: String,
    /// The record.
    #[arg(long)]
    record: PathBuf,
}

/// What was put on the line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Injected {
    /// Frames of the past, as they were.
    pub(crate) replayed: u64,
    /// Frames with a bit changed.
    pub(crate) changed: u64,
    /// Announces with a bit changed.
    pub(crate) announces_forged: u64,
    /// Announces of the past, as they were.
    pub(crate) announces_replayed: u64,
}

impl Injected {
    /// From the line that the part printed.
    pub(crate) fn parse(line: &str) -> Done<Self> {
        serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("the line part said {line:?}: {error}")))
    }
}

/// What was seen of the node at this end.
#[derive(Default)]
struct Kept {
    /// Protected frames by SCI.
    frames: BTreeMap<[u8; 8], VecDeque<Vec<u8>>>,
    /// Announces.
    announces: VecDeque<Vec<u8>>,
}

/// Records until standard input closes; each line on it, a number, injects that many of each kind.
pub(super) fn run(arguments: &LineArguments) -> Done {
    let mut line = Line::open(&arguments.interface).cannot(format_args!(
        "open a packet socket on {}",
        arguments.interface
    ))?;
    let address = parse_address(&arguments.address)
        .ok_or_else(|| Failure::new(format!("{} is no MAC address", arguments.address)))?;
    let mut record = Writer::create(&arguments.record, SNAP_OCTETS)
        .cannot(format_args!("write {}", arguments.record.display()))?;
    let orders = orders();
    let mut kept = Kept::default();
    let mut room = vec![0; 1 << 16];
    let mut sample_begin = Instant::now();
    let mut sampled = 0;
    let mut sampling = true;
    line.listen(true)?;
    ui::line("{\"ready\":true}");
    loop {
        if sampling && (sampled >= SAMPLE_FRAMES_MAX || sample_begin.elapsed() > SAMPLE_TIME_MAX) {
            line.listen(false)?;
            sampling = false;
        }
        if sample_begin.elapsed() > SAMPLE_EVERY {
            line.listen(true)?;
            sampling = true;
            sampled = 0;
            sample_begin = Instant::now();
        }
        if let Some(octets) = line.receive(&mut room)? {
            let frame = &room[..octets];
            let talk = is_talk(frame);
            if sampling || talk {
                sampled += 1;
                record.frame(frame).cannot("write the record")?;
            }
            kept.keep(frame, address, talk);
        }
        match orders.try_recv() {
            Ok(count) => {
                let done = kept.inject(&mut line, count).cannot("inject")?;
                ui::line(serde_json::to_string(&done).cannot("write the report")?);
            }
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => break,
        }
    }
    record.finish().cannot("finish the record")
}

/// Numbers from standard input.
fn orders() -> mpsc::Receiver<usize> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line
                .trim()
                .parse()
                .is_ok_and(|count| sender.send(count).is_err())
            {
                return;
            }
        }
    });
    receiver
}

/// A key agreement frame that is no sync frame: an announce, a ready or whatever else is rare.
fn is_talk(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&AGREEMENT) && frame.get(KIND_AT) != Some(&KIND_SYNC)
}

/// Where a key agreement frame says what it is, and the values that we tell apart (docs/wire-format.md).
const KIND_AT: usize = 15;
const KIND_ANNOUNCE: u8 = 3;
const KIND_SYNC: u8 = 6;

impl Kept {
    fn keep(&mut self, frame: &[u8], address: [u8; 6], talk: bool) {
        if frame.get(6..12) != Some(&address) {
            return;
        }
        let place = if talk && frame.get(KIND_AT) == Some(&KIND_ANNOUNCE) {
            &mut self.announces
        } else if frame.get(12..14) == Some(&PROTECTED) {
            let Some(sci) = frame
                .get(SCI_AT..DATA_AT)
                .and_then(|sci| sci.try_into().ok())
            else {
                return;
            };
            self.frames.entry(sci).or_default()
        } else {
            return;
        };
        if place.len() >= KEPT_FRAMES_MAX {
            place.pop_front();
        }
        place.push_back(frame.to_vec());
    }

    /// Puts `count` frames of each kind on the line, taking turns among channels and what was kept.
    fn inject(&self, line: &mut Line, count: usize) -> io::Result<Injected> {
        let mut done = Injected::default();
        let all: Vec<&Vec<u8>> = self.frames.values().flatten().collect();
        for frame in all.iter().cycle().take(count) {
            line.send(frame)?;
            done.replayed += 1;
        }
        let newest: Vec<&Vec<u8>> = self.frames.values().filter_map(VecDeque::back).collect();
        for (turn, frame) in newest.iter().cycle().take(count).enumerate() {
            line.send(&changed(frame, turn))?;
            done.changed += 1;
        }
        for (turn, announce) in self.announces.iter().cycle().take(count).enumerate() {
            line.send(&flipped(announce, turn))?;
            done.announces_forged += 1;
        }
        for announce in self.announces.iter().cycle().take(count) {
            line.send(announce)?;
            done.announces_replayed += 1;
        }
        Ok(done)
    }
}

/// The frame with a PN of the near future and one bit of its secure data changed.
pub(crate) fn changed(frame: &[u8], turn: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Some(pn) = frame.get_mut(PN_AT..SCI_AT) {
        let number = pn
            .iter()
            .fold(0u32, |number, octet| number << 8 | u32::from(*octet));
        pn.copy_from_slice(&number.wrapping_add(PN_AHEAD + turn as u32).to_be_bytes());
    }
    if let Some(data) = frame.get_mut(DATA_AT..)
        && !data.is_empty()
    {
        let at = turn % data.len();
        data[at] ^= 1 << (turn % 8);
    }
    frame
}

/// The frame with one bit of its last 16 octets, the authenticator, changed.
fn flipped(frame: &[u8], turn: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let back = 1 + turn % 16;
    if let Some(octet) = frame
        .len()
        .checked_sub(back)
        .and_then(|at| frame.get_mut(at))
    {
        *octet ^= 1 << (turn % 8);
    }
    frame
}

fn parse_address(text: &str) -> Option<[u8; 6]> {
    let octets: Option<Vec<u8>> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16).ok())
        .collect();
    octets?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(pn: u32) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        frame[12..14].copy_from_slice(&PROTECTED);
        frame[PN_AT..SCI_AT].copy_from_slice(&pn.to_be_bytes());
        frame
    }

    #[test]
    fn a_changed_frame_claims_the_future_and_differs_in_one_bit_of_its_data() {
        let frame = protected(7);
        let forged = changed(&frame, 3);
        assert_eq!(forged[PN_AT..SCI_AT], (7 + PN_AHEAD + 3).to_be_bytes());
        let bits: u32 = frame[DATA_AT..]
            .iter()
            .zip(&forged[DATA_AT..])
            .map(|(a, b)| (a ^ b).count_ones())
            .sum();
        assert_eq!(bits, 1);
        assert_eq!(frame[..PN_AT], forged[..PN_AT]);
    }

    #[test]
    fn only_frames_of_the_node_at_this_end_are_kept_and_not_too_many() {
        let mut kept = Kept::default();
        for pn in 0..100 {
            kept.keep(&protected(pn), [2, 0, 0, 0, 0, 1], false);
        }
        kept.keep(&protected(1), [2, 0, 0, 0, 0, 9], false);
        kept.keep(&[1, 2, 3], [2, 0, 0, 0, 0, 1], false);
        assert_eq!(kept.frames.len(), 1);
        assert_eq!(
            kept.frames.values().map(VecDeque::len).sum::<usize>(),
            KEPT_FRAMES_MAX
        );
    }

    #[test]
    fn addresses() {
        assert_eq!(
            parse_address("02:51:4c:00:00:0a"),
            Some([2, 0x51, 0x4C, 0, 0, 10])
        );
        assert_eq!(parse_address("02:51:4c"), None);
        assert_eq!(parse_address("xx:51:4c:00:00:0a"), None);
    }
}
