//! How a command ends: an exit code for scripts, words for people.

use std::{io, path::PathBuf, process::ExitCode};

use anstyle::{AnsiColor, Style};
use qloak_door::DoorError;

/// How a command that was carried out ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it should.
    Well,
    /// Done, but not all is well; the output says what.
    NotAllWell,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Well => Self::SUCCESS,
            Outcome::NotAllWell => Self::from(6),
        }
    }
}

/// Why a command was not carried out. Each says what was given, whose fault it is and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// A name that does not exist, and those that do.
    #[error("there is no {what} {given:?}{}", suggestion(.nearest, .known))]
    Unknown {
        what: &'static str,
        given: String,
        nearest: Vec<String>,
        known: Vec<String>,
    },
    /// A connection option is missing.
    #[error(
        "{what} is not known: give --{option}, set {variable}, or write `{option} = ...` into {file}"
    )]
    NotSet {
        what: &'static str,
        option: &'static str,
        variable: &'static str,
        file: String,
    },
    /// A file of the command line's own.
    #[error("{path}: {reason}", path = .path.display())]
    File { path: PathBuf, reason: String },
    /// Certificates could not be made.
    #[error(transparent)]
    Pki(#[from] qloak_door::pki::PkiError),
    /// The other side, or the way to it.
    #[error("{}", door(.0))]
    Door(#[from] DoorError),
    /// The other side understood and refuses.
    #[error("{who} refuses: {}", .problem.detail)]
    Refused {
        who: String,
        problem: qloak_api::Problem,
    },
    /// Something answers there, but not what was meant.
    #[error("{url} knows no {path}: {hint}")]
    OtherDoor {
        url: String,
        path: String,
        hint: &'static str,
    },
    /// A node did not start, or stopped.
    #[error(transparent)]
    Node(#[from] qloak_node::Error),
    /// A KMS did not start, or stopped.
    #[error(transparent)]
    Kms(#[from] qloak_kms::Error),
    /// A controller did not start, or stopped.
    #[error(transparent)]
    Controller(#[from] qloak_controller::Error),
    /// A capture file was not worked on.
    #[error(transparent)]
    Offline(#[from] qloak_node::offline::OfflineError),
    /// The terminal or the system.
    #[error("cannot {what}: {error}")]
    System {
        what: &'static str,
        error: io::Error,
    },
}

impl Error {
    /// A file that cannot be opened, read or written.
    pub(crate) fn file(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::File {
            path: path.into(),
            reason: reason.to_string(),
        }
    }

    /// A name that is none of `known`.
    pub(crate) fn unknown<'a>(
        what: &'static str,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        Self::Unknown {
            what,
            given: given.to_owned(),
            nearest: crate::nearest::nearest(given, known.iter().copied())
                .into_iter()
                .map(str::to_owned)
                .collect(),
            known: known.into_iter().map(str::to_owned).collect(),
        }
    }

    /// An answer with an error status is the server's own words where it gives a problem document.
    pub(crate) fn answered(who: &str, error: DoorError) -> Self {
        if let DoorError::Status { body, .. } = &error
            && let Ok(problem) = serde_json::from_str::<qloak_api::Problem>(body)
        {
            return Self::Refused {
                who: who.to_owned(),
                problem,
            };
        }
        Self::Door(error)
    }

    /// The exit code, as the help lists them.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::NotSet { .. } => 2,
            Self::File { .. } | Self::Pki(_) | Self::Offline(_) => 3,
            Self::Unknown { .. } | Self::Refused { .. } | Self::OtherDoor { .. } => 5,
            Self::Door(error) => door_code(error),
            Self::Node(error) => match error {
                qloak_node::Error::Config(_) => 3,
                qloak_node::Error::Door(error) => door_code(error),
                _ => 1,
            },
            Self::Kms(error) => match error {
                qloak_kms::Error::Config(_) => 3,
                qloak_kms::Error::Door(error) => door_code(error),
                _ => 1,
            },
            Self::Controller(error) => match error {
                qloak_controller::Error::Config { .. } | qloak_controller::Error::Role { .. } => 3,
                qloak_controller::Error::Door(error) => door_code(error),
                _ => 1,
            },
            Self::System { .. } => 1,
        }
    }

    /// Says the error on standard error and gives its exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if json {
            let document =
                serde_json::json!({ "error": self.to_string(), "exit_code": self.code() });
            anstream::eprintln!("{document}");
        } else {
            let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            anstream::eprintln!("{red}error:{red:#} {self}");
        }
        ExitCode::from(self.code())
    }
}

fn door_code(error: &DoorError) -> u8 {
    match error {
        DoorError::File { .. }
        | DoorError::NotPem { .. }
        | DoorError::KeyMismatch { .. }
        | DoorError::OutOfTime { .. }
        | DoorError::Setup { .. } => 3,
        DoorError::Url { .. } => 2,
        // An address that cannot be listened on is a fault of this machine.
        DoorError::Listen { .. } => 1,
        _ => 4,
    }
}

fn suggestion(nearest: &[String], known: &[String]) -> String {
    if known.is_empty() {
        return "; none is known yet".to_owned();
    }
    let there = format!("there are: {}", known.join(", "));
    match nearest {
        [] => format!("; {there}"),
        [one] => format!("; did you mean {one}?\n{there}"),
        [most @ .., last] => format!("; did you mean {} or {last}?\n{there}", most.join(", ")),
    }
}

/// What to do about a connection that is not made, in words of the command line.
fn door(error: &DoorError) -> String {
    let advice = match error {
        DoorError::Unreachable { .. } => {
            "\n--controller (or --node) says where to go; `qloak controller -c ...` or `qloak node -c ...` must run there"
        }
        DoorError::ServerNotTrusted { .. } => {
            "\n--pki names the folder whose ca.pem must have signed its certificate; NAME=https://... says \
             which name its certificate carries"
        }
        DoorError::CallerRefused { .. } => {
            "\n--pki and --as choose the certificate that is shown; `qloak pki show FILE` says what is in one"
        }
        DoorError::NotJson { .. } => "\nis this a Qloak of the same version, and the right port?",
        _ => "",
    };
    format!("{error}{advice}")
}
