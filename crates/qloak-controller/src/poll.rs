//! One task per node and per KMS that looks at it again and again.
//!
//! Slow or dead ones hold nobody else up. After each answer of a node its intents are compared with
//! it (`reconcile`); after a command the node is looked at quickly until the change is seen.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use qloak_api::{
    SaeId,
    control::{KmsRecord, NodeRecord},
    kms::KmsState,
    manage::NodeState,
};
use tokio::{sync::Notify, task::JoinHandle};

use crate::{
    controller::Controller,
    limits,
    south::{SouthError, Southbound},
    topology::Topology,
};

/// What is polled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Node(SaeId),
    Kms(String),
}

impl Target {
    pub(crate) fn exists_in(&self, topology: &Topology) -> bool {
        match self {
            Self::Node(name) => topology.nodes.contains_key(name),
            Self::Kms(kme_id) => topology.kms.contains_key(kme_id),
        }
    }
}

/// A poller's handle; the task ends with it.
pub(crate) struct Poller {
    south: Option<Arc<dyn Southbound>>,
    pace: Arc<Pace>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Pace {
    wake: Notify,
    hurry_until: Mutex<Option<Instant>>,
}

impl Poller {
    pub(crate) fn of_node(controller: &Arc<Controller>, record: &NodeRecord) -> Self {
        let south = controller.dial.node(record);
        let pace = Arc::<Pace>::default();
        let task = poll_node(
            Arc::downgrade(controller),
            record.name.clone(),
            south.clone(),
            pace.clone(),
        );
        Self {
            south: Some(south),
            pace,
            task: tokio::spawn(task),
        }
    }

    pub(crate) fn of_kms(controller: &Arc<Controller>, record: &KmsRecord) -> Self {
        let kms = controller.dial.kms(record);
        let (controller, kme_id) = (Arc::downgrade(controller), record.kme_id.clone());
        let pace = Arc::<Pace>::default();
        let paced = pace.clone();
        let task = tokio::spawn(async move {
            loop {
                let asked_at = Instant::now();
                let answer = kms
                    .state()
                    .await
                    .and_then(|state| believe_kms(&kme_id, state));
                let Some(controller) = controller.upgrade() else {
                    return;
                };
                controller.saw_kms(&kme_id, asked_at, answer);
                let interval = controller.poll_interval;
                drop(controller);
                paced.pause(interval).await;
            }
        });
        Self {
            south: None,
            pace,
            task,
        }
    }

    pub(crate) fn south(&self) -> Option<Arc<dyn Southbound>> {
        self.south.clone()
    }

