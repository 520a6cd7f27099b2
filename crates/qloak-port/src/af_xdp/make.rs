//! Opening an AF_XDP port: the interface made ready, then mode after mode until one works.
//!
//! ```text
//!   zero-copy   program in the driver    bind XDP_ZEROCOPY
//!   native      program in the driver    bind XDP_COPY       the same program stays attached
//!   skb         program behind it        bind XDP_COPY
//! ```
//!
//! What only concerns AF_XDP is a [`PortError::Xdp`], so that the caller may open another kind; what
//! is wrong with the interface itself is the same error as AF_PACKET's.

use std::{io, os::fd::AsFd, sync::Mutex, thread};

use super::{CHUNK, Line, Receiver, Sender};
use crate::{
    AfXdpConfig, PortError, Sizes, XdpMode,
    counters::Shared,
    interface::{self, Ready, refused},
    limits,
    sys::{
        bpf::{Link, Place, Program, SocketMap},
        interface::Interface,
        packet::PacketSocket,
        umem::Memory,
        xdp::{Rings, XdpSocket},
    },
};

/// Everything that is made in the namespace of the calling thread.
pub(super) fn line(config: &AfXdpConfig, sizes: &Sizes) -> Result<Line, PortError> {
    let name = &config.interface.name;
    let fail = |what| move |error| refused(name, what, error);
    let asked = PacketSocket::new().map_err(fail("open a packet socket"))?;
    let Ready { index, mac, mtu } = interface::ready(asked.as_fd(), &config.interface)?;
    interface::receive_offloads_off(asked.as_fd(), name)?;
    let kernel = Interface::new(asked.as_fd(), interface::name(name)?);
    kernel.vlan_tags_stay().map_err(|error| PortError::Xdp {
        interface: name.clone(),
        reason: format!(
            "cannot switch off rxvlan ({error}), with which VLAN tags are lost: `ethtool -K {name} rxvlan off`"
        ),
    })?;
    one_queue(&kernel, name)?;
    let paired = kernel.is_paired().map_err(fail("read its driver's name"))?;
    asked
        .promiscuous(index)
        .map_err(fail("hear every address"))?;
    let longest = mtu + interface::HEADER_OCTETS + 4;
    let maker = Maker {
        config,
        index,
        fragments: longest > limits::XDP_WHOLE_OCTETS_MAX,
    };
    let (made, mode) = maker.first_that_works()?;
    let Rings {
        fill,
        receive,
        transmit,
        completion,
    } = made.rings;
    let mut free: Vec<_> = made.memory.transmitted.chunks(CHUNK).collect();
    free.reverse();
    Ok(Line {
        _link: made.link,
        socket: made.socket,
        asked,
        name: name.clone(),
        mac,
        mtu,
        index,
        mode,
        paired,
        busy_poll: config.busy_poll.is_some(),
        receiver: Mutex::new(Receiver {
            area: made.memory.received,
            ring: receive,
            fill,
            octets_max: sizes.octets_max,
        }),
        sender: Mutex::new(Sender {
            area: made.memory.transmitted,
            ring: transmit,
            completion,
            free,
            octets_max: mtu + interface::HEADER_OCTETS,
        }),
        counters: Shared::default(),
        down: false.into(),
    })
}

/// Frames of a queue without a socket would go to the host's stack and not to us.
fn one_queue(kernel: &Interface<'_>, name: &str) -> Result<(), PortError> {
    let queues = kernel
        .receive_queues()
        .map_err(|error| refused(name, "count its queues", error))?;
    if queues == 1 {
        return Ok(());
    }
    Err(PortError::Xdp {
        interface: name.to_owned(),
        reason: format!(
            "{name} has {queues} receive queues and the port has one: `ethtool -L {name} combined 1` \
             (or `rx 1`)"
        ),
    })
}

/// A socket in one mode.
struct Made {
    link: Link,
    socket: XdpSocket,
    rings: Rings,
    memory: Memory,
}

/// What the attempts share.
struct Maker<'a> {
    config: &'a AfXdpConfig,
    index: i32,
    fragments: bool,
}

