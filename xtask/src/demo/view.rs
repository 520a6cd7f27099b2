//! What a person sees while the demo runs: a head line, a line for each channel, a line for keys and
//! alarms, redrawn in place; events scroll by above. Where nobody watches, plain lines.

use std::time::{Duration, Instant};

use anstyle::Style;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{
    lab::{
        layout::CHANNELS,
        state::{Channel, Node},
    },
    ui::{self, BAD, DIM, GOOD, HEAD, NOTE},
};

/// Plain lines come this far apart.
const PLAIN_EVERY: Duration = Duration::from_secs(3);

/// The live view.
pub(crate) struct View {
    live: Option<Live>,
    begin: Instant,
    last: Option<Seen>,
    last_plain: Option<Instant>,
    phase: String,
}

struct Live {
    all: MultiProgress,
    head: ProgressBar,
    channels: Vec<ProgressBar>,
    keys: ProgressBar,
    alarms: ProgressBar,
}

/// What was seen the last time, to make rates of counters.
struct Seen {
    at: Instant,
    octets: Vec<u64>,
    rates_gbps: Vec<f64>,
}

impl View {
    /// An empty view.
    pub(crate) fn new() -> Self {
        Self {
            live: ui::is_live().then(Live::new),
            begin: Instant::now(),
            last: None,
            last_plain: None,
            phase: String::new(),
        }
    }

    /// Something happened.
    pub(crate) fn event(&self, style: Style, text: &str) {
        let at = self.begin.elapsed().as_secs_f64();
        let line = format!("{DIM}{at:6.1} s{DIM:#}  {style}{text}{style:#}");
        match &self.live {
            Some(live) => {
                // A terminal that went away is no reason to stop.
                let _ = live.all.println(line);
            }
            None => ui::line(line),
        }
    }

    /// A phase begins.
    pub(crate) fn phase(&mut self, number: usize, of: usize, title: &str) {
        self.phase = format!("phase {number}/{of}  {title}");
        self.event(HEAD, &self.phase);
        self.last = None;
        if let Some(live) = &self.live {
            live.head
                .set_message(format!("{HEAD}{}{HEAD:#}", self.phase));
        }
    }

    /// What both nodes say now.
    pub(crate) fn update(&mut self, a: &Node, b: &Node) {
        self.rates(a, b);
        let rates = self
            .last
            .as_ref()
            .map(|seen| seen.rates_gbps.clone())
            .unwrap_or_default();
        let lines: Vec<String> = a
            .channels
            .iter()
            .zip(&b.channels)
            .enumerate()
            .map(|(index, (a, b))| channel_line(a, b, rates.get(index).copied().unwrap_or(0.0)))
            .collect();
        match &self.live {
            Some(live) => {
                for (bar, line) in live.channels.iter().zip(lines) {
                    bar.set_message(line);
                }
                live.keys.set_message(keys_line(a, b));
                live.alarms.set_message(alarms_line(a, b));
            }
            None if self.last_plain.is_none_or(|at| at.elapsed() > PLAIN_EVERY) => {
                self.last_plain = Some(Instant::now());
                let gbps: f64 = rates.iter().sum();
                ui::line(format!(
                    "{DIM}          {}  {gbps:.3} Gb/s{DIM:#}",
                    plain_line(a)
                ));
            }
            None => {}
        }
    }

    /// Takes the redrawn lines away; what scrolled by stays.
    pub(crate) fn finish(&mut self) {
        if let Some(live) = self.live.take() {
            // A terminal that went away is no reason to stop.
            let _ = live.all.clear();
        }
    }

    fn rates(&mut self, a: &Node, b: &Node) {
        let octets = |channel: &Channel| channel.inbound.counters.client_octets;
        let now: Vec<u64> = a
            .channels
            .iter()
            .zip(&b.channels)
            .map(|(a, b)| octets(a) + octets(b))
            .collect();
        let at = Instant::now();
        let rates_gbps = match &self.last {
            Some(last) if last.octets.len() == now.len() => {
                let time = at.duration_since(last.at).as_secs_f64().max(1e-3);
                let rate =
                    |(now, then): (&u64, &u64)| now.saturating_sub(*then) as f64 * 8e-9 / time;
                now.iter().zip(&last.octets).map(rate).collect()
            }
            _ => vec![0.0; now.len()],
        };
        self.last = Some(Seen {
            at,
            octets: now,
            rates_gbps,
        });
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Live {
    fn new() -> Self {
        let all = MultiProgress::new();
        let line = |template: &str| {
            let bar = all.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        };
        let head = line("{spinner:.cyan} {elapsed:>4.dim} {wide_msg}");
        head.enable_steady_tick(Duration::from_millis(120));
        Self {
            channels: CHANNELS.iter().map(|_| line("  {wide_msg}")).collect(),
            keys: line("  {wide_msg}"),
            alarms: line("  {wide_msg}"),
            head,
            all,
        }
    }
}

fn channel_line(a: &Channel, b: &Channel, gbps: f64) -> String {
    let style = match (a.status.as_str(), b.status.as_str()) {
        ("open", "open") => GOOD,
        ("closed", _) | (_, "closed") => BAD,
        _ => NOTE,
    };
    let status = if a.status == b.status {
        a.status.clone()
    } else {
        format!("{}/{}", a.status, b.status)
    };
    let (outbound, inbound) = (encoding(a), encoding(b));
    let suites = if outbound == inbound {
        outbound
    } else {
        format!("{outbound} | {inbound}")
    };
    format!(
        "{:<9} {style}{status:<8}{style:#} {gbps:>6.3} Gb/s  {:>3} rekeys  {suites}",
        a.name,
        a.rekeys + b.rekeys
    )
}

fn encoding(channel: &Channel) -> String {
    let sa = channel.outbound.encoding.as_ref();
    sa.map_or_else(
        || "no key".to_owned(),
        |sa| format!("{} AN{}", sa.suite, sa.an),
    )
}

/// All channels of one node, short.
fn plain_line(node: &Node) -> String {
    let channel =
        |channel: &Channel| format!("{} {} {}", channel.name, channel.status, encoding(channel));
    node.channels
        .iter()
        .map(channel)
        .collect::<Vec<_>>()
        .join(" | ")
}

fn keys_line(a: &Node, b: &Node) -> String {
    let node = |node: &Node| {
        let keys = &node.key_handler;
        let kms = if keys.kme_reachable {
            ""
        } else {
            ", KMS silent"
        };
        format!(
            "{} {}+{} keys ready{kms}",
            node.node, keys.outbound_keys, keys.inbound_keys
        )
    };
    format!("{DIM}{}   {}{DIM:#}", node(a), node(b))
}

fn alarms_line(a: &Node, b: &Node) -> String {
    let alarms: Vec<String> = a
        .alarms
        .iter()
        .chain(&b.alarms)
        .map(|alarm| match alarm.channel {
            Some(channel) => format!("{} (channel {channel})", alarm.kind),
            None => alarm.kind.clone(),
        })
        .collect();
    if alarms.is_empty() {
        format!("{DIM}no alarms{DIM:#}")
    } else {
        format!("{BAD}alarms: {}{BAD:#}", alarms.join(", "))
    }
}
