//! Two hosts, each in a namespace with a TAP interface; between them this program, which carries frames
//! from one port to the other.
//!
//! ```text
//!   [stack x: host]---port <-> port---[host: stack y]
//! ```

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use super::{SIZES, opened, opened_again, tap};
use crate::{Batch, Port, TapConfig, sys, testing};

/// Long enough that only what never comes is missed, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is sent over TCP each way.
const OCTETS: usize = 3_000_001;

/// A host, and how it meets the other: a failure of one ends both.
struct Host {
    number: u8,
    tell: mpsc::Sender<()>,
    hear: mpsc::Receiver<()>,
}

impl Host {
    fn meet(&self) {
        self.tell.send(()).unwrap();
        self.hear.recv_timeout(PATIENCE).unwrap();
    }

    /// Host 0 connects to host 1.
    fn stream(&self, far: &str) -> TcpStream {
        let far: SocketAddr = far.parse().unwrap();
        let listener = (self.number == 1).then(|| TcpListener::bind(far).unwrap());
        self.meet();
        let near = (self.number == 0).then(|| TcpStream::connect_timeout(&far, PATIENCE).unwrap());
        self.meet();
        let stream = near.unwrap_or_else(|| listener.unwrap().accept().unwrap().0);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Bulk data over TCP, first from host 0 to host 1, then back.
    fn exchange(&self, far: &str) {
        let mut stream = self.stream(far);
        for sender in 0..2 {
            let text: Vec<u8> = (0..OCTETS).map(|at| (at % 251) as u8 ^ sender).collect();
            if sender == self.number {
                stream.write_all(&text).unwrap();
            } else {
                let mut got = vec![0; OCTETS];
                stream.read_exact(&mut got).unwrap();
                assert!(got == text, "other octets than were sent");
            }
        }
    }

    /// Datagrams of all sizes, which host 1 sends back.
    fn echo(&self, far: &str, sizes: &[usize]) {
        let far: SocketAddr = far.parse().unwrap();
        let any = SocketAddr::new(
            if far.is_ipv4() {
                [0; 4].into()
            } else {
                [0; 16].into()
            },
            0,
        );
        let socket = UdpSocket::bind(if self.number == 1 { far } else { any }).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        self.meet();
        let mut room = [0; 9000];
        for &octets in sizes {
            let text: Vec<u8> = (0..octets).map(|at| (at ^ octets) as u8).collect();
            if self.number == 0 {
                socket.send_to(&text, far).unwrap();
            }
            let (got, from) = socket.recv_from(&mut room).unwrap();
            assert!(room[..got] == text, "{octets} octets");
            if self.number == 1 {
                socket.send_to(&text, from).unwrap();
            }
        }
    }
}

/// Makes the hosts with the ports that `make` makes and lets them talk. Says what came of the talk, and
/// the ports.
fn patched<T: Send>(
    frames: usize,
    make: impl Fn() -> Box<dyn Port> + Sync,
    talk: impl Fn(&Host) -> T + Sync,
) -> ([T; 2], [Box<dyn Port>; 2]) {
    let done = &AtomicBool::new(false);
    let (make, talk) = (&make, &talk);
    std::thread::scope(|scope| {
        let (to_second, from_first) = mpsc::channel();
        let (to_first, from_second) = mpsc::channel();
        let begin = |number: u8, tell, hear| {
            let (hand_over, port) = mpsc::channel();
            let host = scope.spawn(move || {
                sys::namespace::leave().unwrap();
                hand_over.send(make()).unwrap();
                testing::ip(&format!("addr add 10.8.0.{}/24 dev host", number + 1));
                testing::ip(&format!("addr add fd08::{}/64 dev host nodad", number + 1));
                let host = Host { number, tell, hear };
                host.meet();
                talk(&host)
            });
            (host, port)
        };
        let (first, first_port) = begin(0, to_second, from_second);
        let (second, second_port) = begin(1, to_first, from_first);
        let mut ports = [first_port.recv().unwrap(), second_port.recv().unwrap()];
        let patch = scope.spawn(move || {
            testing::patch(&mut ports, &mut Batch::with_sizes(frames, SIZES), done);
            ports
        });
        let outcomes = [first.join(), second.join()];
        done.store(true, Ordering::Relaxed);
        let ports = patch.join().unwrap();
        for port in &ports {
            assert_eq!(port.counters().malformed, 0);
            assert_eq!(port.counters().transmit_dropped, 0);
        }
        (outcomes.map(Result::unwrap), ports)
    })
}

/// What the kernel counts at `host` in the namespace of this thread: frames, super-frames as one, that were
/// received from the port and sent to it.
fn crossings() -> [u64; 2] {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let mut lines = table.lines();
    let line = lines.find_map(|line| line.trim().strip_prefix("host:"));
    let numbers: Vec<u64> = line
        .unwrap()
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    [numbers[1], numbers[9]]
}

fn standard(offload: bool) -> TapConfig {
    let mut config = tap("host");
    config.interface.mtu = Some(1500);
    TapConfig { offload, ..config }
}

fn talk(host: &Host) -> [u64; 2] {
    for address in ["10.8.0.2:5001", "[fd08::2]:5001"] {
        host.exchange(address);
        // As ping sends them, and the longest that fit; the last ones in fragments.
        host.echo(
            address,
            &[0, 1, 2, 17, 18, 56, 1000, 1452, 1472, 1473, 8000],
        );
    }
    host.meet();
    crossings()
}

#[test]
fn bulk_data_crosses_the_kernel_in_super_frames() {
    testing::in_namespace("tap: bulk data in super-frames", |_| {
        let make = || {
            let port = opened(standard(true)).unwrap();
            assert!(port.describe().contains("tap (super-frames of TCP"));
            port
        };
        let (crossings, ports) = patched(64, make, talk);
        for ([received, sent], port) in crossings.into_iter().zip(&ports) {
            let counters = port.counters();
            assert!(4 * sent < counters.received_frames, "{sent}: {counters:?}");
            assert!(
                4 * received < counters.transmitted_frames,
                "{received}: {counters:?}"
            );
        }
    });
}

#[test]
fn what_the_batch_has_no_room_for_waits_in_the_port() {
    testing::in_namespace("tap: small batches", |_| {
        let (crossings, ports) = patched(3, || opened(standard(true)).unwrap(), talk);
        for ([_, sent], port) in crossings.into_iter().zip(&ports) {
            let counters = port.counters();
            assert!(2 * sent < counters.received_frames, "{sent}: {counters:?}");
        }
    });
}

#[test]
fn without_super_frames_each_frame_crosses_the_kernel() {
    testing::in_namespace("tap: no super-frames", |_| {
        // The interface was there before and remembers that an earlier port took super-frames.
        let make = || {
            testing::ip("tuntap add dev host mode tap");
            drop(opened(standard(true)).unwrap());
            let port = opened_again(standard(false));
            assert_eq!(port.describe(), "tap (frame by frame)");
            port
        };
        let (crossings, ports) = patched(64, make, talk);
        for ([received, sent], port) in crossings.into_iter().zip(&ports) {
            assert!(sent <= port.counters().received_frames);
            assert!(received <= port.counters().transmitted_frames);
            assert!(sent + received > 4 * OCTETS as u64 / 1500);
        }
    });
}

#[test]
fn the_mtu_may_change_while_frames_pass() {
    testing::in_namespace("tap: the MTU changes", |_| {
        for offload in [true, false] {
            patched(
                64,
                || opened(standard(offload)).unwrap(),
                |host| {
                    for mtu in [1300, 9000] {
                        let mut stream = host.stream(&format!("10.8.0.2:{mtu}"));
                        testing::ip(&format!("link set host mtu {mtu}"));
                        if host.number == 0 {
                            stream.write_all(&[7; 500_000]).unwrap();
                        } else {
                            let mut got = vec![0; 500_000];
                            stream.read_exact(&mut got).unwrap();
                            assert!(got.iter().all(|octet| *octet == 7));
                        }
                        host.exchange("10.8.0.2:5001");
                        host.exchange("[fd08::2]:5001");
                    }
                },
            );
        }
    });
}

#[test]
fn super_frames_of_udp_are_cut() {
    testing::in_namespace("tap: super-frames of UDP", |_| {
        let (crossings, ports) = patched(
            64,
            || opened(standard(true)).unwrap(),
            |host| {
                for address in ["10.8.0.2:5001", "[fd08::2]:5001"] {
                    let far: SocketAddr = address.parse().unwrap();
                    let any = if far.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                    let any = any.parse().unwrap();
                    let socket = UdpSocket::bind(if host.number == 1 { far } else { any }).unwrap();
                    socket.set_read_timeout(Some(PATIENCE)).unwrap();
                    host.meet();
                    if host.number == 0 {
                        let text: Vec<u8> = (0..20_500).map(|at| (at / 1000) as u8).collect();
                        sys::tun::segment(&socket, 1000).unwrap();
                        socket.send_to(&text, far).unwrap();
                    } else {
                        for number in 0..21 {
                            let mut room = [0; 2000];
                            let got = socket.recv(&mut room).unwrap();
                            assert_eq!(got, if number < 20 { 1000 } else { 500 });
                            assert!(room[..got].iter().all(|octet| *octet == number));
                        }
                    }
                    host.meet();
                }
                crossings()
            },
        );
        if ports[0].describe().contains("UDP") {
            let [_, sent] = crossings[0];
            assert!(sent + 30 < ports[0].counters().received_frames, "{sent}");
        }
    });
}
