//! The controller itself: the picture, the database, the pollers, and who may change a link now.
//!
//! ```text
//!   north --command--> change ----push----> south --> nodes
//!     ^                  |                    |
//!     |               picture <----state---- pollers (one task per node and KMS)
//!     '----- views ------'  \--- intent unlike observed? ---> reconcile --push--> south
//! ```
//! - Whatever must outlive a restart is in the database before it is acted upon.
//! - A link is changed by one at a time: a command holds the link's lock, the reconciler passes by.
//! - Each push is made from a fresh plan; nothing is queued, so nothing can be pushed too late.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

use qloak_api::{ChannelNumber, Problem, SaeId, control::LinkRecord};
use tokio::sync::{Semaphore, watch};

use crate::{
    intent::ChannelKey,
    limits,
    metrics::Metrics,
    observed::Picture,
    poll::{Poller, Target},
    reconcile::Backoff,
    south::{Dial, Southbound},
    store::{Store, StoreError},
    topology::{Fault, Topology},
};

/// Shared by the doors and the pollers.
pub struct Controller {
    pub(crate) dial: Box<dyn Dial>,
    pub(crate) poll_interval: Duration,
    pub(crate) metrics: Metrics,
    /// Places for listeners of events.
    pub(crate) listeners: Arc<Semaphore>,
    pub(crate) backoffs: Mutex<HashMap<(ChannelKey, SaeId), Backoff>>,
    store: Store,
    picture: RwLock<Picture>,
    pollers: Mutex<HashMap<Target, Poller>>,
    topology_change: tokio::sync::Mutex<()>,
    link_changes: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    version: watch::Sender<u64>,
    closing: watch::Sender<bool>,
}

impl Controller {
    /// A controller of what the database holds and what `seed` adds. Polls nobody yet.
    ///
    /// # Errors
    /// The database failed, or the seed contradicts what came by REST.
    pub fn open(
        store: Store,
        seed: Topology,
        dial: Box<dyn Dial>,
        poll_interval: Duration,
    ) -> Result<Arc<Self>, StoreError> {
        let unfinished = store.audit_recover()?;
        if unfinished > 0 {
            tracing::warn!(
                unfinished,
                "commands were cut short by the last stop; see the audit log"
            );
        }
        let mut kept = store.load()?;
        let before = kept.topology.clone();
        sow(&mut kept.topology, seed)?;
        if kept.topology != before {
            store.save_topology(&kept.topology)?;
            store.audit_note(
                "the configuration file",
                "start",
                "its nodes, KMSs and links were taken over",
            )?;
        }
        Ok(Arc::new(Self {
            dial,
            poll_interval,
            metrics: Metrics::default(),
            listeners: Arc::new(Semaphore::new(limits::EVENT_LISTENERS_MAX)),
            backoffs: Mutex::default(),
            picture: RwLock::new(Picture::new(kept)),
            store,
            pollers: Mutex::default(),
            topology_change: tokio::sync::Mutex::default(),
            link_changes: Mutex::default(),
            version: watch::Sender::new(0),
            closing: watch::Sender::new(false),
        }))
    }

    /// What is known now. Never held across a wait.
    pub fn picture(&self) -> RwLockReadGuard<'_, Picture> {
        self.picture.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change what is known; tells the listeners afterwards.
    pub(crate) fn repaint<T>(&self, change: impl FnOnce(&mut Picture) -> T) -> T {
        let mut picture: RwLockWriteGuard<'_, Picture> =
            self.picture.write().unwrap_or_else(PoisonError::into_inner);
        let value = change(&mut picture);
        drop(picture);
        self.version
            .send_modify(|version| *version = version.wrapping_add(1));
        value
    }

    /// Ticks when the picture changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Becomes true when the program ends.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Ends pollers and event streams.
    pub fn close(&self) {
        self.closing.send_replace(true);
        self.pollers().clear();
    }

