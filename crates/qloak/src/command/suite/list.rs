//! `qloak suite list`.

use clap::Args;
use comfy_table::{Cell, Color};
use qloak_api::SuiteEntry;
use serde_json::Value;

use crate::{
    command::{
        picture::{Answerer, Source},
        service,
    },
    error::{Error, Outcome},
    output::{self, name, number, state},
};

/// Show the cipher suites, each self-tested
///
/// Of this machine, unless --controller or --node asks another. The rate is that of one core that seals
/// frames of 1500 octets.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    source: Source,
    /// Say of each what it gives and what it costs
    #[arg(long)]
    about: bool,
    /// Of this machine, whatever the environment says
    #[arg(long, conflicts_with = "node")]
    local: bool,
}

impl List {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let elsewhere =
            self.source.node.is_some() || self.source.connection.resolved()?.controller.is_some();
        let (who, document) = if elsewhere && !self.local {
            let answerer = self.source.answerer()?;
            let (Answerer::Controller(peer, _) | Answerer::Node(peer)) = &answerer;
            let document: Value = service::block_on(peer.get("/v1/suites"))?;
            (peer.who().to_owned(), document)
        } else {
            let entries = qloak_node::library()?;
            let document = serde_json::to_value(&entries).unwrap_or_default();
            ("this machine".to_owned(), document)
        };
        let entries: Vec<SuiteEntry> =
            serde_json::from_value(document.clone()).map_err(|error| {
                Error::Usage(format!(
                    "{who} gave something else than a list of suites: {error}"
                ))
            })?;
        if json {
            output::json(&document)?;
        } else {
            output::text_line(&in_words(&who, &entries, self.about))?;
        }
        let all_passed = entries.iter().all(|entry| entry.self_test_passed);
        Ok(if all_passed {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }
}

fn in_words(who: &str, entries: &[SuiteEntry], about: bool) -> String {
    let (hazmat, aead): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.hazmat);
    let mut parts = vec![format!(
        "{}\n{}",
        output::title(&format!("{} authenticated suites of {who}", aead.len())),
        table(&aead, about)
    )];
    if !hazmat.is_empty() {
        let warning = "they do not authenticate; a node takes one only if policy.hazmat in its configuration names it";
        parts.push(format!(
            "{}  {warning}\n{}",
            output::loud(&format!("{} hazmat suites", hazmat.len())),
            table(&hazmat, about)
        ));
    }
    let failed: Vec<_> = entries
        .iter()
        .filter(|entry| !entry.self_test_passed)
        .map(|entry| entry.name.as_str())
        .collect();
    parts.push(if failed.is_empty() {
        format!("All {} met their known answers.", entries.len())
    } else {
        output::loud(&format!(
            "Self-test failed, not offered: {}",
            failed.join(", ")
        ))
    });
    parts.join("\n\n")
}

fn table(entries: &[&SuiteEntry], about: bool) -> String {
    let head = [
        "suite",
        "identifier",
        "cipher",
        "mode",
        "key",
        "ICV",
        "MACsec",
        "self-test",
        "backend",
        "Gb/s",
    ];
    let mut table = output::table(head.into_iter().chain(about.then_some("about")));
    for entry in entries {
        let suite = name(&entry.name);
        let passed = entry.self_test_passed;
        let mut row = vec![
            if entry.hazmat {
                suite.fg(Color::Red)
            } else {
                suite
            },
            Cell::new(entry.id),
            Cell::new(&entry.cipher),
            Cell::new(&entry.mode),
            number(bits(entry.key_octets)),
            number(bits(entry.icv_octets)),
            Cell::new(if entry.macsec { "yes" } else { "" }),
            state(passed, if passed { "passed" } else { "FAILED" }),
            Cell::new(&entry.backend),
            number(rate(entry.seal_gbps)),
        ];
        if about {
            row.push(Cell::new(&entry.about).fg(Color::DarkGrey));
        }
        table.add_row(row);
    }
    output::shown(&table)
}

/// 0 stands for a suite that has no rate: `plain` does nothing, and one that failed was not measured.
fn rate(gbps: f64) -> String {
    if gbps == 0.0 {
        "-".into()
    } else {
        format!("{gbps:.2}")
    }
}

fn bits(octets: u16) -> String {
    match octets {
        0 => "none".into(),
        octets => format!("{} bit", u32::from(octets) * 8),
    }
}
