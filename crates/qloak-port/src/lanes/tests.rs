//! Lanes over wires in memory, with delays and losses of their own.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use super::*;
use crate::{
    AfPacketConfig, Delay, Faults, Impairment, impair, pair,
    testing::{self, PATIENCE},
    wait,
};

const SIZES: Sizes = Sizes {
    headroom: 16,
    octets_max: 1514,
    tailroom: 16,
};

/// Frames of EtherType 0x88E5 have a number where a PN would be.
fn order_of(frame: &[u8]) -> Option<(u128, u32)> {
    let number = u32::from_be_bytes(*frame.get(16..)?.first_chunk()?);
    (frame[12..14] == [0x88, 0xe5]).then_some((1, number))
}

fn config() -> LanesConfig {
    LanesConfig {
        lanes: Vec::new(),
        address: [2, 0, 0, 0, 0, 1],
        peer_address: [2, 0, 0, 0, 0, 2],
        hold_ns: limits::LANE_HOLD_NS,
    }
}

fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![number as u8; 100];
    frame[12..14].copy_from_slice(&[0x88, 0xe5]);
    frame[16..20].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Two ends whose lanes are wires in memory, in virtual time.
struct Line {
    ends: [Box<dyn Port>; 2],
    now_ns: Arc<AtomicU64>,
    batch: Batch,
    sent: u32,
    got: Vec<u32>,
}

impl Line {
    /// Each lane with a delay of its own, in microseconds; the far end counts them the other way round.
    fn new(delays_us: &[u64]) -> Self {
        let now_ns = Arc::new(AtomicU64::new(1));
        let clock = || -> Clock {
            let now_ns = Arc::clone(&now_ns);
            Arc::new(move || now_ns.load(Relaxed))
        };
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for delay_us in delays_us {
            let [a, b] = pair("lane", 4096, &SIZES).unwrap();
            let impairment = Impairment {
                transmit: Faults {
                    delay: Delay {
                        fixed_ns: delay_us * 1000,
                        jitter_ns: 0,
                    },
                    ..Faults::default()
                },
                ..Impairment::default()
            };
            near.push(impair(a, &impairment, &SIZES, clock()).unwrap());
            far.insert(0, b);
        }
        let join = |lanes| join(lanes, &config(), &SIZES, order_of, clock()).unwrap();
        Self {
            ends: [join(near), join(far)],
            batch: Batch::with_sizes(64, SIZES),
            now_ns,
            sent: 0,
            got: Vec::new(),
        }
    }

    /// So many steps of 10 us; at each some frames leave the near end.
    fn run(&mut self, steps: usize, frames: usize) {
        for _ in 0..steps {
            self.now_ns.fetch_add(10_000, Relaxed);
            self.batch.clear();
            for _ in 0..frames {
                assert!(self.batch.push(&frame(self.sent)));
                self.sent += 1;
            }
            while !self.batch.is_empty() {
                self.ends[0].transmit(&mut self.batch).unwrap();
            }
            assert_eq!(
                self.ends[0].receive(&mut self.batch).unwrap(),
                0,
                "only probes come back"
            );
            loop {
                self.batch.clear();
                if self.ends[1].receive(&mut self.batch).unwrap() == 0 {
                    break;
                }
                let number = |frame: &crate::Frame| order_of(frame.octets()).unwrap().1;
                self.got.extend(self.batch.frames().iter().map(number));
            }
        }
    }
}

