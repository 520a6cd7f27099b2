//! The kernel carries the frames: SAs go into its macsec driver, or through it into the network card.
//!
//! ```text
//!   hosts -- macsec interface (the client port) -- line interface -- line        frames: the kernel's
//!                   | SAs, counters                       | agreement frames
//!                this thread ------------------------------
//!                   | changes, news, the same as the pipeline's
//!                key handler
//! ```
//!
//! It stands where the pipeline's two threads stand otherwise, behind the same messages: the key handler
//! does not know which one it has. Each channel is one macsec interface; its SecY is that of
//! IEEE 802.1AE-2018 and our transparent carriage, so the far node may be of either kind.
//!
//! What always holds:
//! - an agreement frame leaves after the changes that were ordered before it: "ready" is said when the
//!   kernel has the SA, so no frame under it comes too early;
//! - nothing leaves the interface without an SA that the key handler let encode. At start, when a channel
//!   closes and when the node ends, all SAs are taken out;
//! - keys are wiped here once the kernel has them, and are never logged.

mod channel;
mod error;
mod interface;
mod netlink;
mod secy;
pub(crate) mod wiring;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::Thread,
    time::Duration,
};

use qloak_api::{
    An, ChannelNumber, KeyId, Sci,
    manage::{PortCounters, StrayCounters},
};
use qloak_cipher::{level::Level, suite::Suite};
use qloak_keys::derive::SakMaterial;
use qloak_port::{Batch, Port, Waker};
use qloak_secy::{Life, SaError, Usage, xpn};
use rtrb::{Consumer, Producer};

pub use error::KernelError;

use self::{
    channel::{Channel, inbound_counters, outbound_counters},
    interface::{Identity, Interfaces},
    secy::{NewSa, SecySeen, Secys, Way, is_absent},
};
use crate::{
    clock::Clock,
    config::KernelMacsec,
    key_handler::plane::{Association, Outlet},
    limits,
    node::{
        self,
        key_side::{KeySide, PlaneRings},
    },
    pipeline::news::{
        ControlFrame, InboundChange, InboundNews, OutboundChange, OutboundNews, port_counters,
    },
};

/// How often the kernel's counters are read. A limit may be overshot by what the line carries meanwhile.
const LOOK_EVERY_NS: u64 = 5_000_000;

/// How long the thread sleeps at most.
const NAP: Duration = Duration::from_millis(5);

/// How often news of ports go out.
const PORT_NEWS_NS: u64 = 50_000_000;

/// A key on its way into the kernel.
pub(crate) struct KernelSa {
    suite: &'static Suite,
    material: SakMaterial,
    key_id: KeyId,
}

impl Association for KernelSa {
    /// The kernel makes the key schedule itself.
    fn make(
        suite: &'static Suite,
        _: Level,
        material: SakMaterial,
        key_id: KeyId,
    ) -> Result<Self, SaError> {
        let given = material.sak.octets();
        if given != suite.key_octets {
            return Err(SaError {
                suite: suite.name,
                given,
                allowed: suite.key_octets,
            });
        }
        Ok(Self {
            suite,
            material,
            key_id,
        })
    }
}

/// A way to the line behind the changes: the thread takes both.
pub(crate) struct RingOutlet {
    pub(crate) ring: Producer<ControlFrame>,
    pub(crate) waker: Arc<Waker>,
}

impl Outlet for RingOutlet {
    fn send(&mut self, frame: &[u8]) {
        let Some(frame) = ControlFrame::copy_of(frame) else {
            return tracing::error!(octets = frame.len(), "an agreement frame is too long");
        };
        // A full ring means a kernel that is far behind; what matters is repeated.
        let _ = self.ring.push(frame);
        self.waker.wake();
    }
}

/// Everything the thread holds.
pub(crate) struct KernelThread {
    interfaces: Interfaces,
    secys: Secys,
    channels: Vec<Channel>,
    line: Box<dyn Port>,
    batch: Batch,
    rings: PlaneRings<KernelSa>,
    /// Agreement frames for the line.
    agreement: Consumer<ControlFrame>,
    pub(crate) key_handler: Option<Thread>,
    clock: Clock,
    waker: Arc<Waker>,
    stop: Arc<AtomicBool>,
    oversized_agreement: u64,
    unsent_agreement: u64,
}

