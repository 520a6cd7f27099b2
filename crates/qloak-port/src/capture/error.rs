//! What can be wrong with a capture file.

use std::io;

/// What is wrong with a capture file.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file begins like no capture file.
    #[error("this is no pcap or pcapng file: it {begins}")]
    NotCapture {
        /// How it begins, or that it is empty.
        begins: String,
    },
    /// The frames are not Ethernet.
    #[error(
        "the capture holds frames of link type {link_type}{name}, not Ethernet (1): capture on an Ethernet \
         interface by its name, not on `any`"
    )]
    NotEthernet {
        /// The number.
        link_type: u16,
        /// Its name in brackets if it is a common one, else empty.
        name: &'static str,
    },
    /// The file ends in the middle of something.
    #[error(
        "the file is truncated: it ends within frame {frame}; the {} before it are sound",
        .frame - 1
    )]
    Truncated {
        /// Counted from 1.
        frame: u64,
    },
    /// A length or number that cannot be.
    #[error("the file is damaged at frame {frame}: {what}")]
    Damaged {
        /// Counted from 1.
        frame: u64,
        /// What cannot be.
        what: String,
    },
    /// The file could not be opened, read or written.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl CaptureError {
    pub(super) fn not_ethernet(link_type: u16) -> Self {
        Self::NotEthernet {
            link_type,
            name: match link_type {
                0 => " (BSD loopback)",
                101 | 228 | 229 => " (raw IP)",
                105 | 127 => " (Wi-Fi)",
                113 | 276 => " (Linux cooked, what `any` gives)",
                _ => "",
            },
        }
    }
}
