//! Capture files protected and validated without a node: for the lab, for a second opinion on what
//! crossed a line, and to exchange frames with another MACsec station.
//!
//! One transparent channel, one SA, a SAK from outside. Time stamps of the frames are kept. Frames go
//! through the same SecY as on a line.

use std::path::Path;

use qloak_api::{An, Carriage, ClientPort, KeyId, Limits, Sci, manage::InboundCounters};
pub use qloak_cipher::suite::{SUITES, Suite};
pub use qloak_keys::Key;
use qloak_port::capture::{CaptureError, Reader, Writer};
use qloak_secy::{ChannelConfig, Inbound, LineConfig, Outbound, Room, Sa, Verdict};

use crate::{Error, library, limits};

/// What to do with a capture file.
pub struct Job {
    /// The suite.
    pub suite: &'static Suite,
    /// The SAK, as many octets as the suite takes.
    pub sak: Key,
    /// The salt of XPN; none for 32-bit packet numbers.
    pub salt: Option<[u8; 12]>,
    /// The SCI of the SC.
    pub sci: Sci,
    /// The association number.
    pub an: An,
    /// The PN of the first frame, 1 or more (protect), or the lowest that is accepted (validate).
    pub first_pn: u64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Frames read.
    pub frames_in: u64,
    /// Frames written.
    pub frames_out: u64,
    /// Frames that were cut short by the capture, too long or too short.
    pub unfit: u64,
    /// Frames on other SCs, or without a SecTAG (validate).
    pub foreign: u64,
    /// Verdicts (validate).
    pub verdicts: InboundCounters,
}

