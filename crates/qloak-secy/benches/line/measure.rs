//! One cell of the table: a suite and a load.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use qloak_api::{An, Carriage, ClientPort, KeyId, Limits, MacAddress};
use qloak_cipher::{Level, Suite};
use qloak_keys::Key;
use qloak_secy::{
    ChannelConfig, ChannelRef, Inbound, LineConfig, LineFrames, Outbound, Room, Sa, Verdict, limits,
};

use crate::peers;

/// Frames handled at once, five rounds of the IMIX pattern.
const BATCH: usize = 60;

/// Line frames of the aggregated carriage.
const AGGREGATED_OCTETS: usize = 9000;

const SAMPLES: usize = 5;

/// Client frames of a cell, by length in octets without FCS.
pub(crate) struct Load {
    /// Head of its column.
    pub(crate) name: &'static str,
    /// Lengths, repeated to fill a batch.
    pub(crate) pattern: &'static [usize],
}

/// The simple IMIX is 7:4:1 of 64, 576 and 1500.
pub(crate) const LOADS: [Load; 5] = [
    Load {
        name: "64",
        pattern: &[64],
    },
    Load {
        name: "512",
        pattern: &[512],
    },
    Load {
        name: "1500",
        pattern: &[1500],
    },
    Load {
        name: "9000",
        pattern: &[9000],
    },
    Load {
        name: "IMIX",
        pattern: &[64, 576, 64, 64, 576, 64, 1500, 64, 576, 64, 576, 64],
    },
];

/// What a cell says: Gb/s of client frames, without FCS.
#[derive(Clone, Copy, serde::Serialize)]
pub(crate) struct Cell {
    /// Octets of one batch.
    pub(crate) batch_octets: usize,
    /// Outbound: protect; with mux if aggregated.
    pub(crate) protect_gbps: f64,
    /// Inbound: validate; with demux if aggregated.
    pub(crate) validate_gbps: f64,
    /// The plain library, sealing the same octets.
    pub(crate) peer_seal_gbps: Option<f64>,
    /// Ours over the peer's: 1 means that the frame costs nothing beside its seal.
    pub(crate) protect_to_peer_ratio: Option<f64>,
    /// Middle time to protect one client frame.
    pub(crate) protect_ns_per_frame: f64,
}

/// Frames in their storage.
struct Frames {
    slots: Vec<(Box<[u8]>, Range<usize>)>,
    used: usize,
}

impl Frames {
    fn new(lengths: impl Iterator<Item = usize>) -> Self {
        let slot = |octets: usize| {
            let storage = vec![0x51; limits::HEADROOM + octets + limits::TAILROOM];
            let range = limits::HEADROOM..limits::HEADROOM + octets;
            (storage.into_boxed_slice(), range)
        };
        let slots: Vec<_> = lengths.map(slot).collect();
        Self {
            used: slots.len(),
            slots,
        }
    }

    fn rooms(&mut self) -> impl Iterator<Item = Room<'_>> {
        let used = self.slots[..self.used].iter_mut();
        used.map(|(storage, range)| Room::new(storage, range))
    }
}

impl LineFrames for Frames {
    fn free(&self) -> usize {
        self.slots.len() - self.used
    }

    fn begin(&mut self) -> Option<Room<'_>> {
        let (_, range) = self.slots.get_mut(self.used)?;
        *range = limits::HEADROOM..limits::HEADROOM;
        self.used += 1;
        self.last()
    }

    fn last(&mut self) -> Option<Room<'_>> {
        let (storage, range) = self.slots.get_mut(self.used.checked_sub(1)?)?;
        Some(Room::new(storage, range))
    }
}

struct Bench {
    outbound: Outbound,
    inbound: Inbound,
    channel: ChannelRef,
    clients: Vec<ClientPort>,
    /// Client frames; transparent ones become line frames where they are.
    frames: Frames,
    /// Line frames of the aggregated carriage.
    line: Option<Frames>,
    /// Frames of 9000 octets and their record headers take a few more line frames than client frames.
    verdicts: [Verdict; 2 * BATCH],
    delivered: u64,
}

