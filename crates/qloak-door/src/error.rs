//! What can go wrong at a door, each case saying whose fault it is and what to do.

use std::{io, net::SocketAddr, path::PathBuf};

use crate::limits;

/// Why a door could not be opened, or a request not be made.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// A file of ours cannot be read.
    #[error("cannot read the {what} {path:?}: {cause}; `qloak pki init` makes certificates")]
    File {
        /// What the file should hold.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file of ours does not hold what it should.
    #[error("{path:?} holds no {what}: {reason}; a PEM file is expected")]
    NotPem {
        /// What the file should hold.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Our certificate and our private key do not belong together.
    #[error(
        "the private key {key:?} does not belong to the certificate {cert:?}; name the pair that was made together"
    )]
    KeyMismatch {
        /// The certificate.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// Our own certificate is out of its time.
    #[error("the certificate {cert:?} {reason}; make a new one or set this machine's clock")]
    OutOfTime {
        /// The certificate.
        cert: PathBuf,
        /// Expired when, or valid from when.
        reason: String,
    },
    /// TLS cannot be set up from these files for another reason.
    #[error("TLS cannot be set up from {cert:?}: {reason}")]
    Setup {
        /// The certificate.
        cert: PathBuf,
        /// What the TLS library said.
        reason: String,
    },
    /// The address to listen on cannot be had.
    #[error("cannot listen on {listen}: {cause}; choose a free port of an address of this machine")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// Our configuration gives a URL that is none.
    #[error("{url:?} is no base URL: {reason}; give one such as https://192.0.2.1:7443")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody answers there.
    #[error("{url} is unreachable: {cause}; is it running, and is the address right?")]
    Unreachable {
        /// What was asked.
        url: String,
        /// What the system said.
        cause: String,
    },
    /// The server's certificate is not acceptable to us.
    #[error("the server at {url} is not trusted: {reason}")]
    ServerNotTrusted {
        /// What was asked.
        url: String,
        /// What is wrong with its certificate, and what to do.
        reason: String,
    },
    /// The server does not accept our certificate, or speaks no TLS that we speak.
    #[error("the server at {url} refuses this caller: {reason}")]
    CallerRefused {
        /// What was asked.
        url: String,
        /// What it said, and what to do.
        reason: String,
    },
    /// The connection broke while a request was under way; whether the server acted is unknown.
    #[error("the connection to {url} broke before the answer was complete: {cause}")]
    Broken {
        /// What was asked.
        url: String,
        /// What happened.
        cause: String,
    },
    /// No answer in time; whether the server acted is unknown.
    #[error("{url} did not answer within {waited_ms} ms")]
    Timeout {
        /// What was asked.
        url: String,
        /// How long it was waited for, milliseconds.
        waited_ms: u64,
    },
    /// The server answered, with an error status.
    #[error("{url} answered {status}: {}", shown(body))]
    Status {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The body as text, as the server sent it.
        body: String,
    },
    /// The server's answer is not the JSON that was expected.
    #[error("{url} answered with something else than expected: {reason}")]
    NotJson {
        /// What was asked.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The server's answer is larger than any honest one.
    #[error("the answer of {url} has more than {allowed} octets")]
    TooLarge {
        /// What was asked.
        url: String,
        /// Octets that are read at most.
        allowed: usize,
    },
}

impl DoorError {
    /// Whether the request certainly never reached a handler, so that asking again is safe even
    /// where an answer uses something up.
    pub fn never_arrived(&self) -> bool {
        !matches!(
            self,
            Self::Broken { .. }
                | Self::Timeout { .. }
                | Self::Status { .. }
                | Self::NotJson { .. }
                | Self::TooLarge { .. }
        )
    }
}

/// A foreign text on one line and not without end.
fn shown(body: &str) -> String {
    if body.trim().is_empty() {
        return "(no body)".to_owned();
    }
    let mut text: String = body
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(limits::SHOWN_CHARS_MAX)
        .collect();
    if body.chars().nth(limits::SHOWN_CHARS_MAX).is_some() {
        text.push('…');
    }
    text
}
