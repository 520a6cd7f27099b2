//! Two ends of a line in memory, for the tests of this crate.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::ops::Range;

use qloak_api::{An, Carriage, ChannelNumber, ClientPort, KeyId, Limits, MacAddress};
use qloak_cipher::{Level, Suite, suite::SUITES};
use qloak_keys::Key;
use qloak_secy::{
    ChannelConfig, ChannelRef, Inbound, LineConfig, LineFrames, Muxed, Outbound, Room, Sa, Verdict,
    limits,
};

pub const A: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0a]);
pub const B: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0b]);

/// The line as node A sees it, and as node B does.
pub fn line(frame_octets_max: usize) -> LineConfig {
    LineConfig {
        address: A,
        peer_address: B,
        frame_octets_max,
    }
}

pub fn mirrored(line: &LineConfig) -> LineConfig {
    LineConfig {
        address: line.peer_address,
        peer_address: line.address,
        ..*line
    }
}

pub fn number(number: u16) -> ChannelNumber {
    number.try_into().unwrap()
}

pub fn client(number: u8) -> ClientPort {
    number.try_into().unwrap()
}

pub fn an(number: u8) -> An {
    An::try_from(number).unwrap()
}

pub fn aead() -> impl Iterator<Item = &'static Suite> {
    SUITES.iter().filter(|suite| !suite.hazmat)
}

pub fn suite(name: &str) -> &'static Suite {
    Suite::by_name(name).unwrap()
}

pub fn channel(carriage: Carriage) -> ChannelConfig {
    ChannelConfig {
        number: number(1),
        peer_address: None,
        carriage,
        clients: match carriage {
            Carriage::Transparent => vec![client(1)],
            Carriage::Aggregated => (1..=10).map(client).collect(),
        },
        vlans: Vec::new(),
        xpn: true,
        replay_window: 64,
        limits: Limits::default(),
    }
}

/// An SA whose key and name come from one octet.
pub fn sa(suite: &'static Suite, seed: u8) -> Sa {
    let octets: Vec<u8> = (0..suite.key_octets as u8).map(|n| n ^ seed).collect();
    let key = Key::from_slice(&octets).unwrap();
    Sa::new(
        suite,
        Level::Soft,
        &key,
        [seed ^ 0x5a; 12],
        KeyId([seed; 16]),
    )
    .unwrap()
}

/// A client frame of this length whose payload tells frames apart.
pub fn frame(octets: usize, seed: u64) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x99, 0x02, 0, 0, 0, 0, 0x88, 0x08, 0x00];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while frame.len() < octets {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        frame.push(state as u8);
    }
    frame.truncate(octets);
    frame
}

/// One frame with room before and behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub storage: Vec<u8>,
    pub range: Range<usize>,
}

impl Stored {
    pub fn of(frame: &[u8]) -> Self {
        let mut storage = vec![0; limits::HEADROOM];
        storage.extend_from_slice(frame);
        storage.resize(storage.len() + limits::TAILROOM, 0);
        Self {
            storage,
            range: limits::HEADROOM..limits::HEADROOM + frame.len(),
        }
    }

    pub fn octets(&self) -> &[u8] {
        &self.storage[self.range.clone()]
    }

    pub fn room(&mut self) -> Room<'_> {
        Room::new(&mut self.storage, &mut self.range)
    }
}

pub fn rooms(frames: &mut [Stored]) -> impl Iterator<Item = Room<'_>> {
    frames.iter_mut().map(Stored::room)
}

/// A line batch.
pub struct TestLine {
    pub frames: Vec<Stored>,
    pub capacity: usize,
    pub octets: usize,
}

impl TestLine {
    pub fn new(capacity: usize, octets: usize) -> Self {
        Self {
            frames: Vec::new(),
            capacity,
            octets,
        }
    }
}

impl LineFrames for TestLine {
    fn free(&self) -> usize {
        self.capacity - self.frames.len()
    }

