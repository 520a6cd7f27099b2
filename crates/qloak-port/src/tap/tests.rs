//! TAP against the real stack, in a namespace of its own.

use std::{
    net::UdpSocket,
    time::{Duration, Instant},
};

use super::*;
use crate::{
    InterfaceConfig, PortConfig,
    coalesce::tests::{Flow, PLAIN},
    open, testing, wait,
};

mod hosts;

const SIZES: Sizes = Sizes {
    headroom: 64,
    octets_max: 9014,
    tailroom: 64,
};

fn tap(name: &str) -> TapConfig {
    TapConfig::new(InterfaceConfig {
        mtu: Some(9000),
        ..name.into()
    })
}

/// Does `test` in a new namespace, once for interfaces with super-frames and once for those without.
fn with_and_without(name: &str, test: impl Fn(&dyn Fn(&str) -> TapConfig) + Send + Sync) {
    for offload in [true, false] {
        let tap = |name: &str| TapConfig {
            offload,
            ..tap(name)
        };
        testing::in_namespace(name, |_| test(&tap));
    }
}

fn opened(config: TapConfig) -> Result<Box<dyn Port>, PortError> {
    open(&PortConfig::Tap(config), &SIZES)
}

/// Opens an interface that was open before: a program that another test starts holds our descriptors until it is
/// loaded.
fn opened_again(config: TapConfig) -> Box<dyn Port> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match opened(config.clone()) {
            Err(PortError::InUse { .. }) if Instant::now() < end => {}
            opened => break opened.unwrap(),
        }
    }
}

/// Receives until a frame is one that `wanted` likes. The stack also sends frames of its own accord.
fn receive(port: &mut dyn Port, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut batch = Batch::with_sizes(4, SIZES);
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        batch.clear();
        port.receive(&mut batch).unwrap();
        if let Some(frame) = batch.frames().iter().find(|frame| wanted(frame.octets())) {
            assert_eq!(frame.range.start, SIZES.headroom);
            return frame.octets().to_vec();
        }
        assert!(Instant::now() < end, "the frame did not come");
        wait(&[port.descriptor().unwrap()], Duration::from_secs(1)).unwrap();
    }
}

/// "Who has 10.9.0.1?", asked by 10.9.0.2.
fn arp_request() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend([2, 0, 0, 0, 0, 9, 10, 9, 0, 2, 0, 0, 0, 0, 0, 0, 10, 9, 0, 1]);
    frame
}

#[test]
fn the_stack_answers_and_sends_whole_checksums() {
    with_and_without("tap: the stack answers", |tap| {
        let mut port = opened(tap("t0")).unwrap();
        testing::ip("addr add 10.9.0.1/24 dev t0");
        let mut batch = Batch::with_sizes(4, SIZES);
        assert!(batch.push(&arp_request()));
        assert_eq!(port.transmit(&mut batch).unwrap(), 1);
        assert!(batch.is_empty());
        let reply = receive(&mut *port, |frame| {
            frame[12..14] == [8, 6] && frame[21] == 2
        });
        assert_eq!(reply[6..12], port.mac().unwrap());
        assert_eq!(reply[28..32], [10, 9, 0, 1]);

        testing::ip("neigh replace 10.9.0.2 lladdr 02:00:00:00:00:09 dev t0");
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(&[7; 8900], "10.9.0.2:9").unwrap();
        let datagram = receive(&mut *port, |frame| {
            frame[12..14] == [8, 0] && frame[23] == 17
        });
        assert_eq!(datagram.len(), 14 + 20 + 8 + 8900);
        let pseudo = [&datagram[26..34], &[0, 17], &datagram[38..40]].concat();
        let covered = [&pseudo[..], &datagram[34..]].concat();
        assert_eq!(checksum(&covered), 0xffff);
        assert!(port.counters().received_frames >= 2);
        assert_eq!(port.counters().transmitted_frames, 1);
    });
}

/// A packet socket on the same interface sees what the stack sees, super-frames and all, and cuts them.
#[test]
fn what_is_put_together_comes_out_of_the_kernel_as_it_went_in() {
    with_and_without("tap: through the kernel and back", |tap| {
        let mut port = opened(tap("t0")).unwrap();
        let config = crate::AfPacketConfig::new("t0");
        let mut stack = open(&PortConfig::AfPacket(config), &SIZES).unwrap();
        let mut sent = Vec::new();
        for ipv4 in [true, false] {
            for vlans in 0..3 {
                let flow = Flow {
                    ipv4,
                    vlans,
                    ..PLAIN
                };
                sent.extend(flow.frames(9, 1000));
                // A wrong checksum, which goes alone and stays wrong.
                let mut frames = flow.frames(3, 1000);
                frames[1][200] ^= 1;
                sent.extend(frames);
            }
        }
        let mut batch = Batch::with_sizes(sent.len(), SIZES);
        assert!(sent.iter().all(|frame| batch.push(frame)));
        while !batch.is_empty() {
            port.transmit(&mut batch).unwrap();
        }
        assert_eq!(port.counters().transmitted_frames, sent.len() as u64);
        let mut got = Vec::new();
        let end = Instant::now() + Duration::from_secs(20);
        while got.len() < sent.len() && Instant::now() < end {
            batch.clear();
            stack.receive(&mut batch).unwrap();
            let frames = batch.frames().iter().map(|frame| frame.octets().to_vec());
            got.extend(frames.filter(|frame| frame[..12] == [2; 12]));
        }
        assert!(got == sent, "{} of {} frames", got.len(), sent.len());
        assert_eq!(stack.counters().malformed, 0);
    });
}

