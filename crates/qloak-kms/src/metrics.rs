//! Figures for Prometheus. Counters live here; gauges are read from the ledger when they are asked for.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::response::Response;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::{
    kms::{Kms, Link},
    store::Counts,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    endpoint: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Side {
    side: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLink {
    link: String,
    source: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Family<Asked, Counter>,
    delivered: Family<Side, Counter>,
    ledger_failures: Counter,
}

impl Metrics {
    /// Counts an answer of the SAE's door and hands it on.
    pub(crate) fn asked(&self, endpoint: &'static str, response: Response) -> Response {
        self.requests
            .get_or_create(&Asked {
                endpoint,
                status: response.status().as_u16(),
            })
            .inc();
        response
    }

    pub(crate) fn delivered(&self, side: &'static str, keys: u64) {
        self.delivered.get_or_create(&Side { side }).inc_by(keys);
    }

    pub(crate) fn ledger_failed(&self) {
        self.ledger_failures.inc();
    }

    /// The text of `GET /metrics`.
    pub(crate) fn text(
        &self,
        kms: &Kms,
        links: &[(Arc<Link>, Counts)],
    ) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("qloak_kms");
        registry.register(
            "etsi014_requests",
            "Requests at the SAE's door",
            self.requests.clone(),
        );
        registry.register(
            "keys_delivered",
            "Keys given out to SAEs",
            self.delivered.clone(),
        );
        registry.register(
            "ledger_failures",
            "Times that the ledger failed",
            self.ledger_failures.clone(),
        );
        let up = Family::<OfLink, Gauge>::default();
        let stored = Family::<OfLink, Gauge>::default();
        let held = Family::<OfLink, Gauge>::default();
        let skr = Family::<OfLink, Gauge<f64, AtomicU64>>::default();
        let qber = Family::<OfLink, Gauge<f64, AtomicU64>>::default();
        let voided = Family::<OfLink, Counter>::default();
        let expired = Family::<OfLink, Counter>::default();
        for (link, counts) in links {
            let shown = link.state(kms, *counts);
            let of = OfLink {
                link: shown.name.clone(),
                source: qloak_qkd::LABEL,
            };
            up.get_or_create(&of).set(shown.up.into());
            stored
                .get_or_create(&of)
                .set(i64::try_from(shown.stored_key_count).unwrap_or(i64::MAX));
            held.get_or_create(&of)
                .set(i64::try_from(counts.held).unwrap_or(i64::MAX));
            skr.get_or_create(&of).set(shown.skr_bps);
            qber.get_or_create(&of).set(shown.qber_ratio);
            voided
                .get_or_create(&of)
                .inner()
                .store(counts.voided, Ordering::Relaxed);
            expired
                .get_or_create(&of)
                .inner()
                .store(counts.expired, Ordering::Relaxed);
        }
        registry.register(
            "link_up",
            "1 when the source gives keys and the peer answers",
            up,
        );
        registry.register(
            "stored_keys",
            "Keys of the default size ready to be given out by this side",
            stored,
        );
        registry.register(
            "held_keys",
            "Keys that wait for an SAE of this KME to fetch them",
            held,
        );
        registry.register_with_unit(
            "skr",
            "Secret key rate of the source",
            Unit::Other("bits_per_second".into()),
            skr,
        );
        registry.register("qber_ratio", "Quantum bit error ratio of the source", qber);
        registry.register("keys_voided", "Keys given up in doubt", voided);
        registry.register(
            "keys_expired",
            "Keys destroyed because nobody fetched them",
            expired,
        );
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}
