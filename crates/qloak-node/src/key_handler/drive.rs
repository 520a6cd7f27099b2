//! The thread that drives the key handler: it brings events to the state machine and carries out what
//! it decides.
//!
//! Events come from four sides: agreement frames and news from the pipeline (rings), answers of the KME
//! and orders of the management door (one inbox), and time. Actions go to the pipeline (rings), to the
//! line (its own handle on the line port, so that a full data queue never delays agreement) and to the
//! KME (a queue; the answer comes back as an event). Nothing here waits for the network.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError},
    },
    thread::Thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use qloak_api::{
    ChannelNumber, KeyId, Limits, Problem,
    manage::{KeyOperation, NodeState},
};
use qloak_cipher::{level::Level, suite::Suite};
use qloak_keys::derive::SakMaterial;
use qloak_port::Waker;
use qloak_secy::Sa;
use rtrb::{Consumer, Producer};
use tokio::sync::oneshot;

use super::{
    Action, Command, Event, Note, SourceFailure,
    peers::KeyHandlers,
    plane::{Association, Outlet},
    source::{Answer, Asked},
};
use crate::{
    clock::Clock,
    pipeline::news::{ControlFrame, InboundChange, InboundNews, OutboundChange, OutboundNews},
    state::Picture,
};

/// How often the published state is renewed.
const PUBLISH_EVERY_NS: u64 = 10_000_000;

/// Longest sleep. What the pipeline's news bring that cannot wait wakes this thread.
const NAP_MAX: Duration = Duration::from_millis(5);

/// Shortest sleep: what is due sooner is done a little late rather than by spinning.
const NAP_MIN: Duration = Duration::from_micros(50);

/// What the management door may order.
pub(crate) enum Order {
    SetSuite {
        channel: ChannelNumber,
        suite: &'static Suite,
    },
    SetLimits {
        channel: ChannelNumber,
        limits: Limits,
    },
    Rekey {
        channel: ChannelNumber,
    },
    Keys(KeyOperation),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetSuite { channel, suite } => {
                write!(f, "channel {channel}: suite {}", suite.name)
            }
            Self::SetLimits { channel, limits } => write!(
                f,
                "channel {channel}: limits {} frames, {} octets, {} s",
                limits.frames, limits.octets, limits.seconds
            ),
            Self::Rekey { channel } => write!(f, "channel {channel}: rekey"),
            Self::Keys(operation) => write!(f, "keys: {operation:?}"),
        }
    }
}

/// What waits in the inbox of the key handler's thread.
pub(crate) enum Letter {
    /// An answer of the KME about keys with a peer.
    Answer(usize, Answer),
    /// An order, and where to say what became of it.
    Order(Order, oneshot::Sender<Result<(), Problem>>),
}

/// Where letters for the key handler are handed in.
#[derive(Clone)]
pub(crate) struct Desk {
    letters: SyncSender<Letter>,
    thread: Thread,
}

impl Desk {
    pub(crate) fn new(letters: SyncSender<Letter>, thread: Thread) -> Self {
        Self { letters, thread }
    }

    /// Hands in an order and waits for what becomes of it.
    pub(crate) async fn hand_in(&self, order: Order) -> Result<(), Problem> {
        let (reply, answer) = oneshot::channel();
        match self.letters.try_send(Letter::Order(order, reply)) {
            Ok(()) => self.thread.unpark(),
            Err(TrySendError::Full(_)) => {
                return Err(Problem::new(
                    503,
                    "the node is busy",
                    "too many commands wait; try again in a second",
                ));
            }
            Err(TrySendError::Disconnected(_)) => {
                return Err(Problem::new(
                    503,
                    "the node is stopping",
                    "it takes no more commands",
                ));
            }
        }
        answer.await.unwrap_or_else(|_| {
            Err(Problem::internal(
                "the key handler stopped before it answered",
            ))
        })
    }

    /// Hands in an answer of the KME about keys with a peer; waits if the inbox is full, since a lost answer is a
    /// lost key.
    pub(crate) fn answer(&self, peer: usize, answer: Answer) {
        if self.letters.send(Letter::Answer(peer, answer)).is_ok() {
            self.thread.unpark();
        }
    }
}

/// Everything the thread holds.
pub(crate) struct Driver<A> {
    pub(crate) handlers: KeyHandlers,
    pub(crate) clock: Clock,
    pub(crate) level: Level,
    pub(crate) outlet: Box<dyn Outlet + Send>,
    pub(crate) inbox: Receiver<Letter>,
    /// By peer.
    pub(crate) sources: Vec<tokio::sync::mpsc::Sender<Asked>>,
    pub(crate) control: Consumer<ControlFrame>,
    pub(crate) outbound_news: Consumer<OutboundNews>,
    pub(crate) inbound_news: Consumer<InboundNews>,
    pub(crate) outbound: Sluice<OutboundChange<A>>,
    pub(crate) outbound_waker: Arc<Waker>,
    pub(crate) inbound: Sluice<InboundChange<A>>,
    pub(crate) inbound_waker: Arc<Waker>,
    /// Answers to requests that could not even be asked.
    pub(crate) unasked: Vec<(usize, Answer)>,
    /// SAs that the pipeline took out; dropping them here wipes them off its way.
    pub(crate) spent: Vec<Consumer<Sa>>,
    pub(crate) picture: Picture,
    pub(crate) published: Arc<ArcSwap<NodeState>>,
    pub(crate) stop: Arc<AtomicBool>,
}