    fn begin(&mut self) -> Option<Room<'_>> {
        if self.free() == 0 {
            return None;
        }
        self.frames.push(Stored {
            storage: vec![0xee; limits::HEADROOM + self.octets + limits::TAILROOM],
            range: limits::HEADROOM..limits::HEADROOM,
        });
        self.last()
    }

    fn last(&mut self) -> Option<Room<'_>> {
        self.frames.last_mut().map(Stored::room)
    }
}

/// Node A's outbound half, node B's inbound half, and the line between.
pub struct Link {
    pub outbound: Outbound,
    pub inbound: Inbound,
    pub channel: ChannelRef,
    pub line: TestLine,
}

pub type Delivered = Vec<(ClientPort, Vec<u8>)>;

impl Link {
    pub fn new(config: &ChannelConfig, frame_octets_max: usize) -> Self {
        let line = line(frame_octets_max);
        let outbound = Outbound::new(&line, std::slice::from_ref(config)).unwrap();
        let inbound = Inbound::new(&mirrored(&line), std::slice::from_ref(config)).unwrap();
        let channel = outbound.channel(config.number).unwrap();
        Self {
            outbound,
            inbound,
            channel,
            line: TestLine::new(64, frame_octets_max),
        }
    }

    /// With an SA in place at both ends.
    pub fn keyed(config: &ChannelConfig, frame_octets_max: usize, suite: &'static Suite) -> Self {
        let mut link = Self::new(config, frame_octets_max);
        link.rekey(0, suite, 1);
        link
    }

    /// Installs at both ends and encodes.
    pub fn rekey(&mut self, an_number: u8, suite: &'static Suite, seed: u8) {
        let number = self.channel.number;
        let an = an(an_number);
        self.inbound.install(number, an, sa(suite, seed)).unwrap();
        self.outbound.install(number, an, sa(suite, seed)).unwrap();
        assert!(self.outbound.encode(number, an, 0));
    }

    /// Client frames to line frames, by way of mux and shape; both carriages.
    pub fn send(&mut self, frames: &[(ClientPort, Vec<u8>)]) -> Vec<Stored> {
        let mut sent = Vec::new();
        for (client, frame) in frames {
            loop {
                let channel = self.outbound.classify(*client).unwrap();
                match self
                    .outbound
                    .mux(channel, *client, frame, &mut self.line, 0)
                {
                    Muxed::Taken => break,
                    Muxed::LineFull => self.flush(&mut sent),
                    other => panic!("{other:?} for a frame of {} octets", frame.len()),
                }
            }
        }
        self.flush(&mut sent);
        sent
    }

    fn flush(&mut self, sent: &mut Vec<Stored>) {
        let ready = self.outbound.shape(self.channel, self.line.frames.len(), 0);
        let protected =
            self.outbound
                .protect(self.channel, rooms(&mut self.line.frames).take(ready), 0);
        assert_eq!(protected.frames, ready, "{protected:?}");
        sent.append(&mut self.line.frames);
    }

    /// Validates copies of line frames in one batch.
    pub fn validate(&mut self, frames: &[Stored]) -> (Vec<Verdict>, Vec<Stored>) {
        let mut frames = frames.to_vec();
        let mut verdicts = vec![Verdict::NoTag; frames.len()];
        let looked_at = self.inbound.validate(rooms(&mut frames), &mut verdicts);
        assert_eq!(looked_at, frames.len());
        (verdicts, frames)
    }

    /// Line frames to client frames.
    pub fn receive(&mut self, frames: &[Stored]) -> Delivered {
        let (verdicts, frames) = self.validate(frames);
        let mut delivered = Vec::new();
        for (verdict, frame) in verdicts.into_iter().zip(frames) {
            let Verdict::Valid(valid) = verdict else {
                assert!(frame.octets().is_empty());
                continue;
            };
            self.inbound.demux(valid, frame.octets(), |client, frame| {
                delivered.push((client, frame.to_vec()));
            });
        }
        delivered
    }
}