impl Bench {
    fn new(suite: &'static Suite, level: Level, load: &Load, aggregated: bool) -> Self {
        let clients: Vec<ClientPort> = (1..=if aggregated { 10 } else { 1 })
            .filter_map(|n| ClientPort::try_from(n).ok())
            .collect();
        let line = LineConfig {
            address: MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0a]),
            peer_address: MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0b]),
            frame_octets_max: if aggregated {
                AGGREGATED_OCTETS
            } else {
                16_000
            },
        };
        let config = ChannelConfig {
            number: 1.try_into().expect("1 is a channel"),
            peer_address: None,
            carriage: if aggregated {
                Carriage::Aggregated
            } else {
                Carriage::Transparent
            },
            clients: clients.clone(),
            vlans: Vec::new(),
            xpn: true,
            replay_window: 64,
            limits: Limits {
                frames: limits::SA_FRAMES_MAX,
                octets: limits::SA_OCTETS_MAX,
                ..Limits::default()
            },
        };
        let channels = std::slice::from_ref(&config);
        let back = LineConfig {
            address: line.peer_address,
            peer_address: line.address,
            ..line
        };
        let mut outbound = Outbound::new(&line, channels).expect("a sound configuration");
        let mut inbound = Inbound::new(&back, channels).expect("a sound configuration");
        let an = An::from_low_bits(0);
        let key = Key::from_slice(&[0x51; 32][..suite.key_octets]).expect("a key of the suite");
        let sa =
            || Sa::new(suite, level, &key, [0x4c; 12], KeyId([1; 16])).expect("a key of the suite");
        outbound
            .install(config.number, an, sa())
            .expect("a new key");
        inbound.install(config.number, an, sa()).expect("a new key");
        assert!(outbound.encode(config.number, an, 0));
        let lengths = load.pattern.iter().copied().cycle().take(BATCH);
        let line = aggregated.then(|| {
            let mut line = Frames::new(std::iter::repeat_n(AGGREGATED_OCTETS, 2 * BATCH));
            line.used = 0;
            line
        });
        Self {
            channel: outbound.channel(config.number).expect("the channel"),
            outbound,
            inbound,
            clients,
            frames: Frames::new(lengths),
            line,
            verdicts: [Verdict::NoTag; 2 * BATCH],
            delivered: 0,
        }
    }

    fn protect(&mut self) {
        let Some(line) = &mut self.line else {
            let protected = self.outbound.protect(self.channel, self.frames.rooms(), 0);
            assert_eq!(protected.frames, BATCH);
            return;
        };
        line.used = 0;
        let clients = self.clients.iter().cycle();
        for ((storage, range), client) in self.frames.slots.iter().zip(clients) {
            let frame = &storage[range.clone()];
            self.outbound.mux(self.channel, *client, frame, line, 0);
        }
        let ready = self.outbound.shape(self.channel, line.used, 0);
        self.outbound
            .protect(self.channel, line.rooms().take(ready), 0);
    }

    fn validate(&mut self) {
        let batch = self.line.as_mut().unwrap_or(&mut self.frames);
        let total = self.inbound.validate(batch.rooms(), &mut self.verdicts);
        for (room, verdict) in batch.rooms().zip(&self.verdicts[..total]) {
            let Verdict::Valid(valid) = verdict else {
                panic!("{verdict:?}");
            };
            self.inbound.demux(*valid, room.frame(), |_, frame| {
                self.delivered += frame.len() as u64;
            });
        }
    }
}

/// Measures one cell.
pub(crate) fn cell(
    suite: &'static Suite,
    level: Level,
    load: &Load,
    aggregated: bool,
    sample: Duration,
) -> Cell {
    let mut bench = Bench::new(suite, level, load, aggregated);
    let peer = peers::of(suite);
    let lengths = load.pattern.iter().copied().cycle().take(BATCH);
    let batch_octets: usize = lengths.clone().sum();
    let mut peer_frames = Frames::new(lengths);
    let mut rounds_total = 0_u32;
    let mut samples: Vec<[f64; 3]> = Vec::with_capacity(SAMPLES);
    // The first sample warms caches and counts no more than any other; the middle one is taken.
    for _ in 0..SAMPLES {
        let mut spent = [Duration::ZERO; 3];
        let mut rounds = 0_u32;
        while spent[0] + spent[1] < sample || rounds == 0 {
            let start = Instant::now();
            bench.protect();
            let protected = Instant::now();
            bench.validate();
            let validated = Instant::now();
            if let Some(seal) = &peer {
                for (number, room) in peer_frames.rooms().enumerate() {
                    let (aad, data) = room.storage[room.range.clone()].split_at_mut(12);
                    let mut nonce = [0; 12];
                    nonce[4..].copy_from_slice(&(number as u64).to_be_bytes());
                    std::hint::black_box(seal(nonce, aad, data));
                }
            }
            let sealed = Instant::now();
            spent[0] += protected - start;
            spent[1] += validated - protected;
            spent[2] += sealed - validated;
            rounds += 1;
        }
        rounds_total += rounds;
        samples.push(spent.map(|spent| spent.as_secs_f64() / f64::from(rounds)));
    }
    // Nothing may be lost, or the figures mean nothing.
    assert_eq!(
        bench.delivered,
        batch_octets as u64 * u64::from(rounds_total)
    );

    let middle = |of: fn(&[f64; 3]) -> f64| {
        let mut all: Vec<f64> = samples.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[SAMPLES / 2]
    };
    let gbps = |seconds: f64| batch_octets as f64 * 8.0 / seconds / 1e9;
    let protect = middle(|sample| sample[0]);
    Cell {
        batch_octets,
        protect_gbps: gbps(protect),
        validate_gbps: gbps(middle(|sample| sample[1])),
        peer_seal_gbps: peer.as_ref().map(|_| gbps(middle(|sample| sample[2]))),
        protect_to_peer_ratio: peer.map(|_| middle(|sample| sample[2] / sample[0])),
        protect_ns_per_frame: protect * 1e9 / BATCH as f64,
    }
}
