//! What the operator and the controller may order (seed 000, III.C, and the management door).
//!
//! What always holds: a refused command has changed nothing; a command during a change takes effect
//! after it, and of several the last one counts.

use qloak_api::{ChannelNumber, Limits};
use qloak_cipher::suite::Suite;

use super::{
    KeyHandler,
    door::{Action, Command, Refusal},
    limits,
    ram::Origin,
    supply::{Chance, Purpose},
};

impl KeyHandler {
    pub(super) fn order(
        &mut self,
        command: Command,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        match command {
            Command::SetSuite { channel, suite } => {
                let at = self.known(channel)?;
                self.check_suite(suite, self.channels[at].xpn, channel)?;
                self.intend(at, suite);
            }
            Command::SetLimits { channel, limits } => {
                let at = self.known(channel)?;
                check_limits(&limits)?;
                self.channels[at].initiator.limits = limits;
                actions.push(Action::SetLimits { channel, limits });
            }
            Command::Rekey { channel } => {
                let at = self.known(channel)?;
                self.ask_rekey(at);
            }
            Command::SoftReset => self.soft_reset(),
            Command::HardReset => self.hard_reset(actions),
            Command::Resize { slots } => {
                if !limits::RAM_SLOTS.contains(&slots) {
                    return Err(Refusal::Slots(slots));
                }
                for id in self.ram.resize(slots) {
                    self.spent.insert(id);
                }
            }
            Command::LoadOutbound { count } => {
                let allowed = self.ram.outbound_room().min(at_once());
                within(count as usize, allowed)?;
                self.ask_take(count as usize, actions);
            }
            Command::LoadInbound { key_ids } => {
                within(key_ids.len(), self.ram.inbound_room().min(at_once()))?;
                let asked = |id: &&qloak_api::KeyId| {
                    self.ram.has_inbound(**id) || self.chance(**id) != Chance::Ask
                };
                let double = |at: usize| key_ids[..at].contains(&key_ids[at]);
                if let Some(id) = key_ids.iter().find(asked) {
                    return Err(Refusal::KnownKey(*id));
                }
                if let Some(at) = (0..key_ids.len()).find(|at| double(*at)) {
                    return Err(Refusal::KnownKey(key_ids[at]));
                }
                self.ask_fetch(key_ids, Purpose::Operator, actions);
            }
        }
        self.dirty = true;
        Ok(())
    }

    fn known(&self, channel: ChannelNumber) -> Result<usize, Refusal> {
        self.channel_at(channel.number())
            .ok_or(Refusal::UnknownChannel(channel))
    }

    pub(super) fn check_suite(
        &self,
        suite: &'static Suite,
        xpn: bool,
        channel: ChannelNumber,
    ) -> Result<(), Refusal> {
        if !self.offers(suite) {
            return Err(Refusal::NotOffered(suite.name));
        }
        if !xpn && suite.id_pn32.is_none() {
            return Err(Refusal::PnForm(suite.name, channel));
        }
        Ok(())
    }

    /// Forgets which keys wait. The peer may hold the outbound ones ready, and the KME will not give
    /// the inbound ones again: both are spent, and the peer is told when it names them.
    fn soft_reset(&mut self) {
        self.ram.drop_all_outbound();
        for id in self.ram.drop_inbound(|_| true) {
            self.spent.insert(id);
        }
        self.supply.forget_wanted();
    }

    /// Zeroises everything and starts again under another boot identifier, as a restart would.
    fn hard_reset(&mut self, actions: &mut Vec<Action>) {
        self.forget_outbound(actions);
        self.forget_inbound(actions);
        for id in self
            .ram
            .drop_inbound(|origin| matches!(origin, Origin::Peer | Origin::Operator))
        {
            self.spent.insert(id);
        }
        self.ram.drop_all_outbound();
        self.supply.reset();
        let mut boot = self.link.boot;
        // Another number is all it takes: who knows the boot identifier knows nothing.
        let count = u128::from_be_bytes(boot).wrapping_add(1);
        boot.copy_from_slice(&count.to_be_bytes());
        self.link.restart(boot);
    }
}

fn at_once() -> usize {
    *limits::KEYS_PER_REQUEST.end() as usize
}

fn within(given: usize, allowed: usize) -> Result<(), Refusal> {
    if given == 0 || given > allowed {
        return Err(Refusal::Count { given, allowed });
    }
    Ok(())
}

pub(super) fn check_limits(limits: &Limits) -> Result<(), Refusal> {
    let sound = limits.frames > 0
        && limits.octets > 0
        && limits.seconds > 0
        && (1..=99).contains(&limits.rekey_at_percent)
        && (limits.rekey_every_us).is_none_or(|us| Limits::REKEY_EVERY_US.contains(&us));
    if sound {
        return Ok(());
    }
    Err(Refusal::Limits {
        frames: limits.frames,
        octets: limits.octets,
        seconds: limits.seconds,
        percent: limits.rekey_at_percent,
        every_us: limits.rekey_every_us,
    })
}
