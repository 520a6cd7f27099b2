//! What leaves when, in virtual time, and what the far end makes of it.

use std::collections::VecDeque;

use qloak_api::{An, Carriage, ClientPort, KeyId, Limits, MacAddress};
use qloak_cipher::{Level, suite::Suite};
use qloak_keys::Key;
use qloak_port::Frame;
use qloak_secy::{ChannelConfig, Inbound, LineConfig, Muxed, Sa, Verdict};

use super::*;

const SIZES: Sizes = Sizes {
    headroom: 64,
    octets_max: 9014,
    tailroom: 64,
};

/// What the virtual time goes by.
const STEP_NS: u64 = 1_000;

/// A channel whose two ends are in this test.
struct Line {
    outbound: Outbound,
    inbound: Inbound,
    trunk: Trunk,
    leaving: Batch,
    client: ClientPort,
    rekeys: u8,
    /// Client frames that came out at the far end.
    delivered: Vec<Vec<u8>>,
    /// Times and lengths of line frames, as one sees them who listens.
    seen: Vec<(u64, usize)>,
}

impl Line {
    fn new(octets: usize, rate_bps: Option<u64>) -> Self {
        let address = |last| MacAddress([2, 0, 0, 0, 0, last]);
        let line = |a, b| LineConfig {
            address: address(a),
            peer_address: address(b),
            frame_octets_max: octets,
        };
        let client = ClientPort::try_from(1).unwrap();
        let channel = ChannelConfig {
            number: 1.try_into().unwrap(),
            peer_address: None,
            carriage: Carriage::Aggregated,
            clients: vec![client],
            vlans: Vec::new(),
            xpn: true,
            replay_window: 0,
            limits: Limits::default(),
        };
        let channels = std::slice::from_ref(&channel);
        let mut outbound = Outbound::new(&line(1, 2), channels).unwrap();
        let reference = outbound.channel(channel.number).unwrap();
        outbound.set_one_size(channel.number, rate_bps.is_some());
        let trunk = match rate_bps {
            Some(rate_bps) => Trunk::paced(reference, SIZES, rate_bps, octets),
            None => Trunk::new(reference, BATCH_FRAMES, SIZES),
        };
        let mut line = Self {
            outbound,
            inbound: Inbound::new(&line(2, 1), channels).unwrap(),
            leaving: Batch::with_sizes(trunk.frames(), SIZES),
            trunk,
            client,
            rekeys: 0,
            delivered: Vec::new(),
            seen: Vec::new(),
        };
        line.rekey(0);
        line
    }

    fn rekey(&mut self, now_ns: u64) {
        self.rekeys += 1;
        let suite = Suite::by_name("aes-256-gcm").unwrap();
        let key = Key::from_slice(&[self.rekeys; 32]).unwrap();
        let id = KeyId([self.rekeys; 16]);
        let sa = || Sa::new(suite, Level::Soft, &key, [7; 12], id).unwrap();
        let an = An::from_low_bits(self.rekeys);
        let number = self.trunk.channel.number;
        self.inbound.install(number, an, sa()).unwrap();
        self.outbound.install(number, an, sa()).unwrap();
        self.trunk.settle(&mut self.outbound, now_ns);
        assert!(self.outbound.encode(number, an, now_ns));
    }

    /// A client frame comes, if there is room for it.
    fn mux(&mut self, frame: &[u8], now_ns: u64) -> bool {
        while self.trunk.has_room() {
            let channel = self.trunk.channel;
            let lines = &mut self.trunk.lines();
            match self
                .outbound
                .mux(channel, self.client, frame, lines, now_ns)
            {
                Muxed::Taken => return true,
                Muxed::LineFull => self.depart(ALL, now_ns),
                refused => panic!("{refused:?}"),
            }
        }
        false
    }

    fn depart(&mut self, due_ns: u64, now_ns: u64) {
        let leaving = &mut self.leaving;
        self.trunk
            .depart(&mut self.outbound, due_ns, now_ns, leaving);
        let lengths = leaving.frames().iter().map(Frame::len);
        self.seen.extend(lengths.map(|length| (now_ns, length)));
        let mut verdicts = vec![Verdict::NoTag; leaving.len()];
        let frames = leaving.frames_mut().iter_mut().map(room);
        self.inbound.validate(frames, &mut verdicts);
        for (verdict, frame) in verdicts.iter().zip(leaving.frames()) {
            let Verdict::Valid(valid) = verdict else {
                panic!("{verdict:?}")
            };
            self.inbound.demux(*valid, frame.octets(), |_, frame| {
                self.delivered.push(frame.to_vec());
            });
        }
        leaving.clear();
    }

