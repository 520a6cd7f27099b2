//! Impaired ports over a wire in memory: what is set happens as often as it was set, nothing else happens,
//! and every frame is found again in a counter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{testing::assert_ratio, *};
use crate::{End, MemoryConfig, PcapConfig, PortConfig, open, pair};

mod account;
mod time;

const SIZES: Sizes = Sizes {
    headroom: 16,
    octets_max: 1514,
    tailroom: 16,
};

/// A clock that stands until it is moved.
#[derive(Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn clock(&self) -> Clock {
        let time = self.0.clone();
        Arc::new(move || time.load(Relaxed))
    }

    fn move_to(&self, ns: u64) {
        self.0.store(ns, Relaxed);
    }
}

fn transmit(faults: Faults) -> Impairment {
    Impairment {
        seed: 1,
        transmit: faults,
        receive: Faults::default(),
    }
}

fn receive(faults: Faults) -> Impairment {
    Impairment {
        seed: 1,
        receive: faults,
        transmit: Faults::default(),
    }
}

/// An impaired end and the sound end of a wire.
fn wire(impairment: &Impairment, frames: usize, hand: &Hand) -> [Box<dyn Port>; 2] {
    let [a, b] = pair("impaired", frames, &SIZES).unwrap();
    [impair(a, impairment, &SIZES, hand.clock()).unwrap(), b]
}

fn frame(number: u32, octets: usize) -> Vec<u8> {
    let mut frame = vec![number as u8; octets];
    frame[..4].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[..4].try_into().unwrap())
}

/// All that comes, taken a batch of so many at a time.
fn drain(port: &mut dyn Port, batch_frames: usize) -> Vec<Vec<u8>> {
    let mut batch = Batch::with_sizes(batch_frames, SIZES);
    let mut all = Vec::new();
    while port.receive(&mut batch).unwrap() > 0 {
        all.extend(batch.frames().iter().map(|frame| frame.octets().to_vec()));
        batch.clear();
    }
    all
}

/// Sends numbered frames from one end in batches and gives what comes at the other.
fn carry(
    from: &mut dyn Port,
    to: &mut dyn Port,
    frames: u32,
    octets: usize,
    batch: usize,
) -> Vec<Vec<u8>> {
    let mut out = Batch::with_sizes(batch, SIZES);
    let mut next = 0;
    let mut all = Vec::new();
    while next < frames || !out.is_empty() {
        while next < frames && out.push(&frame(next, octets)) {
            next += 1;
        }
        from.transmit(&mut out).unwrap();
        all.extend(drain(to, batch));
    }
    all.extend(drain(to, batch));
    all
}

#[track_caller]
fn assert_conserved(counters: FaultCounters) {
    assert_eq!(
        counters.taken + counters.duplicated,
        counters.passed
            + counters.lost
            + counters.overflowed
            + counters.too_long
            + counters.waiting,
        "{counters:?}"
    );
}

#[test]
fn where_nothing_is_set_nothing_happens() {
    let [mut a, mut b] = wire(&Impairment::default(), 5, &Hand::default());
    let mut out = Batch::with_sizes(8, SIZES);
    for number in 0..8 {
        assert!(out.push(&frame(number, 60)));
    }
    assert_eq!(a.transmit(&mut out).unwrap(), 5, "back-pressure as before");
    assert_eq!(out.len(), 3);
    assert!(a.descriptor().is_some());
    assert_eq!(a.impairments(), Some(Impairments::default()));
    assert_eq!(
        (a.name(), a.kind(), a.mac()),
        ("impaired", Kind::Memory, None)
    );
    assert_eq!(b.impairments(), None);
    let came = drain(&mut *b, 8);
    assert_eq!(
        came,
        (0..5).map(|number| frame(number, 60)).collect::<Vec<_>>()
    );
    let came = carry(&mut *b, &mut *a, 40, 60, 4);
    assert_eq!(
        came,
        (0..40).map(|number| frame(number, 60)).collect::<Vec<_>>()
    );
}

