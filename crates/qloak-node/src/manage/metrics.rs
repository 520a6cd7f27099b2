//! The node's state as Prometheus reads it (OpenMetrics text).

use std::fmt::Error;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text::encode},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use qloak_api::{
    Latency, NodeLatency,
    manage::{ChannelState, ChannelStatus, NodeState, PortImpairments, PortState},
};

/// What an OpenMetrics page calls itself.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page.
pub(super) fn page(state: &NodeState) -> String {
    let mut registry = Registry::with_prefix("qloak_node");
    registry.register_collector(Box::new(Snapshot(state.clone())));
    let mut text = String::new();
    // Writing into a String cannot fail; an empty page is the honest answer if it ever does.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Snapshot(NodeState);

/// One line of a page: its labels and its value.
type Row = (Vec<(&'static str, String)>, u64);

impl Collector for Snapshot {
    fn encode(&self, mut page: DescriptorEncoder<'_>) -> Result<(), Error> {
        let page = &mut page;
        let state = &self.0;
        let keys = &state.key_handler;
        counter(
            page,
            "frames",
            "Client frames carried",
            each_channel(state, frames),
        )?;
        counter(
            page,
            "octets",
            "Octets of client frames carried",
            each_channel(state, octets),
        )?;
        counter(
            page,
            "line_frames",
            "Line frames by verdict (IEEE 802.1AE)",
            each_channel(state, verdicts),
        )?;
        counter(
            page,
            "rekeys",
            "Rekeys finished, outbound",
            each_channel(state, |c| vec![(vec![], c.rekeys)]),
        )?;
        counter(
            page,
            "port_dropped",
            "Frames dropped at ports",
            dropped(state),
        )?;
        let requests = [("all", keys.kme_requests), ("failed", keys.kme_failures)];
        counter(
            page,
            "kme_requests",
            "Requests to the KME",
            labelled("outcome", requests),
        )?;
        let refused = [("forged", keys.forged), ("replayed", keys.replayed)];
        counter(
            page,
            "agreement_refused",
            "Key agreement frames refused",
            labelled("reason", refused),
        )?;
        counter(
            page,
            "keys_zeroised",
            "Keys zeroised",
            vec![(vec![], keys.zeroised)],
        )?;

        let waiting = [
            ("outbound", keys.outbound_keys),
            ("inbound", keys.inbound_keys),
        ];
        let waiting = waiting.map(|(half, count)| (half, u64::from(count)));
        gauge(
            page,
            "keys_waiting",
            "Keys in the key RAM",
            labelled("half", waiting),
        )?;
        gauge(
            page,
            "kme_reachable",
            "1 while the KME answers",
            vec![(vec![], keys.kme_reachable.into())],
        )?;
        gauge(
            page,
            "peer_alive",
            "1 while the far node is heard",
            vec![(vec![], keys.peer_alive.into())],
        )?;
        gauge(
            page,
            "alarms",
            "Alarms standing",
            vec![(vec![], state.alarms.len() as u64)],
        )?;
        let open = each_channel(state, |c| {
            vec![(vec![], u64::from(c.status == ChannelStatus::Open))]
        });
        gauge(
            page,
            "channel_open",
            "1 while the channel carries frames",
            open,
        )?;
        if let Some(done) = &state.line.impairments {
            counter(
                page,
                "impaired_frames",
                "Frames that an impaired port harmed on purpose",
                impaired(&state.line.name, done),
            )?;
        }
        match &state.latency {
            Some(times) => histogram(page, times),
            None => Ok(()),
        }
    }
}

/// Upper bounds of the histogram's buckets on a page: powers of two from 1 us to 1 s.
const LATENCY_BITS: std::ops::RangeInclusive<u32> = 10..=30;

fn histogram(page: &mut DescriptorEncoder<'_>, times: &NodeLatency) -> Result<(), Error> {
    let metric_type = prometheus_client::metrics::MetricType::Histogram;
    let mut family = page.encode_descriptor(
        "latency_seconds",
        "Time of client frames in the node",
        None,
        metric_type,
    )?;
    for (way, times) in [("outbound", &times.outbound), ("inbound", &times.inbound)] {
        let labels = [("direction", way)];
        let buckets = coarse(times);
        let sum_s = times.sum_ns as f64 / 1e9;
        family
            .encode_family(&labels)?
            .encode_histogram::<NoLabelSet>(sum_s, times.frames, &buckets, None)?;
    }
    Ok(())
}

/// Frames by upper bound in seconds; those above the last bound are in the last bucket, which has none.
fn coarse(times: &Latency) -> Vec<(f64, u64)> {
    let mut fine = times.buckets.iter().peekable();
    let mut buckets: Vec<_> = LATENCY_BITS
        .map(|bits| {
            let bound_ns = 1_u64 << bits;
            let mut frames = 0;
            while let Some(bucket) = fine.next_if(|bucket| bucket.at_most_ns < bound_ns) {
                frames += bucket.frames;
            }
            (bound_ns as f64 / 1e9, frames)
        })
        .collect();
    buckets.push((f64::INFINITY, fine.map(|bucket| bucket.frames).sum()));
    buckets
}

fn impaired(port: &str, done: &PortImpairments) -> Vec<Row> {
    let ways = [("receive", &done.receive), ("transmit", &done.transmit)];
    let rows = ways.into_iter().flat_map(|(at, faults)| {
        faults.by_name().map(|(fault, frames)| {
            let labels = [("port", port), ("at", at), ("fault", fault)];
            (
                labels
                    .map(|(label, value)| (label, value.to_owned()))
                    .to_vec(),
                frames,
            )
        })
    });
    rows.collect()
}

fn counter(
    page: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: Vec<Row>,
) -> Result<(), Error> {
    let metric_type = prometheus_client::metrics::MetricType::Counter;
    let mut family = page.encode_descriptor(name, help, None, metric_type)?;
    for (labels, value) in rows {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn gauge(
    page: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: Vec<Row>,
) -> Result<(), Error> {
    let metric_type = prometheus_client::metrics::MetricType::Gauge;
    let mut family = page.encode_descriptor(name, help, None, metric_type)?;
    for (labels, value) in rows {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn each_channel(state: &NodeState, read: impl Fn(&ChannelState) -> Vec<Row>) -> Vec<Row> {
    let rows = state.channels.iter().flat_map(|channel| {
        read(channel).into_iter().map(|(mut labels, value)| {
            labels.insert(0, ("channel", channel.number.to_string()));
            (labels, value)
        })
    });
    rows.collect()
}

fn labelled<const N: usize>(label: &'static str, values: [(&str, u64); N]) -> Vec<Row> {
    values
        .into_iter()
        .map(|(name, value)| (vec![(label, name.to_owned())], value))
        .collect()
}

fn frames(channel: &ChannelState) -> Vec<Row> {
    let (outbound, inbound) = (&channel.outbound.counters, &channel.inbound.counters);
    labelled(
        "direction",
        [
            ("outbound", outbound.client_frames),
            ("inbound", inbound.client_frames),
        ],
    )
}

fn octets(channel: &ChannelState) -> Vec<Row> {
    let (outbound, inbound) = (&channel.outbound.counters, &channel.inbound.counters);
    labelled(
        "direction",
        [
            ("outbound", outbound.client_octets),
            ("inbound", inbound.client_octets),
        ],
    )
}

fn verdicts(channel: &ChannelState) -> Vec<Row> {
    let (outbound, inbound) = (&channel.outbound.counters, &channel.inbound.counters);
    let verdicts = [
        ("protected", outbound.protected_frames),
        ("not_protected_no_sa", outbound.no_sa),
        ("too_long", outbound.too_long),
        ("fill", outbound.fill_frames),
        ("left_out", outbound.late_frames),
        ("ok", inbound.ok),
        ("late", inbound.late),
        ("replayed", inbound.replayed),
        ("not_valid", inbound.not_valid),
        ("no_sa", inbound.no_sa),
        ("mux_error", inbound.mux_errors),
    ];
    labelled("verdict", verdicts)
}

fn dropped(state: &NodeState) -> Vec<Row> {
    let of = |port: &PortState| {
        let counters = port.counters;
        let name = port.name.clone();
        let at = [
            ("receive", counters.receive_dropped),
            ("transmit", counters.transmit_dropped),
            ("malformed", counters.malformed),
        ];
        at.map(|(at, count)| (vec![("port", name.clone()), ("at", at.to_owned())], count))
    };
    let ports = std::iter::once(&state.line).chain(state.clients.iter().map(|client| &client.port));
    ports.flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_api::LatencyBucket;

    #[test]
    fn no_frame_is_lost_between_fine_buckets_and_coarse_ones() {
        let bucket = |at_most_ns, frames| LatencyBucket { at_most_ns, frames };
        let fine = vec![
            bucket(1023, 1),
            bucket(1087, 2),
            bucket(2047, 3),
            bucket((1 << 31) - 1, 4),
        ];
        let coarse = coarse(&Latency::new(0, 1 << 31, fine));
        assert_eq!(coarse[..2], [(1.024e-6, 1), (2.048e-6, 5)]);
        assert_eq!(coarse.last(), Some(&(f64::INFINITY, 4)));
        assert_eq!(coarse.iter().map(|(_, frames)| frames).sum::<u64>(), 10);
    }
}
