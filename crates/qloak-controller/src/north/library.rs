//! The encryption library: the union of what the reachable nodes offer, what each suite costs and
//! gives, and where it can be set.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use qloak_api::{SaeId, SuiteEntry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Shared;
use crate::{intent, observed::Picture};

/// A suite of the library. Its figures are those of the slowest node that offers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LibraryEntry {
    /// The suite.
    #[serde(flatten)]
    pub suite: SuiteEntry,
    /// What each reachable node says of it.
    pub nodes: Vec<NodeOffer>,
    /// Links on which it can be set: both ends offer it.
    pub links: Vec<String>,
}

/// What one node says of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeOffer {
    /// The node.
    pub node: SaeId,
    /// Whether it will take it for a channel.
    pub offered: bool,
    /// Whether its self-test passed there.
    pub self_test_passed: bool,
    /// What runs it there.
    pub backend: String,
    /// Gb/s of one core sealing frames of 1500 octets there.
    pub seal_gbps: f64,
}

/// The encryption library.
#[utoipa::path(get, path = "/v1/suites", tag = "overview", responses((status = 200, body = [LibraryEntry])))]
pub(super) async fn suites(State(controller): State<Shared>) -> Json<Vec<LibraryEntry>> {
    Json(library(&controller.picture()))
}

fn library(picture: &Picture) -> Vec<LibraryEntry> {
    // In the order of the first node that lists it, which is the order of its suite table.
    let mut entries: Vec<LibraryEntry> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let reachable = |node: &SaeId| picture.nodes.get(node).is_some_and(|seen| seen.reachable());
    for (node, suites) in picture.libraries.iter().filter(|(node, _)| reachable(node)) {
        for suite in suites {
            let place = *places.entry(&suite.name).or_insert_with(|| {
                entries.push(LibraryEntry {
                    suite: suite.clone(),
                    nodes: Vec::new(),
                    links: Vec::new(),
                });
                entries.len() - 1
            });
            entries[place].add(node, suite);
        }
    }
    for link in picture.topology.links.values() {
        let offer = |node| (node, picture.libraries.get(node).map(Vec::as_slice));
        let common = intent::offered_at_both([offer(&link.a), offer(&link.b)]);
        for entry in entries
            .iter_mut()
            .filter(|entry| common.contains(entry.suite.name.as_str()))
        {
            entry.links.push(link.name.clone());
        }
    }
    entries
}

impl LibraryEntry {
    fn add(&mut self, node: &SaeId, suite: &SuiteEntry) {
        let slower =
            suite.offered && (!self.suite.offered || suite.seal_gbps < self.suite.seal_gbps);
        let hazmat = self.suite.hazmat || suite.hazmat;
        if slower {
            self.suite = suite.clone();
        }
        self.suite.hazmat = hazmat;
        self.nodes.push(NodeOffer {
            node: node.clone(),
            offered: suite.offered,
            self_test_passed: suite.self_test_passed,
            backend: suite.backend.clone(),
            seal_gbps: suite.seal_gbps,
        });
    }
}
