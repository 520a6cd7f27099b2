//! A port that outlives its interface: when that goes away it is opened again, by itself, once it is back.
//!
//! ```text
//!   port -- interface is gone --> no port: nothing comes, what is to be sent is dropped and counted
//!     ^                              |
//!     +-- opened as at first --------+ tried four times a second, on a thread of its own: to open a port can take
//!                                      longer than frames may wait
//! ```
//!
//! Every handle notices by the number of the opening that the port is another, and takes a handle of its own.
//! Only [`PortError::Gone`] is outlived; whatever else a port says is passed on.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::{
    Batch, Counters, Impairments, Kind, Port, PortConfig, PortError, Sizes, limits, port::open,
};

/// Opens a port that is opened again whenever its interface went away and came back. The first time it has to
/// be there.
///
/// # Errors
/// As [`open`].
pub fn open_lasting(config: &PortConfig, sizes: &Sizes) -> Result<Box<dyn Port>, PortError> {
    let port = open(config, sizes)?;
    let shared = Shared {
        name: port.name().to_owned(),
        kind: port.kind(),
        mac: port.mac(),
        frame_octets_max: port.frame_octets_max(),
        config: config.clone(),
        sizes: *sizes,
        opening: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
        now: Mutex::new(Now {
            port: Some(port.twin()?),
            before: Counters::default(),
            tried: Instant::now(),
            trying: false,
        }),
    };
    Ok(Box::new(LastingPort {
        shared: Arc::new(shared),
        port: Some(port),
        opening: 0,
    }))
}

/// One handle.
struct LastingPort {
    shared: Arc<Shared>,
    /// None while the interface is away.
    port: Option<Box<dyn Port>>,
    /// Which opening the port is of.
    opening: u64,
}

/// What the handles share.
struct Shared {
    config: PortConfig,
    sizes: Sizes,
    name: String,
    kind: Kind,
    mac: Option<[u8; 6]>,
    frame_octets_max: Option<usize>,
    /// Counts how often the port came or went.
    opening: AtomicU64,
    /// Frames that were to be sent while there was no port.
    dropped: AtomicU64,
    now: Mutex<Now>,
}

/// The port as it is now.
struct Now {
    /// A handle to make others of.
    port: Option<Box<dyn Port>>,
    /// What went through the ports before.
    before: Counters,
    /// When it was last tried to open it.
    tried: Instant,
    /// It is being tried now.
    trying: bool,
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interface of the given opening is gone.
    fn lost(&self, opening: u64, error: &PortError) {
        let mut now = self.now();
        // Another handle may have said so already.
        if self.opening.load(Ordering::Relaxed) == opening
            && let Some(port) = now.port.take()
        {
            tracing::warn!(port = self.name, %error, "frames are dropped until it is back");
            now.before = now.before.plus(&port.counters());
            now.tried = Instant::now();
            self.opening.store(opening + 1, Ordering::Release);
        }
    }

    /// Tries to open the port again, when the last try is a while ago.
    fn retry(self: &Arc<Self>) {
        let mut now = self.now();
        if now.port.is_some() || now.trying || now.tried.elapsed() < limits::REOPEN_PAUSE {
            return;
        }
        let shared = Arc::clone(self);
        let named = std::thread::Builder::new().name("reopen".to_owned());
        // Without a thread there is another try in a while.
        now.trying = named.spawn(move || shared.reopen()).is_ok();
        now.tried = Instant::now();
    }

    /// One try. Nobody waits for it, and nothing is locked meanwhile.
    fn reopen(&self) {
        let port = open(&self.config, &self.sizes);
        let mut now = self.now();
        now.trying = false;
        now.tried = Instant::now();
        if let Ok(port) = port {
            tracing::info!(port = self.name, kind = port.describe(), "is back");
            now.port = Some(port);
            self.opening.fetch_add(1, Ordering::Release);
        }
    }
}

impl LastingPort {
    /// The port, when it is there.
    fn port(&mut self) -> Result<Option<&mut dyn Port>, PortError> {
        let opening = self.shared.opening.load(Ordering::Acquire);
        if opening != self.opening {
            let now = self.shared.now();
            self.opening = self.shared.opening.load(Ordering::Relaxed);
            self.port = now.port.as_ref().map(|port| port.twin()).transpose()?;
        }
        Ok(match &mut self.port {
            Some(port) => Some(&mut **port),
            None => None,
        })
    }

    /// What a port said, unless it said that its interface is gone.
    fn heed(&mut self, said: Result<usize, PortError>) -> Result<usize, PortError> {
        match said {
            Err(error @ PortError::Gone { .. }) => {
                self.shared.lost(self.opening, &error);
                self.port = None;
                Ok(0)
            }
            said => said,
        }
    }
}

impl Port for LastingPort {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn kind(&self) -> Kind {
        self.shared.kind
    }

    fn describe(&self) -> String {
        match &self.shared.now().port {
            Some(port) => port.describe(),
            None => format!("{}, gone", self.kind().as_str()),
        }
    }

    fn mac(&self) -> Option<[u8; 6]> {
        self.shared.mac
    }

