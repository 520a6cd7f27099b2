//! The run: two nodes, the wire, the KMEs, the clock, and a queue of what happens next.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use qloak_api::{Carriage, ChannelNumber, Limits, MacAddress, SaeId};
use qloak_cipher::suite::Suite;
use qloak_node::key_handler::{Action, Command, Event, Refusal, Timings};

use crate::{Book, Kme, MS, Node, Random, Wire, kme, node};

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// node-a.
    A,
    /// node-b.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// As an index into a table of two.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The far end.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// The address of its line port.
    pub fn address(self) -> MacAddress {
        MacAddress([2, 0x51, 0x4C, 0, 0, 0x0A + self as u8])
    }

    /// Its SAE ID.
    ///
    /// # Panics
    /// Never: both names are sound.
    pub fn sae(self) -> SaeId {
        let name = ["node-a", "node-b"][self.index()];
        name.parse().unwrap_or_else(|e| panic!("{e}"))
    }
}

/// What a run starts with.
#[derive(Clone)]
pub struct Plan {
    /// Everything random comes from it.
    pub seed: u64,
    /// Channels, numbered from 1.
    pub channels: u16,
    /// The suite that all start with.
    pub suite: &'static Suite,
    /// Limits of all outbound SAs.
    pub limits: Limits,
    /// Slots of the key RAMs, by side.
    pub ram_slots: [u32; 2],
    /// How a side carries client frames on its channels.
    pub carriage: [Carriage; 2],
    /// Suites that a side offers.
    pub offered: [Vec<&'static Suite>; 2],
    /// Timings of both key handlers.
    pub timings: Timings,
    /// Client frames for each channel, side and millisecond.
    pub frames_per_ms: u64,
    /// The protecting thread applies a change up to this much later.
    pub pipeline_ns: u64,
}

impl Plan {
    /// One channel of AES-256-GCM and no traffic.
    ///
    /// # Panics
    /// Never: the suite is in the table.
    pub fn new(seed: u64) -> Self {
        let Some(suite) = Suite::by_name("aes-256-gcm") else {
            unreachable!("every node has aes-256-gcm");
        };
        Self {
            seed,
            channels: 1,
            suite,
            limits: Limits::default(),
            ram_slots: [512; 2],
            carriage: [Carriage::Transparent; 2],
            offered: [node::offered(), node::offered()],
            timings: node::timings(),
            frames_per_ms: 0,
            pipeline_ns: MS / 5,
        }
    }
}

enum Happening {
    Arrival {
        to: Side,
        frame: Vec<u8>,
    },
    Taken {
        to: Side,
        life: u64,
        request: u64,
        answer: kme::Answer,
    },
    Fetched {
        to: Side,
        life: u64,
        request: u64,
        answer: kme::Answer,
    },
    /// The threads of a node go round once: each millisecond.
    Round(Side),
    /// The protecting thread applies a change of the encoding SA, and tells.
    Switch(Side),
}

/// A run.
pub struct World {
    /// What must never happen.
    pub book: Book,
    /// The KMEs.
    pub kme: Kme,
    /// The line, by sender.
    pub wires: [Wire; 2],
    /// Client frames for each channel, side and millisecond, from now on.
    pub frames_per_ms: u64,
    /// Every agreement frame that was sent, for a forger: sender and octets.
    pub recorded: Vec<(Side, Vec<u8>)>,
    plan: Plan,
    random: Random,
    now_ns: u64,
    /// `None` while a node is down.
    nodes: [Option<Node>; 2],
    lives: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    last: u64,
}

impl World {
    /// Both nodes start now.
    pub fn new(plan: Plan) -> Self {
        let mut world = Self {
            book: Book::new(plan.seed),
            kme: Kme::default(),
            wires: [Wire::default(); 2],
            frames_per_ms: plan.frames_per_ms,
            recorded: Vec::new(),
            random: Random::new(plan.seed),
            plan,
            now_ns: 0,
            nodes: [None, None],
            lives: 0,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            last: 0,
        };
        Side::BOTH.into_iter().for_each(|side| {
            world.start(side);
            world.later(0, Happening::Round(side));
        });
        world
    }

    /// The time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The dice of the run.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// A node.
    ///
    /// # Panics
    /// It is down.
    pub fn node(&self, side: Side) -> &Node {
        match &self.nodes[side.index()] {
            Some(node) => node,
            None => panic!("seed {}: {side:?} is down", self.plan.seed),
        }
    }

