//! Why the kernel's MACsec cannot be used, in words for an operator.

use std::io;

use crate::config::Offload;

/// What is wrong with the kernel or the interface.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// No driver.
    #[error(
        "dataplane = \"kernel-macsec\" needs the kernel's macsec driver (CONFIG_MACSEC, module `macsec`), which this kernel does not have: load it (`modprobe macsec`), or take dataplane = \"user-space\""
    )]
    NoDriver,
    /// No such interface.
    #[error("there is no interface {0}: `ip link` shows those that there are")]
    NoInterface(String),
    /// The name belongs to something else.
    #[error(
        "the interface {interface} exists, but {differs}: remove it (`ip link delete {interface}`) and the node makes it anew, or name another in the client port"
    )]
    Other {
        /// Its name.
        interface: String,
        /// What it is instead.
        differs: &'static str,
    },
    /// No leave.
    #[error(
        "this process may not {what}: it needs CAP_NET_ADMIN (as root, or `setcap cap_net_admin,cap_net_raw+ep` on the program)"
    )]
    NoLeave {
        /// What was tried.
        what: String,
    },
    /// No offload.
    #[error(
        "the line's interface cannot take MACsec over for {interface} (offload = {offload:?}): {error}; `ethtool -k` shows macsec-hw-offload where it can. Leave `offload` out and the kernel does it"
    )]
    NoOffload {
        /// The interface.
        interface: String,
        /// The kind that was asked for.
        offload: &'static str,
        /// The kernel's word.
        error: io::Error,
    },
    /// Anything else that the kernel refuses.
    #[error("the kernel refuses to {what}: {error}")]
    Refused {
        /// What was tried.
        what: String,
        /// Its word.
        error: io::Error,
    },
}

impl KernelError {
    /// An error of the kernel with what was tried, which completes "refuses to ...".
    pub(super) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NoLeave { what },
            _ => Self::Refused { what, error },
        }
    }

    /// An error while an interface was made or set.
    pub(super) fn making(interface: &str, offload: Offload, error: io::Error) -> Self {
        match error.raw_os_error() {
            // What a driver without it answers.
            Some(libc::EOPNOTSUPP) if offload != Offload::Off => Self::NoOffload {
                interface: interface.to_owned(),
                offload: offload.as_str(),
                error,
            },
            // rtnl does not know the kind: no driver.
            Some(libc::EOPNOTSUPP) => Self::NoDriver,
            _ => Self::at(format!("make {interface} ready"))(error),
        }
    }
}
