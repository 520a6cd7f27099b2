//! What TAP and AF_PACKET ports do alike: name, namespace, MTU, up, and errors that name a remedy.

use std::{io, os::fd::AsFd, path::Path};

use crate::{
    PortError, limits,
    sys::{
        self,
        interface::{Interface, Name},
    },
};

/// Bounds of an MTU: the least that IPv4 asks for, and what fits the longest frame.
const MTU_OCTETS: std::ops::RangeInclusive<usize> = 68..=limits::FRAME_OCTETS_MAX - 22;

/// The name as the kernel takes it.
pub(crate) fn name(interface: &str) -> Result<Name, PortError> {
    sys::interface::name(interface).ok_or_else(|| PortError::Setting {
        setting: "the name of an interface",
        given: format!("{interface:?}"),
        allowed: "1 to 15 octets of ASCII without blanks, `/`, `:` and `%`".into(),
    })
}

/// Does `work` in the namespace, ours when none is named.
pub(crate) fn within<T: Send>(
    interface: &str,
    namespace: Option<&str>,
    work: impl FnOnce() -> Result<T, PortError> + Send,
) -> Result<T, PortError> {
    let Some(namespace) = namespace else {
        return work();
    };
    if namespace.is_empty() || namespace.contains('/') || matches!(namespace, "." | "..") {
        return Err(PortError::Setting {
            setting: "the name of a network namespace",
            given: format!("{namespace:?}"),
            allowed: "a name that `ip netns` shows".into(),
        });
    }
    let file = Path::new("/run/netns").join(namespace);
    match sys::namespace::within(&file, work) {
        Ok(done) => done,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(PortError::NoNamespace {
            namespace: namespace.to_owned(),
        }),
        Err(error) => Err(refused(interface, "enter its network namespace", error)),
    }
}

/// Sets MTU and state as they are wanted.
pub(crate) fn bring_up(
    interface: &str,
    name: Name,
    mtu: Option<usize>,
    up: bool,
) -> Result<(), PortError> {
    let socket =
        sys::interface::socket().map_err(|error| refused(interface, "open a socket", error))?;
    let kernel = Interface::new(socket.as_fd(), name);
    if let Some(mtu) = mtu {
        if !MTU_OCTETS.contains(&mtu) {
            return Err(PortError::Setting {
                setting: "an MTU",
                given: format!("{mtu} octets"),
                allowed: format!("{} to {}", MTU_OCTETS.start(), MTU_OCTETS.end()),
            });
        }
        kernel
            .set_mtu(mtu)
            .map_err(|error| refused(interface, "set its MTU", error))?;
    }
    if up
        && !kernel
            .is_up()
            .map_err(|error| refused(interface, "see whether it is up", error))?
    {
        kernel
            .set_up()
            .map_err(|error| refused(interface, "bring it up", error))?;
    }
    Ok(())
}

/// An error for what the kernel refused; a missing privilege has its own.
pub(crate) fn refused(interface: &str, what: &'static str, error: io::Error) -> PortError {
    let interface = interface.to_owned();
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => PortError::Privilege { interface, what },
        _ => PortError::Kernel {
            interface,
            what,
            error,
        },
    }
}
