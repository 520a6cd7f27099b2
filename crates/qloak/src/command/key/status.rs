//! `qloak key status`.

use clap::Args;
use comfy_table::{Cell, Color};
use qloak_api::{
    control::{NodeView, Overview},
    manage::{KeyHandlerState, SaState},
};

use crate::{
    command::{picture::Source, service},
    error::{Error, Outcome},
    output::{self, name, number, should_be_zero, state},
    words,
};

/// Show key handlers, and which keys are in use
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    source: Source,
}

impl Status {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let answerer = self.source.answerer()?;
        let overview = service::block_on(answerer.overview())?;
        if json {
            output::json(&document(&overview))?;
        } else {
            let who = answerer.who();
            output::text_line(&format!(
                "As seen by {who}\n\n{}\n{}\n\n{}\n{}",
                output::title("Key handlers"),
                handlers(&overview.nodes),
                output::title("Keys in use"),
                keys(&overview)
            ))?;
        }
        Ok(Outcome::Well)
    }
}

/// One entry for each node that was seen.
fn document(overview: &Overview) -> serde_json::Value {
    let seen = overview.nodes.iter().filter_map(|node| node.state.as_ref());
    seen.map(|node| {
        let channels = node.channels.iter().map(|channel| {
            serde_json::json!({
                "channel": channel.number,
                "outbound": channel.outbound.encoding,
                "inbound": channel.inbound.accepted,
                "rekeys": channel.rekeys,
            })
        });
        serde_json::json!({
            "node": node.node,
            "key_handler": node.key_handler,
            "channels": channels.collect::<Vec<_>>(),
        })
    })
    .collect()
}

fn handlers(nodes: &[NodeView]) -> String {
    let mut table = output::table([
        "node", "slots", "outbound", "inbound", "KME", "peer", "requests", "failed", "forged",
        "replayed", "zeroised",
    ]);
    for node in nodes {
        let Some(seen) = &node.state else {
            table.add_row([name(&node.record.name), state(false, "never seen")]);
            continue;
        };
        let keys: &KeyHandlerState = &seen.key_handler;
        table.add_row([
            name(&node.record.name),
            number(keys.ram_slots),
            number(keys.outbound_keys).fg(if keys.outbound_keys == 0 {
                Color::Red
            } else {
                Color::Green
            }),
            number(keys.inbound_keys),
            state(
                keys.kme_reachable,
                if keys.kme_reachable {
                    "answers"
                } else {
                    "silent"
                },
            ),
            state(
                keys.peer_alive,
                if keys.peer_alive { "heard" } else { "silent" },
            ),
            number(words::count(keys.kme_requests)),
            should_be_zero(keys.kme_failures),
            should_be_zero(keys.forged),
            should_be_zero(keys.replayed),
            number(words::count(keys.zeroised)),
        ]);
    }
    output::shown(&table)
}

fn keys(overview: &Overview) -> String {
    let mut table = output::table(["node", "channel", "way", "AN", "suite", "key", "PN", "age"]);
    for node in overview.nodes.iter().filter_map(|node| node.state.as_ref()) {
        for channel in &node.channels {
            let title = format!("{} {}", channel.number, channel.name);
            match &channel.outbound.encoding {
                Some(sa) => table.add_row(row(node.node.as_str(), &title, "outbound", sa)),
                None => table.add_row([
                    name(&node.node),
                    Cell::new(&title),
                    Cell::new("outbound"),
                    state(false, "none"),
                ]),
            };
            for sa in &channel.inbound.accepted {
                table.add_row(row(node.node.as_str(), &title, "inbound", sa));
            }
        }
    }
    output::shown(&table)
}

fn row(node: &str, channel: &str, way: &str, sa: &SaState) -> Vec<Cell> {
    vec![
        name(node),
        Cell::new(channel),
        Cell::new(way),
        number(sa.an),
        Cell::new(&sa.suite).fg(Color::Cyan),
        Cell::new(sa.key_id),
        number(sa.pn),
        number(words::seconds(sa.age_s)),
    ]
}