impl Maker<'_> {
    fn first_that_works(&self) -> Result<(Made, XdpMode), PortError> {
        let map = SocketMap::new().map_err(|error| self.refused("make a map", &error))?;
        let program = Program::load(&map, self.fragments)
            .map_err(|error| self.refused("load a program", &error))?;
        let mut reasons = Vec::new();
        let mut attached: Option<(Place, Link)> = None;
        for &mode in &self.config.modes {
            let place = match mode {
                XdpMode::ZeroCopy | XdpMode::Native => Place::Driver,
                XdpMode::Skb => Place::Generic,
            };
            // A driver may stop its card for a program, so one that is there already stays.
            let link = match attached.take().filter(|(there, _)| *there == place) {
                Some((_, link)) => Ok(link),
                None => program.attach(self.index, place),
            };
            let link = match link {
                Ok(link) => link,
                Err(error) if is_privilege(&error) => {
                    return Err(self.refused("attach a program", &error));
                }
                Err(error) => {
                    reasons.push(format!("{}: {}", mode.as_str(), self.attach_words(&error)));
                    continue;
                }
            };
            match self.socket(&map, mode) {
                Ok((socket, rings, memory)) => {
                    let made = Made {
                        link,
                        socket,
                        rings,
                        memory,
                    };
                    return Ok((made, mode));
                }
                Err(error) if is_privilege(&error) => {
                    return Err(self.refused("make a socket", &error));
                }
                Err(error) => {
                    reasons.push(format!("{}: {}", mode.as_str(), self.bind_words(&error)))
                }
            }
            attached = Some((place, link));
        }
        Err(self.because(reasons.join(", ")))
    }

    /// A socket that is bound, has chunks for frames to come, and is in the map.
    fn socket(&self, map: &SocketMap, mode: XdpMode) -> io::Result<(XdpSocket, Rings, Memory)> {
        let frames = self.config.frames;
        let socket = XdpSocket::new()?;
        let memory = Memory::new(frames * CHUNK)?;
        socket.register(&memory, CHUNK)?;
        let mut rings = socket.rings(frames as u32)?;
        if let Some(poll) = self.config.busy_poll {
            socket.busy_poll(poll.microseconds, poll.frames)?;
        }
        // Only kernels from 6.18 on have it; without it a batch takes two calls instead of one.
        let _only_faster = socket.transmit_budget(frames as u32);
        for chunk in memory.received.chunks(CHUNK) {
            if !rings.fill.push(chunk) {
                break;
            }
        }
        rings.fill.publish();
        let mut flags = libc::XDP_USE_NEED_WAKEUP;
        flags |= match mode {
            XdpMode::ZeroCopy => libc::XDP_ZEROCOPY,
            XdpMode::Native | XdpMode::Skb => libc::XDP_COPY,
        };
        if self.fragments {
            flags |= libc::XDP_USE_SG;
        }
        self.bind(&socket, flags)?;
        map.put(socket.as_fd())?;
        Ok((socket, rings, memory))
    }

    /// Binds, and tries again for a while when the queue is in use: the socket before us may be closed and not yet
    /// gone.
    fn bind(&self, socket: &XdpSocket, flags: u16) -> io::Result<()> {
        let mut bound = socket.bind(self.index, flags);
        for _ in 1..limits::XDP_BIND_ATTEMPTS {
            match &bound {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    thread::sleep(limits::XDP_BIND_PAUSE);
                    bound = socket.bind(self.index, flags);
                }
                _ => break,
            }
        }
        bound
    }

    fn attach_words(&self, error: &io::Error) -> String {
        let name = &self.config.interface.name;
        match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => format!(
                "another XDP program is on {name} (`ip link show {name}` names it; `ip link set {name} xdp \
                 off` takes one off that nobody holds)"
            ),
            Some(libc::ERANGE) => {
                "the driver takes no MTU as long as this with an XDP program".into()
            }
            Some(libc::EOPNOTSUPP | libc::EINVAL) => {
                format!("the driver has no such XDP ({error})")
            }
            _ => format!("cannot attach a program ({error})"),
        }
    }

    fn bind_words(&self, error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::EBUSY) => "another program holds queue 0".into(),
            Some(libc::EOPNOTSUPP) => format!("the driver cannot ({error})"),
            Some(libc::EAFNOSUPPORT) => {
                "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS is not set)".into()
            }
            Some(libc::ENOBUFS) => format!(
                "not allowed to lock {} MiB of memory: give `cap_ipc_lock`, or raise `ulimit -l`",
                (self.config.frames * CHUNK * 2) >> 20
            ),
            _ => error.to_string(),
        }
    }

    fn refused(&self, what: &str, error: &io::Error) -> PortError {
        self.because(if is_privilege(error) {
            format!(
                "not allowed to {what}: run as root, or give the program the capabilities with `setcap \
                 cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep $(which qloak)`"
            )
        } else {
            format!("cannot {what} ({error})")
        })
    }

    fn because(&self, reason: String) -> PortError {
        PortError::Xdp {
            interface: self.config.interface.name.clone(),
            reason,
        }
    }
}

fn is_privilege(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_comes_with_a_remedy() {
        let config = AfXdpConfig::new("v0");
        let maker = Maker {
            config: &config,
            index: 1,
            fragments: false,
        };
        let error = io::Error::from_raw_os_error;
        let privilege = maker.refused("load a program", &error(libc::EPERM));
        let words = privilege.to_string();
        assert!(words.contains("v0: AF_XDP refused: not allowed to load a program: run as root"));
        assert!(words.contains("cap_bpf"), "{words}");
        let memory = maker.bind_words(&error(libc::ENOBUFS));
        assert!(
            memory.contains("lock 32 MiB") && memory.contains("`ulimit -l`"),
            "{memory}"
        );
        let kernel = maker.bind_words(&error(libc::EAFNOSUPPORT));
        assert!(kernel.contains("CONFIG_XDP_SOCKETS"), "{kernel}");
        let long = maker.attach_words(&error(libc::ERANGE));
        assert!(long.contains("MTU"), "{long}");
    }
}
