//! The TAP benchmark: TCP between two hosts through two TAP ports that are patched together, with and without
//! super-frames, side by side.
//!
//! ```text
//!   [namespace a: sender] tap --- port <-> port --- tap [namespace b: receiver]
//! ```
//!
//! Each host is this program again, inside a namespace that it makes and removes. One thread carries the frames.
//! With and without take turns, round after round, so that a loaded machine slows both; the middle round
//! counts. The rates are of TCP payload: by the clock, and by the time that the carrying thread had a core,
//! kernel included, which a loaded machine changes less.
//!
//! ```text
//! cargo bench -p qloak-port --bench tap -- [--rounds N] [--ms N]
//! ```
//!
//! `cargo test` runs this program without `--bench`, and then it ends at once.

use std::{
    env,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use qloak_port::{Batch, InterfaceConfig, Port, PortConfig, Sizes, TapConfig, open, wait};

/// Frames of a batch, as in a node.
const BATCH_FRAMES: usize = 64;

/// The receiver's address, and where it listens.
const RECEIVER: &str = "10.7.0.2:5001";

/// Most rounds, and most milliseconds of each.
const ROUNDS_MAX: usize = 99;
const ROUND_MS_MAX: u64 = 10_000;

/// A network namespace that goes with this value.
struct Namespace {
    name: String,
}

impl Namespace {
    fn new(name: String) -> Result<Self, String> {
        ip(&format!("netns add {name}"))?;
        Ok(Self { name })
    }

    /// This program inside, in another role.
    fn run(&self, role: &str, more: &[String]) -> Result<Child, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        Command::new("ip")
            .args(["netns", "exec", &self.name])
            .arg(program)
            .arg(role)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`ip netns exec`: {error}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = ip(&format!("netns del {}", self.name)) {
            eprintln!("tap: {error}");
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(words.split_whitespace())
        .output()
        .map_err(|error| format!("`ip` (iproute2) is needed: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`ip {words}`: {}", said.trim()))
}

/// What one round gave.
#[derive(Clone, Copy)]
struct Round {
    gigabits_per_second: f64,
    /// By the time that the carrying thread was on a core.
    gigabits_per_core_second: f64,
    /// Frames that passed the ports, for each frame or super-frame that the sender's kernel handed over.
    frames_per_crossing: f64,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("send") => send(words.get(1)).map_err(|error| error.to_string()),
        Some("receive") => receive().map_err(|error| error.to_string()),
        _ if words.iter().any(|word| word == "--bench") => {
            options(&words).and_then(|(rounds, ms)| measure(rounds, ms))
        }
        _ => Ok(()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("tap: {what}");
            ExitCode::from(2)
        }
    }
}

/// Rounds, and milliseconds of each.
fn options(words: &[String]) -> Result<(usize, u64), String> {
    let (mut rounds, mut ms) = (5, 700);
    let mut words = words.iter().filter(|word| *word != "--bench");
    while let Some(word) = words.next() {
        let number = words.next().and_then(|number| number.parse::<u64>().ok());
        match (word.as_str(), number) {
            ("--rounds", Some(number)) if (1..=ROUNDS_MAX as u64).contains(&number) => {
                rounds = number as usize;
            }
            ("--ms", Some(number)) if (1..=ROUND_MS_MAX).contains(&number) => ms = number,
            _ => {
                return Err(format!(
                    "{word:?}: allowed are --rounds 1 to {ROUNDS_MAX} and --ms 1 to {ROUND_MS_MAX}"
                ));
            }
        }
    }
    Ok((rounds, ms))
}

fn measure(rounds: usize, ms: u64) -> Result<(), String> {
    let name = |end| format!("tap-bench-{}-{end}", std::process::id());
    let not_root = |error| {
        format!(
            "nothing was measured: it needs root for network namespaces and TAP interfaces ({error})"
        )
    };
    let hosts = [
        Namespace::new(name('a')).map_err(not_root)?,
        Namespace::new(name('b')).map_err(not_root)?,
    ];
    println!(
        "TCP, one stream, between two TAP ports; middle of {rounds} rounds of {ms} ms, batches of {BATCH_FRAMES}"
    );
    println!("  MTU  super-frames     Gb/s   Gb/s a core   frames a crossing");
    for mtu in [1500, 9000] {
        let mut taken = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (offload, taken) in [true, false].into_iter().zip(&mut taken) {
                taken.push(round(&hosts, mtu, offload, ms)?);
            }
        }
        let [with, without] = taken.map(middle);
        for (name, row) in [("with", with), ("without", without)] {
            println!(
                "{mtu:>5}  {name:12}  {:7.2}  {:12.2}  {:18.1}",
                row.gigabits_per_second, row.gigabits_per_core_second, row.frames_per_crossing,
            );
        }
        println!(
            "{mtu:>5}  ratio         {:7.2}  {:12.2}",
            with.gigabits_per_second / without.gigabits_per_second,
            with.gigabits_per_core_second / without.gigabits_per_core_second,
        );
    }
    println!(
        "Gb/s a core: of the thread that carries; a crossing: what the receiver's kernel takes at once"
    );
    Ok(())
}

