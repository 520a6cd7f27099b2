//! The SecY behind a macsec interface: its SAs and counters (generic netlink, linux/if_macsec.h).
//!
//! ```text
//!   transmitting SA   add, not active -> activate (it encodes when the interface points to it) -> off -> remove
//!   receiving SA      add, active                                                           -> off -> remove
//! ```
//!
//! A transmitting SA is added without being active, because the kernel would encode at once with an SA
//! of the AN that the interface happens to point to; nobody may do that before the far node has said
//! that it accepts it. The kernel removes no SA that is active.

use std::io;

use qloak_api::{An, KeyId, Sci};
use qloak_keys::derive::SakMaterial;

use super::{
    error::KernelError,
    netlink::{Attributes, Netlink, Request, Table, number, text},
};

/// The family of families, and what names one.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Octets of a generic message's header.
const HEADER: usize = 4;

/// MACSEC_CMD_*
mod command {
    pub(super) const GET: u8 = 0;
    pub(super) const ADD_RECEIVING_SC: u8 = 1;
    pub(super) const REMOVE_RECEIVING_SC: u8 = 2;
    pub(super) const ADD_TRANSMITTING_SA: u8 = 4;
    pub(super) const REMOVE_TRANSMITTING_SA: u8 = 5;
    pub(super) const CHANGE_TRANSMITTING_SA: u8 = 6;
    pub(super) const ADD_RECEIVING_SA: u8 = 7;
    pub(super) const REMOVE_RECEIVING_SA: u8 = 8;
    pub(super) const CHANGE_RECEIVING_SA: u8 = 9;
}

// MACSEC_ATTR_*
const INTERFACE: u16 = 1;
const SC: u16 = 2;
const SA: u16 = 3;
const TRANSMITTING_SAS: u16 = 5;
const RECEIVING_SCS: u16 = 6;
const TRANSMITTING_COUNTERS: u16 = 7;
const SECY_COUNTERS: u16 = 8;

// MACSEC_RXSC_ATTR_*
const SC_SCI: u16 = 1;
const SC_ACTIVE: u16 = 2;
const SC_SAS: u16 = 3;
const SC_COUNTERS: u16 = 4;

/// MACSEC_SA_ATTR_*
mod sa {
    pub(super) const AN: u16 = 1;
    pub(super) const ACTIVE: u16 = 2;
    pub(super) const PN: u16 = 3;
    pub(super) const KEY: u16 = 4;
    pub(super) const KEY_ID: u16 = 5;
    pub(super) const COUNTERS: u16 = 6;
    pub(super) const SSCI: u16 = 8;
    pub(super) const SALT: u16 = 9;
}

/// Which of the two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Outbound,
    /// From the SC of this SCI.
    Inbound(Sci),
}

/// An SA as it is installed.
pub(super) struct NewSa<'a> {
    pub(super) an: An,
    pub(super) material: &'a SakMaterial,
    pub(super) key_id: KeyId,
    pub(super) xpn: bool,
}

/// An SA as the kernel tells of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SaSeen {
    /// Outbound: the PN of its next frame. Inbound: one more than the highest that was valid.
    pub(super) next_pn: u64,
    /// Inbound: valid frames.
    pub(super) ok: u64,
}

/// A SecY as the kernel tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SecySeen {
    pub(super) interface: u32,
    pub(super) outbound: [Option<SaSeen>; An::COUNT],
    pub(super) inbound: [Option<SaSeen>; An::COUNT],
    /// The receiving SCs that there are.
    pub(super) scis: Vec<[u8; 8]>,
    pub(super) encrypted_frames: u64,
    pub(super) encrypted_octets: u64,
    pub(super) too_long: u64,
    pub(super) ok: u64,
    pub(super) octets: u64,
    pub(super) late: u64,
    pub(super) not_valid: u64,
    pub(super) no_sa: u64,
    pub(super) no_tag: u64,
    pub(super) bad_tag: u64,
    pub(super) unknown_sci: u64,
}

/// The kernel's SecYs.
pub(super) struct Secys {
    netlink: Netlink,
    family: u16,
}

