//! Rates from two pictures.
//!
//! A controller's picture of a node is some moments old; a rate is taken over the time between the moments
//! that the two pictures show, not between the moments they arrived.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use qloak_api::{
    ChannelNumber, NodeLatency,
    control::{ChannelView, NodeView, Overview},
    manage::ChannelState,
};

use crate::{command::picture, limits};

/// What is shown: the last picture, and what changed since the one before.
pub(crate) struct Sample {
    pub(super) overview: Overview,
    seen: HashMap<String, Seen>,
    /// Client octets of all channels, bits per second, oldest first.
    pub(super) curve: Vec<u64>,
}

/// A node as it was counted.
#[derive(Debug, Default, Clone)]
struct Seen {
    at: Option<Instant>,
    channels: HashMap<ChannelNumber, Counted>,
    rates: HashMap<ChannelNumber, Rates>,
    latency: Option<NodeLatency>,
    /// What was added to it between the last two looks.
    times: Option<NodeLatency>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    octets: u64,
    frames: u64,
    discarded: u64,
}

impl Row {
    /// Both ends encode as is wanted, with a suite that authenticates.
    pub(super) fn suite_is_well(&self) -> bool {
        self.converged && !self.hazmat
    }
}

/// What a channel's end sends, each second.
#[derive(Debug, Default, Clone, Copy, PartialEq, serde::Serialize)]
pub(super) struct Rates {
    /// Bits of client frames into the channel.
    pub(super) outbound_bps: f64,
    /// Client frames into the channel.
    pub(super) outbound_fps: f64,
    /// Frames discarded, both ways.
    pub(super) discarded_fps: f64,
}

/// One row of the picture.
#[derive(Debug, serde::Serialize)]
pub(super) struct Row {
    pub(super) link: String,
    pub(super) channel: u16,
    pub(super) name: String,
    pub(super) suite: String,
    pub(super) hazmat: bool,
    pub(super) status: String,
    pub(super) open: bool,
    pub(super) converged: bool,
    pub(super) a_to_b: Rates,
    pub(super) b_to_a: Rates,
    pub(super) frames: u64,
    pub(super) discarded: u64,
    pub(super) rekeys: u64,
    pub(super) key_age_s: Option<u64>,
}

impl Sample {
    /// From the first picture; all rates are zero.
    pub(crate) fn new(overview: Overview) -> Self {
        Self::new_at(overview, Instant::now())
    }

    pub(super) fn new_at(overview: Overview, now: Instant) -> Self {
        let mut sample = Self {
            overview: overview.clone(),
            seen: HashMap::new(),
            curve: Vec::new(),
        };
        sample.count(&overview, now);
        sample
    }

    /// Takes a newer picture.
    pub(crate) fn update(&mut self, overview: Overview) {
        self.update_at(overview, Instant::now());
    }

    pub(super) fn update_at(&mut self, overview: Overview, now: Instant) {
        self.count(&overview, now);
        self.overview = overview;
        let total: f64 = self
            .rows()
            .iter()
            .map(|row| row.a_to_b.outbound_bps + row.b_to_a.outbound_bps)
            .sum();
        self.curve.push(total as u64);
        if self.curve.len() > limits::CURVE_POINTS {
            self.curve.remove(0);
        }
    }

    fn count(&mut self, overview: &Overview, now: Instant) {
        for node in &overview.nodes {
            let seen = self.seen.entry(node.record.name.to_string()).or_default();
            seen.count(node, now);
        }
    }

