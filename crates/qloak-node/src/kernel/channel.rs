//! A channel that the kernel carries: what is remembered of it beside what the kernel knows, and the kernel's
//! counters in our words.

use std::io;

use qloak_api::{
    An, ChannelNumber, ClientPort, Limits, Sci,
    manage::{InboundCounters, OutboundCounters},
};
use qloak_secy::{Usage, frame};
use rtrb::Producer;

use super::{
    interface::Interfaces,
    secy::{SecySeen, Secys, Way, present},
};
use crate::{config, pipeline::news::InboundNews};

/// Octets that a frame has beside its secure data.
const ADDRESSES: u64 = frame::ADDRESSES as u64;

/// A channel: an interface of the kernel.
pub(super) struct Channel {
    pub(super) number: ChannelNumber,
    pub(super) client: ClientPort,
    pub(super) name: String,
    pub(super) interface: u32,
    pub(super) peer: Sci,
    pub(super) xpn: bool,
    replay_window: u64,
    pub(super) limits: Limits,
    outbound: [Option<OutboundSa>; An::COUNT],
    encoding: Option<An>,
    /// Inbound ANs under which no frame was valid yet.
    pub(super) unheard: [bool; An::COUNT],
}

/// What is remembered of an outbound SA beside what the kernel knows.
struct OutboundSa {
    usage: Usage,
    /// Octets that the SC had encrypted before this SA.
    octets_before: u64,
    encoded: bool,
}

impl Channel {
    /// Without any SA.
    pub(super) fn new(
        config: &config::Channel,
        client: ClientPort,
        name: &str,
        interface: u32,
        peer: Sci,
    ) -> Self {
        Self {
            number: config.number,
            client,
            name: name.to_owned(),
            interface,
            peer,
            xpn: config.xpn,
            replay_window: config.replay_window,
            limits: config.limits,
            outbound: [const { None }; An::COUNT],
            encoding: None,
            unheard: [false; An::COUNT],
        }
    }

    /// An outbound SA is in the kernel, not encoding yet.
    pub(super) fn installed(&mut self, usage: Usage) {
        self.forget(usage.an);
        self.outbound[usage.an.index()] = Some(OutboundSa {
            usage,
            octets_before: 0,
            encoded: false,
        });
    }

    /// The SA encodes from the next frame on: first it is active, then the interface points to it.
    pub(super) fn encode(
        &mut self,
        secys: &mut Secys,
        interfaces: &mut Interfaces,
        an: An,
        now_ns: u64,
    ) -> io::Result<()> {
        let seen = secys.look()?;
        let seen = seen.iter().find(|seen| seen.interface == self.interface);
        let octets = seen.map_or(0, |seen| seen.encrypted_octets);
        let Some(sa) = &mut self.outbound[an.index()] else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if !sa.encoded {
            sa.encoded = true;
            sa.usage.encode_since_ns = now_ns;
            sa.octets_before = octets;
        }
        secys.activate(self.interface, an)?;
        interfaces.encode(self.interface, an)?;
        self.encoding = Some(an);
        Ok(())
    }

    /// Nothing leaves until an SA encodes again.
    pub(super) fn close(&mut self, secys: &mut Secys) -> io::Result<()> {
        let mut outcome = Ok(());
        for an in (0..An::COUNT as u8).map(An::from_low_bits) {
            if self.outbound[an.index()].is_some() {
                self.forget(an);
                outcome = outcome.and(secys.remove(self.interface, Way::Outbound, an));
            }
        }
        outcome
    }

    pub(super) fn forget(&mut self, an: An) {
        self.outbound[an.index()] = None;
        if self.encoding == Some(an) {
            self.encoding = None;
        }
    }

    /// How far the encoding SA is used, by what the kernel says.
    pub(super) fn usage(&self, seen: &SecySeen) -> Option<Usage> {
        let an = self.encoding?;
        let sa = self.outbound[an.index()].as_ref()?;
        let next_pn = match seen.outbound[an.index()]?.next_pn {
            // The kernel's 32-bit PNs end with 0: there is no next one.
            0 => sa.usage.pn_last + 1,
            next_pn => next_pn,
        };
        Some(Usage {
            next_pn,
            frames: next_pn - 1,
            octets: seen.encrypted_octets.saturating_sub(sa.octets_before),
            ..sa.usage
        })
    }

    /// Tells once of each SA under which a frame was valid.
    pub(super) fn tell_heard(&mut self, seen: &SecySeen, news: &mut Producer<InboundNews>) -> bool {
        let mut told = false;
        for an in present(&seen.inbound) {
            let ok = seen.inbound[an.index()].map_or(0, |sa| sa.ok);
            let heard = self.unheard[an.index()] && ok > 0;
            let channel = self.number;
            if heard && news.push(InboundNews::Heard { channel, an }).is_ok() {
                self.unheard[an.index()] = false;
                told = true;
            }
        }
        told
    }

    pub(super) fn lowest_pns(&self, seen: &SecySeen) -> [u64; An::COUNT] {
        seen.inbound
            .map(|sa| sa.map_or(0, |sa| sa.next_pn.saturating_sub(self.replay_window).max(1)))
    }
}

/// The counters of a transmitting SC in the words of the management door.
pub(super) fn outbound_counters(seen: &SecySeen) -> OutboundCounters {
    OutboundCounters {
        protected_frames: seen.encrypted_frames,
        protected_octets: seen.encrypted_octets,
        client_frames: seen.encrypted_frames,
        client_octets: seen.encrypted_octets + ADDRESSES * seen.encrypted_frames,
        too_long: seen.too_long,
        ..OutboundCounters::default()
    }
}

/// The same of a receiving SC.
pub(super) fn inbound_counters(seen: &SecySeen) -> InboundCounters {
    InboundCounters {
        ok: seen.ok,
        octets: seen.octets,
        late: seen.late,
        // The kernel keeps no bitmap: what comes twice inside the window is taken twice.
        replayed: 0,
        not_valid: seen.not_valid,
        no_sa: seen.no_sa,
        client_frames: seen.ok,
        client_octets: seen.octets + ADDRESSES * seen.ok,
        mux_errors: 0,
        fragments_lost: 0,
    }
}