fn checksum(octets: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[test]
fn frames_of_no_sound_length_are_counted() {
    with_and_without("tap: frames of no sound length", |tap| {
        let small = Sizes {
            octets_max: 200,
            ..SIZES
        };
        let mut port = open(&PortConfig::Tap(tap("t0")), &small).unwrap();
        testing::ip("addr add 10.9.0.1/24 dev t0");
        testing::ip("neigh replace 10.9.0.2 lladdr 02:00:00:00:00:09 dev t0");
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(&[7; 5000], "10.9.0.2:9").unwrap();
        socket.send_to(&[7; 100], "10.9.0.2:9").unwrap();
        let mut batch = Batch::with_sizes(8, small);
        let end = Instant::now() + Duration::from_secs(20);
        while !batch
            .frames()
            .iter()
            .any(|frame| frame.octets()[12..14] == [8, 0])
        {
            assert!(Instant::now() < end);
            port.receive(&mut batch).unwrap();
        }
        assert!(batch.frames().iter().all(|frame| frame.len() <= 200));
        assert_eq!(port.counters().malformed, 1);

        batch.clear();
        assert!(batch.push(&[0; 10]) && batch.push(&arp_request()));
        assert_eq!(port.transmit(&mut batch).unwrap(), 2);
        assert_eq!(port.counters().transmit_dropped, 1);
        assert_eq!(port.counters().transmitted_frames, 1);
        testing::ip("link set t0 down");
        assert!(batch.push(&arp_request()));
        assert_eq!(port.transmit(&mut batch).unwrap(), 1);
        assert_eq!(port.counters().transmit_dropped, 2);
    });
}

#[test]
fn errors_say_what_to_do() {
    with_and_without("tap: errors", |tap| {
        let error = |config| opened(config).err().unwrap().to_string();
        let held = opened(tap("t0")).unwrap();
        assert!(error(tap("t0")).contains("in use by another program"));
        testing::ip("link add v0 type veth peer name v1");
        assert!(error(tap("v0")).contains("exists and is no TAP interface"));
        for name in ["", "a name that is too long", "a/b", "tap%d"] {
            assert!(
                error(tap(name)).contains("the name of an interface"),
                "{name}"
            );
        }
        let mut config = tap("t1");
        config.interface.mtu = Some(70_000);
        assert!(error(config).contains("70000 octets"));
        let mut config = tap("t1");
        config.interface.namespace = Some("qloak-test-none".into());
        assert!(error(config).contains("ip netns add qloak-test-none"));
        drop(held);
        let mut port = opened_again(tap("t0"));
        testing::ip("link del t0");
        let mut batch = Batch::with_sizes(4, SIZES);
        // Frames that the stack sent of its own accord come first.
        let end = Instant::now() + Duration::from_secs(20);
        let error = loop {
            batch.clear();
            match port.receive(&mut batch) {
                Ok(_) => assert!(Instant::now() < end, "no error"),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("t0 is gone"), "{error}");
        assert!(batch.push(&arp_request()));
        assert!(port.transmit(&mut batch).is_err());
    });
}

#[test]
fn an_interface_may_lie_in_another_namespace() {
    testing::in_namespace("tap: another namespace", |_| {
        let namespace = format!("qloak-test-{}", std::process::id());
        testing::ip(&format!("netns add {namespace}"));
        let outcome = std::panic::catch_unwind(|| {
            let mut config = tap("t0");
            config.interface.namespace = Some(namespace.clone());
            let mut port = opened(config).unwrap();
            testing::ip(&format!("-n {namespace} addr add 10.9.0.1/24 dev t0"));
            let mut batch = Batch::with_sizes(4, SIZES);
            assert!(batch.push(&arp_request()));
            assert_eq!(port.transmit(&mut batch).unwrap(), 1);
            receive(&mut *port, |frame| frame[12..14] == [8, 6]);
        });
        testing::ip(&format!("netns del {namespace}"));
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}
