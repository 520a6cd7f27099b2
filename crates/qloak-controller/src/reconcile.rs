//! Making it so, again and again: after each answer of a node, whatever differs from its intents is
//! pushed, until both ends meet them.
//!
//! This is how an intent survives a node that was away, a node that restarted with its own
//! configuration, and a restart of the controller itself. Pushes that fail are repeated with growing
//! pauses; the pauses are forgotten when the node comes back. An end that refuses an intent which never
//! was met sends the link back to what worked before; one that was met once is not given up (a link
//! never falls back by itself), it is shown as trouble and asked again.

use std::{
    collections::HashMap,
    sync::{MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use qloak_api::{SaeId, control::LinkRecord};

use crate::{
    change::unix_ms,
    controller::Controller,
    intent::{ChannelKey, Standing},
    limits, plan,
    push::Pushed,
    south::SouthError,
};

/// When a push may be tried again.
#[derive(Debug)]
pub(crate) struct Backoff {
    pause: Duration,
    not_before: Instant,
}

impl Backoff {
    fn after(earlier: Option<&Self>, now: Instant) -> Self {
        let pause = earlier.map_or(limits::RETRY_PAUSE_MIN, |earlier| {
            (earlier.pause * 2).min(limits::RETRY_PAUSE_MAX)
        });
        Self {
            pause,
            not_before: now + pause,
        }
    }
}

/// Who the audit log says it was.
const ITSELF: &str = "the controller";

impl Controller {
    /// Pushes to a node whatever differs there from the intents of its links.
    pub(crate) async fn reconcile(&self, node: &SaeId) {
        for (link, key) in self.wanted_of(node) {
            let lock = self.link_change(&link.name);
            // A command is at work on this link; it needs no help.
            let Ok(_held) = lock.try_lock() else { continue };
            let Some(standing) = self.picture().intents.get(&key).cloned() else {
                continue;
            };
            let Some(end) = self.fresh_end(node, &key) else {
                if self.fresh_but_missing(node, &key) {
                    self.trouble(&key, Some(format!("{node} has no channel {}", key.channel)));
                }
                continue;
            };
            let steps = plan::steps(&standing.intent, Some(&end));
            let slot = (key.clone(), node.clone());
            if steps.is_empty() {
                self.backoffs().remove(&slot);
                self.no_trouble_at(&key, node);
                continue;
            }
            let now = Instant::now();
            if self
                .backoffs()
                .get(&slot)
                .is_some_and(|backoff| now < backoff.not_before)
            {
                continue;
            }
            let pushed = self.push(&key, node, steps).await;
            self.mark_push(&key);
            match &pushed.outcome {
                Ok(()) => {
                    self.backoffs().remove(&slot);
                    self.trouble(&key, None);
                    tracing::info!(%node, channel = %key.channel, suite = standing.intent.suite, "told the node its intent again");
                }
                Err(error) => {
                    self.back_off(slot);
                    if matches!(error, SouthError::Refused(_)) {
                        self.refused_later(&link, &key, standing, pushed).await;
                    } else {
                        self.trouble(&key, pushed.failure());
                    }
                }
            }
        }
    }

    /// Records which intents of a node's link are met by now. True while one is not.
    pub(crate) async fn settle(&self, node: &SaeId) -> bool {
        let mut waiting = false;
        for (link, key) in self.wanted_of(node) {
            let lock = self.link_change(&link.name);
            let Ok(_held) = lock.try_lock() else {
                waiting = true;
                continue;
            };
            let (standing, met, commanded) = {
                let picture = self.picture();
                let Some(standing) = picture.intents.get(&key).cloned() else {
                    continue;
                };
                let commanded = picture
                    .under_way
                    .get(&key)
                    .and_then(|moments| moments.commanded);
                (standing, picture.met(&link, &key), commanded)
            };
            if met && standing.converged_after_ms.is_some() {
                self.trouble(&key, None);
                continue;
            }
            if !met {
                waiting |= standing.converged_after_ms.is_none();
                continue;
            }
            let since_epoch = unix_ms().saturating_sub(standing.commanded_unix_ms);
            let elapsed = commanded.map_or(Duration::from_millis(since_epoch), |at| at.elapsed());
            self.metrics.converged(elapsed);
            let settled = Standing {
                fallback: None,
                converged_after_ms: Some(elapsed.as_secs_f64() * 1e3),
                ..standing
            };
            // If the disk fails, it is tried again at the next answer; the store has logged it.
            let _ = self.stand(&key, Some(settled)).await;
        }
        waiting
    }

    /// A node came back: it may be asked at once, whatever it said before.
    pub(crate) fn forget_backoff(&self, node: &SaeId) {
        self.backoffs().retain(|(_, of), _| of != node);
    }

    /// An end refuses what the operator was told stands.
    async fn refused_later(
        &self,
        link: &LinkRecord,
        key: &ChannelKey,
        standing: Standing,
        pushed: Pushed,
    ) {
        let refusal = pushed.refusal().unwrap_or_default();
        let action = format!(
            "reconcile link {} channel {} with {}",
            key.link, key.channel, standing.intent.suite
        );
        let Some(fallback) = standing.fallback else {
            if self.trouble(key, Some(refusal.clone())) {
                let outcome = format!("{refusal}; the intent stands and is asked for again");
                self.note(action, outcome).await;
            }
            return;
        };
        let other = if pushed.node == link.a {
            &link.b
        } else {
            &link.a
        };
        let told = Pushed {
            node: other.clone(),
            // What the other end was told, and when, may lie before a restart: undo all of it.
            touched: plan::steps(&standing.intent, None),
            outcome: Ok(()),
        };
        let before = fallback.intent.clone().map(|intent| Standing {
            intent,
            fallback: None,
            commanded_unix_ms: unix_ms(),
            converged_after_ms: None,
        });
        let undone = match self
            .roll_back(key, &[pushed, told], &fallback, before)
            .await
        {
            Ok(undone) => undone.join("; "),
            Err(problem) => problem.detail,
        };
        let outcome = format!("{refusal}; {undone}");
        tracing::warn!(link = key.link, channel = %key.channel, outcome, "an intent was rolled back");
        self.trouble(
            key,
            Some(format!(
                "{} was rolled back: {outcome}",
                standing.intent.suite
            )),
        );
        self.note(action, outcome).await;
    }

    async fn note(&self, action: String, outcome: String) {
        // A failing disk is logged by the store; the reconciler goes on.
        let _ = self
            .store(move |store| store.audit_note(ITSELF, &action, &outcome))
            .await;
    }

    /// An end that was told everything holds nothing up, whatever kept it from that before. A rollback
    /// stays in sight: it is no trouble of one end.
    fn no_trouble_at(&self, key: &ChannelKey, node: &SaeId) {
        let of_this_end = format!("{node} ");
        let shown = self.picture().troubles.get(key).cloned();
        if shown.is_some_and(|trouble| trouble.starts_with(&of_this_end)) {
            self.trouble(key, None);
        }
    }

    /// The node answered and does not know the channel.
    fn fresh_but_missing(&self, node: &SaeId, key: &ChannelKey) -> bool {
        let picture = self.picture();
        let answered = picture
            .nodes
            .get(node)
            .is_some_and(|seen| seen.reachable() && seen.state.is_some());
        answered && picture.end(node, key.channel).is_none()
    }

    fn wanted_of(&self, node: &SaeId) -> Vec<(LinkRecord, ChannelKey)> {
        let picture = self.picture();
        let links = picture.topology.links_of(node);
        links
            .flat_map(|link| {
                let keys = picture.intents.keys().filter(|key| key.link == link.name);
                keys.map(|key| (link.clone(), key.clone()))
            })
            .collect()
    }

    fn back_off(&self, slot: (ChannelKey, SaeId)) {
        let mut backoffs = self.backoffs();
        let next = Backoff::after(backoffs.get(&slot), Instant::now());
        backoffs.insert(slot, next);
    }

    fn backoffs(&self) -> MutexGuard<'_, HashMap<(ChannelKey, SaeId), Backoff>> {
        self.backoffs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let now = Instant::now();
        let mut backoff = Backoff::after(None, now);
        assert_eq!(backoff.pause, limits::RETRY_PAUSE_MIN);
        for _ in 0..20 {
            let next = Backoff::after(Some(&backoff), now);
            assert!(next.pause >= backoff.pause && next.not_before > now);
            backoff = next;
        }
        assert_eq!(backoff.pause, limits::RETRY_PAUSE_MAX);
    }
}
