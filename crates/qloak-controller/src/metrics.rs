//! Prometheus metrics of the controller itself. The nodes have their own.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{observed::Picture, south::SouthError};

/// What is counted as it happens.
pub(crate) struct Metrics {
    polls: Family<PollLabels, Counter>,
    pushes: Family<OutcomeLabels, Counter>,
    rollbacks: Counter,
    refusals: Counter,
    convergence: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PollLabels {
    peer: String,
    answered: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabels {
    peer: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChannelLabels {
    link: String,
    channel: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            polls: Family::default(),
            pushes: Family::default(),
            rollbacks: Counter::default(),
            refusals: Counter::default(),
            // From one rekey on an idle machine to the slowest poll interval.
            convergence: Histogram::new([
                0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
            ]),
        }
    }
}

impl Metrics {
    pub(crate) fn polled(&self, peer: &str, answered: bool) {
        let labels = PollLabels {
            peer: peer.to_owned(),
            answered: if answered { "yes" } else { "no" },
        };
        self.polls.get_or_create(&labels).inc();
    }

    pub(crate) fn pushed(&self, outcome: &Result<(), SouthError>) {
        let outcome = match outcome {
            Ok(()) => "taken",
            Err(SouthError::Refused(_)) => "refused",
            Err(SouthError::Failed(_)) => "failed",
        };
        self.pushes.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    pub(crate) fn rolled_back(&self) {
        self.rollbacks.inc();
    }

    /// A caller was refused at the north door.
    pub(crate) fn refused(&self) {
        self.refusals.inc();
    }

    pub(crate) fn converged(&self, after: Duration) {
        self.convergence.observe(after.as_secs_f64());
    }

    /// The text that Prometheus reads: what was counted, and what the picture shows now.
    pub(crate) fn text(&self, picture: &Picture) -> String {
        let mut registry = Registry::with_prefix("qloak_controller");
        registry.register("polls", "Polls of nodes and KMSs", self.polls.clone());
        registry.register("pushes", "Steps pushed to nodes", self.pushes.clone());
        registry.register(
            "rollbacks",
            "Ends put back since the other end refused",
            self.rollbacks.clone(),
        );
        registry.register(
            "refusals",
            "Requests refused at the north door",
            self.refusals.clone(),
        );
        registry.register(
            "convergence_seconds",
            "From a command until both ends were seen to meet it",
            self.convergence.clone(),
        );
        let reachable = Family::<PeerLabels, Gauge>::default();
        let nodes = picture
            .nodes
            .iter()
            .map(|(name, seen)| (name.to_string(), seen.reachable()));
        let kms = picture
            .kms
            .iter()
            .map(|(kme_id, seen)| (kme_id.clone(), seen.reachable()));
        for (peer, answers) in nodes.chain(kms) {
            reachable
                .get_or_create(&PeerLabels { peer })
                .set(answers.into());
        }
        registry.register(
            "reachable",
            "Whether a node or KMS answered the last time",
            reachable,
        );
        let converged = Family::<ChannelLabels, Gauge>::default();
        for link in picture.topology.links.values() {
            for view in picture
                .channels(link)
                .into_iter()
                .filter(|view| view.intent.is_some())
            {
                let labels = ChannelLabels {
                    link: view.link,
                    channel: view.channel.number(),
                };
                converged.get_or_create(&labels).set(view.converged.into());
            }
        }
        registry.register(
            "converged",
            "Whether a channel's intent is met at both ends",
            converged,
        );
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}