/// A ring with a waiting room before it: changes are never lost and never reordered.
pub(crate) struct Sluice<T> {
    ring: Producer<T>,
    waiting: VecDeque<T>,
}

impl<T> Sluice<T> {
    pub(crate) fn new(ring: Producer<T>) -> Self {
        Self {
            ring,
            waiting: VecDeque::new(),
        }
    }

    fn push(&mut self, change: T) {
        self.waiting.push_back(change);
        self.flow();
    }

    fn flow(&mut self) {
        while let Some(change) = self.waiting.pop_front() {
            if let Err(rtrb::PushError::Full(change)) = self.ring.push(change) {
                self.waiting.push_front(change);
                return;
            }
        }
    }
}

impl<A: Association> Driver<A> {
    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        let mut actions = Vec::new();
        let mut publish_at_ns = 0;
        while !self.stop.load(Ordering::Relaxed) {
            self.frames(&mut actions);
            self.news(&mut actions);
            self.letters(&mut actions);
            let now_ns = self.clock.now_ns();
            for peer in 0..self.handlers.len() {
                self.step(peer, now_ns, Event::Tick, &mut actions);
            }
            self.outbound.flow();
            self.inbound.flow();
            self.spent
                .iter_mut()
                .for_each(|spent| while spent.pop().is_ok() {});
            if now_ns >= publish_at_ns {
                publish_at_ns = now_ns + PUBLISH_EVERY_NS;
                self.published.store(Arc::new(
                    self.picture
                        .draw(self.handlers.state(now_ns), self.clock.uptime_s()),
                ));
            }
            if self.control.is_empty() {
                let wake_ns = self.handlers.next_wake_ns();
                let wake_ns = wake_ns.saturating_sub(self.clock.now_ns());
                std::thread::park_timeout(Duration::from_nanos(wake_ns).clamp(NAP_MIN, NAP_MAX));
            }
        }
    }

    fn step(&mut self, peer: usize, now_ns: u64, event: Event<'_>, actions: &mut Vec<Action>) {
        self.handlers.of(peer).handle(now_ns, event, actions);
        for action in actions.drain(..) {
            self.perform(peer, action);
        }
    }

    fn frames(&mut self, actions: &mut Vec<Action>) {
        // What waits now and no more, so that a flood on the line holds up nothing else.
        for _ in 0..self.control.slots() {
            let Ok(frame) = self.control.pop() else {
                return;
            };
            let peer = self.handlers.sender(frame.octets());
            let event = Event::Frame(frame.octets());
            self.step(peer, self.clock.now_ns(), event, actions);
        }
    }

    fn news(&mut self, actions: &mut Vec<Action>) {
        while let Ok(news) = self.outbound_news.pop() {
            if let OutboundNews::Channel {
                channel,
                usage: Some(usage),
                ..
            } = &news
            {
                let event = Event::Usage {
                    channel: *channel,
                    an: usage.an,
                    frames: usage.frames,
                    octets: usage.octets,
                };
                let peer = self.handlers.peer_of(*channel);
                self.step(peer, self.clock.now_ns(), event, actions);
            }
            self.picture.outbound(news);
        }
        while let Ok(news) = self.inbound_news.pop() {
            if let InboundNews::Heard { channel, an } = news {
                let peer = self.handlers.peer_of(channel);
                let event = Event::Heard { channel, an };
                self.step(peer, self.clock.now_ns(), event, actions);
            }
            self.picture.inbound(news);
        }
    }

    fn letters(&mut self, actions: &mut Vec<Action>) {
        for (peer, answer) in std::mem::take(&mut self.unasked) {
            self.answer(peer, answer, actions);
        }
        while let Ok(letter) = self.inbox.try_recv() {
            let now_ns = self.clock.now_ns();
            match letter {
                Letter::Answer(peer, answer) => self.answer(peer, answer, actions),
                Letter::Order(order, reply) => {
                    let outcome = self.obey(now_ns, order, actions);
                    // Who asked may have hung up; the order is carried out all the same.
                    let _ = reply.send(outcome);
                }
            }
        }
    }

    fn answer(&mut self, peer: usize, answer: Answer, actions: &mut Vec<Action>) {
        let event = match answer {
            Answer::Taken { request, result } => Event::Taken { request, result },
            Answer::Fetched { request, result } => Event::Fetched { request, result },
        };
        self.step(peer, self.clock.now_ns(), event, actions);
    }

    /// An order about a channel is for its peer's handler, one about keys for each.
    fn obey(
        &mut self,
        now_ns: u64,
        order: Order,
        actions: &mut Vec<Action>,
    ) -> Result<(), Problem> {
        let (command, channel) = match order {
            Order::SetSuite { channel, suite } => {
                (Command::SetSuite { channel, suite }, Some(channel))
            }
            Order::SetLimits { channel, limits } => {
                (Command::SetLimits { channel, limits }, Some(channel))
            }
            Order::Rekey { channel } => (Command::Rekey { channel }, Some(channel)),
            Order::Keys(operation) => (keys(operation), None),
        };
        let peers = match channel {
            Some(channel) => vec![self.handlers.peer_of(channel)],
            None => (0..self.handlers.len()).collect(),
        };
        for peer in peers {
            let outcome = self
                .handlers
                .of(peer)
                .command(now_ns, command.clone(), actions);
            for action in actions.drain(..) {
                self.perform(peer, action);
            }
            outcome.map_err(|refusal| Problem::conflict(refusal.to_string()))?;
        }
        Ok(())
    }

    fn perform(&mut self, peer: usize, action: Action) {
        match action {
            Action::Send(frame) => self.outlet.send(&frame),
            Action::Take { request, count } => self.ask(peer, Asked::Take { request, count }),
            Action::Fetch { request, key_ids } => {
                self.ask(peer, Asked::Fetch { request, key_ids });
            }
            Action::InstallOutbound {
                channel,
                an,
                key_id,
                suite,
                sak,
            } => {
                if let Some(sa) = self.association(suite, sak, key_id) {
                    self.change_outbound(OutboundChange::Install { channel, an, sa });
                }
            }
            Action::Encode { channel, an } => {
                self.change_outbound(OutboundChange::Encode { channel, an })
            }
            Action::RetireOutbound { channel, an } => {
                self.change_outbound(OutboundChange::Retire { channel, an })
            }
            Action::InstallInbound {
                channel,
                an,
                key_id,
                suite,
                sak,
            } => {
                if let Some(sa) = self.association(suite, sak, key_id) {
                    self.change_inbound(InboundChange::Install { channel, an, sa });
                }
            }
            Action::RetireInbound { channel, an } => {
                self.change_inbound(InboundChange::Retire { channel, an })
            }
            Action::Close { channel } => self.change_outbound(OutboundChange::Close { channel }),
            Action::SetLimits { channel, limits } => {
                self.change_outbound(OutboundChange::Limits { channel, limits })
            }
            Action::Note(note) => log(&note),
        }
    }

    fn association(
        &self,
        suite: &'static Suite,
        material: SakMaterial,
        key_id: KeyId,
    ) -> Option<A> {
        A::make(suite, self.level, material, key_id)
            .inspect_err(|error| tracing::error!(%error, "no SA could be made"))
            .ok()
    }

    fn change_outbound(&mut self, change: OutboundChange<A>) {
        self.outbound.push(change);
        self.outbound_waker.wake();
    }

    fn change_inbound(&mut self, change: InboundChange<A>) {
        self.inbound.push(change);
        self.inbound_waker.wake();
    }

    /// A full queue to the KME is a KME that does not answer.
    fn ask(&mut self, peer: usize, asked: Asked) {
        let Some(source) = self.sources.get(peer) else {
            return;
        };
        if let Err(error) = source.try_send(asked) {
            let failed = || {
                Err(SourceFailure::Unreachable(
                    "too many requests wait for it".to_owned(),
                ))
            };
            let answer = match error.into_inner() {
                Asked::Take { request, .. } => Answer::Taken {
                    request,
                    result: failed(),
                },
                Asked::Fetch { request, .. } => Answer::Fetched {
                    request,
                    result: failed(),
                },
            };
            self.unasked.push((peer, answer));
        }
    }
}

/// What the key handler calls an operation on keys.
fn keys(operation: KeyOperation) -> Command {
    match operation {
        KeyOperation::SoftReset => Command::SoftReset,
        KeyOperation::HardReset => Command::HardReset,
        KeyOperation::Resize { slots } => Command::Resize { slots },
        KeyOperation::LoadOutbound { count } => Command::LoadOutbound { count },
        KeyOperation::LoadInbound { key_ids } => Command::LoadInbound { key_ids },
    }
}

fn log(note: &Note) {
    match note {
        Note::Raised { .. } | Note::KeyLost { .. } | Note::Refused(_) => tracing::warn!("{note}"),
        // As many as a thousand a second; the counters tell of them too.
        Note::Rekeyed { .. } => tracing::debug!("{note}"),
        _ => tracing::info!("{note}"),
    }
}
