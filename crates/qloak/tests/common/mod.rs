//! Running the binary as a person does.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// The binary, in a folder, with nothing of the caller's environment that could change what it does.
pub(crate) fn qloak(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qloak"));
    command
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder.join("config"));
    for name in [
        "QLOAK_PKI",
        "QLOAK_AS",
        "QLOAK_CONTROLLER",
        "RUST_LOG",
        "QLOAK_CPU_DISABLE",
    ] {
        command.env_remove(name);
    }
    command
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary with these words, separated by blanks.
pub(crate) fn run(folder: &Path, words: &str) -> Ended {
    ended(
        qloak(folder)
            .args(words.split_whitespace())
            .output()
            .unwrap(),
    )
}

pub(crate) fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// The output of a command that must have ended well.
    #[track_caller]
    pub(crate) fn well(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self.out
    }

    /// The error of a command that must have ended with this code, with these words in it.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> String {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        for word in words {
            assert!(
                self.err.contains(word),
                "{word:?} is missing in\n{}",
                self.err
            );
        }
        self.err
    }

    /// The output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.well()).unwrap()
    }
}

/// A pcap file with these frames, microsecond stamps.
pub(crate) fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in (0_u32..).zip(frames) {
        for word in [
            number / 1000,
            number % 1000 * 1000,
            frame.len() as u32,
            frame.len() as u32,
        ] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    fs::write(path, file).unwrap();
}

/// The frames of a pcap file that this product wrote.
pub(crate) fn read_pcap(path: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap();
    let mut frames = Vec::new();
    let mut rest = &file[24..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(rest[16..16 + length].to_vec());
        rest = &rest[16 + length..];
    }
    frames
}

/// An Ethernet frame of this many octets.
pub(crate) fn frame(octets: usize, number: u8) -> Vec<u8> {
    let mut frame = vec![number; octets];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb7]);
    frame
}