impl Secys {
    /// Finds the driver.
    pub(super) fn open() -> Result<Self, KernelError> {
        let mut netlink = Netlink::open(Table::Generic).map_err(KernelError::at("open netlink"))?;
        let request = Request::generic(CONTROL, GET_FAMILY, 1).with(FAMILY_NAME, &text("macsec"));
        let mut family = 0;
        let asked = netlink.get(request, |answer| {
            let attributes = answer.get(HEADER..).unwrap_or_default();
            family = Attributes::of(attributes, FAMILY_ID).map_or(0, number) as u16;
        });
        match asked {
            Ok(()) if family != 0 => Ok(Self { netlink, family }),
            Ok(()) => Err(KernelError::NoDriver),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(KernelError::NoDriver),
            Err(error) => Err(KernelError::at("look for the driver")(error)),
        }
    }

    /// Takes every SA and receiving SC out of a SecY: what an earlier run left, and what is left at the end.
    pub(super) fn clear(&mut self, interface: u32) -> io::Result<()> {
        let seen = self.look()?;
        let Some(secy) = seen.iter().find(|secy| secy.interface == interface) else {
            return Ok(());
        };
        for an in present(&secy.outbound) {
            self.remove(interface, Way::Outbound, an)?;
        }
        for sci in &secy.scis {
            // Its SAs go with it.
            let request = self.about(command::REMOVE_RECEIVING_SC, interface);
            self.netlink
                .order(request.nest(SC, |sc| sc.with(SC_SCI, sci)))?;
        }
        Ok(())
    }

    /// Frames of this SC are received from now on, under the SAs that follow.
    pub(super) fn receive_from(&mut self, interface: u32, sci: Sci) -> io::Result<()> {
        let request = self
            .about(command::ADD_RECEIVING_SC, interface)
            .nest(SC, |sc| {
                sc.with(SC_SCI, &sci.to_octets()).with(SC_ACTIVE, &[1])
            });
        self.netlink.order(request)
    }

    /// Adds an SA in place of the one of its AN. An outbound one is not active yet.
    pub(super) fn install(&mut self, interface: u32, way: Way, new: &NewSa<'_>) -> io::Result<()> {
        match self.remove(interface, way, new.an) {
            Err(error) if !is_absent(&error) => return Err(error),
            _ => {}
        }
        let (command, active) = match way {
            Way::Outbound => (command::ADD_TRANSMITTING_SA, 0),
            Way::Inbound(_) => (command::ADD_RECEIVING_SA, 1),
        };
        let request = self.about_sa(command, interface, way, |request| {
            let request = request
                .with(sa::AN, &[new.an.number()])
                .with(sa::ACTIVE, &[active])
                .with(sa::KEY_ID, &new.key_id.0)
                .with(sa::KEY, new.material.sak.as_slice());
            if new.xpn {
                request
                    .with(sa::PN, &1_u64.to_ne_bytes())
                    // Both stand in the nonce as they are here: SSCI in the order of the line.
                    .with(sa::SSCI, &qloak_secy::xpn::SSCI.to_be_bytes())
                    .with(sa::SALT, &new.material.salt)
            } else {
                request.with(sa::PN, &1_u32.to_ne_bytes())
            }
        });
        self.netlink.order(request)
    }

    /// Lets an outbound SA encode, once the interface points to it.
    pub(super) fn activate(&mut self, interface: u32, an: An) -> io::Result<()> {
        self.set_active(interface, Way::Outbound, an, 1)
    }

    /// Takes an SA out; the kernel forgets its key.
    pub(super) fn remove(&mut self, interface: u32, way: Way, an: An) -> io::Result<()> {
        self.set_active(interface, way, an, 0)?;
        let command = match way {
            Way::Outbound => command::REMOVE_TRANSMITTING_SA,
            Way::Inbound(_) => command::REMOVE_RECEIVING_SA,
        };
        let request = self.about_sa(command, interface, way, |request| {
            request.with(sa::AN, &[an.number()])
        });
        self.netlink.order(request)
    }

    /// All SecYs as they are now.
    pub(super) fn look(&mut self) -> io::Result<Vec<SecySeen>> {
        let mut all: Vec<SecySeen> = Vec::new();
        let request = Request::generic(self.family, command::GET, 1);
        self.netlink.dump(request, |answer| {
            all.push(SecySeen::read(answer.get(HEADER..).unwrap_or_default()));
        })?;
        Ok(all)
    }