    /// So much virtual time, in which client frames of the `load` come as fast as they are taken.
    fn run(
        &mut self,
        ns: u64,
        rekeys: bool,
        load: &mut dyn FnMut(u64) -> Option<Vec<u8>>,
    ) -> Vec<Vec<u8>> {
        let (mut sent, mut waiting) = (Vec::new(), VecDeque::new());
        for now_ns in (0..ns).step_by(STEP_NS as usize) {
            waiting.extend(load(now_ns));
            while let Some(frame) = waiting.pop_front() {
                if !self.mux(&frame, now_ns) {
                    waiting.push_front(frame);
                    break;
                }
                sent.push(frame);
            }
            if rekeys && now_ns % 777_000 == 0 && now_ns > 0 {
                self.rekey(now_ns);
            }
            self.depart(now_ns, now_ns);
        }
        sent
    }
}

/// The client frame that comes at a time, if one does.
type Load = Box<dyn FnMut(u64) -> Option<Vec<u8>>>;

/// A frame each microsecond, numbered, as long as `octets` says for the time.
fn frames(octets: impl Fn(u64) -> usize + 'static) -> Load {
    let mut number = 0_u64;
    Box::new(move |now_ns| {
        number += 1;
        let mut frame = vec![0x5a; octets(now_ns)];
        frame[..8].copy_from_slice(&number.to_be_bytes());
        Some(frame)
    })
}

/// Nothing, a ping each millisecond, and more than the line takes: of small frames, of large ones, of ones that
/// need several line frames.
fn loads() -> Vec<(&'static str, Load)> {
    let ping = |now_ns: u64| now_ns.is_multiple_of(1_000_000).then(|| vec![7; 98]);
    vec![
        ("idle", Box::new(|_| None)),
        ("ping", Box::new(ping)),
        ("small", frames(|_| 64)),
        ("large", frames(|_| 1514)),
        ("in pieces", frames(|_| 9000)),
        ("mixed", frames(|now_ns| 64 + (now_ns / 7 % 3000) as usize)),
    ]
}

#[test]
fn an_observer_of_sizes_and_times_sees_the_same_whatever_is_carried() {
    for (octets, rate_bps) in [
        (1514, 1_000_000_000),
        (9014, 1_000_000_000),
        (1514, 10_000_000_000),
        (400, 50_000_000),
    ] {
        let mut first: Option<Vec<(u64, usize)>> = None;
        for (name, mut load) in loads() {
            let mut line = Line::new(octets, Some(rate_bps));
            let sent = line.run(5_000_000, true, &mut *load);
            // What is still inside comes out too.
            for now_ns in (5_000_000..9_000_000).step_by(STEP_NS as usize) {
                line.depart(now_ns, now_ns);
            }
            assert!(
                line.delivered == sent,
                "{name}: {} of {} frames",
                line.delivered.len(),
                sent.len()
            );
            assert_eq!(sent.is_empty(), name == "idle", "{name}");
            let bits: usize = line.seen.iter().map(|(_, octets)| (octets + 24) * 8).sum();
            let bps = bits as f64 / 9e-3;
            assert!(
                (bps / rate_bps as f64 - 1.0).abs() < 0.05,
                "{name}: {bps} bit/s"
            );
            let first = first.get_or_insert_with(|| line.seen.clone());
            assert!(*first == line.seen, "{name} is not seen as idle is");
            assert_eq!(line.trunk.late_frames(), 0);
        }
    }
    // Without a constant rate every load is seen as what it is, which this test would notice.
    let seen: Vec<_> = loads()
        .into_iter()
        .map(|(_, mut load)| {
            let mut line = Line::new(1514, None);
            line.run(2_000_000, false, &mut *load);
            line.seen
        })
        .collect();
    for (index, one) in seen.iter().enumerate() {
        assert!(seen[..index].iter().all(|other| other != one));
    }
}

#[test]
fn a_closed_channel_is_silent_and_speaks_again_with_a_new_sa() {
    let mut line = Line::new(1514, Some(1_000_000_000));
    line.run(1_000_000, false, &mut |_| None);
    let number = line.trunk.channel.number;
    line.trunk.settle(&mut line.outbound, 1_000_000);
    line.outbound.close(number);
    for now_ns in (1_000_000..2_000_000).step_by(STEP_NS as usize) {
        line.depart(now_ns, now_ns);
    }
    let frames = line.seen.len();
    // What was sealed before it closed has left, at its time.
    let last = line.seen.last().unwrap().0;
    assert!(last < 1_100_000, "{last}");
    line.rekey(2_000_000);
    for now_ns in (2_000_000..3_000_000).step_by(STEP_NS as usize) {
        line.depart(now_ns, now_ns);
    }
    assert!(line.seen.len() > frames + 70);
}

#[test]
fn clients_are_held_back_at_the_rate() {
    let mut line = Line::new(1514, Some(100_000_000));
    let mut came = 0;
    let sent = line.run(100_000_000, false, &mut |_| {
        came += 1;
        Some(vec![1; 1000])
    });
    let octets: usize = sent.iter().map(Vec::len).sum();
    // 100 Mb/s for 100 ms, less SecTAGs, ICVs, headers and what Ethernet puts around.
    let goodput = octets as f64 / (100e6 / 8.0 * 0.1);
    assert!((0.90..1.0).contains(&goodput), "{goodput}");
    assert!(came > 10 * sent.len());
}
