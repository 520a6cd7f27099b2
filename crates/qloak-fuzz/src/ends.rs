//! Two ends of a line: the outbound half of one node, the inbound half of the other, and the line
//! batches between them.

use qloak_api::{An, Carriage, ChannelNumber, ClientPort, KeyId, Limits, MacAddress};
use qloak_cipher::{Level, Suite};
use qloak_keys::Key;
use qloak_port::{Batch, Sizes};
use qloak_secy::{
    ChannelConfig, ChannelRef, Inbound, LineConfig, LineFrames, Muxed, Outbound, Room, Sa, Verdict,
    limits,
};

pub(crate) const SENDER: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0a]);
pub(crate) const RECEIVER: MacAddress = MacAddress([0x02, 0x51, 0x4c, 0, 0, 0x0b]);

/// Both halves, and what has left the one.
pub(crate) struct Ends {
    pub(crate) outbound: Outbound,
    pub(crate) inbound: Inbound,
    /// Every line frame that was sent, in order.
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) channels: Vec<Channel>,
    level: Level,
    keys: u64,
    /// Of the whole input: libFuzzer takes octets out of memory, and under keys that are always the same
    /// it would find frames that another input sealed.
    secret: u64,
}

/// A channel, its line batch and its present SA.
pub(crate) struct Channel {
    pub(crate) reference: ChannelRef,
    suite: &'static Suite,
    line: LineBatch,
    an: An,
}

struct LineBatch(Batch);

/// A channel to be: its carriage, client ports, PN form, replay window and suite.
pub(crate) struct Wanted {
    pub(crate) carriage: Carriage,
    pub(crate) clients: std::ops::RangeInclusive<u8>,
    pub(crate) xpn: bool,
    pub(crate) replay_window: u64,
    pub(crate) suite: &'static str,
}

