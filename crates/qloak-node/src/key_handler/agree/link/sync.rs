//! What a node says of itself all the time, and the alarms of the link.

use qloak_api::manage::AlarmKind;

use crate::key_handler::{
    KeyHandler,
    door::Action,
    limits,
    message::{Body, Sync, SyncChannel},
};

impl KeyHandler {
    pub(super) fn sync(&mut self, actions: &mut Vec<Action>) {
        let timings = self.config.timings;
        let mut ahead = self.ram.untold(limits::AHEAD_MAX);
        // Copies of what is new become rarer; as long as keys are untold, the next sync has more.
        let pause_ns = match ahead.len() {
            limits::AHEAD_MAX => timings.sync_ns,
            _ => self.link.sync_pause_ns.max(timings.sync_ns),
        };
        self.link.sync_at_ns = self.now_ns + pause_ns;
        self.link.sync_pause_ns = (pause_ns * 2).min(timings.keepalive_ns);
        if ahead.is_empty() && self.now_ns >= self.link.ahead_at_ns {
            self.link.ahead_at_ns = self.now_ns + timings.keepalive_ns;
            if self.link.ahead_turn >= self.ram.outbound_len() {
                self.link.ahead_turn = 0;
            }
            ahead = self.ram.ahead(self.link.ahead_turn, limits::AHEAD_MAX);
            self.link.ahead_turn += limits::AHEAD_MAX;
        }
        let inward = self.link.inward.as_ref();
        let body = Body::Sync(Sync {
            hears: inward.map_or([0; 8], |inward| inward.keys.tag),
            channels: self.sync_channels(),
            ahead,
        });
        self.say(&body, actions);
    }

    /// The encoding SAs that the pipeline was seen to use: new ones first, the others in turn if they do not
    /// fit one frame.
    fn sync_channels(&mut self) -> Vec<SyncChannel> {
        let (now_ns, all) = (self.now_ns, self.channels.len());
        let news = (0..all).filter(|&at| self.channels[at].initiator.has_news(now_ns));
        let mut told: Vec<usize> = news.take(limits::SYNC_CHANNELS_MAX).collect();
        let start = self.link.sync_turn;
        let mut steps = 0;
        while steps < all && told.len() < limits::SYNC_CHANNELS_MAX {
            let at = (start + steps) % all;
            steps += 1;
            if !told.contains(&at) {
                told.push(at);
            }
        }
        self.link.sync_turn = (start + steps) % all.max(1);
        let told = told.into_iter().filter_map(|at| {
            let channel = &mut self.channels[at];
            let sa = channel.initiator.tell(now_ns)?;
            Some(SyncChannel {
                channel: channel.number.number(),
                an: sa.an,
                suite: channel.suite_id(sa.suite),
                change: sa.change,
            })
        });
        told.collect()
    }

    pub(super) fn link_alarms(&mut self, actions: &mut Vec<Action>) {
        let since_ns = self.link.heard_ns.unwrap_or(self.started_ns);
        if self.now_ns.saturating_sub(since_ns) >= self.config.timings.silent_alarm_ns {
            let text = self.silence();
            self.alarms
                .state(AlarmKind::PeerSilent, self.now_ns, text, actions);
        } else if self.link.heard_ns.is_some() {
            self.alarms.clear(AlarmKind::PeerSilent, None, actions);
        }
        if let Some(stray_ns) = self.link.stray_ns
            && self.now_ns.saturating_sub(stray_ns) > limits::STRAY_NS
        {
            self.link.stray_ns = None;
            self.alarms.clear(AlarmKind::Mismatch, None, actions);
        }
    }

    /// What is heard of a peer that says nothing provable, and what to look at.
    fn silence(&self) -> String {
        let fresh = |ns: Option<u64>| {
            ns.is_some_and(|ns| self.now_ns.saturating_sub(ns) < limits::UNPROVEN_NS)
        };
        let (peer, from) = (&self.config.peer_sae_id, self.config.peer_address);
        let own = self.config.address;
        // The last frame of a node that is switched off was proven; only what came after it was not.
        if fresh(self.link.seen_ns) && self.link.seen_ns > self.link.heard_ns {
            format!(
                "agreement frames arrive from {from}, but none is proven to be from {peer}: do the KMEs of both ends give keys, is peer = \"{peer}\" the name of the far node, and this node's name its peer?"
            )
        } else if fresh(self.link.stranger_ns) {
            format!(
                "agreement frames arrive, but none from {from} to {own}: does peer_address name the far line port, at both ends?"
            )
        } else {
            format!("{peer} is not heard: is it running, is the line connected?")
        }
    }

    /// The peer announced a channel that this node does not have.
    pub(in crate::key_handler) fn stray_channel(
        &mut self,
        channel: u16,
        actions: &mut Vec<Action>,
    ) {
        self.link.stray_ns = Some(self.now_ns);
        let peer = &self.config.peer_sae_id;
        let text = || {
            format!(
                "{peer} announces channel {channel}, which this node does not have: the two configurations differ"
            )
        };
        self.alarms
            .raise(AlarmKind::Mismatch, None, self.now_ns, text, actions);
    }
}