    /// A row for each channel.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.overview
            .channels
            .iter()
            .map(|view| self.row(view))
            .collect()
    }

    fn row(&self, view: &ChannelView) -> Row {
        let ends: Vec<_> = (0..2)
            .filter_map(|index| picture::end(&self.overview, view, index))
            .collect();
        let rates = |index: usize| {
            let end = view.observed.get(index)?;
            self.seen
                .get(end.node.as_str())?
                .rates
                .get(&view.channel)
                .copied()
        };
        let sum = |of: fn(&ChannelState) -> u64| ends.iter().map(|end| of(end)).sum::<u64>();
        let mut words: Vec<_> = view
            .observed
            .iter()
            .map(|end| end.status.as_str())
            .collect();
        words.dedup();
        let ages = ends
            .iter()
            .filter_map(|end| end.outbound.encoding.as_ref().map(|sa| sa.age_s));
        Row {
            link: view.link.clone(),
            channel: view.channel.number(),
            name: view.name.clone(),
            suite: crate::command::status::suites(view),
            hazmat: picture::uses_hazmat(&self.overview, view),
            open: words == ["open"],
            status: words.join("/"),
            converged: view.converged,
            a_to_b: rates(0).unwrap_or_default(),
            b_to_a: rates(1).unwrap_or_default(),
            frames: sum(|end| end.outbound.counters.client_frames),
            discarded: sum(picture::discarded),
            rekeys: sum(|end| end.rekeys),
            key_age_s: ages.max(),
        }
    }

    /// The nodes, each with the times of its client frames in the last interval, where it is known.
    pub(super) fn nodes(&self) -> Vec<(&NodeView, Option<&NodeLatency>)> {
        let times = |node: &NodeView| self.seen.get(node.record.name.as_str())?.times.as_ref();
        let nodes = self.overview.nodes.iter();
        nodes.map(|node| (node, times(node))).collect()
    }

    /// The picture and its rates as one document.
    pub(super) fn document(&self) -> serde_json::Value {
        let alarms: Vec<_> = picture::alarms(&self.overview)
            .into_iter()
            .map(|(who, text)| serde_json::json!({ "who": who, "text": text }))
            .collect();
        let times: Vec<_> = self
            .nodes()
            .into_iter()
            .map(|(node, times)| serde_json::json!({ "node": node.record.name, "latency": times }))
            .collect();
        serde_json::json!({
            "channels": self.rows(), "times": times, "alarms": alarms, "overview": self.overview
        })
    }
}

impl Seen {
    fn count(&mut self, node: &NodeView, now: Instant) {
        let (Some(state), Some(age_ms)) = (&node.state, node.age_ms) else {
            self.rates.clear();
            self.times = None;
            return;
        };
        let at = now
            .checked_sub(Duration::from_millis(age_ms))
            .unwrap_or(now);
        let since = self.at.map(|before| at.saturating_duration_since(before));
        // The same look at the node as last time: what was known then stays.
        if since.is_some_and(|since| since < limits::RATE_OVER_MIN) && node.reachable {
            return;
        }
        self.times = match (&state.latency, &self.latency) {
            (Some(now), Some(before)) => Some(NodeLatency {
                outbound: now.outbound.since(&before.outbound),
                inbound: now.inbound.since(&before.inbound),
            }),
            _ => None,
        };
        self.latency.clone_from(&state.latency);
        for channel in &state.channels {
            let counted = Counted::of(channel);
            let before = self.channels.insert(channel.number, counted);
            let rates = match (before, since) {
                (Some(before), Some(since)) if node.reachable => counted.since(before, since),
                _ => Rates::default(),
            };
            self.rates.insert(channel.number, rates);
        }
        self.at = Some(at);
    }
}

impl Counted {
    fn of(channel: &ChannelState) -> Self {
        let out = &channel.outbound.counters;
        Self {
            octets: out.client_octets,
            frames: out.client_frames,
            discarded: picture::discarded(channel),
        }
    }

    /// Counters that went back mean that the node was started anew: no rate.
    fn since(self, before: Self, time: Duration) -> Rates {
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / time.as_secs_f64();
        Rates {
            outbound_bps: rate(self.octets, before.octets) * 8.0,
            outbound_fps: rate(self.frames, before.frames),
            discarded_fps: rate(self.discarded, before.discarded),
        }
    }
}
