//! Our own TCP traffic: one connection for each client port, both ways at once, at a pace or as fast as it
//! goes, with a known content that the receiver compares octet by octet.
//!
//! `answer` runs at one side all the time; `send` runs at the other, once for each stretch of traffic. A
//! connection begins with the pace and the time that the answering side shall keep to as well:
//!
//! ```text
//! 0               8              16
//! | octets per s  | milliseconds |  content ...        big endian
//! ```

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::ui::{self, Context, Done, Failure};

/// The port that `answer` listens on.
const TCP_PORT: u16 = 5201;

/// How long a connection may take to come up, and a read may wait: longer than the demo keeps a
/// channel closed, so that TCP itself decides what is lost.
const PATIENCE: Duration = Duration::from_secs(25);

/// How often a sender looks at the clock. What it owes at each look is one piece of content.
const TICK: Duration = Duration::from_millis(5);

/// The content repeats after this many octets: a prime, so that a piece in the wrong place shows.
const PERIOD: usize = 65_521;

/// Most octets in one write.
const PIECE_OCTETS_MAX: usize = 1 << 16;

/// What to send.
#[derive(clap::Args)]
pub(crate) struct SendArguments {
    /// Client ports 1 to this one.
    #[arg(long)]
    ports: u8,
    /// How long, milliseconds.
    #[arg(long)]
    time_ms: u64,
    /// Octets per second on each port and way; 0: as fast as it goes.
    #[arg(long)]
    octets_per_s: u64,
}

/// What came of it, over all ports.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Octets that arrived here.
    pub(crate) received_octets: u64,
    /// Octets that went out from here.
    pub(crate) sent_octets: u64,
    /// What went wrong, in words.
    pub(crate) faults: Vec<String>,
}

/// The answering side; ends when standard input closes.
pub(super) fn answer() -> Done {
    let listener =
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, TCP_PORT)).cannot("listen for traffic")?;
    ui::line("{\"ready\":true}");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that fails is the sender's to report.
            thread::spawn(move || answer_one(stream));
        }
    });
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest)?;
    Ok(())
}

fn answer_one(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let (pace, time) = parse_head(head);
    let writer = stream.try_clone()?;
    let sending = thread::spawn(move || pour(writer, pace, time, &AtomicU64::new(0)));
    let received = drain(&mut stream, &AtomicU64::new(0));
    sending
        .join()
        .map_err(|_| io::Error::other("the sender panicked"))??;
    received
}

/// The sending side: all ports at once, then one line of JSON.
pub(super) fn send(arguments: &SendArguments) -> Done {
    let sent = Arc::new(AtomicU64::new(0));
    let received = Arc::new(AtomicU64::new(0));
    let time = Duration::from_millis(arguments.time_ms);
    let mut ports = Vec::new();
    for port in 1..=arguments.ports {
        let (sent, received) = (Arc::clone(&sent), Arc::clone(&received));
        let pace = arguments.octets_per_s;
        let work = move || send_one(port, pace, time, &sent, received);
        ports.push((port, thread::spawn(work)));
    }
    let mut faults = Vec::new();
    for (port, thread) in ports {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => faults.push(format!("client port {port}: {error}")),
            Err(_) => faults.push(format!("client port {port}: the sender panicked")),
        }
    }
    let report = Sent {
        received_octets: received.load(Ordering::Relaxed),
        sent_octets: sent.load(Ordering::Relaxed),
        faults,
    };
    let report = serde_json::to_string(&report).cannot("write the report")?;
    ui::line(report);
    Ok(())
}