impl KernelThread {
    /// Makes the interfaces ready, without any SA.
    pub(crate) fn new(
        side: &KeySide,
        kernel: &KernelMacsec,
        line: Box<dyn Port>,
        rings: PlaneRings<KernelSa>,
        agreement: Consumer<ControlFrame>,
        waker: Arc<Waker>,
    ) -> Result<Self, KernelError> {
        let config = &side.config;
        let mut secys = Secys::open()?;
        let mut interfaces = Interfaces::open()?;
        let below = interfaces.index(line.name())?;
        let mut channels = Vec::new();
        for channel in &config.channels {
            let Some((client, wanted)) = channel
                .clients
                .first()
                .and_then(|client| Some((*client, kernel.interfaces.get(client)?)))
            else {
                continue;
            };
            let identity = Identity {
                sci: Sci::new(config.line.address, channel.number),
                suite: kernel_suite(channel.suite, channel.xpn),
            };
            let window = channel.replay_window as u32;
            let interface = interfaces.ready(wanted, below, identity, window)?;
            let peer = Sci::new(config.peer_address(channel), channel.number);
            let refused = |what: &str| KernelError::at(format!("{what} of {}", wanted.name));
            secys.clear(interface).map_err(refused("clear the SAs"))?;
            secys
                .receive_from(interface, peer)
                .map_err(refused("add the receiving SC"))?;
            tracing::info!(interface = wanted.name, channel = %channel.number, sci = %identity.sci, "the kernel carries the frames");
            channels.push(Channel::new(channel, client, &wanted.name, interface, peer));
        }
        Ok(Self {
            interfaces,
            secys,
            channels,
            line,
            batch: Batch::with_sizes(limits::BATCH_FRAMES, node::sizes()),
            rings,
            agreement,
            key_handler: None,
            clock: side.clock,
            waker,
            stop: Arc::clone(&side.stop),
            oversized_agreement: 0,
            unsent_agreement: 0,
        })
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) -> Result<(), crate::Error> {
        let (mut look_ns, mut ports_ns) = (0, 0);
        while !self.stop.load(Ordering::Relaxed) {
            self.hear()?;
            // Counted before the changes are taken, so that each of them goes behind its changes.
            let frames = self.agreement.slots();
            self.apply_inbound();
            self.apply_outbound();
            self.say(frames)?;
            let now_ns = self.clock.now_ns();
            if now_ns >= look_ns {
                look_ns = now_ns + LOOK_EVERY_NS;
                self.look(now_ns >= ports_ns)?;
                ports_ns = if now_ns >= ports_ns {
                    now_ns + PORT_NEWS_NS
                } else {
                    ports_ns
                };
            }
            let waker = self.waker.descriptor();
            let line = self.line.descriptor().unwrap_or(waker);
            qloak_port::wait(&[line, waker], NAP)?;
            self.waker.clear();
        }
        Ok(())
    }

    /// Agreement frames of the line go to the key handler.
    fn hear(&mut self) -> Result<(), crate::Error> {
        self.line.receive(&mut self.batch)?;
        for frame in self.batch.frames() {
            match ControlFrame::copy_of(frame.octets()) {
                // A full ring means a key handler that is far behind; agreement frames are repeated.
                Some(frame) => drop(self.rings.control.push(frame)),
                None => self.oversized_agreement += 1,
            }
        }
        if !self.batch.is_empty()
            && let Some(key_handler) = &self.key_handler
        {
            key_handler.unpark();
        }
        self.batch.clear();
        Ok(())
    }

    /// The next agreement frames of the key handler go to the line. One that it does not take is lost, as it
    /// may be on any line.
    fn say(&mut self, frames: usize) -> Result<(), crate::Error> {
        for _ in 0..frames {
            let Ok(frame) = self.agreement.pop() else {
                return Ok(());
            };
            self.batch.clear();
            if !self.batch.push(frame.octets()) || self.line.transmit(&mut self.batch)? == 0 {
                self.unsent_agreement += 1;
            }
        }
        self.batch.clear();
        Ok(())
    }

    fn apply_inbound(&mut self) {
        while let Ok(change) = self.rings.inbound.pop() {
            let (InboundChange::Install { channel, .. } | InboundChange::Retire { channel, .. }) =
                &change;
            let Some(state) = found(&mut self.channels, *channel) else {
                continue;
            };
            let way = Way::Inbound(state.peer);
            let done = match &change {
                InboundChange::Install { an, sa, .. } => {
                    state.unheard[an.index()] = true;
                    let new = sa.new_in_kernel(*an, state.xpn);
                    self.secys.install(state.interface, way, &new)
                }
                InboundChange::Retire { an, .. } => {
                    state.unheard[an.index()] = false;
                    self.secys.remove(state.interface, way, *an)
                }
            };
            report(done, &state.name, "an inbound SA");
        }
    }

    fn apply_outbound(&mut self) {
        while let Ok(change) = self.rings.outbound.pop() {
            let channel = change.channel();
            let Some(state) = found(&mut self.channels, channel) else {
                continue;
            };
            let (interface, now_ns) = (state.interface, self.clock.now_ns());
            let done = match change {
                OutboundChange::Install { an, sa, .. } => {
                    let new = sa.new_in_kernel(an, state.xpn);
                    let done = self.secys.install(interface, Way::Outbound, &new);
                    if done.is_ok() {
                        state.installed(sa.unused(an, state.xpn));
                    }
                    done
                }
                OutboundChange::Encode { an, .. } => {
                    state.encode(&mut self.secys, &mut self.interfaces, an, now_ns)
                }
                OutboundChange::Retire { an, .. } => {
                    state.forget(an);
                    self.secys.remove(interface, Way::Outbound, an)
                }
                OutboundChange::Close { .. } => state.close(&mut self.secys),
                OutboundChange::Limits { limits, .. } => {
                    state.limits = limits;
                    Ok(())
                }
            };
            report(done, &state.name, "an outbound SA");
        }
    }