fn middle(mut rounds: Vec<Round>) -> Round {
    rounds.sort_by(|a, b| a.gigabits_per_second.total_cmp(&b.gigabits_per_second));
    rounds[rounds.len() / 2]
}

fn round(hosts: &[Namespace; 2], mtu: usize, offload: bool, ms: u64) -> Result<Round, String> {
    let sizes = Sizes {
        headroom: 64,
        octets_max: mtu + 14,
        tailroom: 64,
    };
    let mut ports = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let interface = InterfaceConfig {
            namespace: Some(host.name.clone()),
            mtu: Some(mtu),
            ..InterfaceConfig::new("tap0")
        };
        let config = TapConfig {
            offload,
            ..TapConfig::new(interface)
        };
        let port = open(&PortConfig::Tap(config), &sizes).map_err(|error| error.to_string())?;
        ip(&format!(
            "-n {} addr add 10.7.0.{}/24 dev tap0",
            host.name,
            number + 1
        ))?;
        ports.push(port);
    }
    let done = AtomicBool::new(false);
    let (received, core_seconds) = thread::scope(|scope| {
        let carrier = scope.spawn(|| {
            if let Err(error) = patch(&mut ports, sizes, &done) {
                eprintln!("tap: {error}");
            }
            core_seconds()
        });
        let talk = || -> Result<String, String> {
            let mut receiver = hosts[1].run("receive", &[])?;
            let sent = hosts[0].run("send", &[ms.to_string()]).and_then(finish);
            if sent.is_err() {
                // It would wait for a sender for ever.
                let _ended_itself = receiver.kill();
            }
            let received = finish(receiver);
            sent.and(received)
        };
        let received = talk();
        done.store(true, Ordering::Relaxed);
        let core_seconds = carrier.join().unwrap_or_default();
        received.map(|received| (received, core_seconds))
    })?;
    let mut numbers = received.split_whitespace().map(str::parse::<f64>);
    let mut number = || numbers.next().and_then(Result::ok);
    let (Some(gigabits), Some(seconds), Some(crossings)) = (number(), number(), number()) else {
        return Err(format!("the receiver said {received:?}"));
    };
    Ok(Round {
        gigabits_per_second: gigabits / seconds,
        gigabits_per_core_second: gigabits / core_seconds,
        frames_per_crossing: ports[1].counters().transmitted_frames as f64 / crossings,
    })
}

/// How long this thread has been on a core (kernel documentation, sched-stats); not a number where the kernel
/// does not say.
fn core_seconds() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(f64::NAN, |ns| ns * 1e-9)
}

/// What a host printed.
fn finish(host: Child) -> Result<String, String> {
    let output = host.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("a host ended with {}", output.status))
    }
}

/// Carries frames from each port to the other until it is done.
fn patch(
    ports: &mut [Box<dyn Port>],
    sizes: Sizes,
    done: &AtomicBool,
) -> Result<(), qloak_port::PortError> {
    let mut batch = Batch::with_sizes(BATCH_FRAMES, sizes);
    let [a, b] = ports else { return Ok(()) };
    while !done.load(Ordering::Relaxed) {
        let mut moved = 0;
        for turn in 0..2 {
            let (from, to) = if turn == 0 {
                (&mut *a, &mut *b)
            } else {
                (&mut *b, &mut *a)
            };
            batch.clear();
            moved += from.receive(&mut batch)?;
            while !batch.is_empty() && !done.load(Ordering::Relaxed) {
                to.transmit(&mut batch)?;
            }
        }
        if moved == 0 {
            let descriptors: Vec<_> = [&*a, &*b]
                .into_iter()
                .filter_map(|port| port.descriptor())
                .collect();
            wait(&descriptors, Duration::from_millis(20))?;
        }
    }
    Ok(())
}

/// Sends for so many milliseconds, as soon as the receiver listens.
fn send(ms: Option<&String>) -> io::Result<()> {
    let ms = ms.and_then(|ms| ms.parse().ok()).unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(10);
    let mut stream = loop {
        match TcpStream::connect(RECEIVER) {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = vec![7; 256 << 10];
    let end = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < end {
        stream.write_all(&text)?;
    }
    Ok(())
}

/// Receives until the sender ends. Prints gigabits, seconds, and how many frames, super-frames as one, the kernel
/// got from the port.
fn receive() -> io::Result<()> {
    let (mut stream, _) = TcpListener::bind(RECEIVER)?.accept()?;
    let mut room = vec![0; 256 << 10];
    let (mut octets, begun) = (0, Instant::now());
    loop {
        match stream.read(&mut room)? {
            0 => break,
            got => octets += got,
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let table = std::fs::read_to_string("/proc/self/net/dev")?;
    let crossings = table
        .lines()
        .find_map(|line| line.trim().strip_prefix("tap0:"))
        .and_then(|line| line.split_whitespace().nth(1))
        .unwrap_or("0");
    println!("{} {seconds} {crossings}", octets as f64 * 8e-9);
    Ok(())
}
