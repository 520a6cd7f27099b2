//! Why a port could not be opened or does not go on: which port, what happened, what to do.

use std::{io, path::PathBuf};

use crate::capture::CaptureError;

/// Why a port could not be opened or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A setting is out of its bounds.
    #[error("{setting} is {given}: allowed is {allowed}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// There is no interface of that name.
    #[error(
        "there is no interface {interface}{place}: `ip link` shows those there are; \
         `ip link add {interface} type veth peer name ...` makes one"
    )]
    NoInterface {
        /// Its name.
        interface: String,
        /// ` in namespace ...`, or empty.
        place: String,
    },
    /// There is no network namespace of that name.
    #[error("there is no network namespace {namespace}: `ip netns add {namespace}` makes it")]
    NoNamespace {
        /// Its name.
        namespace: String,
    },
    /// The kernel wants a privilege that this process does not have.
    #[error(
        "{interface}: not allowed to {what}: run as root, or give the program the capability with \
         `setcap cap_net_admin,cap_net_raw+ep $(which qloak)`"
    )]
    Privilege {
        /// The interface.
        interface: String,
        /// What was tried.
        what: &'static str,
    },
    /// The interface is down and the configuration does not let us bring it up.
    #[error(
        "{interface} is down: `ip link set {interface} up`, or let the configuration say `up = true`"
    )]
    Down {
        /// The interface.
        interface: String,
    },
    /// The interface was removed while the port was open.
    #[error("{interface} is gone: it was removed while in use")]
    Gone {
        /// The interface.
        interface: String,
    },
    /// Another program holds the TAP interface.
    #[error("{interface} is in use by another program: only one can hold a TAP interface")]
    InUse {
        /// The interface.
        interface: String,
    },
    /// An interface of that name is of another kind.
    #[error(
        "{interface} exists and is no TAP interface: choose another name, or kind `af-packet` for it"
    )]
    NotTap {
        /// The interface.
        interface: String,
    },
    /// The interface is no Ethernet.
    #[error(
        "{interface} does not carry Ethernet frames (hardware type {hardware_type}): choose another"
    )]
    NotEthernet {
        /// The interface.
        interface: String,
        /// The kernel's ARPHRD number.
        hardware_type: u16,
    },
    /// A receive offload that changes frames could not be switched off.
    #[error(
        "{interface}: cannot switch off {offload} ({error}): with it, received frames are not those \
         that were sent; `ethtool -K {interface} {offload} off`"
    )]
    Offload {
        /// The interface.
        interface: String,
        /// ethtool's word for it.
        offload: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// AF_XDP does not work on this interface as it is; AF_PACKET may.
    #[error("{interface}: AF_XDP refused: {reason}; kind `af-packet` needs none of this")]
    Xdp {
        /// The interface.
        interface: String,
        /// What is in the way, and what to do about it.
        reason: String,
    },
    /// The kernel refused something else.
    #[error("{interface}: cannot {what}: {error}")]
    Kernel {
        /// The interface, or another name of the port.
        interface: String,
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// That end of a memory wire is open already.
    #[error("end {end} of the memory wire {wire:?} is open already: two ports name the same end")]
    EndInUse {
        /// The wire.
        wire: String,
        /// The end.
        end: char,
    },
    /// A capture file.
    #[error("{path}: {error}")]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: CaptureError,
    },
}
