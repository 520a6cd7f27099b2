//! When a thread of the pipeline has nothing to do: what it waits for and how long, and when it tells news.
//!
//! News of channels are due a millisecond after something happened, those of ports each ten milliseconds whatever
//! happens. A thread sleeps until the next of them, so an idle one wakes a hundred times a second.

use std::{os::fd::BorrowedFd, time::Duration};

use qloak_port::{Port, PortError, Waker, limits::WAIT_DESCRIPTORS_MAX};

/// Longest sleep when a port has no descriptor to wait for and must be asked again.
const SHORT_NAP: Duration = Duration::from_micros(100);

/// How often news of channels go out while something happens.
const CHANNEL_NEWS_NS: u64 = 1_000_000;

/// How often news of ports go out.
const PORT_NEWS_NS: u64 = 10_000_000;

/// When one way tells its news.
#[derive(Default)]
pub(crate) struct NewsTimes {
    channels_ns: u64,
    ports_ns: u64,
    /// Something happened that was not told yet.
    untold: bool,
}

impl NewsTimes {
    /// There is something to tell.
    pub(super) fn happened(&mut self) {
        self.untold = true;
    }

    /// Whether to tell of channels now.
    pub(super) fn channels(&mut self, now_ns: u64) -> bool {
        let now = now_ns >= self.channels_due_ns();
        if now {
            self.channels_ns = now_ns + CHANNEL_NEWS_NS;
            self.untold = false;
        }
        now
    }

    /// Whether to tell of ports now.
    pub(super) fn ports(&mut self, now_ns: u64) -> bool {
        let now = now_ns >= self.ports_ns;
        if now {
            self.ports_ns = now_ns + PORT_NEWS_NS;
        }
        now
    }

    /// How long nothing is to be told.
    pub(super) fn nap(&self, now_ns: u64) -> Duration {
        let next_ns = self.channels_due_ns().min(self.ports_ns);
        Duration::from_nanos(next_ns.saturating_sub(now_ns))
    }

    /// What nobody else could have changed is told with the ports' news all the same.
    fn channels_due_ns(&self) -> u64 {
        if self.untold {
            self.channels_ns
        } else {
            self.channels_ns.max(self.ports_ns)
        }
    }
}

/// What a thread waits for.
pub(super) struct Rest<'a> {
    waker: &'a Waker,
    descriptors: [BorrowedFd<'a>; WAIT_DESCRIPTORS_MAX],
    count: usize,
    nap: Duration,
}

impl<'a> Rest<'a> {
    /// For a change, and no longer than `nap`.
    pub(super) fn new(waker: &'a Waker, nap: Duration) -> Self {
        Self {
            waker,
            descriptors: [waker.descriptor(); WAIT_DESCRIPTORS_MAX],
            count: 1,
            nap,
        }
    }

    /// For frames of a port too.
    pub(super) fn port(&mut self, port: &'a dyn Port) {
        if let Some(nap) = port.nap_max() {
            self.no_longer_than(nap);
        }
        let slot = self.descriptors.get_mut(self.count);
        match port.descriptor().zip(slot) {
            Some((descriptor, slot)) => {
                *slot = descriptor;
                self.count += 1;
            }
            None => self.no_longer_than(SHORT_NAP),
        }
    }

    /// No longer than this.
    pub(super) fn no_longer_than(&mut self, nap: Duration) {
        self.nap = self.nap.min(nap);
    }

    /// Sleeps.
    pub(super) fn sleep(self) -> Result<(), PortError> {
        let descriptors = self.descriptors.get(..self.count).unwrap_or_default();
        qloak_port::wait(descriptors, self.nap)?;
        // What was pushed before the wake is popped after this; a later wake ends the next rest.
        self.waker.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn news_wait_a_millisecond_at_most_and_an_idle_thread_sleeps_ten() {
        let mut times = NewsTimes::default();
        assert!(
            times.channels(5 * MS) && times.ports(5 * MS),
            "the first at once"
        );
        assert_eq!(times.nap(5 * MS), Duration::from_millis(10));
        assert!(!times.channels(14 * MS) && !times.ports(14 * MS));
        times.happened();
        assert_eq!(times.nap(14 * MS), Duration::ZERO, "the last news are old");
        assert!(times.channels(14 * MS));
        times.happened();
        assert_eq!(times.nap(14 * MS), Duration::from_millis(1));
        assert!(!times.channels(15 * MS - 1) && times.channels(15 * MS));
        assert!(times.ports(15 * MS) && !times.channels(24 * MS));
        assert!(
            times.channels(25 * MS),
            "told again although nothing happened"
        );
    }

    #[test]
    fn a_port_without_a_descriptor_is_asked_soon_again() {
        let waker = Waker::new().unwrap_or_else(|e| panic!("{e}"));
        let config = qloak_port::PcapConfig {
            read: None,
            write: Some("/dev/null".into()),
            pace: qloak_port::Pace::Unpaced,
            repeat: 0,
        };
        let sizes = crate::node::sizes();
        let port = qloak_port::open(&qloak_port::PortConfig::Pcap(config), &sizes)
            .unwrap_or_else(|e| panic!("{e}"));
        let mut rest = Rest::new(&waker, Duration::from_secs(60));
        rest.port(&*port);
        assert_eq!((rest.count, rest.nap), (1, SHORT_NAP));
        waker.wake();
        rest.sleep().unwrap_or_else(|e| panic!("{e}"));
    }
}
