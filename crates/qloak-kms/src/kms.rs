//! One running KMS: its configuration, its ledger, its links, and who may ask what of it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use qloak_api::{KeyId, SaeId, kms::KmsLink};
use qloak_door::{Caller, Client, role};

use crate::{
    Error,
    config::{self, Config, End},
    limits,
    metrics::Metrics,
    store::{Counts, LedgerError, Owner, SqliteStore, Store},
    wrap::Kek,
};

pub(crate) struct Kms {
    pub(crate) config: Config,
    pub(crate) links: Vec<Arc<Link>>,
    pub(crate) metrics: Metrics,
    pub(crate) started: Instant,
    store: Arc<dyn Store>,
}

/// A link and what is known of its other end.
pub(crate) struct Link {
    pub(crate) config: config::Link,
    pub(crate) client: Client,
    view: Mutex<View>,
}

/// What changes on a link while the program runs.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// An operator of this end lets the source give keys.
    pub(crate) enabled: bool,
    /// An operator of the other end does.
    pub(crate) peer_enabled: bool,
    /// The other end has no room.
    pub(crate) peer_full: bool,
    /// When the other end was last heard.
    pub(crate) heard: Option<Instant>,
    /// The other end's ledger, once heard.
    pub(crate) peer_epoch: Option<KeyId>,
    /// When the link was last emptied, and why.
    pub(crate) emptied: Option<(Instant, String)>,
    /// What went wrong last, until it goes well again.
    pub(crate) error: Option<String>,
    /// What the source is, in words.
    pub(crate) source: String,
    /// Rate of the source, bits per second.
    pub(crate) skr_bps: f64,
    /// Its error ratio.
    pub(crate) qber_ratio: f64,
}

impl Kms {
    pub(crate) fn open(config: Config) -> Result<Self, Error> {
        let names: Vec<String> = config.links.iter().map(|link| link.name.clone()).collect();
        let kek = Kek::read_or_make(&config.kek, &config.ledger)?;
        let store =
            SqliteStore::open(&config.ledger, kek, &names).map_err(|cause| Error::Ledger {
                path: config.ledger.clone(),
                cause,
            })?;
        let links = config
            .links
            .iter()
            .map(|link| Link::new(&config, link))
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            config,
            links,
            metrics: Metrics::default(),
            started: Instant::now(),
            store: Arc::new(store),
        })
    }

    /// Works on the ledger where blocking is allowed. The work is done even if the caller goes away.
    pub(crate) async fn ledger<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || work(store.as_ref())).await;
        let done =
            done.unwrap_or_else(|_| Err(LedgerError::Foreign("work was cut short".to_owned())));
        if let Err(
            error @ (LedgerError::Database(_) | LedgerError::Wrap(_) | LedgerError::Foreign(_)),
        ) = &done
        {
            tracing::error!(%error, "the ledger failed");
            self.metrics.ledger_failed();
        }
        done
    }

    /// The SAE that a certificate stands for, if this KME serves it.
    pub(crate) fn sae(&self, caller: &Caller) -> Option<SaeId> {
        let sae = caller.name.parse().ok()?;
        self.config.saes.contains(&sae).then_some(sae)
    }

    /// The link of this name.
    pub(crate) fn link(&self, name: &str) -> Option<&Arc<Link>> {
        self.links.iter().find(|link| link.config.name == name)
    }

    /// Keys of the default size in so many octets of blocks.
    pub(crate) fn keys_in(&self, octets: u64) -> u64 {
        octets * 8 / u64::from(self.config.keys.size_bits)
    }

    /// Octets of blocks that one end may have in store.
    pub(crate) fn octets_max(&self) -> u64 {
        self.config.keys.store_max * u64::from(self.config.keys.size_bits) / 8
    }
}

impl Link {
    fn new(config: &Config, link: &config::Link) -> Result<Arc<Self>, Error> {
        let client = Client::expecting(&link.peer_url, &link.peer, &config.tls)?
            .with_patience(limits::PEER_TIME_MAX);
        let view = View {
            enabled: true,
            peer_enabled: true,
            peer_full: false,
            heard: None,
            peer_epoch: None,
            emptied: None,
            error: None,
            source: format!("{}: {} has not been heard yet", qloak_qkd::LABEL, link.peer),
            skr_bps: 0.0,
            qber_ratio: 0.0,
        };
        Ok(Arc::new(Self {
            config: link.clone(),
            client,
            view: Mutex::new(view),
        }))
    }

