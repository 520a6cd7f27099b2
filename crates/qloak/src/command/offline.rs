//! `qloak protect` and `qloak validate`: capture files, without a node.
//!
//! A key comes from a file and never from an argument, which other users of the machine could read. The
//! file has the SAK in hex on its first line, and with 64-bit packet numbers (XPN) the salt on its second.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;
use qloak_api::{An, Sci};
use qloak_node::offline::{self, Job, Key, Report, Suite};
use zeroize::Zeroizing;

use crate::{
    error::{Error, Outcome},
    limits, output,
};

/// Protect the frames of a capture file under one key
///
/// Each frame becomes one MACsec frame of a transparent channel.
#[derive(Debug, Args)]
pub(crate) struct Protect {
    #[command(flatten)]
    work: Work,
    /// Packet number of the first frame
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pn: u64,
}

/// Validate the protected frames of a capture file under one key
///
/// Those that are valid are written as they were before they were protected. Exit code 6 if one was not valid.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    work: Work,
    /// Lowest packet number that is accepted
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pn: u64,
}

/// What both take.
#[derive(Debug, Args)]
struct Work {
    /// Cipher suite, see `qloak suite list`
    #[arg(long, value_name = "NAME")]
    suite: String,
    /// File with the SAK in hex on its first line; a second line with the salt (24 hex digits) means
    /// 64-bit packet numbers (XPN)
    #[arg(long, value_name = "FILE")]
    sak_file: PathBuf,
    /// Secure channel identifier, such as 02:51:4c:00:00:0a/1
    #[arg(long)]
    sci: Sci,
    /// Association number, 0 to 3
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..4))]
    an: u8,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Capture to read, pcap or pcapng
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Capture to write, pcap
    #[arg(value_name = "OUT")]
    to: PathBuf,
}

impl Protect {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let job = self.work.job(self.pn)?;
        let report = offline::protect(job, &self.work.from, &self.work.to)?;
        let words = format!(
            "{} of {} frames protected into {}",
            report.frames_out,
            report.frames_in,
            self.work.to.display()
        );
        self.work.tell(json, &report, words)?;
        Ok(if report.frames_out == report.frames_in {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }
}

impl Validate {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let job = self.work.job(self.pn)?;
        let report = offline::validate(job, &self.work.from, &self.work.to)?;
        let words = format!(
            "{} of {} frames valid, written to {}",
            report.frames_out,
            report.frames_in,
            self.work.to.display()
        );
        self.work.tell(json, &report, words)?;
        Ok(if report.frames_out == report.frames_in {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }
}

impl Work {
    fn job(&self, first_pn: u64) -> Result<Job, Error> {
        let suite = Suite::by_name(&self.suite).ok_or_else(|| {
            Error::unknown(
                "suite",
                &self.suite,
                offline::SUITES.iter().map(|suite| suite.name),
            )
        })?;
        let (sak, salt) = read_keys(&self.sak_file, suite)?;
        let an = An::try_from(self.an).map_err(|error| Error::Usage(error.to_string()))?;
        if same_file(&self.from, &self.to) {
            return Err(Error::Usage(format!(
                "IN and OUT are both {}",
                self.from.display()
            )));
        }
        if self.to.exists() && !self.force {
            return Err(Error::file(&self.to, "exists already; --force replaces it"));
        }
        if suite.hazmat {
            anstream::eprintln!(
                "{} {} does not authenticate",
                output::loud("HAZMAT:"),
                suite.name
            );
        }
        Ok(Job {
            suite,
            sak,
            salt,
            sci: self.sci,
            an,
            first_pn,
        })
    }

    fn tell(&self, json: bool, report: &Report, words: String) -> Result<(), Error> {
        if json {
            return output::json(report);
        }
        let verdicts = &report.verdicts;
        let reasons = [
            (
                report.unfit,
                "cut short by the capture, too short or too long",
            ),
            (
                report.foreign,
                "of another secure channel or without a SecTAG",
            ),
            (
                verdicts.not_valid,
                "not valid: damaged, forged, or another key",
            ),
            (verdicts.late, "late: before the replay window"),
            (verdicts.replayed, "replayed"),
            (verdicts.no_sa, "of another association number"),
        ];
        let mut lines = vec![words];
        lines.extend(
            reasons
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, why)| format!("  {count} {why}")),
        );
        output::text_line(&lines.join("\n"))
    }
}

/// The SAK and, if there is one, the salt. Nothing of the file is ever shown.
fn read_keys(path: &Path, suite: &Suite) -> Result<(Key, Option<[u8; 12]>), Error> {
    let mut text = Zeroizing::new(String::with_capacity(limits::KEY_FILE_OCTETS_MAX as usize));
    fs::File::open(path)
        .and_then(|file| {
            file.take(limits::KEY_FILE_OCTETS_MAX)
                .read_to_string(&mut text)
        })
        .map_err(|error| Error::file(path, error))?;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let digits = suite.key_octets * 2;
    let wrong = |which: &str, found: usize, wanted: usize| {
        Error::file(
            path,
            format!(
                "the {which} has {found} characters; {} takes {wanted} hex digits",
                suite.name
            ),
        )
    };
    let sak = lines.next().unwrap_or_default();
    let octets = hex(sak).filter(|octets| octets.len() == suite.key_octets);
    let octets = octets.ok_or_else(|| wrong("SAK (first line)", sak.chars().count(), digits))?;
    let sak = Key::from_slice(&octets).map_err(|error| Error::file(path, error))?;
    let salt = match lines.next() {
        None => None,
        Some(line) => {
            let octets = hex(line).and_then(|octets| <[u8; 12]>::try_from(octets.as_slice()).ok());
            Some(octets.ok_or_else(|| wrong("salt (second line)", line.chars().count(), 24))?)
        }
    };
    if lines.next().is_some() {
        return Err(Error::file(
            path,
            "more than two lines: a SAK and perhaps a salt are expected",
        ));
    }
    Ok((sak, salt))
}

fn hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut octets = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    for pair in text.as_bytes().chunks(2) {
        let [high, low] = pair else { return None };
        let digit = |octet: u8| char::from(octet).to_digit(16);
        octets.push((digit(*high)? << 4 | digit(*low)?) as u8);
    }
    Some(octets)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
