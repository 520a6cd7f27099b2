//! What TAP, AF_PACKET and AF_XDP ports do alike: name, namespace, MTU, up, receive offloads, and errors
//! that name a remedy.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use crate::{
    InterfaceConfig, PortError,
    sys::{
        self,
        interface::{Interface, Name},
    },
};

/// The hardware type of Ethernet (ARPHRD_ETHER).
const ETHERNET: u16 = 1;

/// Octets of the Ethernet header, which the MTU does not count.
pub(crate) const HEADER_OCTETS: usize = 14;

/// An existing interface that was found and made ready.
pub(crate) struct Ready {
    pub(crate) index: i32,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: usize,
}

/// The name as the kernel takes it.
pub(crate) fn name(interface: &str) -> Result<Name, PortError> {
    sys::interface::name(interface).ok_or_else(|| PortError::Setting {
        setting: "the name of an interface",
        given: format!("{interface:?}"),
        allowed: "1 to 15 octets of ASCII without blanks, `/`, `:` and `%`".into(),
    })
}

/// Does `work` in the namespace of the interface.
pub(crate) fn within<T: Send>(
    interface: &InterfaceConfig,
    work: impl FnOnce() -> Result<T, PortError> + Send,
) -> Result<T, PortError> {
    let Some(namespace) = &interface.namespace else {
        return work();
    };
    let file = Path::new("/run/netns").join(namespace);
    match sys::namespace::within(&file, work) {
        Ok(done) => done,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(PortError::NoNamespace {
            namespace: namespace.clone(),
        }),
        Err(error) => Err(refused(
            &interface.name,
            "enter its network namespace",
            error,
        )),
    }
}

/// Finds an Ethernet interface that exists, and sets MTU and state as they are wanted. It is asked through
/// `socket`.
pub(crate) fn ready(socket: BorrowedFd<'_>, config: &InterfaceConfig) -> Result<Ready, PortError> {
    let interface = config.name.as_str();
    let kernel = Interface::new(socket, name(interface)?);
    let fail = |what| move |error| refused(interface, what, error);
    let index = kernel.index().map_err(|error| match error.raw_os_error() {
        Some(libc::ENODEV) => PortError::NoInterface {
            interface: interface.to_owned(),
            place: match &config.namespace {
                Some(namespace) => format!(" in namespace {namespace}"),
                None => String::new(),
            },
        },
        _ => refused(interface, "find it", error),
    })?;
    let (hardware_type, mac) = kernel.hardware().map_err(fail("read its address"))?;
    if hardware_type != ETHERNET {
        return Err(PortError::NotEthernet {
            interface: interface.to_owned(),
            hardware_type,
        });
    }
    bring_up(config)?;
    let mtu = kernel.mtu().map_err(fail("read its MTU"))?;
    if !kernel.is_up().map_err(fail("see whether it is up"))? {
        return Err(PortError::Down {
            interface: interface.to_owned(),
        });
    }
    Ok(Ready { index, mac, mtu })
}

/// Switches the receive offloads of an interface off, which make large frames of small ones.
pub(crate) fn receive_offloads_off(
    socket: BorrowedFd<'_>,
    interface: &str,
) -> Result<(), PortError> {
    let kernel = Interface::new(socket, name(interface)?);
    kernel.lro_off().map_err(offload(interface, "lro"))?;
    kernel.gro_off().map_err(offload(interface, "gro"))
}

/// The error for an offload that stays on.
pub(crate) fn offload(interface: &str, offload: &'static str) -> impl Fn(io::Error) -> PortError {
    move |error| PortError::Offload {
        interface: interface.to_owned(),
        offload,
        error,
    }
}

/// After a socket said that something is wrong: whether the interface is still there.
pub(crate) fn check(
    socket: BorrowedFd<'_>,
    interface: &str,
    index: i32,
    error: io::Error,
) -> Result<(), PortError> {
    match error.raw_os_error() {
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
            if Interface::named_by(socket, index).is_ok() {
                return Ok(());
            }
            Err(PortError::Gone {
                interface: interface.to_owned(),
            })
        }
        _ => Err(refused(interface, "use it", error)),
    }
}

/// Sets MTU and state as they are wanted.
pub(crate) fn bring_up(config: &InterfaceConfig) -> Result<(), PortError> {
    let fail = |what| move |error| refused(&config.name, what, error);
    let socket = sys::interface::socket().map_err(fail("open a socket"))?;
    let kernel = Interface::new(socket.as_fd(), name(&config.name)?);
    if let Some(mtu) = config.mtu {
        kernel.set_mtu(mtu).map_err(fail("set its MTU"))?;
    }
    if config.up && !kernel.is_up().map_err(fail("see whether it is up"))? {
        kernel.set_up().map_err(fail("bring it up"))?;
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