    pub(crate) fn hurry(&self, now: Instant) {
        *self
            .pace
            .hurry_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(now + limits::HURRY_SPAN);
        self.pace.wake.notify_one();
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pace {
    async fn pause(&self, interval: Duration) {
        let until = *self
            .hurry_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let pause = match until {
            Some(until) if Instant::now() < until => limits::HURRY_INTERVAL.min(interval),
            _ => interval,
        };
        // Whoever wakes us has a reason to look at once.
        let _ = tokio::time::timeout(pause, self.wake.notified()).await;
    }

    /// Back to the usual pace, unless another command came since the last question.
    fn relax(&self, asked_at: Instant) {
        let mut until = self
            .hurry_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *until = until.filter(|until| *until > asked_at + limits::HURRY_SPAN);
    }
}

async fn poll_node(
    controller: Weak<Controller>,
    name: SaeId,
    south: Arc<dyn Southbound>,
    pace: Arc<Pace>,
) {
    let mut answers_since_library = u32::MAX;
    let mut uptime_s = 0;
    loop {
        let asked_at = Instant::now();
        let answer = south
            .state()
            .await
            .and_then(|state| believe_node(&name, state));
        let Some(controller) = controller.upgrade() else {
            return;
        };
        match answer {
            Ok(state) => {
                let restarted = state.uptime_s < uptime_s;
                uptime_s = state.uptime_s;
                if restarted || answers_since_library >= limits::LIBRARY_EVERY_POLLS {
                    // A library that cannot be had now is asked for again at the next answer.
                    if fetch_library(&controller, &name, south.as_ref()).await {
                        answers_since_library = 0;
                    }
                }
                answers_since_library = answers_since_library.saturating_add(1);
                if restarted {
                    controller.forget_backoff(&name);
                }
                controller.saw_node(&name, asked_at, Ok(state));
                controller.reconcile(&name).await;
                if !controller.settle(&name).await {
                    pace.relax(asked_at);
                }
            }
            Err(error) => {
                // It may come back with another library and another mind.
                answers_since_library = u32::MAX;
                controller.forget_backoff(&name);
                controller.saw_node(&name, asked_at, Err(error));
            }
        }
        let interval = controller.poll_interval;
        drop(controller);
        pace.pause(interval).await;
    }
}

async fn fetch_library(controller: &Arc<Controller>, name: &SaeId, south: &dyn Southbound) -> bool {
    let library = match south.library().await {
        Ok(library) if library.len() <= limits::SUITES_MAX => library,
        Ok(library) => {
            tracing::warn!(node = %name, suites = library.len(), "the node's library is not believed: too many suites");
            return false;
        }
        Err(error) => {
            tracing::debug!(node = %name, %error, "the node's library cannot be read");
            return false;
        }
    };
    let changed = controller.picture().libraries.get(name) != Some(&library);
    if changed {
        controller.repaint(|picture| picture.libraries.insert(name.clone(), library.clone()));
        let name = name.clone();
        // The library is kept only to be known after a restart; a failing disk is logged by the store.
        let _ = controller
            .store(move |store| store.save_library(&name, &library))
            .await;
    }
    true
}

/// What a node says of itself must fit what is known of it.
fn believe_node(name: &SaeId, state: NodeState) -> Result<NodeState, SouthError> {
    let doubt = |text: String| Err(SouthError::Failed(text));
    if state.node != *name {
        return doubt(format!(
            "the node behind this URL calls itself {}; correct the URL or the name",
            state.node
        ));
    }
    let mut numbers: Vec<_> = state
        .channels
        .iter()
        .map(|channel| channel.number)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() != state.channels.len() || numbers.len() > limits::CHANNELS_MAX {
        return doubt(format!(
            "{name} lists a channel twice or too many channels; the node is at fault"
        ));
    }
    Ok(state)
}

fn believe_kms(kme_id: &str, state: KmsState) -> Result<KmsState, SouthError> {
    if state.kme_id == kme_id {
        Ok(state)
    } else {
        Err(SouthError::Failed(format!(
            "the KMS behind this URL calls itself {}; correct the URL or the KME ID",
            state.kme_id
        )))
    }
}

impl Controller {
    fn saw_node(&self, name: &SaeId, asked_at: Instant, answer: Result<NodeState, SouthError>) {
        self.metrics.polled(name.as_str(), answer.is_ok());
        self.repaint(|picture| {
            let Some(seen) = picture.nodes.get_mut(name) else {
                return;
            };
            match answer {
                Ok(state) => {
                    if seen.error.take().is_some() {
                        tracing::info!(node = %name, "the node answers");
                    }
                    seen.state = Some(state);
                    seen.asked_at = Some(asked_at);
                }
                Err(error) => {
                    if seen.error.is_none() {
                        tracing::warn!(node = %name, %error, "the node no longer answers");
                    }
                    seen.error = Some(error.to_string());
                }
            }
        });
    }

    fn saw_kms(&self, kme_id: &str, asked_at: Instant, answer: Result<KmsState, SouthError>) {
        self.metrics.polled(kme_id, answer.is_ok());
        self.repaint(|picture| {
            let Some(seen) = picture.kms.get_mut(kme_id) else {
                return;
            };
            match answer {
                Ok(state) => {
                    seen.state = Some(state);
                    seen.asked_at = Some(asked_at);
                    seen.error = None;
                }
                Err(error) => seen.error = Some(error.to_string()),
            }
        });
    }
}