    /// Works on the database, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The database failed.
    pub async fn store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                tracing::error!(%error, "the database failed");
                Err(error.into())
            }
            Err(_) => Err(Problem::internal("the controller is stopping")),
        }
    }

    /// Changes the records, on disk first, and polls what is new.
    ///
    /// # Errors
    /// The rules of the topology forbid it, or the database failed; nothing changed.
    pub async fn change_topology<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Topology) -> Result<T, Fault>,
    ) -> Result<T, Problem> {
        let _one_at_a_time = self.topology_change.lock().await;
        let mut next = self.picture().topology.clone();
        let value = change(&mut next)?;
        let saved = next.clone();
        self.store(move |store| store.save_topology(&saved)).await?;
        self.repaint(|picture| picture.adopt(next));
        self.align_pollers();
        Ok(value)
    }

    /// Starts a poller for each record that has none, and ends those whose record is gone.
    pub fn align_pollers(self: &Arc<Self>) {
        let topology = self.picture().topology.clone();
        let mut pollers = self.pollers();
        if *self.closing.borrow() {
            return;
        }
        pollers.retain(|target, _| target.exists_in(&topology));
        for record in topology.nodes.values() {
            let target = Target::Node(record.name.clone());
            pollers
                .entry(target)
                .or_insert_with(|| Poller::of_node(self, record));
        }
        for record in topology.kms.values() {
            let target = Target::Kms(record.kme_id.clone());
            pollers
                .entry(target)
                .or_insert_with(|| Poller::of_kms(self, record));
        }
        self.link_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|link, _| topology.links.contains_key(link));
    }

    /// The client of a node.
    ///
    /// # Errors
    /// There is no such node.
    pub(crate) fn south(&self, node: &SaeId) -> Result<Arc<dyn Southbound>, Problem> {
        self.picture().topology.node(node)?;
        let pollers = self.pollers();
        let south = pollers
            .get(&Target::Node(node.clone()))
            .and_then(Poller::south);
        south.ok_or_else(|| {
            Problem::conflict(format!("{node} is being added or removed; ask again"))
        })
    }

    /// Polls a node at once, and quickly for a while.
    pub(crate) fn hurry(&self, node: &SaeId) {
        if let Some(poller) = self.pollers().get(&Target::Node(node.clone())) {
            poller.hurry(Instant::now());
        }
    }

    /// The lock of a link: whoever changes it at both ends holds it.
    pub(crate) fn link_change(&self, link: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self
            .link_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        locks.entry(link.to_owned()).or_default().clone()
    }

    /// A link and one of its channels.
    ///
    /// # Errors
    /// There is no such link, or the channel is known at neither end.
    pub fn find_channel(
        &self,
        link: &str,
        channel: ChannelNumber,
    ) -> Result<(LinkRecord, ChannelKey), Problem> {
        let picture = self.picture();
        let record = picture.topology.link(link)?.clone();
        let numbers = picture.channel_numbers(&record);
        if numbers.contains(&channel) {
            let link = link.to_owned();
            return Ok((record, ChannelKey { link, channel }));
        }
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let known = if numbers.is_empty() {
            "none was seen yet".to_owned()
        } else {
            format!("known are: {}", numbers.join(", "))
        };
        Err(Problem::not_found(format!(
            "link {link} has no channel {channel}; {known}"
        )))
    }

    fn pollers(&self) -> MutexGuard<'_, HashMap<Target, Poller>> {
        self.pollers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the records of the configuration to those of the database. A door that moved is taken from
/// the configuration; a link that contradicts one made by REST is refused.
fn sow(topology: &mut Topology, seed: Topology) -> Result<(), StoreError> {
    let contradiction = |fault: Fault| {
        StoreError::Damaged(format!(
            "the configuration file contradicts what was set by REST: {fault}; remove one of the two"
        ))
    };
    for (name, record) in seed.nodes {
        topology.nodes.insert(name, record);
    }
    for (kme_id, record) in seed.kms {
        topology.kms.insert(kme_id, record);
    }
    for (name, record) in seed.links {
        if topology.links.get(&name) != Some(&record) {
            topology.add_link(record).map_err(contradiction)?;
        }
    }
    Ok(())
}