#[test]
fn frames_are_lost_and_doubled_as_often_as_asked_either_way() {
    let faults = Faults {
        loss: Loss::Independent { probability: 0.07 },
        duplicate: 0.2,
        ..Faults::default()
    };
    for impairment in [transmit(faults.clone()), receive(faults)] {
        let [mut a, mut b] = wire(&impairment, 256, &Hand::default());
        let (from, to) = if impairment.receive.are_none() {
            (&mut a, &mut b)
        } else {
            (&mut b, &mut a)
        };
        let frames = 50_000;
        let came = carry(&mut **from, &mut **to, frames, 60, 64);
        let done = a.impairments().unwrap();
        let counters = if impairment.receive.are_none() {
            done.transmit
        } else {
            done.receive
        };
        assert_conserved(counters);
        assert_eq!(counters.passed, came.len() as u64);
        assert_eq!((counters.overflowed, counters.waiting), (0, 0));
        assert_ratio("lost", counters.lost, u64::from(frames), 0.07);
        let left = u64::from(frames) - counters.lost;
        assert_ratio("doubled", counters.duplicated, left, 0.2);
        let pairs = came.windows(2).filter(|two| two[0] == two[1]).count();
        assert_eq!(pairs as u64, counters.duplicated);
        assert!(came.is_sorted(), "order is kept");
    }
}

/// Everything at once.
fn storm() -> Faults {
    Faults {
        loss: Loss::Spells(GilbertElliott {
            to_bad: 0.05,
            to_good: 0.3,
            lost_in_good: 0.01,
            lost_in_bad: 0.8,
        }),
        duplicate: 0.05,
        radio: Some(Radio {
            eb_n0_db: 5.0,
            word_octets: 255,
            data_octets: 223,
        }),
        bit_error_ratio: 1e-4,
        reorder: Reorder {
            probability: 0.1,
            frames: 4,
            hold_ns_max: 0,
        },
        ..Faults::default()
    }
}

#[test]
fn a_seed_gives_the_same_frames_however_they_are_batched_and_another_gives_others() {
    let run = |seed, batch, received| {
        let mut impairment = if received {
            receive(storm())
        } else {
            transmit(storm())
        };
        impairment.seed = seed;
        let [mut a, mut b] = wire(&impairment, 64, &Hand::default());
        if received {
            let came = carry(&mut *b, &mut *a, 2000, 300, batch);
            (came, a.impairments().unwrap().receive)
        } else {
            let came = carry(&mut *a, &mut *b, 2000, 300, batch);
            (came, a.impairments().unwrap().transmit)
        }
    };
    let first = run(7, 32, false);
    let counters = first.1;
    for happened in [
        counters.lost,
        counters.duplicated,
        counters.reordered,
        counters.bit_damaged,
        counters.radio_damaged,
    ] {
        assert!(happened > 0, "{counters:?}");
    }
    assert_eq!(run(7, 32, false), first);
    assert_eq!(run(7, 1, false), first);
    assert_eq!(run(7, 5, true).1, run(7, 64, true).1);
    assert_ne!(run(8, 32, false).0, first.0);
    assert_ne!(
        run(7, 32, true).0,
        first.0,
        "the ways are not each other's echo"
    );
}

#[test]
fn bits_flip_as_counted_on_the_way_through() {
    let faults = Faults {
        bit_error_ratio: 1e-4,
        ..Faults::default()
    };
    let [mut a, mut b] = wire(&transmit(faults), 64, &Hand::default());
    let frames = 5000;
    let came = carry(&mut *a, &mut *b, frames, 500, 64);
    let (mut bits, mut damaged) = (0, 0);
    for (came, number) in came.iter().zip(0..) {
        let sent = frame(number, 500);
        let differ: u32 = (came.iter().zip(&sent))
            .map(|(a, b)| (a ^ b).count_ones())
            .sum();
        bits += u64::from(differ);
        damaged += u64::from(differ > 0);
    }
    let counters = a.impairments().unwrap().transmit;
    assert_eq!(
        (counters.bits_flipped, counters.bit_damaged),
        (bits, damaged)
    );
    assert_ratio("bits", bits, u64::from(frames) * 4000, 1e-4);
    let whole = (1.0 - 1e-4_f64).powi(4000);
    assert_ratio("damaged", damaged, u64::from(frames), 1.0 - whole);
}