    fn frame_octets_max(&self) -> Option<usize> {
        self.shared.frame_octets_max
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let Some(port) = self.port()? else {
            self.shared.retry();
            return Ok(0);
        };
        let received = port.receive(batch);
        self.heed(received)
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        if let Some(port) = self.port()? {
            let transmitted = port.transmit(batch);
            let taken = self.heed(transmitted)?;
            if self.port.is_some() {
                return Ok(taken);
            }
        }
        self.shared.retry();
        let dropped = batch.len();
        batch.clear();
        self.shared
            .dropped
            .fetch_add(dropped as u64, Ordering::Relaxed);
        Ok(dropped)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // That of a port which is gone would be readable for ever.
        let known = self.opening == self.shared.opening.load(Ordering::Acquire);
        self.port.as_ref().filter(|_| known)?.descriptor()
    }

    fn counters(&self) -> Counters {
        let now = self.shared.now();
        let mut counters = now.before;
        if let Some(port) = &now.port {
            counters = counters.plus(&port.counters());
        }
        counters.transmit_dropped += self.shared.dropped.load(Ordering::Relaxed);
        counters
    }

    fn impairments(&self) -> Option<Impairments> {
        self.shared.now().port.as_ref()?.impairments()
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        let now = self.shared.now();
        Ok(Box::new(Self {
            shared: Arc::clone(&self.shared),
            port: now.port.as_ref().map(|port| port.twin()).transpose()?,
            opening: self.shared.opening.load(Ordering::Relaxed),
        }))
    }

    fn finished(&self) -> bool {
        self.port.as_ref().is_some_and(|port| port.finished())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AfPacketConfig, AfXdpConfig, TapConfig,
        testing::{self, PATIENCE, frame, sizes},
    };

    /// Whether frames with this number get from one port to the other before long.
    fn crosses(from: &mut dyn Port, to: &mut dyn Port, number: u8) -> bool {
        let end = Instant::now() + PATIENCE;
        let mut batch = Batch::with_sizes(4, sizes(1514));
        while Instant::now() < end {
            batch.clear();
            assert!(batch.push(&frame(60, number)));
            from.transmit(&mut batch).unwrap();
            batch.clear();
            to.receive(&mut batch).unwrap();
            if batch
                .frames()
                .iter()
                .any(|got| got.octets() == frame(60, number))
            {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        false
    }

    #[test]
    fn a_line_that_went_away_is_used_again_by_all_its_handles() {
        testing::in_namespace("lasting: a line goes and comes", |_| {
            let socket = |interface| PortConfig::AfPacket(AfPacketConfig::new(interface));
            let xdp = |interface| PortConfig::AfXdp(AfXdpConfig::new(interface));
            for config in [socket as fn(&'static str) -> PortConfig, xdp] {
                testing::ip("link add v0 type veth peer name v1");
                let [mut a, mut b] = ["v0", "v1"]
                    .map(|interface| open_lasting(&config(interface), &sizes(1514)).unwrap());
                let mut twin = a.twin().unwrap();
                assert!(crosses(&mut *twin, &mut *b, 1) && crosses(&mut *b, &mut *a, 2));
                let before = a.counters();

                testing::ip("link del v0");
                let mut batch = Batch::with_sizes(4, sizes(1514));
                let end = Instant::now() + PATIENCE;
                while !a.describe().contains("gone") && Instant::now() < end {
                    batch.clear();
                    assert_eq!(
                        a.receive(&mut batch).map_err(|e| e.to_string()),
                        Ok(batch.len())
                    );
                }
                assert!(a.describe().contains("gone"), "{}", a.describe());
                assert!(a.descriptor().is_none() && twin.descriptor().is_none());
                batch.clear();
                assert!(batch.push(&frame(60, 3)));
                assert_eq!(twin.transmit(&mut batch).unwrap(), 1);
                assert_eq!(a.counters().transmit_dropped, before.transmit_dropped + 1);

                testing::ip("link add v0 type veth peer name v1");
                assert!(crosses(&mut *twin, &mut *b, 4), "{}", b.describe());
                assert!(crosses(&mut *b, &mut *a, 5));
                assert!(crosses(&mut *b, &mut *twin, 6));
                let after = a.counters();
                assert!(after.received_frames > before.received_frames);
                assert!(after.transmitted_frames > before.transmitted_frames);
                assert!(!a.describe().contains("gone"));
                drop((a, b, twin));
                testing::ip("link del v0");
            }
        });
    }

    #[test]
    fn a_tap_that_was_removed_is_made_again() {
        testing::in_namespace("lasting: a TAP goes and comes", |_| {
            let config = PortConfig::Tap(TapConfig::new("t0"));
            let mut tap = open_lasting(&config, &sizes(1514)).unwrap();
            let heard = PortConfig::AfPacket(AfPacketConfig::new("t0"));
            let mut stack = open_lasting(&heard, &sizes(1514)).unwrap();
            assert!(crosses(&mut *tap, &mut *stack, 1));
            testing::ip("link del t0");
            assert!(crosses(&mut *tap, &mut *stack, 2));
            assert!(crosses(&mut *stack, &mut *tap, 3));
        });
    }

    #[test]
    fn what_is_not_there_at_first_is_an_error() {
        testing::in_namespace("lasting: errors", |_| {
            let config = PortConfig::AfPacket(AfPacketConfig::new("nope"));
            let error = open_lasting(&config, &sizes(1514)).err().unwrap();
            assert!(error.to_string().contains("there is no interface nope"));
        });
    }
}
