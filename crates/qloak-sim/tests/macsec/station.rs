//! Our station: a SecY between a TAP and an interface of the line, with SAKs that the test gives.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use qloak_api::{
    An, Carriage, ChannelNumber, KeyId, Limits, MacAddress,
    manage::{InboundCounters, OutboundCounters},
};
use qloak_cipher::{Level, suite::Suite};
use qloak_keys::Key;
use qloak_port::{AfPacketConfig, Batch, Frame, Port, PortConfig, Sizes, TapConfig};
use qloak_secy::{ChannelConfig, Inbound, LineConfig, Outbound, Room, Sa, Verdict};

const SIZES: Sizes = Sizes {
    headroom: 64,
    octets_max: 9014,
    tailroom: 64,
};

/// A key as both ends are told it.
pub(crate) struct Sak {
    pub(crate) octets: Vec<u8>,
    pub(crate) salt: [u8; 12],
    pub(crate) name: [u8; 16],
}

/// What both ends must agree on.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) suite: &'static Suite,
    pub(crate) xpn: bool,
    pub(crate) replay_window: u64,
}

/// A station at work.
pub(crate) struct Station {
    secy: Arc<Mutex<Secy>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Its SecY and ports.
pub(crate) struct Secy {
    outbound: Outbound,
    inbound: Inbound,
    terms: Terms,
    client: Box<dyn Port>,
    line: Box<dyn Port>,
    out: Batch,
    back: Batch,
    exit: Batch,
    begun: Instant,
    /// Frames of the line are kept in `held` instead of being validated.
    pub(crate) hold: bool,
    pub(crate) held: Vec<Vec<u8>>,
    /// Line frames with SL set, sent and received.
    pub(crate) short: [u64; 2],
}

impl Station {
    /// Opens the ports and begins, without any SA.
    pub(crate) fn open(
        tap: &str,
        line: &str,
        own: MacAddress,
        peer: MacAddress,
        terms: Terms,
    ) -> Self {
        let config = LineConfig {
            address: own,
            peer_address: peer,
            frame_octets_max: 9014,
        };
        let channel = [ChannelConfig {
            number: number(),
            peer_address: None,
            carriage: Carriage::Transparent,
            clients: vec![1.try_into().unwrap()],
            vlans: Vec::new(),
            xpn: terms.xpn,
            replay_window: terms.replay_window,
            limits: Limits::default(),
        }];
        let open = |config| qloak_port::open(&config, &SIZES).unwrap_or_else(|e| panic!("{e}"));
        let secy = Secy {
            outbound: Outbound::new(&config, &channel).unwrap(),
            inbound: Inbound::new(&config, &channel).unwrap(),
            terms,
            client: open(PortConfig::Tap(TapConfig {
                offload: false,
                ..TapConfig::new(tap)
            })),
            line: open(PortConfig::AfPacket(AfPacketConfig::new(line))),
            out: Batch::with_sizes(64, SIZES),
            back: Batch::with_sizes(64, SIZES),
            exit: Batch::with_sizes(64, SIZES),
            begun: Instant::now(),
            hold: false,
            held: Vec::new(),
            short: [0; 2],
        };
        let secy = Arc::new(Mutex::new(secy));
        let stop = Arc::new(AtomicBool::new(false));
        let (own, told) = (Arc::clone(&secy), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let moved = own.lock().unwrap().round();
                if !moved {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self {
            secy,
            stop,
            thread: Some(thread),
        }
    }

    /// The SecY, between two batches.
    pub(crate) fn secy(&self) -> MutexGuard<'_, Secy> {
        self.secy.lock().unwrap()
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the station died");
        }
    }
}

impl Secy {
    /// Accepts frames under a key.
    pub(crate) fn accept(&mut self, an: An, sak: &Sak) {
        let sa = self.association(sak);
        self.inbound.install(number(), an, sa).unwrap();
    }

    /// Protects under a key from now on.
    pub(crate) fn encode(&mut self, an: An, sak: &Sak) {
        let (sa, now_ns) = (self.association(sak), self.now_ns());
        self.outbound.install(number(), an, sa).unwrap();
        assert!(self.outbound.encode(number(), an, now_ns));
    }

