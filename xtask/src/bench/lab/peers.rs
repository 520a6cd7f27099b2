//! The peers: other programs that protect a line, each as its own manual sets it up, on the lab's line.
//!
//! ```text
//!   qloak-a                                                   qloak-b
//!   10.80.0.1  peer's interface -- peer ==== line ==== peer -- peer's interface  10.80.0.2
//!                       10.79.0.1  line-a             line-b  10.79.0.2
//! ```
//!
//! The interface of a peer has the largest MTU whose frames still fit the line, so that none is split.

mod fastd;
mod get;
mod nebula;
mod openvpn;
mod vpncloud;
mod wireguard;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use super::measure::{self, Figures, Route, Times};
use crate::{
    lab::{network::Space, ping::Ping, programs::Program},
    proc,
    ui::{Context, Done, Failure},
};
use get::Get;

/// How long a peer may take until a ping crosses it.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// The far end of every peer.
const FAR: &str = "10.80.0.2";

/// A program that protects a line.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) cipher: &'static str,
    /// What it needs of the line for itself, octets: its own header and those of IP and UDP below it.
    overhead: usize,
    get: &'static [Get],
    start: fn(&End<'_>) -> Done<Vec<Program>>,
}

/// All that we know to set up.
pub(super) fn all() -> Vec<Peer> {
    vec![
        wireguard::GO,
        wireguard::BORINGTUN,
        nebula::PEER,
        openvpn::PEER,
        fastd::PEER,
        vpncloud::PEER,
    ]
}

/// The line with addresses of its own, for programs that speak IP on it.
pub(super) struct Line<'a> {
    mtu: usize,
    folder: &'a Path,
}

impl<'a> Line<'a> {
    /// Gives the two interfaces of the line their addresses.
    pub(super) fn lay(mtu: usize, folder: &'a Path) -> Done<Self> {
        for (space, interface, address) in [
            (Space::A, "line-a", "10.79.0.1/24"),
            (Space::B, "line-b", "10.79.0.2/24"),
        ] {
            space.take_addresses(interface)?;
            space.give_address(interface, address, mtu)?;
            // vpncloud asks the kernel for a way to the Internet at its start, and panics without one.
            space.route_all_to(interface)?;
        }
        Ok(Self { mtu, folder })
    }

    /// The line itself.
    pub(super) fn plain(&self) -> Route<'_> {
        self.route("10.79.0.2")
    }

    fn route(&self, far: &'a str) -> Route<'_> {
        Route {
            from: Space::A,
            to: Space::B,
            far,
            folder: self.folder,
        }
    }
}

/// One end of a peer.
struct End<'a> {
    space: Space,
    letter: char,
    far_letter: char,
    /// Addresses on the line.
    line: &'static str,
    far_line: &'static str,
    /// Addresses inside.
    inner: &'static str,
    far_inner: &'static str,
    mtu: usize,
    /// A folder of the two ends' own; each finds there what the other made.
    folder: &'a Path,
}

impl Peer {
    /// Makes sure that its programs are here, or says why they cannot be.
    pub(super) fn obtain(&self) -> Done {
        self.get.iter().try_for_each(Get::obtain)
    }

    /// Starts it at both ends of the line, measures, ends it.
    pub(super) fn measure(&self, line: &Line<'_>, times: Times) -> Done<Figures> {
        let folder = line.folder.join(format!("{}-{}", self.name, line.mtu));
        std::fs::create_dir_all(&folder).cannot(format_args!("make {}", folder.display()))?;
        let mtu = line.mtu - self.overhead;
        let a = End {
            space: Space::A,
            letter: 'a',
            far_letter: 'b',
            line: "10.79.0.1",
            far_line: "10.79.0.2",
            inner: "10.80.0.1",
            far_inner: "10.80.0.2",
            mtu,
            folder: &folder,
        };
        let b = End {
            space: Space::B,
            letter: 'b',
            far_letter: 'a',
            line: a.far_line,
            far_line: a.line,
            inner: a.far_inner,
            far_inner: a.inner,
            mtu,
            folder: &folder,
        };
        let mut programs = Vec::new();
        for end in [&b, &a] {
            programs.extend((self.start)(end)?);
        }
        let route = Route {
            folder: &folder,
            ..line.route(FAR)
        };
        self.until_it_carries(&route, &mut programs)?;
        measure::route(&route, times)
    }

    fn until_it_carries(&self, route: &Route<'_>, programs: &mut [Program]) -> Done {
        let begin = Instant::now();
        while begin.elapsed() < START_PATIENCE {
            proc::check_interrupt()?;
            programs.iter_mut().try_for_each(Program::check)?;
            let ping = Ping::one_by_one(route.from, route.far, 1, route.folder)?;
            if ping.finish(Duration::from_secs(3))?.received > 0 {
                return Ok(());
            }
        }
        Err(Failure::new(format!(
            "no ping crossed it within {} s; its logs are in {}",
            START_PATIENCE.as_secs(),
            route.folder.display()
        )))
    }
}

impl End<'_> {
    /// An interface's name of this end: short, and another at each end.
    fn interface(&self, kind: &str) -> String {
        format!("{kind}-{}", self.letter)
    }

    /// A file of this end, or of the far one.
    fn file(&self, letter: char, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{letter}"))
    }

    /// Writes a file of this end.
    fn write(&self, name: &str, text: &str) -> Done<PathBuf> {
        let path = self.file(self.letter, name);
        std::fs::write(&path, text).cannot(format_args!("write {}", path.display()))?;
        Ok(path)
    }

    /// A daemon of this end, started, with its log in the folder.
    fn daemon(&self, program: &str, arguments: &[&str]) -> Done<Program> {
        let name = format!("{program}-{}", self.letter);
        let binary = get::find(program)?;
        let mut daemon = Program::new(name, Some(self.space), &binary, self.folder);
        for argument in arguments {
            daemon = daemon.argument(*argument);
        }
        daemon.start()?;
        Ok(daemon)
    }

    /// Waits for the interface that a daemon makes, then gives it its address.
    fn bring_up(&self, interface: &str, daemon: &mut Program) -> Done {
        let address = format!("{}/24", self.inner);
        let begin = Instant::now();
        loop {
            daemon.check()?;
            match self.space.give_address(interface, &address, self.mtu) {
                Ok(()) => return Ok(()),
                Err(failure) if begin.elapsed() > START_PATIENCE => return Err(failure),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

/// What a program prints.
fn output(program: &str, arguments: &[&str]) -> Done<String> {
    let binary = get::find(program)?;
    Ok(proc::output(Command::new(binary).args(arguments))?
        .trim()
        .to_owned())
}
