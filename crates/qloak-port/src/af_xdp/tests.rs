//! AF_XDP sockets on veth pairs, in namespaces of their own.

use std::{process::Command, time::Instant};

use super::*;

use crate::{
    BusyPoll, PortConfig,
    testing::{self, PATIENCE, frame, receive, sizes},
};

/// The modes that veth has.
const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Skb];

/// One mode, and nothing else instead.
fn only(interface: &str, mode: XdpMode) -> AfXdpConfig {
    AfXdpConfig {
        modes: vec![mode],
        frames: 512,
        fallback: false,
        ..AfXdpConfig::new(interface)
    }
}

fn opened(config: AfXdpConfig, octets_max: usize) -> Result<Box<dyn Port>, PortError> {
    crate::open(&PortConfig::AfXdp(config), &sizes(octets_max))
}

fn far(interface: &str, octets_max: usize) -> Box<dyn Port> {
    let config = PortConfig::AfPacket(AfPacketConfig::new(interface));
    crate::open(&config, &sizes(octets_max)).unwrap()
}

fn error(config: AfXdpConfig) -> String {
    opened(config, 1514).err().unwrap().to_string()
}

/// What `ip` says of an interface.
fn shown(interface: &str) -> String {
    let output = Command::new("ip")
        .args(["link", "show", interface])
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn frames_of_every_size_cross_both_ways_in_every_mode() {
    testing::in_namespace("af_xdp: frames of every size", |_| {
        for (mode, mtu) in MODES
            .into_iter()
            .flat_map(|mode| [(mode, 1500), (mode, 16_000)])
        {
            testing::ip(&format!(
                "link add v0 mtu {mtu} type veth peer name v1 mtu {mtu}"
            ));
            let longest = mtu + 14;
            let mut near = opened(only("v0", mode), longest).unwrap();
            assert_eq!(near.kind(), Kind::AfXdp);
            // A veth has a far end, which has to be told what AF_XDP cannot see.
            let begins = format!("af-xdp ({}; the far end", mode.as_str());
            assert!(near.describe().starts_with(&begins), "{}", near.describe());
            assert_eq!(near.frame_octets_max(), Some(longest));
            let mut far = far("v1", longest);
            let mut sent: Vec<_> = [18, 60, 1514, 3840, 3841, 4096, 4097, 9014, 16_014]
                .into_iter()
                .filter(|octets| *octets <= longest)
                .map(|octets| frame(octets, 7))
                .collect();
            let mut tagged = frame(100, 9);
            tagged.splice(12..12, [0x81, 0x00, 0x60, 0x05]);
            sent.push(tagged);
            sent.extend((0..190).map(|number| frame(64, number)));
            for way in 0..2 {
                let mut batch = Batch::with_sizes(250, sizes(longest));
                for frame in &sent {
                    assert!(batch.push(frame));
                }
                let (from, to) = if way == 0 {
                    (&mut near, &mut far)
                } else {
                    (&mut far, &mut near)
                };
                let mut twin = from.twin().unwrap();
                while !batch.is_empty() {
                    twin.transmit(&mut batch).unwrap();
                }
                assert!(
                    receive(&mut **to, sent.len(), longest) == sent,
                    "{mode:?} {way}"
                );
                assert_eq!(to.counters().malformed, 0);
            }
            let octets: usize = sent.iter().map(Vec::len).sum();
            let counters = near.counters();
            assert_eq!(counters.transmitted_frames, sent.len() as u64);
            assert_eq!(counters.transmitted_octets, octets as u64);
            assert!(counters.received_frames >= sent.len() as u64);
            drop(near);
            testing::ip("link del v0");
        }
    });
}

#[test]
fn more_frames_than_the_ring_holds_pass_in_every_mode() {
    testing::in_namespace("af_xdp: more frames than the ring holds", |_| {
        for mode in MODES {
            testing::ip("link add v0 mtu 9000 type veth peer name v1 mtu 9000");
            let config = |interface: &str| AfXdpConfig {
                frames: 128,
                busy_poll: Some(BusyPoll {
                    microseconds: 20,
                    frames: 64,
                }),
                ..only(interface, mode)
            };
            let mut a = opened(config("v0"), 9014).unwrap();
            let mut b = opened(config("v1"), 9014).unwrap();
            let mut batch = Batch::with_sizes(32, sizes(9014));
            for round in 0..100_u8 {
                batch.clear();
                let sent: Vec<_> = (0..20).map(|_| frame(9000, round)).collect();
                for frame in &sent {
                    assert!(batch.push(frame));
                }
                let end = Instant::now() + PATIENCE;
                while !batch.is_empty() && Instant::now() < end {
                    a.transmit(&mut batch).unwrap();
                }
                assert!(receive(&mut *b, 20, 9014) == sent, "{mode:?} {round}");
            }
            assert_eq!(b.counters().receive_dropped, 0);
            drop((a, b));
            testing::ip("link del v0");
        }
    });
}

#[test]
fn what_cannot_pass_is_counted() {
    testing::in_namespace("af_xdp: what cannot pass", |_| {
        for mode in MODES {
            testing::ip("link add v0 mtu 1500 type veth peer name v1 mtu 1500");
            let mut port = opened(only("v0", mode), 500).unwrap();
            let mut far = far("v1", 1514);
            let mut batch = Batch::with_sizes(4, sizes(9014));
            assert!(
                batch.push(&frame(1515, 1))
                    && batch.push(&frame(1514, 2))
                    && batch.push(&[0; 5])
                    && batch.push(&frame(9014, 3))
            );
            assert_eq!(port.transmit(&mut batch).unwrap(), 4);
            let counters = port.counters();
            assert_eq!(
                (counters.transmitted_frames, counters.transmit_dropped),
                (1, 3)
            );
            assert_eq!(receive(&mut *far, 1, 1514), [frame(1514, 2)]);

            // Longer than the port was opened for.
            assert!(batch.push(&frame(600, 4)) && batch.push(&frame(400, 5)));
            assert_eq!(far.transmit(&mut batch).unwrap(), 2);
            assert_eq!(receive(&mut *port, 1, 500), [frame(400, 5)]);
            assert_eq!(port.counters().malformed, 1);

            // A ring that nobody empties overflows, and the kernel's drops are counted.
            for _ in 0..1000 {
                batch.clear();
                assert!(batch.push(&frame(100, 6)));
                far.transmit(&mut batch).unwrap();
            }
            let end = Instant::now() + PATIENCE;
            while port.counters().receive_dropped < 400 && Instant::now() < end {
                std::thread::yield_now();
            }
            let kept = receive(&mut *port, 500, 500).len() as u64;
            assert!(kept <= 512);
            assert!(port.counters().receive_dropped >= 1000 - 512);

            // Nobody is there: lost, and counted.
            testing::ip("link set v1 down");
            let before = port.counters();
            batch.clear();
            for _ in 0..3 {
                assert!(batch.push(&frame(100, 7)));
            }
            assert_eq!(port.transmit(&mut batch).unwrap(), 3);
            let after = port.counters();
            assert_eq!(after.transmit_dropped - before.transmit_dropped, 3);
            assert_eq!(after.transmitted_frames, before.transmitted_frames);
            drop((port, far));
            testing::ip("link del v0");
        }
    });
}

#[test]
fn a_line_that_goes_down_comes_back_and_one_that_goes_away_does_not() {
    testing::in_namespace("af_xdp: down, up, away", |_| {
        for mode in MODES {
            testing::down_up_away(|interface| opened(only(interface, mode), 1514).unwrap());
        }
    });
}

#[test]
fn the_program_is_gone_with_the_port() {
    testing::in_namespace("af_xdp: the program is gone", |_| {
        testing::ip("link add v0 type veth peer name v1");
        for mode in MODES {
            let port = opened(only("v0", mode), 1514).unwrap();
            assert!(shown("v0").contains("prog/xdp"), "{}", shown("v0"));
            let second = error(only("v0", mode));
            assert!(second.contains("another XDP program is on v0"), "{second}");
            let twin = port.twin().unwrap();
            drop(port);
            assert!(shown("v0").contains("prog/xdp"));
            drop(twin);
            assert!(!shown("v0").contains("prog/xdp"), "{}", shown("v0"));
        }
    });
}

#[test]
fn where_no_mode_works_there_is_af_packet_which_says_why() {
    testing::in_namespace("af_xdp: AF_PACKET instead", |_| {
        testing::ip("link add v0 type veth peer name v1");
        let refused = error(only("v0", XdpMode::ZeroCopy));
        assert!(
            refused.contains("v0: AF_XDP refused: zero-copy: the driver cannot"),
            "{refused}"
        );
        let config = AfXdpConfig {
            fallback: true,
            ..only("v0", XdpMode::ZeroCopy)
        };
        let mut port = opened(config, 1514).unwrap();
        assert_eq!(port.kind(), Kind::AfPacket);
        let described = "af-packet (AF_XDP refused: zero-copy: the driver cannot";
        assert!(
            port.describe().starts_with(described),
            "{}",
            port.describe()
        );
        let mut batch = Batch::with_sizes(1, sizes(1514));
        assert!(batch.push(&frame(60, 1)));
        let mut far = far("v1", 1514);
        port.transmit(&mut batch).unwrap();
        assert_eq!(receive(&mut *far, 1, 1514), [frame(60, 1)]);
        assert!(!shown("v0").contains("prog/xdp"));
        drop(port);

        // Left to itself it takes the first mode that works.
        let port = opened(AfXdpConfig::new("v0"), 1514).unwrap();
        assert!(port.describe().starts_with("af-xdp (native"));
        // And the second port on the same interface is one of the other kind.
        let second = opened(AfXdpConfig::new("v0"), 1514).unwrap();
        assert_eq!(second.kind(), Kind::AfPacket);
    });
}

#[test]
fn errors_say_what_to_do() {
    testing::in_namespace("af_xdp: errors", |_| {
        testing::ip("link add v0 numrxqueues 2 type veth peer name v1");
        let plain = |interface: &str| error(only(interface, XdpMode::Native));
        assert!(
            plain("v0").contains("v0 has 2 receive queues"),
            "{}",
            plain("v0")
        );
        assert!(plain("v0").contains("`ethtool -L v0 combined 1`"));
        assert!(plain("nope").contains("there is no interface nope"));
        assert!(plain("lo").contains("lo does not carry Ethernet frames (hardware type 772)"));
        assert!(plain("much-too-long-a-name").contains("1 to 15 octets"));
        let mut down = AfXdpConfig::new("v1");
        down.interface.up = false;
        assert!(error(down).contains("`ip link set v1 up`"));
        let mut namespace = AfXdpConfig::new("v1");
        namespace.interface.namespace = Some("../x".into());
        assert!(error(namespace).contains("`ip netns`"));
    });
}

#[test]
fn settings_out_of_bounds_are_refused() {
    for frames in [0, 64, 1000, 65_536] {
        let config = AfXdpConfig {
            frames,
            ..AfXdpConfig::new("v0")
        };
        let error = error(config);
        let allowed = match frames {
            1000 => "a power of two",
            _ => "128 to 32768 frames",
        };
        let words = format!("ring is {frames} frames: allowed is {allowed}");
        assert!(error.contains(&words), "{error}");
    }
    let config = AfXdpConfig {
        modes: Vec::new(),
        ..AfXdpConfig::new("v0")
    };
    assert!(error(config).contains("the list of XDP modes is empty"));
    for (microseconds, frames, words) in [
        (0, 64, "the time of a busy poll is 0 us"),
        (10, 70_000, "the budget of a busy poll is 70000 frames"),
    ] {
        let config = AfXdpConfig {
            busy_poll: Some(BusyPoll {
                microseconds,
                frames,
            }),
            ..AfXdpConfig::new("v0")
        };
        assert!(error(config).contains(words));
    }
}

/// In native mode a veth makes no super-frames; in skb mode the far end has to be told.
#[test]
fn tcp_and_udp_pass_though_the_hosts_leave_checksums_unfinished() {
    for (mode, set) in [(XdpMode::Native, ""), (XdpMode::Skb, "gso_max_segs 1")] {
        testing::in_namespace("af_xdp: TCP of two hosts", |_| {
            testing::between_two_hosts(set, || {
                ["m0", "m1"].map(|name| opened(only(name, mode), 1514).unwrap())
            });
        });
    }
}