#[test]
fn a_full_wire_and_a_small_batch_lose_nothing() {
    let faults = Faults {
        duplicate: 1.0,
        waiting_frames_max: 2,
        ..Faults::default()
    };
    let [mut a, mut b] = wire(&receive(faults.clone()), 100, &Hand::default());
    assert_eq!(carry(&mut *b, &mut *a, 100, 60, 3).len(), 200);
    assert_eq!(a.impairments().unwrap().receive.overflowed, 0);
    let [mut a, mut b] = wire(&transmit(faults), 3, &Hand::default());
    let mut out = Batch::with_sizes(200, SIZES);
    for number in 0..200 {
        assert!(out.push(&frame(number, 60)));
    }
    let mut came = Vec::new();
    while !out.is_empty() {
        a.transmit(&mut out).unwrap();
        assert_conserved(a.impairments().unwrap().transmit);
        came.extend(drain(&mut *b, 64));
    }
    while a.impairments().unwrap().transmit.waiting > 0 {
        a.transmit(&mut out).unwrap();
        came.extend(drain(&mut *b, 64));
    }
    assert_eq!(came.len(), 400);
    assert!(came.is_sorted());
}

#[test]
fn a_port_that_may_hold_what_it_transmits_has_no_descriptor() {
    let lossy = Faults {
        loss: Loss::Independent { probability: 1.0 },
        ..Faults::default()
    };
    let [a, _b] = wire(&transmit(lossy.clone()), 8, &Hand::default());
    assert!(a.descriptor().is_none());
    let [mut a, mut b] = wire(&receive(lossy), 4096, &Hand::default());
    assert!(a.descriptor().is_some());
    // A flood of which nothing is left does not hold the caller for ever, and then he has to ask again.
    let mut out = Batch::with_sizes(2000, SIZES);
    while out.push(&frame(0, 60)) {}
    assert_eq!(b.transmit(&mut out).unwrap(), 2000);
    let mut batch = Batch::with_sizes(8, SIZES);
    assert_eq!(a.receive(&mut batch).unwrap(), 0);
    assert_eq!(a.impairments().unwrap().receive.lost, 1024);
    assert!(a.descriptor().is_none());
    assert_eq!(a.receive(&mut batch).unwrap(), 0);
    assert_eq!(a.impairments().unwrap().receive.lost, 2000);
    assert!(a.descriptor().is_some());
}

#[test]
fn frames_that_fit_nowhere_are_counted() {
    let faults = Faults {
        duplicate: 1.0,
        ..Faults::default()
    };
    let [mut a, mut b] = wire(&transmit(faults.clone()), 8, &Hand::default());
    let mut out = Batch::new(2, 0, 2000, 0);
    assert!(out.push(&frame(0, 1514 + 32)) && out.push(&frame(1, 1514 + 33)));
    assert_eq!(a.transmit(&mut out).unwrap(), 2);
    let counters = a.impairments().unwrap().transmit;
    assert_eq!((counters.passed, counters.too_long), (2, 2));
    assert_conserved(counters);
    drain(&mut *b, 8);
    let [mut a, mut b] = wire(&receive(faults), 8, &Hand::default());
    let mut out = Batch::with_sizes(1, SIZES);
    assert!(out.push(&frame(0, 1000)));
    b.transmit(&mut out).unwrap();
    assert_eq!(a.receive(&mut Batch::new(8, 0, 500, 0)).unwrap(), 0);
    assert_eq!(a.impairments().unwrap().receive.too_long, 2);
}