    /// Reads the kernel's counters, tells of them, and closes what has reached a limit.
    fn look(&mut self, ports: bool) -> Result<(), crate::Error> {
        let all = self
            .secys
            .look()
            .map_err(KernelError::at("read the counters of macsec"))?;
        let mut strays = StrayCounters {
            bad_agreement: self.oversized_agreement,
            ..StrayCounters::default()
        };
        let (now_ns, mut told) = (self.clock.now_ns(), false);
        for state in &mut self.channels {
            let Some(seen) = all.iter().find(|seen| seen.interface == state.interface) else {
                return Err(KernelError::NoInterface(state.name.clone()).into());
            };
            told |= state.tell_heard(seen, &mut self.rings.inbound_news);
            let usage = state.usage(seen);
            if let Some(usage) = usage
                && usage.life(&state.limits, now_ns) == Life::Spent
            {
                report(
                    state.close(&mut self.secys),
                    &state.name,
                    "the end of a life",
                );
            }
            let _ = self.rings.outbound_news.push(OutboundNews::Channel {
                channel: state.number,
                usage,
                counters: outbound_counters(seen),
            });
            let _ = self.rings.inbound_news.push(InboundNews::Channel {
                channel: state.number,
                counters: inbound_counters(seen),
                lowest_pn: state.lowest_pns(seen),
            });
            strays.no_tag += seen.no_tag;
            strays.bad_tag += seen.bad_tag;
            strays.unknown_sci += seen.unknown_sci;
        }
        if ports {
            self.tell_ports(&all, strays)?;
        }
        if told && let Some(key_handler) = &self.key_handler {
            key_handler.unpark();
        }
        Ok(())
    }

    fn tell_ports(&mut self, all: &[SecySeen], strays: StrayCounters) -> Result<(), crate::Error> {
        for state in &self.channels {
            let statistics = self
                .interfaces
                .statistics(state.interface)
                .map_err(KernelError::at("read the counters of an interface"))?;
            let too_long = all
                .iter()
                .find(|seen| seen.interface == state.interface)
                .map_or(0, |seen| seen.too_long);
            // What the interface takes from its hosts is what the client port receives.
            let counters = PortCounters {
                received_frames: statistics.transmitted_frames,
                received_octets: statistics.transmitted_octets,
                transmitted_frames: statistics.received_frames,
                transmitted_octets: statistics.received_octets,
                ..PortCounters::default()
            };
            let _ = self.rings.outbound_news.push(OutboundNews::Client {
                client: state.client,
                counters,
                discarded_closed: statistics.transmit_dropped.saturating_sub(too_long),
                discarded_oversize: too_long,
                discarded_vlan: 0,
            });
        }
        let dropped = OutboundNews::LineDropped(self.unsent_agreement);
        let _ = self.rings.outbound_news.push(dropped);
        let _ = self.rings.inbound_news.push(InboundNews::Line {
            counters: port_counters(self.line.counters()),
            strays,
        });
        Ok(())
    }
}

impl Drop for KernelThread {
    /// No SA is left behind, whatever ended the thread.
    fn drop(&mut self) {
        for channel in &self.channels {
            if let Err(error) = self.secys.clear(channel.interface) {
                tracing::error!(interface = channel.name, %error, "SAs are left in the kernel: remove the interface");
            }
        }
    }
}

impl KernelSa {
    fn new_in_kernel(&self, an: An, xpn: bool) -> NewSa<'_> {
        NewSa {
            an,
            material: &self.material,
            key_id: self.key_id,
            xpn,
        }
    }

    fn unused(&self, an: An, is_xpn: bool) -> Usage {
        Usage {
            an,
            suite: self.suite,
            key_id: self.key_id,
            frames: 0,
            octets: 0,
            encode_since_ns: 0,
            next_pn: 1,
            pn_last: if is_xpn {
                xpn::PN64_LAST
            } else {
                xpn::PN32_LAST
            },
        }
    }
}

fn found(channels: &mut [Channel], number: ChannelNumber) -> Option<&mut Channel> {
    channels.iter_mut().find(|channel| channel.number == number)
}

/// The identifier of a suite in the kernel, which is that of IEEE 802.1AE-2018, table 14-1.
fn kernel_suite(suite: &Suite, xpn: bool) -> u64 {
    match suite.id_pn32 {
        Some(id) if !xpn => id,
        _ => suite.id,
    }
}

fn report(done: std::io::Result<()>, interface: &str, what: &str) {
    match done {
        // Taken out twice, as when a channel closes that has closed itself.
        Err(error) if is_absent(&error) => {}
        Err(error) => tracing::error!(interface, what, %error, "the kernel refused a change"),
        Ok(()) => {}
    }
}
