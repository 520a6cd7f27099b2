//! What the stack leaves to a TAP port: the most that the kernel grants, asked for step by step.
//!
//! A kernel refuses flags that it does not know as a whole. So first everything is asked for, then less; nothing at
//! all is always granted.

use std::{ffi::c_uint, io};

const TCP: c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;

/// What the stack leaves to the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Super-frames of TCP and UDP are to be cut (UDP since Linux 6.2).
    TcpAndUdp,
    /// Super-frames of TCP are to be cut.
    Tcp,
    /// Checksums are to be completed.
    Checksums,
    /// Each frame is finished.
    Nothing,
}

impl Left {
    /// From most to least.
    const STEPS: [Self; 4] = [Self::TcpAndUdp, Self::Tcp, Self::Checksums, Self::Nothing];

    pub(super) fn has_super_frames(self) -> bool {
        matches!(self, Self::TcpAndUdp | Self::Tcp)
    }

    /// In words.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TcpAndUdp => "super-frames of TCP and UDP",
            Self::Tcp => "super-frames of TCP",
            Self::Checksums => "frame by frame, checksums completed here",
            Self::Nothing => "frame by frame",
        }
    }

    fn flags(self) -> c_uint {
        match self {
            Self::TcpAndUdp => TCP | libc::TUN_F_USO4 | libc::TUN_F_USO6,
            Self::Tcp => TCP,
            Self::Checksums => libc::TUN_F_CSUM,
            Self::Nothing => 0,
        }
    }
}

/// Asks for the most first; says what was granted.
pub(super) fn settle(mut ask: impl FnMut(c_uint) -> io::Result<()>) -> io::Result<Left> {
    for step in Left::STEPS {
        match ask(step.flags()) {
            Ok(()) => return Ok(step),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_knows_less_is_asked_for_less() {
        let knows = |known: c_uint| {
            settle(|flags| match flags & !known {
                0 => Ok(()),
                _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            })
        };
        assert_eq!(knows(c_uint::MAX).unwrap(), Left::TcpAndUdp);
        assert_eq!(knows(TCP).unwrap(), Left::Tcp);
        assert_eq!(knows(TCP & !libc::TUN_F_TSO6).unwrap(), Left::Checksums);
        assert_eq!(knows(0).unwrap(), Left::Nothing);
        let error = settle(|_| Err(io::Error::from_raw_os_error(libc::EPERM))).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }
}
