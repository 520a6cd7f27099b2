//! The attack without a line that one could touch: the captured traffic is protected into a capture
//! file with `qloak protect`, an attacker's frames are put behind it, and `qloak validate` must count
//! each one for what it is. tshark looks at the same file.

use std::{fs, io::Read, path::Path, process::Command};

use serde::Deserialize;

use super::outside;
use crate::{
    lab::{config::ADDRESS_A, layout::FIRST_SUITE},
    parts::changed,
    pcap::{self, Writer},
    tree,
    ui::{self, Context, Done, Failure},
};

/// Frames of each kind that the attacker adds.
const ATTACK_FRAMES: usize = 50;

/// The channel that the offline frames belong to.
const CHANNEL: u16 = 2;

/// What `qloak protect` and `qloak validate` say, as far as we look.
#[derive(Deserialize)]
struct Report {
    frames_in: u64,
    frames_out: u64,
    verdicts: Verdicts,
}

#[derive(Deserialize)]
struct Verdicts {
    late: u64,
    replayed: u64,
    not_valid: u64,
}

/// Protects, attacks and validates in the folder of the run.
pub(super) fn run(binary: &Path, folder: &Path) -> Done {
    fs::write(folder.join("sak.txt"), random_sak()?)
        .cannot("write a key for the offline frames")?;
    let traffic = tree::root().join("lab/traffic.pcap");
    let line = folder.join("line.pcap");
    let protected = qloak(binary, folder, "protect", &traffic, &line)?;
    let attack = folder.join("attack.pcap");
    add_attack(&line, &attack).cannot("write attack.pcap")?;
    let validated = qloak(
        binary,
        folder,
        "validate",
        &attack,
        &folder.join("validated.pcap"),
    )?;
    let Verdicts {
        late,
        replayed,
        not_valid,
    } = validated.verdicts;
    let wanted = ATTACK_FRAMES as u64;
    if late + replayed != wanted
        || not_valid != wanted
        || validated.frames_out != protected.frames_in
    {
        return Err(Failure::new(format!(
            "offline attack: of {} frames sent {} came out; {wanted} replayed, {} counted; {wanted} changed, {not_valid} counted",
            protected.frames_in,
            validated.frames_out,
            late + replayed
        )));
    }
    ui::line(format!(
        "offline: {} frames protected; {wanted} replayed and {wanted} changed ones put behind them are counted, none came out",
        protected.frames_out
    ));
    if tree::program("tshark").is_none() {
        ui::note("tshark is absent, so nobody looks at the frames from outside: cargo xtask setup");
        return Ok(());
    }
    let frames = outside::count(&line, ADDRESS_A, CHANNEL)?;
    ui::line(format!(
        "tshark sees {frames} MACsec frames in {}",
        line.display()
    ));
    Ok(())
}

fn qloak(binary: &Path, folder: &Path, verb: &str, from: &Path, to: &Path) -> Done<Report> {
    let out = Command::new(binary)
        .args([
            verb,
            "--json",
            "--suite",
            FIRST_SUITE,
            "--sak-file",
            "sak.txt",
            "--sci",
        ])
        .arg(format!("{ADDRESS_A}/{CHANNEL}"))
        .args([from, to])
        .current_dir(folder)
        .output()
        .cannot(format_args!("start qloak {verb}"))?;
    // Validate ends with 6 when a frame was not valid, and says all the same what it counted.
    serde_json::from_slice(&out.stdout).map_err(|_| {
        let words = String::from_utf8_lossy(&out.stderr);
        Failure::new(format!(
            "qloak {verb} ended with {}: {}",
            out.status,
            words.trim()
        ))
    })
}

/// The frames of the line, then some of them again, then some of them changed.
fn add_attack(line: &Path, attack: &Path) -> std::io::Result<()> {
    let frames = pcap::read(line)?;
    let mut writer = Writer::create(attack, 1 << 14)?;
    for (time, frame) in &frames {
        writer.frame_at(*time, frame)?;
    }
    let mut again = frames.iter().cycle();
    for (time, frame) in again.by_ref().take(ATTACK_FRAMES) {
        writer.frame_at(*time, frame)?;
    }
    for (turn, (time, frame)) in again.take(ATTACK_FRAMES).enumerate() {
        writer.frame_at(*time, &changed(frame, turn))?;
    }
    writer.finish()
}

/// A SAK of 256 bits and a salt of 96, in hex on two lines.
fn random_sak() -> Done<String> {
    let mut octets = [0; 44];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut octets))
        .cannot("read /dev/urandom")?;
    let hex = |octets: &[u8]| {
        octets
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect::<String>()
    };
    Ok(format!("{}\n{}\n", hex(&octets[..32]), hex(&octets[32..])))
}