    /// Accepts frames under an SA no longer.
    pub(crate) fn forget_inbound(&mut self, an: An) {
        assert!(self.inbound.retire(number(), an).is_some());
    }

    /// Gives up an SA that no longer encodes.
    pub(crate) fn forget_outbound(&mut self, an: An) {
        assert!(self.outbound.retire(number(), an).is_some());
    }

    /// Protects a frame and gives it instead of sending it.
    pub(crate) fn protect(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut batch = Batch::with_sizes(1, SIZES);
        assert!(batch.push(frame));
        let channel = self.outbound.channel(number()).unwrap();
        let now_ns = self.now_ns();
        let rooms = batch.frames_mut().iter_mut().map(room);
        self.outbound.protect(channel, rooms, now_ns);
        batch.frames()[0].octets().to_vec()
    }

    /// Puts a frame on the line as it is.
    pub(crate) fn put_on_line(&mut self, frame: &[u8]) {
        let mut batch = Batch::with_sizes(1, SIZES);
        assert!(batch.push(frame));
        assert_eq!(self.line.transmit(&mut batch).unwrap(), 1);
    }

    /// Takes a frame as if the line had brought it, and says what became of it.
    pub(crate) fn take(&mut self, frame: &[u8]) -> Verdict {
        let mut batch = Batch::with_sizes(1, SIZES);
        assert!(batch.push(frame));
        let mut verdict = [Verdict::NoTag];
        let rooms = batch.frames_mut().iter_mut().map(room);
        self.inbound.validate(rooms, &mut verdict);
        verdict[0]
    }

    /// What it counted, outbound and inbound.
    pub(crate) fn counters(&self) -> (OutboundCounters, InboundCounters) {
        (
            self.outbound.counters(number()).unwrap(),
            self.inbound.counters(number()).unwrap(),
        )
    }

    fn association(&self, sak: &Sak) -> Sa {
        let key = Key::from_slice(&sak.octets).unwrap();
        Sa::new(
            self.terms.suite,
            Level::detect("").unwrap(),
            &key,
            sak.salt,
            KeyId(sak.name),
        )
        .unwrap()
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// One batch each way. Whether anything moved.
    fn round(&mut self) -> bool {
        let sent = self.client.receive(&mut self.out).unwrap();
        let (now_ns, channel) = (self.now_ns(), self.outbound.channel(number()).unwrap());
        let rooms = self.out.frames_mut().iter_mut().map(room);
        self.outbound.protect(channel, rooms, now_ns);
        self.out.retain(|frame| !frame.is_empty());
        self.short[0] += short(&self.out);
        hand_out(&mut *self.line, &mut self.out);

        let received = self.line.receive(&mut self.back).unwrap();
        if self.hold {
            let frames = self.back.frames().iter();
            self.held
                .extend(frames.map(|frame| frame.octets().to_vec()));
            self.back.clear();
        }
        self.short[1] += short(&self.back);
        let mut verdicts = [Verdict::NoTag; 64];
        let rooms = self.back.frames_mut().iter_mut().map(room);
        self.inbound.validate(rooms, &mut verdicts);
        for (frame, verdict) in self.back.frames().iter().zip(&verdicts) {
            if let Verdict::Valid(valid) = verdict {
                let exit = &mut self.exit;
                self.inbound.demux(*valid, frame.octets(), |_, frame| {
                    assert!(exit.push(frame));
                });
            }
        }
        self.back.clear();
        hand_out(&mut *self.client, &mut self.exit);
        sent + received > 0
    }
}

fn hand_out(port: &mut dyn Port, batch: &mut Batch) {
    while !batch.is_empty() {
        if port.transmit(batch).unwrap() == 0 {
            thread::sleep(Duration::from_micros(20));
        }
    }
}

/// How many line frames of a batch state their length.
fn short(batch: &Batch) -> u64 {
    const SL: usize = 15;
    let states = |frame: &&Frame| {
        let octets = frame.octets();
        octets.get(12..14) == Some(&[0x88, 0xe5]) && octets.get(SL).is_some_and(|sl| *sl != 0)
    };
    batch.frames().iter().filter(states).count() as u64
}

fn room(frame: &mut Frame) -> Room<'_> {
    Room::new(&mut frame.storage, &mut frame.range)
}

fn number() -> ChannelNumber {
    1.try_into().unwrap()
}