#[test]
fn every_lane_carries_and_the_order_is_kept_however_slow_one_is() {
    for delays_us in [
        &[0, 0][..],
        &[0, 300, 100, 250],
        &[400, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let mut line = Line::new(delays_us);
        line.run(3000, 7);
        line.run(200, 0);
        let sent: Vec<_> = (0..line.sent).collect();
        assert!(
            line.got == sent,
            "{delays_us:?}: {} of {}",
            line.got.len(),
            sent.len()
        );
        let counters = line.ends[0].counters();
        assert!(
            counters.transmitted_frames > u64::from(line.sent),
            "probes are frames too"
        );
    }
}

#[test]
fn what_a_lane_has_no_room_for_comes_back_and_nothing_overtakes_it() {
    let [a, b] = pair("small", 4, &SIZES).unwrap();
    let [c, d] = pair("small", 2, &SIZES).unwrap();
    let clock = || -> Clock { Arc::new(|| 0) };
    let mut near = join(vec![a, c], &config(), &SIZES, order_of, clock()).unwrap();
    let mut far = join(vec![b, d], &config(), &SIZES, order_of, clock()).unwrap();
    let mut batch = Batch::with_sizes(64, SIZES);
    (0..40).for_each(|number| assert!(batch.push(&frame(number))));
    // The first lane has room for four of its twenty, and nothing overtakes the others.
    assert_eq!(near.transmit(&mut batch).unwrap(), 4);
    let mut got = Vec::new();
    let mut back = Batch::with_sizes(64, SIZES);
    let number = |frame: &crate::Frame| order_of(frame.octets()).unwrap().1;
    for _ in 0..100 {
        let left: Vec<_> = batch.frames().iter().map(number).collect();
        assert!(left.into_iter().eq(40 - batch.len() as u32..40));
        back.clear();
        far.receive(&mut back).unwrap();
        got.extend(back.frames().iter().map(number));
        near.transmit(&mut batch).unwrap();
    }
    assert!(got.into_iter().eq(0..40));
}

/// Real time, real interfaces: the lane that goes down is left out, the other carries on, and it comes back.
#[test]
fn a_lane_that_dies_is_left_out_and_taken_back() {
    testing::in_namespace("lanes: one dies", |_| {
        for lane in ["x", "y"] {
            testing::ip(&format!("link add {lane}0 type veth peer name {lane}1"));
        }
        let open = |end: u8| {
            let lanes = ["x", "y"].map(|lane| {
                PortConfig::AfPacket(AfPacketConfig::new(format!("{lane}{end}").as_str()))
            });
            let config = LanesConfig {
                lanes: lanes.into(),
                ..config()
            };
            open_lanes(&config, &SIZES, order_of).unwrap()
        };
        let (mut near, mut far) = (open(0), open(1));
        let mut batch = Batch::with_sizes(64, SIZES);
        let mut next = 0;
        // Sends and receives until the near end uses so many lanes; how many frames were lost until then.
        let mut until = |words: &str| {
            let end = Instant::now() + PATIENCE;
            let (mut sent, mut got) = (0, 0);
            let mut settled = 0;
            while settled < 200 {
                assert!(Instant::now() < end, "never {words:?}: {}", near.describe());
                settled = if near.describe().contains(words) {
                    settled + 1
                } else {
                    0
                };
                batch.clear();
                assert!(batch.push(&frame(next)));
                (next, sent) = (next + 1, sent + 1);
                near.transmit(&mut batch).unwrap();
                let asked = [near.descriptor(), far.descriptor()];
                if let [Some(near), Some(far)] = asked {
                    wait(&[near, far], Duration::from_millis(1)).unwrap();
                }
                for port in [&mut near, &mut far] {
                    batch.clear();
                    port.receive(&mut batch).unwrap();
                    got += batch
                        .frames()
                        .iter()
                        .filter(|frame| order_of(frame.octets()).is_some())
                        .count();
                }
            }
            std::thread::sleep(Duration::from_millis(1));
            batch.clear();
            far.receive(&mut batch).unwrap();
            sent - (got + batch.len())
        };
        assert_eq!(until("2 of 2"), 0);
        testing::ip("link set y1 down");
        let lost = until("1 of 2");
        testing::ip("link set y1 up");
        until("2 of 2");
        testing::ip("link del x0");
        until("1 of 2");
        testing::ip("link add x0 type veth peer name x1");
        until("2 of 2");
        // Half of what was sent in the time that it took to notice; no timing is asserted.
        assert!(lost > 0);
    });
}

#[test]
fn none_and_too_many_are_refused() {
    for count in [0, 17] {
        let config = LanesConfig {
            lanes: vec![PortConfig::AfPacket(AfPacketConfig::new("v0")); count],
            ..config()
        };
        let error = open_lanes(&config, &SIZES, order_of).err().unwrap();
        assert!(error.to_string().contains("1 to 16"), "{error}");
    }
}
