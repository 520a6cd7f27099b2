//! The demo without root: the same programs, the line a wire in memory, the client ports fed from a
//! capture of real traffic.
//!
//! `lab/traffic.pcap` holds some hundred frames that the kernel's own stack sent through client port 1
//! in a demo with root. They are split by their way and laid out, again and again, on a time line that
//! has a stretch of traffic for each phase and silence between, in which the counts are taken:
//!
//! ```text
//!   silence    phase 1    silence   phase 2    silence   ...
//!   ........ ||||||||||| ......... ||||||||||| .........
//! ```
//!
//! What differs from the demo with root, and is said so: nobody answers, so there are no round trips;
//! the line is in memory, so the attack is made on a capture file instead ([`super::offline`]).

use std::{collections::BTreeSet, path::Path, time::Duration};

use super::{offline, phases, report, stage::Stage};
use crate::{
    lab::config::Place,
    pcap::{self, Writer},
    tree,
    ui::{self, Context, Done, Failure},
};

/// Silence before the first phase: the programs start in it.
const SILENCE_FIRST: Duration = Duration::from_secs(6);

/// Silence after each phase: long enough for a slow machine to see that nothing moves.
const SILENCE: Duration = Duration::from_secs(2);

/// Frames per second on each client port and way.
const FRAMES_PER_SECOND: u32 = 300;

/// Runs it.
pub(crate) fn run(quick: bool, binary: Option<&Path>) -> Done {
    ui::head("Qloak demo without root: the same programs over memory ports and captured traffic");
    ui::note(
        "no namespaces: no round trips, no attack on the line and no capture of it; as root there are",
    );
    let place = Place::memory()?;
    let plan = phases::plan(quick, place);
    let stretches: Vec<Duration> = plan.iter().map(|phase| phase.time).collect();
    let mut stage = Stage::build(place, binary, |folder| feed(folder, &stretches))?;
    let rows = phases::walk(&mut stage, &plan);
    stage.view.finish();
    let rows = rows?;
    let mut good = report::show(&rows);
    let folder = stage.folder().to_owned();
    let binary = stage.lab.operator.binary.clone();
    drop(stage);
    good &= compare(&folder, "from-a.pcap", "out-b-1.pcap")?;
    good &= compare(&folder, "from-b.pcap", "out-a-1.pcap")?;
    offline::run(&binary, &folder)?;
    ui::line(format!("logs and configuration: {}", folder.display()));
    if good {
        Ok(())
    } else {
        Err(Failure::new(
            "a frame was lost or a phase failed; see above",
        ))
    }
}

/// Writes what the client ports of both nodes are fed from.
fn feed(folder: &Path, stretches: &[Duration]) -> Done {
    let source = tree::root().join("lab/traffic.pcap");
    let frames = pcap::read(&source).cannot(format_args!("read {}", source.display()))?;
    let (a, b) = split(frames.into_iter().map(|(_, frame)| frame));
    if a.is_empty() || b.is_empty() {
        return Err(Failure::new(format!(
            "{} has no traffic both ways",
            source.display()
        )));
    }
    lay_out(&folder.join("from-a.pcap"), &a, stretches).cannot("write from-a.pcap")?;
    lay_out(&folder.join("from-b.pcap"), &b, stretches).cannot("write from-b.pcap")
}

/// By the last octet of the IPv4 source address (of the sender, in ARP): 1 is site A, 2 is site B.
fn split(frames: impl Iterator<Item = Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for frame in frames {
        let from = match frame.get(12..14) {
            Some([0x08, 0x00]) => frame.get(29),
            Some([0x08, 0x06]) => frame.get(31),
            _ => None,
        };
        match from {
            Some(1) => a.push(frame),
            Some(2) => b.push(frame),
            _ => {}
        }
    }
    (a, b)
}

fn lay_out(path: &Path, frames: &[Vec<u8>], stretches: &[Duration]) -> std::io::Result<()> {
    let mut writer = Writer::create(path, 1 << 14)?;
    let step = Duration::from_secs(1) / FRAMES_PER_SECOND;
    let mut turn = frames.iter().cycle();
    // A first frame at time zero starts the clock of the port; it meets a closed channel.
    let mut time = Duration::from_secs(1_700_000_000);
    if let Some(frame) = turn.next() {
        writer.frame_at(time, frame)?;
    }
    time += SILENCE_FIRST;
    for stretch in stretches {
        let end = time + *stretch;
        while time < end {
            if let Some(frame) = turn.next() {
                writer.frame_at(time, frame)?;
            }
            time += step;
        }
        time += SILENCE;
    }
    writer.finish()
}

/// Whether every frame that came out of a client port is one that went in at the other side.
fn compare(folder: &Path, sent: &str, received: &str) -> Done<bool> {
    let read = |name: &str| {
        let path = folder.join(name);
        pcap::read(&path).cannot(format_args!("read {}", path.display()))
    };
    let known: BTreeSet<Vec<u8>> = read(sent)?.into_iter().map(|(_, frame)| frame).collect();
    let out = read(received)?;
    let strange = out
        .iter()
        .filter(|(_, frame)| !known.contains(frame))
        .count();
    if strange == 0 && !out.is_empty() {
        ui::line(format!(
            "{received}: {} frames, each one octet for octet as it was sent",
            out.len()
        ));
        return Ok(true);
    }
    ui::failure(&Failure::new(format!(
        "{strange} of {} frames of {received} were never sent",
        out.len()
    )));
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_split_by_their_source() {
        let ip = |last: u8| {
            let mut frame = vec![0; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[29] = last;
            frame
        };
        let (a, b) = split([ip(1), ip(2), ip(1), ip(9), vec![1, 2]].into_iter());
        assert_eq!((a.len(), b.len()), (2, 1));
    }

    #[test]
    fn the_time_line_has_silence_between_its_stretches() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        lay_out(
            &path,
            &[vec![1; 60], vec![2; 60]],
            &[Duration::from_secs(1), Duration::from_secs(2)],
        )
        .expect("written");
        let times: Vec<Duration> = pcap::read(&path)
            .expect("read")
            .into_iter()
            .map(|(time, _)| time)
            .collect();
        let gaps: Vec<Duration> = times
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .filter(|gap| *gap > Duration::from_millis(500))
            .collect();
        assert_eq!(gaps.len(), 2, "{gaps:?}");
        assert!(times.len() > 3 * FRAMES_PER_SECOND as usize - 5);
    }
}