#[test]
fn a_capture_is_finished_when_its_last_frame_has_waited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("three.pcap");
    let config = |read, write| PcapConfig {
        read,
        write,
        ..PcapConfig::default()
    };
    let mut writer = open(&PortConfig::Pcap(config(None, Some(path.clone()))), &SIZES).unwrap();
    let mut out = Batch::with_sizes(3, SIZES);
    while out.push(&frame(0, 60)) {}
    writer.transmit(&mut out).unwrap();
    let faults = Faults {
        delay: Delay {
            fixed_ns: 1000,
            jitter_ns: 0,
        },
        ..Faults::default()
    };
    let hand = Hand::default();
    let reader = open(&PortConfig::Pcap(config(Some(path), None)), &SIZES).unwrap();
    let mut port = impair(reader, &receive(faults), &SIZES, hand.clock()).unwrap();
    assert!(drain(&mut *port, 8).is_empty());
    assert!(!port.finished(), "three frames wait");
    hand.move_to(1000);
    assert_eq!(drain(&mut *port, 8).len(), 3);
    assert!(port.finished());
}

#[test]
fn a_configuration_opens_an_impaired_port_or_says_what_is_wrong_with_it() {
    let config = |faults| {
        PortConfig::Impaired(Box::new(ImpairedConfig {
            port: PortConfig::Memory(MemoryConfig::new("impaired by configuration", End::A)),
            impairment: receive(faults),
        }))
    };
    assert!(
        open(&config(storm()), &SIZES)
            .unwrap()
            .impairments()
            .is_some()
    );
    let error = open(
        &config(Faults {
            duplicate: f64::NAN,
            ..Faults::default()
        }),
        &SIZES,
    );
    let text = error.err().expect("not a probability").to_string();
    assert_eq!(
        text,
        "the probability of a duplicate is NaN: allowed is 0 to 1"
    );
}

#[test]
fn twins_on_two_threads_get_all_frames_in_order() {
    let faults = Faults {
        duplicate: 0.5,
        ..Faults::default()
    };
    let impairment = Impairment {
        seed: 1,
        receive: faults.clone(),
        transmit: faults,
    };
    let [mut a, mut b] = wire(&impairment, 64, &Hand::default());
    let mut twin = a.twin().unwrap();
    let frames = 20_000_u32;
    // Long enough that a frame that is missing is seen as a failure and not as slowness.
    let end = Instant::now() + std::time::Duration::from_secs(60);
    let still_hoping = move || {
        assert!(Instant::now() < end, "the last frame never came");
        std::thread::yield_now();
    };
    let far = std::thread::spawn(move || {
        // What comes from the impaired end goes back to it.
        let mut came = Vec::new();
        let mut batch = Batch::with_sizes(32, SIZES);
        while came.last() != Some(&(frames - 1)) {
            b.receive(&mut batch).unwrap();
            came.extend(batch.frames().iter().map(|frame| number(frame.octets())));
            while !batch.is_empty() {
                b.transmit(&mut batch).unwrap();
                still_hoping();
            }
        }
        came
    });
    let receiver = std::thread::spawn(move || {
        let mut came = Vec::new();
        while came.last() != Some(&(frames - 1)) {
            came.extend(drain(&mut *twin, 32).iter().map(|frame| number(frame)));
            still_hoping();
        }
        came
    });
    let mut out = Batch::with_sizes(32, SIZES);
    let mut next = 0;
    while next < frames || !out.is_empty() {
        while next < frames && out.push(&frame(next, 60)) {
            next += 1;
        }
        a.transmit(&mut out).unwrap();
        still_hoping();
    }
    for came in [far.join().unwrap(), receiver.join().unwrap()] {
        assert!(came.is_sorted());
        let whole = (0..frames).all(|number| came.binary_search(&number).is_ok());
        assert!(whole, "a frame is missing of {}", came.len());
    }
    let done = a.impairments().unwrap();
    assert_conserved(done.receive);
    assert_conserved(done.transmit);
    assert_eq!(done.transmit.overflowed + done.receive.overflowed, 0);
}