    /// The number of a channel.
    ///
    /// # Panics
    /// There is no such number.
    pub fn channel(n: u16) -> ChannelNumber {
        ChannelNumber::try_from(n).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A node stops: everything that it knew is gone.
    pub fn stop(&mut self, side: Side) {
        self.nodes[side.index()] = None;
    }

    /// A node starts (again).
    pub fn start(&mut self, side: Side) {
        let mut boot = [0; 16];
        self.random.fill(&mut boot);
        self.lives += 1;
        self.nodes[side.index()] = Some(Node::start(side, &self.plan, boot, self.lives));
    }

    /// Another configuration, for nodes that start from now on.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan);
    }

    /// A command for a node.
    ///
    /// # Errors
    /// The node refuses it.
    pub fn command(&mut self, side: Side, command: Command) -> Result<(), Refusal> {
        let mut actions = Vec::new();
        let now_ns = self.now_ns;
        let node = self.nodes[side.index()].as_mut();
        let outcome = node.map_or(Ok(()), |node| {
            node.handler.command(now_ns, command, &mut actions)
        });
        self.perform(side, actions);
        outcome
    }

    /// A frame of a forger arrives at a node.
    pub fn inject(&mut self, to: Side, frame: Vec<u8>) {
        self.later(self.now_ns, Happening::Arrival { to, frame });
    }

    /// Lets this much time pass.
    pub fn run_ms(&mut self, ms: u64) {
        let end_ns = self.now_ns + ms * MS;
        while let Some(&Reverse((at_ns, number))) = self.queue.peek() {
            if at_ns > end_ns {
                break;
            }
            self.queue.pop();
            self.now_ns = at_ns;
            if let Some(happening) = self.happenings.remove(&number) {
                self.happen(happening);
            }
        }
        self.now_ns = end_ns;
    }

    /// Lets time pass until `done`, at most `ms`; says how long it took.
    ///
    /// # Panics
    /// It did not come about in that time.
    pub fn run_until(&mut self, ms: u64, what: &str, done: impl Fn(&Self) -> bool) -> u64 {
        for passed in 0..=ms {
            if done(self) {
                return passed;
            }
            self.run_ms(1);
        }
        let states = self
            .nodes
            .iter()
            .flatten()
            .map(|node| node.state(self.now_ns));
        let states: Vec<_> = states.collect();
        panic!(
            "seed {}: not within {ms} ms: {what}\n{states:#?}",
            self.plan.seed
        );
    }

    /// True when every channel is open at both ends.
    pub fn open(&self) -> bool {
        use qloak_api::manage::ChannelStatus::Open;
        self.nodes.iter().all(|node| {
            let open = |node: &Node| {
                node.state(self.now_ns)
                    .channels
                    .iter()
                    .all(|c| c.status == Open)
            };
            node.as_ref().is_some_and(open)
        })
    }

    fn later(&mut self, at_ns: u64, happening: Happening) {
        self.last += 1;
        self.queue.push(Reverse((at_ns, self.last)));
        self.happenings.insert(self.last, happening);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrival { to, frame } => self.arrive(to, &frame),
            Happening::Taken {
                to,
                life,
                request,
                answer,
            } => {
                let event = Event::Taken {
                    request,
                    result: answer,
                };
                self.tell(to, Some(life), event);
            }
            Happening::Fetched {
                to,
                life,
                request,
                answer,
            } => {
                let event = Event::Fetched {
                    request,
                    result: answer,
                };
                self.tell(to, Some(life), event);
            }
            Happening::Round(side) => {
                self.round(side);
                self.later(self.now_ns + MS, Happening::Round(side));
            }
            Happening::Switch(side) => {
                if let Some(node) = &mut self.nodes[side.index()] {
                    node.apply(self.now_ns, &mut self.book);
                }
                (1..=self.plan.channels).for_each(|n| self.tell_usage(side, Self::channel(n)));
            }
        }
    }

    fn tell(&mut self, side: Side, life: Option<u64>, event: Event<'_>) {
        let mut actions = Vec::new();
        if let Some(node) = &mut self.nodes[side.index()]
            && life.is_none_or(|life| life == node.life)
        {
            node.handler.handle(self.now_ns, event, &mut actions);
        }
        self.perform(side, actions);
    }

    fn arrive(&mut self, to: Side, frame: &[u8]) {
        if frame.get(12..14) == Some(&[0x88, 0xB5]) {
            return self.tell(to, None, Event::Frame(frame));
        }
        let Some(node) = &mut self.nodes[to.index()] else {
            return;
        };
        if let Some(number) = node.validate(frame) {
            self.book.delivered(to.other(), number);
        }
        for (channel, an) in node.heard() {
            self.tell(to, None, Event::Heard { channel, an });
        }
    }

