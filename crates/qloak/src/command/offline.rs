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
use qloak_node::offline::{self, Job, Key, OfflineError, Report, Suite};
use zeroize::Zeroizing;

use crate::{
    error::{Error, Outcome},
    limits, output,
};

/// Octets of a salt (XPN).
const SALT_OCTETS: usize = 12;

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
        let work = &self.work;
        work.run(json, self.pn, "protected into", offline::protect)
    }
}

impl Validate {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let work = &self.work;
        work.run(json, self.pn, "valid, written to", offline::validate)
    }
}

impl Work {
    /// Both commands: make the job, have it done, say what came of it.
    fn run(
        &self,
        json: bool,
        first_pn: u64,
        became: &str,
        done_by: fn(Job, &Path, &Path) -> Result<Report, OfflineError>,
    ) -> Result<Outcome, Error> {
        let job = self.job(first_pn)?;
        let report = self.write(|to| done_by(job, &self.from, to))?;
        let words = format!(
            "{} of {} frames {became} {}",
            report.frames_out,
            report.frames_in,
            self.to.display()
        );
        self.tell(json, &report, words)?;
        Ok(if report.frames_out == report.frames_in {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }

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

    /// Lets `work` write a file beside OUT, which takes OUT's place once it is whole: a run that fails
    /// leaves nothing, and an OUT that was there before as it was.
    fn write(
        &self,
        work: impl FnOnce(&Path) -> Result<Report, offline::OfflineError>,
    ) -> Result<Report, Error> {
        // A device such as /dev/null is written, not replaced.
        if fs::metadata(&self.to).is_ok_and(|found| !found.is_file()) {
            return Ok(work(&self.to)?);
        }
        let name = self.to.file_name().ok_or_else(|| {
            Error::Usage(format!("OUT {} is no name of a file", self.to.display()))
        })?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}", std::process::id()));
        let unfinished = Unfinished(self.to.with_file_name(beside));
        let report = work(&unfinished.0).map_err(|error| self.as_out(&unfinished.0, error))?;
        fs::rename(&unfinished.0, &self.to).map_err(|error| Error::file(&self.to, error))?;
        Ok(report)
    }

    /// The user knows OUT and not the file beside it.
    fn as_out(&self, beside: &Path, error: offline::OfflineError) -> Error {
        match error {
            offline::OfflineError::Capture { path, cause } if Path::new(&path) == beside => {
                Error::file(&self.to, cause)
            }
            other => other.into(),
        }
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

/// A file that is gone again unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the renaming there is none.
        let _ = fs::remove_file(&self.0);
    }
}

/// The SAK and, if there is one, the salt. Nothing of the file is ever shown.
fn read_keys(path: &Path, suite: &Suite) -> Result<(Key, Option<[u8; 12]>), Error> {
    let mut text = Zeroizing::new(String::with_capacity(limits::KEY_FILE_OCTETS_MAX as usize));
    let unreadable =
        |error: std::io::Error| Error::file(path, format!("the SAK file cannot be read: {error}"));
    let file = fs::File::open(path).map_err(unreadable)?;
    warn_if_open(path, &file);
    file.take(limits::KEY_FILE_OCTETS_MAX)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let takes = |which: &str, line: &str, octets: usize| {
        hex(line, octets).map_err(|fault| {
            let digits = octets * 2;
            Error::file(
                path,
                format!(
                    "the {which} {fault}; {} takes {digits} hex digits",
                    suite.name
                ),
            )
        })
    };
    let sak = lines.next().unwrap_or_default();
    let octets = takes("SAK (first line)", sak, suite.key_octets)?;
    let sak = Key::from_slice(&octets).map_err(|error| Error::file(path, error))?;
    let salt = match lines.next() {
        None => None,
        Some(line) => {
            let mut salt = [0; SALT_OCTETS];
            salt.copy_from_slice(&takes("salt (second line)", line, SALT_OCTETS)?);
            Some(salt)
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

/// This many octets from hex, or in words what keeps it from being that. The words tell places and
/// never what stands there.
fn hex(text: &str, octets: usize) -> Result<Zeroizing<Vec<u8>>, String> {
    let wrong = text.chars().position(|found| !found.is_ascii_hexdigit());
    if let Some(at) = wrong {
        return Err(format!("has no hex digit as its character {}", at + 1));
    }
    if text.len() != octets * 2 {
        return Err(format!("has {} characters", text.len()));
    }
    let digit = |octet: u8| char::from(octet).to_digit(16).unwrap_or_default() as u8;
    let pairs = text.as_bytes().chunks_exact(2);
    Ok(Zeroizing::new(
        pairs
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect(),
    ))
}

/// A key that others may read still works, but somebody should know.
fn warn_if_open(path: &Path, file: &fs::File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file
            .metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0)
        {
            anstream::eprintln!(
                "{} the SAK file {} can be read by others: chmod 600 it",
                output::loud("warning:"),
                path.display()
            );
        }
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