/// Why a capture file was not worked on.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The file read.
    #[error("{path}: {cause}")]
    Capture {
        /// Which file.
        path: String,
        /// What is wrong with it.
        cause: CaptureError,
    },
    /// The SAK does not fit the suite.
    #[error(transparent)]
    Sa(#[from] qloak_secy::SaError),
    /// The suite has no 32-bit form.
    #[error(
        "{0} needs 64-bit packet numbers and so a salt; aes-128-gcm and aes-256-gcm can do without"
    )]
    NeedsSalt(&'static str),
    /// The packet numbers or the octets of the SA do not suffice for the capture.
    #[error(
        "the SA is used up (frames protected: {frames}): its packet numbers or octets are at their end; take another SAK, or a lower first PN that was not used before"
    )]
    Spent {
        /// Frames that were protected.
        frames: u64,
    },
    /// A group address, or channel number 0 or beyond 1024.
    #[error("SCI {0} cannot be: an individual address and a channel of 1 to 1024 are needed")]
    Sci(Sci),
    /// The machine's level.
    #[error(transparent)]
    Node(#[from] Error),
    /// A fault of ours.
    #[error("the SecY refused the SA: {0}")]
    Install(#[from] qloak_secy::InstallError),
}

/// Protects every frame of `from` into `to`.
///
/// # Errors
/// See [`OfflineError`]; `to` may be left half written.
pub fn protect(job: Job, from: &Path, to: &Path) -> Result<Report, OfflineError> {
    let (line, channel) = job.channel()?;
    let number = channel.number;
    let mut secy = Outbound::new(&line, &[channel]).map_err(Error::from)?;
    let an = job.an;
    secy.install(number, an, job.association()?)?;
    secy.encode(number, an, 0);
    let Some(reference) = secy.channel(number) else {
        return Err(OfflineError::Sci(job.sci));
    };

    let mut report = Report::default();
    let mut spent = false;
    each_frame(from, to, &mut report, |storage, range, report| {
        let protected = secy.protect(reference, std::iter::once(Room::new(storage, range)), 0);
        report.unfit += u64::from(protected.frames == 0 && protected.no_sa == 0);
        spent |= protected.no_sa > 0;
    })?;
    if spent {
        return Err(OfflineError::Spent {
            frames: report.frames_out,
        });
    }
    Ok(report)
}

/// Validates every frame of `from`; those that are valid are written to `to` as they were.
///
/// # Errors
/// See [`OfflineError`]; `to` may be left half written.
pub fn validate(job: Job, from: &Path, to: &Path) -> Result<Report, OfflineError> {
    let (mut line, channel) = job.channel()?;
    // The far end of this line is whoever protected the frames.
    std::mem::swap(&mut line.address, &mut line.peer_address);
    let number = channel.number;
    let mut secy = Inbound::new(&line, &[channel]).map_err(Error::from)?;
    secy.install(number, job.an, job.association()?)?;

    let mut report = Report::default();
    each_frame(from, to, &mut report, |storage, range, report| {
        let mut verdicts = [Verdict::NoTag];
        secy.validate(std::iter::once(Room::new(storage, range)), &mut verdicts);
        match verdicts[0] {
            Verdict::Valid(_) => {}
            verdict => {
                let foreign = matches!(
                    verdict,
                    Verdict::NoTag | Verdict::BadTag | Verdict::UnknownSci | Verdict::Agreement
                );
                report.foreign += u64::from(foreign);
                range.end = range.start;
            }
        }
    })?;
    report.verdicts = secy.counters(number).unwrap_or_default();
    Ok(report)
}

impl Job {
    fn channel(&self) -> Result<(LineConfig, ChannelConfig), OfflineError> {
        if self.salt.is_none() && self.suite.id_pn32.is_none() {
            return Err(OfflineError::NeedsSalt(self.suite.name));
        }
        let number = self
            .sci
            .port
            .try_into()
            .map_err(|_| OfflineError::Sci(self.sci))?;
        let client = ClientPort::try_from(1).map_err(|_| OfflineError::Sci(self.sci))?;
        // Any other address will do for the far end: a transparent frame keeps its own.
        let mut peer_address = self.sci.address;
        peer_address.0[5] ^= 1;
        let line = LineConfig {
            address: self.sci.address,
            peer_address,
            frame_octets_max: *limits::LINE_FRAME_OCTETS.end(),
        };
        let channel = ChannelConfig {
            number,
            peer_address: None,
            carriage: Carriage::Transparent,
            clients: vec![client],
            vlans: Vec::new(),
            xpn: self.salt.is_some(),
            replay_window: limits::REPLAY_WINDOW_MAX,
            limits: Limits::default(),
        };
        Ok((line, channel))
    }

    fn association(&self) -> Result<Sa, OfflineError> {
        let level = library::level().map_err(Error::from)?;
        let salt = self.salt.unwrap_or_default();
        Ok(Sa::new(self.suite, level, &self.sak, salt, KeyId([0; 16]))?
            .starting_at(self.first_pn.max(1)))
    }
}

/// Runs `work` over each frame; what is left of it is written with its own time stamp.
fn each_frame(
    from: &Path,
    to: &Path,
    report: &mut Report,
    mut work: impl FnMut(&mut [u8], &mut std::ops::Range<usize>, &mut Report),
) -> Result<(), OfflineError> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |cause| OfflineError::Capture {
            path: path.clone(),
            cause,
        }
    };
    let mut reader = Reader::open(from).map_err(at(from))?;
    let mut writer = Writer::create(to).map_err(at(to))?;
    let longest = *limits::LINE_FRAME_OCTETS.end();
    let mut storage = vec![0; limits::HEADROOM + longest + limits::TAILROOM];
    while let Some(frame) = reader.next().map_err(at(from))? {
        report.frames_in += 1;
        if frame.is_cut() || frame.octets.len() > longest {
            report.unfit += 1;
            continue;
        }
        let mut range = limits::HEADROOM..limits::HEADROOM + frame.octets.len();
        storage[range.clone()].copy_from_slice(frame.octets);
        let stamp_ns = frame.stamp_ns;
        work(&mut storage, &mut range, report);
        if !range.is_empty() {
            report.frames_out += 1;
            writer
                .frame(stamp_ns, storage.get(range).unwrap_or_default())
                .map_err(at(to))?;
        }
    }
    writer.flush().map_err(at(to))
}