    /// What the threads of a node do in a millisecond.
    fn round(&mut self, side: Side) {
        for n in 1..=self.plan.channels {
            let channel = Self::channel(n);
            for _ in 0..self.frames_per_ms {
                self.transmit(side, channel);
            }
            let Some(node) = &mut self.nodes[side.index()] else {
                return;
            };
            node.apply(self.now_ns, &mut self.book);
            self.tell_usage(side, channel);
        }
        let due = |node: &Node| node.handler.next_wake_ns() <= self.now_ns;
        if self.nodes[side.index()].as_ref().is_some_and(due) {
            self.tell(side, None, Event::Tick);
        }
    }

    fn tell_usage(&mut self, side: Side, channel: ChannelNumber) {
        let usage = self.nodes[side.index()].as_ref();
        if let Some((an, frames, octets)) = usage.and_then(|node| node.usage(channel)) {
            let event = Event::Usage {
                channel,
                an,
                frames,
                octets,
            };
            self.tell(side, None, event);
        }
    }

    fn transmit(&mut self, side: Side, channel: ChannelNumber) {
        let Some(node) = &mut self.nodes[side.index()] else {
            return;
        };
        node.apply(self.now_ns, &mut self.book);
        let number = self.book.sent[side.index()];
        match node.protect(channel, number, self.now_ns) {
            Some(frame) => {
                self.book.sent[side.index()] += 1;
                self.send(side, frame);
            }
            None => self.book.discarded[side.index()] += 1,
        }
        if self.nodes[side.index()]
            .as_mut()
            .is_some_and(Node::comes_due)
        {
            self.tell_usage(side, channel);
        }
    }

    fn send(&mut self, from: Side, frame: Vec<u8>) {
        let wire = self.wires[from.index()];
        for at_ns in wire.arrivals(self.now_ns, &mut self.random) {
            let (to, frame) = (from.other(), frame.clone());
            self.later(at_ns, Happening::Arrival { to, frame });
        }
    }

    fn perform(&mut self, side: Side, actions: Vec<Action>) {
        for action in actions {
            let due_ns = self.now_ns + self.random.below(self.plan.pipeline_ns + 1);
            let switches = matches!(action, Action::Encode { .. });
            self.act(side, due_ns, action);
            if switches {
                let by_ns = self.now_ns + self.plan.pipeline_ns;
                self.later(by_ns, Happening::Switch(side));
            }
        }
    }

    fn act(&mut self, side: Side, due_ns: u64, action: Action) {
        let (now_ns, random, seed) = (self.now_ns, &mut self.random, self.plan.seed);
        let Some(node) = &mut self.nodes[side.index()] else {
            return;
        };
        let life = node.life;
        let reply_ns = now_ns + MS + random.below(10 * MS);
        match action {
            Action::Send(frame) => {
                assert!((60..=1514).contains(&frame.len()), "seed {seed}");
                self.recorded.push((side, frame.clone()));
                self.send(side, frame);
            }
            Action::Take { request, count } => {
                let answer = self.kme.take(side, count, now_ns, random);
                self.later(
                    reply_ns,
                    Happening::Taken {
                        to: side,
                        life,
                        request,
                        answer,
                    },
                );
            }
            Action::Fetch { request, key_ids } => {
                let answer = self.kme.fetch(side, &key_ids, now_ns, random);
                self.later(
                    reply_ns,
                    Happening::Fetched {
                        to: side,
                        life,
                        request,
                        answer,
                    },
                );
            }
            Action::InstallOutbound {
                channel,
                an,
                key_id,
                suite,
                sak,
            } => {
                self.book
                    .installed(side, true, channel, key_id, suite, &sak.sak);
                node.install_outbound(due_ns, (channel, an), key_id, suite, &sak);
            }
            Action::InstallInbound {
                channel,
                an,
                key_id,
                suite,
                sak,
            } => {
                self.book
                    .installed(side.other(), false, channel, key_id, suite, &sak.sak);
                node.install_inbound((channel, an), key_id, suite, &sak);
            }
            Action::Encode { channel, an } => node.encode(due_ns, channel, an),
            Action::RetireOutbound { channel, an } => node.retire_outbound(due_ns, channel, an),
            Action::RetireInbound { channel, an } => node.retire_inbound(channel, an),
            Action::Close { channel } => node.close(due_ns, channel),
            Action::SetLimits { channel, limits } => node.set_limits(due_ns, channel, limits),
            Action::Note(note) => node.notes.push(note),
        }
    }
}