    fn set_active(&mut self, interface: u32, way: Way, an: An, active: u8) -> io::Result<()> {
        let command = match way {
            Way::Outbound => command::CHANGE_TRANSMITTING_SA,
            Way::Inbound(_) => command::CHANGE_RECEIVING_SA,
        };
        let request = self.about_sa(command, interface, way, |request| {
            request
                .with(sa::AN, &[an.number()])
                .with(sa::ACTIVE, &[active])
        });
        self.netlink.order(request)
    }

    fn about(&self, command: u8, interface: u32) -> Request {
        Request::generic(self.family, command, 1).with(INTERFACE, &interface.to_ne_bytes())
    }

    fn about_sa(
        &self,
        command: u8,
        interface: u32,
        way: Way,
        fill: impl FnOnce(Request) -> Request,
    ) -> Request {
        let request = self.about(command, interface);
        let request = match way {
            Way::Outbound => request,
            Way::Inbound(sci) => request.nest(SC, |sc| sc.with(SC_SCI, &sci.to_octets())),
        };
        request.nest(SA, fill)
    }
}

impl SecySeen {
    fn read(attributes: &[u8]) -> Self {
        let part = |kind| Attributes::of(attributes, kind).unwrap_or_default();
        let mut seen = Self {
            interface: number(part(INTERFACE)) as u32,
            outbound: sas(part(TRANSMITTING_SAS)),
            ..Self::default()
        };
        for (_, sc) in Attributes(part(RECEIVING_SCS)) {
            seen.receiving_sc(sc);
        }
        // MACSEC_TXSC_STATS_ATTR_*, MACSEC_SECY_STATS_ATTR_*
        let transmitting = counters(part(TRANSMITTING_COUNTERS));
        seen.encrypted_frames = transmitting[2];
        seen.encrypted_octets = transmitting[4];
        let secy = counters(part(SECY_COUNTERS));
        seen.too_long = secy[3];
        seen.no_tag = secy[4];
        seen.bad_tag = secy[5];
        // An SCI that is unknown, or none where one is needed.
        seen.unknown_sci = secy[6] + secy[7];
        seen
    }

    fn receiving_sc(&mut self, sc: &[u8]) {
        let part = |kind| Attributes::of(sc, kind).unwrap_or_default();
        self.scis.extend(<[u8; 8]>::try_from(part(SC_SCI)));
        for (place, sa) in self.inbound.iter_mut().zip(sas(part(SC_SAS))) {
            *place = place.or(sa);
        }
        // MACSEC_RXSC_STATS_ATTR_*
        let counters = counters(part(SC_COUNTERS));
        self.octets += counters[2];
        self.ok += counters[5];
        self.late += counters[7];
        self.not_valid += counters[6] + counters[8];
        self.no_sa += counters[9] + counters[10];
    }
}

/// The ANs under which there is an SA.
pub(super) fn present(sas: &[Option<SaSeen>; An::COUNT]) -> impl Iterator<Item = An> + use<> {
    let there = sas.map(|sa| sa.is_some());
    (0..An::COUNT as u8)
        .map(An::from_low_bits)
        .filter(move |an| there[an.index()])
}

/// Whether the kernel says that there is no such SA.
pub(super) fn is_absent(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENODEV)
}

fn sas(list: &[u8]) -> [Option<SaSeen>; An::COUNT] {
    let mut sas = [None; An::COUNT];
    for (_, octets) in Attributes(list) {
        let part = |kind| Attributes::of(octets, kind).unwrap_or_default();
        let [an] = *part(sa::AN) else { continue };
        if let Some(place) = sas.get_mut(usize::from(an)) {
            *place = Some(SaSeen {
                next_pn: number(part(sa::PN)),
                // MACSEC_SA_STATS_ATTR_IN_PKTS_OK
                ok: counters(part(sa::COUNTERS))[1],
            });
        }
    }
    sas
}

/// Counters by their kind.
fn counters(octets: &[u8]) -> [u64; 16] {
    let mut all = [0; 16];
    for (kind, content) in Attributes(octets) {
        if let Some(place) = all.get_mut(usize::from(kind)) {
            *place = number(content);
        }
    }
    all
}