fn send_one(
    port: u8,
    pace: u64,
    time: Duration,
    sent: &AtomicU64,
    received: Arc<AtomicU64>,
) -> io::Result<()> {
    let far = SocketAddr::from(([10, 77, port, 2], TCP_PORT));
    let mut stream = TcpStream::connect_timeout(&far, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = [0; 16];
    head[..8].copy_from_slice(&pace.to_be_bytes());
    head[8..].copy_from_slice(&(time.as_millis() as u64).to_be_bytes());
    stream.write_all(&head)?;
    let mut reader = stream.try_clone()?;
    let receiving = thread::spawn(move || drain(&mut reader, &received));
    pour(stream, pace, time, sent)?;
    receiving
        .join()
        .map_err(|_| io::Error::other("the receiver panicked"))?
}

fn parse_head(head: [u8; 16]) -> (u64, Duration) {
    let number = |range: std::ops::Range<usize>| {
        head[range]
            .iter()
            .fold(0, |n, octet| n << 8 | u64::from(*octet))
    };
    (number(0..8), Duration::from_millis(number(8..16)))
}

/// Sends content at the pace for the time, then closes this way of the connection. What the line
/// could not take in time is not made up for: the pace is a bound, not a debt. No pace: TCP sets it.
fn pour(
    mut stream: TcpStream,
    octets_per_s: u64,
    time: Duration,
    sent: &AtomicU64,
) -> io::Result<()> {
    let content = content();
    let piece = match octets_per_s {
        0 => PIECE_OCTETS_MAX,
        pace => ((pace as f64 * TICK.as_secs_f64()) as usize).clamp(1, PIECE_OCTETS_MAX),
    };
    let begin = Instant::now();
    let mut next = begin;
    let mut at = 0;
    while begin.elapsed() < time {
        stream.write_all(&content[at..at + piece])?;
        at = (at + piece) % PERIOD;
        sent.fetch_add(piece as u64, Ordering::Relaxed);
        if octets_per_s == 0 {
            continue;
        }
        next += TICK;
        match next.checked_duration_since(Instant::now()) {
            Some(early) => thread::sleep(early),
            None => next = Instant::now(),
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// Receives to the end and compares.
fn drain(stream: &mut TcpStream, received: &AtomicU64) -> io::Result<()> {
    let content = content();
    let mut room = vec![0; PIECE_OCTETS_MAX];
    let mut at = 0;
    loop {
        let octets = match stream.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(octets) => octets,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if room[..octets] != content[at..at + octets] {
            return Err(io::Error::other(
                "the content that arrived is not the content that was sent",
            ));
        }
        at = (at + octets) % PERIOD;
        received.fetch_add(octets as u64, Ordering::Relaxed);
    }
}

/// One period and what a piece can reach beyond it.
fn content() -> Vec<u8> {
    (0..PERIOD + PIECE_OCTETS_MAX)
        .map(|index| {
            let place = (index % PERIOD) as u32;
            (place.wrapping_mul(0x9E37_79B1) >> 24) as u8
        })
        .collect()
}

impl Sent {
    /// From the line that `send` printed.
    pub(crate) fn parse(line: &str) -> Done<Self> {
        serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("the traffic part said {line:?}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let near =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (far, _) = listener.accept().expect("accepted");
        (near, far)
    }

    #[test]
    fn what_was_poured_is_drained_and_compared() {
        let (near, mut far) = pair();
        let sending = thread::spawn(move || {
            let sent = AtomicU64::new(0);
            pour(near, 40_000_000, Duration::from_millis(200), &sent).map(|()| sent.into_inner())
        });
        let received = AtomicU64::new(0);
        drain(&mut far, &received).expect("the same content");
        let sent = sending.join().expect("no panic").expect("sent");
        assert!(sent > 0);
        assert_eq!(sent, received.into_inner());
    }

    #[test]
    fn changed_content_is_noticed() {
        let (mut near, mut far) = pair();
        let mut octets = content()[..2000].to_vec();
        octets[1234] ^= 1;
        near.write_all(&octets).expect("sent");
        near.shutdown(Shutdown::Write).expect("closed");
        assert!(drain(&mut far, &AtomicU64::new(0)).is_err());
    }

    #[test]
    fn the_head_carries_pace_and_time() {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&5_000_000u64.to_be_bytes());
        head[8..].copy_from_slice(&1500u64.to_be_bytes());
        assert_eq!(parse_head(head), (5_000_000, Duration::from_millis(1500)));
    }
}