    /// Which end this KME is.
    pub(crate) fn own(&self) -> Owner {
        match self.config.end {
            End::Alice { .. } => Owner::Alice,
            End::Bob => Owner::Bob,
        }
    }

    /// Whether the caller is the KME at the other end.
    pub(crate) fn is_peer(&self, caller: &Caller) -> bool {
        caller.has_role(&[role::KMS]) && caller.name == self.config.peer
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, View> {
        // Plain values: a thread that panicked has left them whole.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Path of the other end's door for this link.
    pub(crate) fn path(&self, what: &str) -> String {
        format!(
            "/peer/v1/links/{}/{what}",
            Client::segment(&self.config.name)
        )
    }

    /// Says that all blocks of the link have been destroyed here.
    pub(crate) fn emptied(&self, why: &str) {
        tracing::warn!(
            link = self.config.name,
            peer = self.config.peer,
            why,
            "all blocks of the link are destroyed; it fills again with new ones"
        );
        let mut view = self.view();
        view.emptied = Some((Instant::now(), why.to_owned()));
        // No block is made until the peer has said what it stores now.
        view.peer_epoch = None;
    }

    /// What an operator sees of the link.
    pub(crate) fn state(&self, kms: &Kms, counts: Counts) -> KmsLink {
        let view = self.view().clone();
        let up = view.up();
        KmsLink {
            name: self.config.name.clone(),
            peer_kme_id: self.config.peer.clone(),
            source: view.source,
            emulated: true,
            up,
            skr_bps: if up { view.skr_bps } else { 0.0 },
            qber_ratio: view.qber_ratio,
            stored_key_count: kms.keys_in(counts.octets(self.own())),
            max_key_count: kms.config.keys.store_max,
            delivered_key_count: counts.delivered,
        }
    }

    /// What is wrong with the link, in words.
    pub(crate) fn alarms(&self, stored: u64) -> Vec<String> {
        let view = self.view();
        let (name, peer) = (&self.config.name, &self.config.peer);
        let mut alarms = Vec::new();
        if !view.enabled {
            alarms.push(format!("link {name}: the source is cut by an operator"));
        }
        if !view.peer_enabled {
            alarms.push(format!(
                "link {name}: the source is cut by an operator of {peer}"
            ));
        }
        if !view.fresh() {
            let why = view.error.as_deref().unwrap_or("nothing is heard of it");
            alarms.push(format!("link {name}: {peer} does not answer: {why}"));
        } else if let Some(error) = &view.error {
            alarms.push(format!("link {name}: {error}"));
        }
        let emptied = view.emptied.as_ref();
        if let Some((at, why)) = emptied.filter(|(at, _)| at.elapsed() < limits::EMPTIED_SHOWN) {
            alarms.push(format!(
                "link {name}: emptied {} s ago, all stored keys are destroyed: {why}; if it happens \
                 again, see that one KMS alone runs as {peer} and as this one, each on its own ledger",
                at.elapsed().as_secs()
            ));
        }
        if stored == 0 {
            alarms.push(format!("link {name}: no key is left to give out"));
        }
        alarms
    }
}

impl View {
    /// Heard not long ago.
    pub(crate) fn fresh(&self) -> bool {
        self.heard
            .is_some_and(|heard| heard.elapsed() < limits::SILENCE_MAX)
    }

    fn up(&self) -> bool {
        self.enabled && self.peer_enabled && self.fresh()
    }
}

/// Destroys what nobody fetched, forgets what is long gone.
pub(crate) async fn upkeep(kms: Arc<Kms>) {
    loop {
        tokio::time::sleep(limits::UPKEEP).await;
        let made_before_s = now_s().saturating_sub(kms.config.keys.unfetched_s_max);
        if let Ok(expired @ 1..) = kms.ledger(move |store| store.upkeep(made_before_s)).await {
            tracing::warn!(expired, "keys were not fetched in time and are destroyed");
        }
    }
}

/// Waits until nothing works on the ledger any more, so that its file is whole: what was begun is
/// done, and the write-ahead log is merged and gone.
pub(crate) async fn close(kms: Arc<Kms>) {
    let ledger = Arc::downgrade(&kms.store);
    drop(kms);
    let until = Instant::now() + limits::LEDGER_CLOSING_TIME_MAX;
    while ledger.strong_count() > 0 {
        if Instant::now() > until {
            tracing::warn!("the ledger is still being worked on; copy it with its -wal file");
            return;
        }
        tokio::time::sleep(limits::LEDGER_CLOSING_LOOK).await;
    }
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}