impl Ends {
    /// The channels get the numbers from 1 on and an SA each.
    pub(crate) fn new(
        wanted: &[Wanted],
        line_octets: usize,
        batch_frames: usize,
        input: &[u8],
    ) -> Self {
        let line = LineConfig {
            address: SENDER,
            peer_address: RECEIVER,
            frame_octets_max: line_octets,
        };
        let far = LineConfig {
            address: RECEIVER,
            peer_address: SENDER,
            ..line
        };
        let configs: Vec<ChannelConfig> = wanted.iter().zip(1..).map(config).collect();
        let outbound = Outbound::new(&line, &configs).expect("a sound configuration");
        let inbound = Inbound::new(&far, &configs).expect("a sound configuration");
        let sizes = Sizes {
            headroom: limits::HEADROOM,
            octets_max: line_octets,
            tailroom: limits::TAILROOM,
        };
        let channels = configs.iter().zip(wanted).map(|(config, wanted)| Channel {
            reference: outbound.channel(config.number).expect("its channel"),
            suite: Suite::by_name(wanted.suite).expect("a suite of the table"),
            line: LineBatch(Batch::with_sizes(batch_frames, sizes)),
            an: An::from_low_bits(3),
        });
        let mut ends = Self {
            channels: channels.collect(),
            outbound,
            inbound,
            sent: Vec::new(),
            level: Level::detect("").expect("nothing is disabled"),
            keys: 0,
            secret: input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
                (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3)
            }),
        };
        (0..wanted.len()).for_each(|channel| ends.rekey(channel));
        ends
    }

    /// A new SA under the next AN, at both ends, encoding at once.
    pub(crate) fn rekey(&mut self, channel: usize) {
        self.flush(channel);
        self.keys += 1;
        let (keys, level, secret) = (self.keys, self.level, self.secret);
        let channel = &mut self.channels[channel];
        let (number, suite) = (channel.reference.number, channel.suite);
        channel.an = An::from_low_bits(channel.an.number() + 1);
        let sa = || {
            let octets: Vec<u8> = (0..suite.key_octets as u64)
                .map(|at| ((at * 7) ^ keys ^ (secret >> (at % 8 * 8))) as u8)
                .collect();
            let key = Key::from_slice(&octets).expect("a key's length");
            let mut name = [0; 16];
            name[8..].copy_from_slice(&keys.to_be_bytes());
            Sa::new(suite, level, &key, [0x5a; 12], KeyId(name)).expect("the suite's length")
        };
        let an = channel.an;
        self.inbound.install(number, an, sa()).expect("a new key");
        self.outbound.install(number, an, sa()).expect("a new key");
        assert!(self.outbound.encode(number, an, 0), "a fresh SA encodes");
    }

    /// Gives a client frame to the mux, and sends what is full on the way. None when no channel carries
    /// the client port.
    pub(crate) fn mux(&mut self, client: ClientPort, frame: &[u8]) -> Option<Muxed> {
        let reference = self.outbound.classify(client)?;
        let at = usize::from(reference.number.number()) - 1;
        loop {
            let line = &mut self.channels[at].line;
            let empty = line.0.is_empty();
            match self.outbound.mux(reference, client, frame, line, 0) {
                Muxed::LineFull => {
                    assert!(
                        !empty,
                        "an empty line batch takes any frame, or none ever does"
                    );
                    self.flush(at);
                }
                muxed => return Some(muxed),
            }
        }
    }

    /// Protects the line frames that were begun, and sends them.
    pub(crate) fn flush(&mut self, channel: usize) {
        let Channel {
            reference, line, ..
        } = &mut self.channels[channel];
        let ready = self.outbound.shape(*reference, line.0.len(), 0);
        assert_eq!(ready, line.0.len(), "nothing waits for company");
        let rooms = line.0.frames_mut().iter_mut().map(room);
        let protected = self.outbound.protect(*reference, rooms, 0);
        assert_eq!(protected.frames, ready, "{protected:?}");
        let octets_max = line.0.sizes().octets_max;
        for frame in line.0.frames() {
            assert!(frame.len() <= octets_max, "too long for the line");
            self.sent.push(frame.octets().to_vec());
        }
        line.0.clear();
    }

    /// Protects a frame of any content as the next of a channel, as a peer that lies would; false when
    /// it is no frame or too long.
    pub(crate) fn protect(&mut self, channel: usize, frame: &[u8]) -> bool {
        self.flush(channel);
        let Channel {
            reference, line, ..
        } = &mut self.channels[channel];
        if !line.0.push(frame) {
            return false;
        }
        let rooms = line.0.frames_mut().iter_mut().map(room);
        let protected = self.outbound.protect(*reference, rooms, 0);
        let sent = line.0.frames().iter().filter(|frame| !frame.is_empty());
        self.sent.extend(sent.map(|frame| frame.octets().to_vec()));
        line.0.clear();
        protected.frames == 1
    }

    /// Validates line frames as one batch: a verdict for each, and what is left of it.
    pub(crate) fn validate(&mut self, batch: &[Vec<u8>]) -> Vec<(Verdict, Vec<u8>)> {
        let mut batch: Vec<_> = batch
            .iter()
            .map(|frame| (frame.clone(), 0..frame.len()))
            .collect();
        let mut verdicts = vec![Verdict::NoTag; batch.len()];
        let rooms = batch
            .iter_mut()
            .map(|(storage, range)| Room::new(storage, range));
        let looked_at = self.inbound.validate(rooms, &mut verdicts);
        assert_eq!(looked_at, batch.len(), "a frame without verdict");
        let left = batch.into_iter().map(|(storage, range)| {
            let left = storage.get(range);
            left.expect("a range inside its storage").to_vec()
        });
        verdicts.into_iter().zip(left).collect()
    }
}

impl LineFrames for LineBatch {
    fn free(&self) -> usize {
        self.0.spare()
    }

    fn begin(&mut self) -> Option<Room<'_>> {
        self.0.extend().map(room)
    }

    fn last(&mut self) -> Option<Room<'_>> {
        self.0.frames_mut().last_mut().map(room)
    }
}

fn room(frame: &mut qloak_port::Frame) -> Room<'_> {
    Room::new(&mut frame.storage, &mut frame.range)
}

fn config((wanted, number): (&Wanted, u16)) -> ChannelConfig {
    ChannelConfig {
        number: ChannelNumber::try_from(number).expect("a channel's number"),
        peer_address: None,
        carriage: wanted.carriage,
        clients: wanted.clients.clone().map(client).collect(),
        vlans: Vec::new(),
        xpn: wanted.xpn,
        replay_window: wanted.replay_window,
        limits: Limits::default(),
    }
}

/// A client port by its number, 1 to 64.
pub(crate) fn client(number: u8) -> ClientPort {
    ClientPort::try_from(number).expect("a client port's number")
}
