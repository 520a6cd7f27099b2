//! What tests that need the kernel share.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    process::Command,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use crate::{Batch, Frame, Port, Sizes, sys::namespace, wait};

/// Long enough that only a frame that never comes is missed, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Does `test` on a thread of its own in a new, empty network namespace; where the kernel does not
/// allow that, says that the test was not run and why.
pub(crate) fn in_namespace(name: &str, test: impl FnOnce(i32) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| match namespace::leave() {
            Ok(thread) => test(thread),
            Err(error) => {
                // To the terminal itself: the harness would swallow what a passing test prints.
                let line = format!(
                    "test {name} was not run: it needs root for a network namespace ({error})\n"
                );
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
        });
    });
}

/// Runs `ip` with these words in the namespace of the calling thread.
#[track_caller]
pub(crate) fn ip(words: &str) {
    let output = Command::new("ip")
        .args(words.split_whitespace())
        .output()
        .expect("`ip` (iproute2) is needed");
    assert!(
        output.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The sizes of a port and its batches.
pub(crate) fn sizes(octets_max: usize) -> Sizes {
    Sizes {
        headroom: 64,
        octets_max,
        tailroom: 64,
    }
}

/// A frame of the experimental EtherType, filled with a number.
pub(crate) fn frame(octets: usize, number: u8) -> Vec<u8> {
    let mut frame = vec![number; octets];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    frame
}

/// Frames of that EtherType that come before the time is over, as many as are wanted.
pub(crate) fn receive(port: &mut dyn Port, wanted: usize, octets_max: usize) -> Vec<Vec<u8>> {
    let mut batch = Batch::with_sizes(16, sizes(octets_max));
    let mut got = Vec::new();
    let end = Instant::now() + PATIENCE;
    while got.len() < wanted && Instant::now() < end {
        batch.clear();
        if port.receive(&mut batch).unwrap() == 0 {
            wait(&[port.descriptor().unwrap()], Duration::from_secs(1)).unwrap();
        }
        let ours = |octets: &[u8]| octets[12..14] == [0x88, 0xb5] || octets[16..18] == [0x88, 0xb5];
        got.extend(
            batch
                .frames()
                .iter()
                .map(|frame| frame.octets().to_vec())
                .filter(|frame| ours(frame)),
        );
    }
    got
}

/// Carries frames from each of two ports to the other, by way of a batch, until it is done.
pub(crate) fn patch(ports: &mut [Box<dyn Port>; 2], batch: &mut Batch, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let mut moved = 0;
        for (from, to) in [(0, 1), (1, 0)] {
            batch.clear();
            moved += ports[from].receive(batch).unwrap();
            while !batch.is_empty() {
                ports[to].transmit(batch).unwrap();
            }
        }
        if moved == 0 {
            let [a, b] = [&ports[0], &ports[1]].map(|port| port.descriptor().unwrap());
            wait(&[a, b], Duration::from_millis(100)).unwrap();
        }
    }
}

/// Ports at the two ends of a veth pair, one of which goes down, comes back, and goes away.
pub(crate) fn down_up_away(open: impl Fn(&str) -> Box<dyn Port>) {
    ip("link add v0 type veth peer name v1");
    let mut ports = ["v0", "v1"].map(open);
    let mut batch = Batch::with_sizes(4, sizes(1514));
    let put = |batch: &mut Batch, number| {
        batch.clear();
        assert!(batch.push(&frame(60, number)));
    };
    // Frames that the stack sent of its own accord come first, then the error.
    let notice = |port: &mut dyn Port, batch: &mut Batch| {
        for _ in 0..2 {
            batch.clear();
            port.receive(batch).unwrap();
        }
    };
    ip("link set v0 down");
    notice(&mut *ports[0], &mut batch);
    put(&mut batch, 1);
    assert_eq!(ports[0].transmit(&mut batch).unwrap(), 1);
    assert_eq!(ports[0].counters().transmit_dropped, 1);
    notice(&mut *ports[0], &mut batch);
    // The error was taken: a wait lasts again.
    assert!(!wait(&[ports[0].descriptor().unwrap()], Duration::from_millis(1)).unwrap());
    ip("link set v0 up");
    for (from, to, number) in [(1, 0, 2), (0, 1, 3)] {
        let end = Instant::now() + PATIENCE;
        loop {
            put(&mut batch, number);
            ports[from].transmit(&mut batch).unwrap();
            batch.clear();
            ports[to].receive(&mut batch).unwrap();
            let ours = |got: &Frame| got.octets() == frame(60, number);
            if batch.frames().iter().any(ours) {
                break;
            }
            assert!(Instant::now() < end, "nothing crosses to port {to}");
        }
    }
    ip("link del v0");
    put(&mut batch, 4);
    let error = ports[0].transmit(&mut batch).unwrap_err();
    assert!(error.to_string().contains("v0 is gone"), "{error}");
    // Frames that came before are handed over first.
    let end = Instant::now() + PATIENCE;
    while ports[1].receive(&mut batch).is_ok() {
        batch.clear();
        assert!(Instant::now() < end, "no error");
    }
}

/// Two hosts, each in a namespace, speak TCP and UDP; between them this program, which carries frames from
/// one of the ports that `open` makes to the other. Their offloads are as the kernel sets them, but for
/// what `ip` is told to set.
///
/// ```text
///   [stack x: host]===veth===[m0  port <-> port  m1]===veth===[host: stack y]
/// ```
pub(crate) fn between_two_hosts(set: &str, open: impl FnOnce() -> [Box<dyn Port>; 2]) {
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut hosts = Vec::new();
        for number in 0..2 {
            let (announce, heard) = mpsc::channel();
            let (go, wait_for_go) = mpsc::channel::<()>();
            let host = scope.spawn(move || {
                let thread = namespace::leave().unwrap();
                announce.send(thread).unwrap();
                wait_for_go.recv().unwrap();
                ip(&format!("addr add 10.8.0.{}/24 dev host", number + 1));
                ip(&format!("addr add fd08::{}/64 dev host nodad", number + 1));
                ip(&format!("link set host up {set}"));
                converse(number);
            });
            let thread = heard.recv().unwrap();
            ip(&format!(
                "link add m{number} type veth peer name host netns {thread}"
            ));
            hosts.push((host, go));
        }
        let mut ports = open();
        scope.spawn(move || {
            patch(&mut ports, &mut Batch::with_sizes(64, sizes(1514)), done);
            for port in &ports {
                // On a loaded machine TCP sends again, and then a super-frame may leave all the same: dropped, counted,
                // and sent once more in pieces.
                let malformed = port.counters().malformed;
                assert!(malformed < 10, "{malformed}");
            }
        });
        let (threads, starts): (Vec<_>, Vec<_>) = hosts.into_iter().unzip();
        for go in starts {
            go.send(()).unwrap();
        }
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
}

const OCTETS: usize = 3_000_001;

/// Host 0 sends over TCP and UDP, on IPv4 and IPv6; host 1 checks that all of it came.
fn converse(number: u8) {
    for (near, far) in [("10.8.0.1", "10.8.0.2"), ("fd08::1", "fd08::2")] {
        let near: IpAddr = near.parse().unwrap();
        let far = SocketAddr::new(far.parse().unwrap(), 5001);
        let text: Vec<u8> = (0..OCTETS).map(|at| (at % 251) as u8).collect();
        if number == 0 {
            let mut stream = persist(|| TcpStream::connect_timeout(&far, PATIENCE));
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&text).unwrap();
            let socket = UdpSocket::bind(SocketAddr::new(near, 0)).unwrap();
            for _ in 0..20 {
                socket.send_to(b"datagram", far).unwrap();
            }
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"good");
        } else {
            let socket = persist(|| UdpSocket::bind(far));
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let listener = TcpListener::bind(far).unwrap();
            // So that a failure of the far end ends this one too.
            listener.set_nonblocking(true).unwrap();
            let (mut stream, _) = persist(|| listener.accept());
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut got = vec![0; OCTETS];
            stream.read_exact(&mut got).unwrap();
            assert!(got == text);
            let mut datagram = [0; 20];
            let (octets, _) = socket.recv_from(&mut datagram).unwrap();
            assert_eq!(&datagram[..octets], b"datagram");
            stream.write_all(b"good").unwrap();
        }
    }
}

/// Until the far end is there.
fn persist<T>(mut attempt: impl FnMut() -> io::Result<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
