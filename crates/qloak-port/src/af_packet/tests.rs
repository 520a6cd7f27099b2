//! Packet sockets on veth pairs, in namespaces of their own.

use std::time::Instant;

use super::*;

use crate::{
    PortConfig, open,
    testing::{self, PATIENCE, frame, receive, sizes},
};

fn opened(interface: &str, octets_max: usize) -> Result<Box<dyn Port>, PortError> {
    let config = AfPacketConfig {
        ring_octets: 4 << 20,
        ..AfPacketConfig::new(interface)
    };
    open(&PortConfig::AfPacket(config), &sizes(octets_max))
}

#[test]
fn frames_of_every_size_cross_a_veth_pair_unchanged() {
    testing::in_namespace("af_packet: frames of every size", |_| {
        testing::ip("link add v0 mtu 16000 type veth peer name v1 mtu 16000");
        let (mut a, mut b) = (opened("v0", 16_014).unwrap(), opened("v1", 16_014).unwrap());
        let mut sent: Vec<_> = [18, 60, 1514, 9014, 16_014]
            .map(|octets| frame(octets, 7))
            .into();
        // With a VLAN tag, which the kernel takes out and we put back.
        let mut tagged = frame(100, 9);
        tagged.splice(12..12, [0x81, 0x00, 0x60, 0x05]);
        sent.push(tagged);
        let mut batch = Batch::with_sizes(200, sizes(16_014));
        for number in 0..190 {
            sent.push(frame(64, number));
        }
        for frame in &sent {
            assert!(batch.push(frame));
        }
        let mut twin = a.twin().unwrap();
        while !batch.is_empty() {
            twin.transmit(&mut batch).unwrap();
        }
        assert_eq!(receive(&mut *b, sent.len(), 16_014), sent);
        assert_eq!(a.counters().transmitted_frames, sent.len() as u64);
        // What we sent ourselves we do not hear.
        assert!(b.counters().received_frames >= sent.len() as u64);
        let mut batch = Batch::with_sizes(16, sizes(16_014));
        a.receive(&mut batch).unwrap();
        assert!(
            batch
                .frames()
                .iter()
                .all(|frame| frame.octets()[12..14] != [0x88, 0xb5])
        );
    });
}

#[test]
fn what_the_interface_cannot_take_is_counted() {
    testing::in_namespace("af_packet: what the interface cannot take", |_| {
        testing::ip("link add v0 mtu 1500 type veth peer name v1 mtu 9000");
        let mut port = opened("v0", 9014).unwrap();
        let mut far = opened("v1", 500).unwrap();
        assert_eq!(port.frame_octets_max(), Some(1514));
        assert_eq!(far.frame_octets_max(), Some(9014));
        let mut batch = Batch::with_sizes(4, sizes(9014));
        assert!(
            batch.push(&frame(9014, 1))
                && batch.push(&frame(400, 2))
                && batch.push(&[0; 5])
                && batch.push(&frame(600, 3))
        );
        assert_eq!(port.transmit(&mut batch).unwrap(), 4);
        assert_eq!(
            (
                port.counters().transmitted_frames,
                port.counters().transmit_dropped
            ),
            (2, 2)
        );
        assert_eq!(receive(&mut *far, 1, 500), [frame(400, 2)]);
        let end = Instant::now() + PATIENCE;
        while far.counters().malformed == 0 && Instant::now() < end {
            far.receive(&mut Batch::with_sizes(1, sizes(500))).unwrap();
        }
        assert_eq!(far.counters().malformed + far.counters().receive_dropped, 1);

        // A ring that nobody empties overflows, and the kernel's drops are counted.
        let config = AfPacketConfig {
            ring_octets: 1 << 16,
            ..AfPacketConfig::new("v1")
        };
        let full = open(&PortConfig::AfPacket(config), &sizes(1514)).unwrap();
        for _ in 0..2000 {
            batch.clear();
            assert!(batch.push(&frame(1000, 4)));
            port.transmit(&mut batch).unwrap();
        }
        let dropped = full.counters().receive_dropped;
        assert!(dropped > 0);
        assert!(full.counters().receive_dropped >= dropped);
    });
}

#[test]
fn a_line_that_goes_down_comes_back_and_one_that_goes_away_does_not() {
    testing::in_namespace("af_packet: down, up, away", |_| {
        testing::down_up_away(|interface| opened(interface, 1514).unwrap());
    });
}

#[test]
fn errors_say_what_to_do() {
    testing::in_namespace("af_packet: errors", |_| {
        testing::ip("link add v0 type veth peer name v1");
        let error = |interface: &str| opened(interface, 1514).err().unwrap().to_string();
        assert!(error("nope").contains("there is no interface nope"));
        assert!(error("lo").contains("lo does not carry Ethernet frames (hardware type 772)"));
        assert!(error("much-too-long-a-name").contains("1 to 15 octets"));
        let mut config = AfPacketConfig::new("v0");
        config.interface.up = false;
        let refused = |config| {
            open(&PortConfig::AfPacket(config), &sizes(1514))
                .err()
                .unwrap()
                .to_string()
        };
        assert!(refused(config).contains("`ip link set v0 up`"));
        let config = AfPacketConfig {
            ring_octets: 5,
            ..AfPacketConfig::new("v0")
        };
        assert!(refused(config).contains("the receive ring is 5 octets"));
        let mut config = AfPacketConfig::new("v0");
        config.interface.namespace = Some("../x".into());
        assert!(refused(config).contains("`ip netns`"));
    });
}

#[test]
fn tcp_and_udp_pass_though_the_hosts_leave_their_offloads_on() {
    testing::in_namespace("af_packet: TCP of two hosts", |_| {
        testing::between_two_hosts("", || ["m0", "m1"].map(|name| opened(name, 1514).unwrap()));
    });
}

#[test]
fn a_port_for_one_ethertype_hears_no_other() {
    testing::in_namespace("af_packet: one EtherType", |_| {
        testing::ip("link add v0 type veth peer name v1");
        let config = AfPacketConfig {
            ethertype: Some(0x88b5),
            ..AfPacketConfig::new("v0")
        };
        let mut port = open(&PortConfig::AfPacket(config), &sizes(1514)).unwrap();
        let mut far = opened("v1", 1514).unwrap();
        let wanted = frame(100, 1);
        assert_eq!(wanted[12..14], [0x88, 0xb5]);
        let mut other = frame(100, 2);
        other[12..14].copy_from_slice(&[0x88, 0xe5]);
        let mut batch = Batch::with_sizes(4, sizes(1514));
        assert!(batch.push(&other) && batch.push(&wanted) && batch.push(&other));
        assert!(batch.push(&wanted));
        assert_eq!(far.transmit(&mut batch).unwrap(), 4);
        assert_eq!(receive(&mut *port, 2, 1514), [wanted.clone(), wanted]);
        assert_eq!(port.counters().received_frames, 2);
    });
}
