//! The target's no: what becomes of the key, the change and the operator.
//!
//! What always holds: a key that the target has not touched waits again; one that it may have touched,
//! or can never have, is given up.

use qloak_api::{Carriage, manage::AlarmKind};

use super::{Change, Encoding};
use crate::key_handler::{
    KeyHandler,
    door::Action,
    message::{Reason, Refuse},
};

impl KeyHandler {
    /// The target will not.
    pub(in crate::key_handler) fn refused(&mut self, refuse: &Refuse, actions: &mut Vec<Action>) {
        if refuse.channel == 0 {
            // It cannot have a key that we named ahead. One that is announced gets its own answer.
            if self.ram.drop_outbound(refuse.key_id) {
                self.lose(refuse.key_id, actions);
                self.dirty = true;
            }
            return;
        }
        let Some(at) = self.channel_at(refuse.channel) else {
            return;
        };
        let initiator = &mut self.channels[at].initiator;
        if refuse.reason == Reason::NoSa {
            let encodes = |sa: &Encoding| sa.change == refuse.change;
            if initiator.encoding.as_ref().is_some_and(encodes) {
                initiator.rekey_asked = true;
                self.dirty = true;
            }
            return;
        }
        let meant =
            |change: &Change| change.number == refuse.change && change.named.id == refuse.key_id;
        if !initiator.change.as_ref().is_some_and(meant) {
            return;
        }
        if refuse.reason == Reason::KeyUnknown {
            return self.drop_change(at, actions);
        }
        self.mismatched(at, refuse.reason, actions);
    }

    /// The peer refused before it touched the key: the key waits again, and so do we.
    fn mismatched(&mut self, at: usize, reason: Reason, actions: &mut Vec<Action>) {
        let now_ns = self.now_ns;
        let channel = &mut self.channels[at];
        let Some(change) = channel.initiator.change.take() else {
            return;
        };
        channel.initiator.rekey_asked |= change.asked;
        channel.initiator.refused = true;
        channel.initiator.not_before_ns = now_ns + self.config.timings.refused_retry_ns;
        let (number, suite) = (channel.number, change.suite.name);
        let meanwhile = channel.initiator.meanwhile();
        let lack = match (reason, channel.carriage) {
            (Reason::Carriage, Carriage::Transparent) => {
                "its channel is aggregated, this one is transparent"
            }
            (Reason::Carriage, Carriage::Aggregated) => {
                "its channel is transparent, this one is aggregated"
            }
            _ => reason.words(),
        };
        self.ram.return_outbound(change.named);
        let peer = &self.config.peer_sae_id;
        let text = || format!("{peer} refuses {suite}: {lack}; {meanwhile}");
        self.alarms
            .raise(AlarmKind::Mismatch, Some(number), now_ns, text, actions);
    }
}
