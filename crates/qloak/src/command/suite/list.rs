//! `qloak suite list`.

use clap::Args;
use comfy_table::{Cell, Color, Table};
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
            output::text_line(&in_words(&who, &entries))?;
        }
        let all_passed = entries.iter().all(|entry| entry.self_test_passed);
        Ok(if all_passed {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }
}

fn in_words(who: &str, entries: &[SuiteEntry]) -> String {
    let (hazmat, aead): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.hazmat);
    let mut parts = vec![format!(
        "{}\n{}",
        output::title(&format!("{} authenticated suites of {who}", aead.len())),
        table(&aead)
    )];
    if !hazmat.is_empty() {
        let warning = "they do not authenticate; a node takes one only if policy.hazmat in its configuration names it";
        parts.push(format!(
            "{}  {warning}\n{}",
            output::loud(&format!("{} hazmat suites", hazmat.len())),
            table(&hazmat)
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

fn table(entries: &[&SuiteEntry]) -> Table {
    let mut table = output::table([
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
        "about",
    ]);
    for entry in entries {
        let suite = if entry.hazmat {
            name(&entry.name).fg(Color::Red)
        } else {
            name(&entry.name)
        };
        table.add_row([
            suite,
            Cell::new(entry.id),
            Cell::new(&entry.cipher),
            Cell::new(&entry.mode),
            number(format!("{} bit", u32::from(entry.key_octets) * 8)),
            number(if entry.icv_octets == 0 {
                "none".into()
            } else {
                format!("{} bit", u32::from(entry.icv_octets) * 8)
            }),
            Cell::new(if entry.macsec { "yes" } else { "" }),
            state(
                entry.self_test_passed,
                if entry.self_test_passed {
                    "passed"
                } else {
                    "FAILED"
                },
            ),
            Cell::new(&entry.backend),
            number(format!("{:.2}", entry.seal_gbps)),
            Cell::new(&entry.about).fg(Color::DarkGrey),
        ]);
    }
    table
}
