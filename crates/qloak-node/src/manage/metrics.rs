//! The node's state as Prometheus reads it (OpenMetrics text).

use std::fmt::Error;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use qloak_api::manage::{ChannelState, ChannelStatus, NodeState, PortState};

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
        )
    }
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
