//! TCP, UDP and ping from one namespace to another, the same for everybody: iperf3 and ping of Debian.
//!
//! The tools speak of packets in their JSON. tidy: allow packet in this file

use std::{
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    lab::{network::Space, ping::Ping},
    proc,
    ui::{Context, Done, Failure},
};

/// Octets of an IPv4 datagram of the UDP measurement, and of its two headers.
const DATAGRAM_OCTETS: usize = 1400;
const HEADER_OCTETS: usize = 28;

/// What a sender of UDP offers, Gb/s; 0: all that it can. Which one is delivered best differs: a receiver
/// that is overrun delivers less than one that is not.
const UDP_OFFERED_GBPS: [f64; 6] = [0.0, 0.5, 1.0, 2.0, 3.0, 4.5];

/// A mean round trip longer than this is a stalled machine.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(5);

/// How long each measurement takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    tcp_s: u64,
    udp_s: u64,
    pings: u64,
}

impl Times {
    /// For a record.
    pub(super) const FULL: Self = Self {
        tcp_s: 6,
        udp_s: 3,
        pings: 20_000,
    };
    /// For a look.
    pub(super) const QUICK: Self = Self {
        tcp_s: 1,
        udp_s: 1,
        pings: 2_000,
    };
}

/// From where to where.
pub(super) struct Route<'a> {
    pub(super) from: Space,
    pub(super) to: Space,
    /// The address there.
    pub(super) far: &'a str,
    /// Where logs go.
    pub(super) folder: &'a Path,
}

/// What was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    /// One stream, octets that the receiver got.
    pub(super) tcp_gbps: Option<f64>,
    /// Million datagrams a second delivered, the most of all offered rates.
    pub(super) udp_mfps: Option<f64>,
    pub(super) ping_mean_us: Option<f64>,
    pub(super) ping_p50_us: Option<f64>,
    pub(super) ping_p99_us: Option<f64>,
}

/// Measures all of it.
pub(super) fn route(route: &Route<'_>, times: Times) -> Done<Figures> {
    let us = |ms: f64| ms * 1000.0;
    let ping = |count| Ping::one_by_one(route.from, route.far, count, route.folder);
    // The first round trips resolve addresses and wake what sleeps.
    ping(50)?.finish(Duration::from_secs(10))?;
    let patience = ROUND_TRIP_MAX * u32::try_from(times.pings).unwrap_or(u32::MAX);
    let trips = ping(times.pings)?.finish(patience)?;
    let server = Server::start(route)?;
    let tcp: Tcp = client(route, &["-t", &times.tcp_s.to_string()], times.tcp_s)?;
    let payload = (DATAGRAM_OCTETS - HEADER_OCTETS).to_string();
    let mut most: Option<f64> = None;
    for gbps in UDP_OFFERED_GBPS {
        let (seconds, rate) = (times.udp_s.to_string(), format!("{gbps}G"));
        let arguments = ["-u", "-b", &rate, "-l", &payload, "-t", &seconds];
        // A receiver that is overrun may lose the last words of the test; the other rates tell.
        let Ok(udp) = client::<Udp>(route, &arguments, times.udp_s) else {
            continue;
        };
        let delivered = udp.end.sum.delivered_mfps();
        most = Some(most.map_or(delivered, |most| most.max(delivered)));
    }
    drop(server);
    Ok(Figures {
        tcp_gbps: Some(tcp.end.sum_received.bits_per_second * 1e-9),
        udp_mfps: most,
        ping_mean_us: trips.mean_and_deviation_ms().map(|(mean, _)| us(mean)),
        ping_p50_us: trips.quantile_ms(0.5).map(us),
        ping_p99_us: trips.quantile_ms(0.99).map(us),
    })
}

/// `iperf3 -s` at the far end, ended with this.
struct Server(Child);

impl Server {
    fn start(route: &Route<'_>) -> Done<Self> {
        use std::os::unix::process::CommandExt;
        let child = route
            .to
            .command("iperf3")
            .args(["-s", "-B", route.far])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .cannot("start iperf3")?;
        thread::sleep(Duration::from_millis(300));
        Ok(Self(child))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        proc::end(&mut self.0, Duration::from_secs(1));
    }
}

/// One run of `iperf3 -c`, killed when it takes far too long.
fn client<T: for<'a> Deserialize<'a>>(
    route: &Route<'_>,
    arguments: &[&str],
    seconds: u64,
) -> Done<T> {
    proc::check_interrupt()?;
    let mut command = route.from.command("timeout");
    command
        .arg((seconds + 15).to_string())
        .args(["iperf3", "-J", "-c", route.far])
        .args(arguments);
    let text = proc::output(&mut command)?;
    serde_json::from_str(&text).map_err(|error| {
        let begin: String = text.chars().take(300).collect();
        Failure::new(format!("iperf3 said {begin:?}: {error}"))
    })
}

#[derive(Deserialize)]
struct Tcp {
    end: TcpEnd,
}

#[derive(Deserialize)]
struct TcpEnd {
    sum_received: Stream,
}

#[derive(Deserialize)]
struct Stream {
    bits_per_second: f64,
}

#[derive(Deserialize)]
struct Udp {
    end: UdpEnd,
}

#[derive(Deserialize)]
struct UdpEnd {
    sum: Datagrams,
}

/// What the receiver told the sender at the end.
#[derive(Deserialize)]
struct Datagrams {
    seconds: f64,
    packets: u64,
    lost_packets: i64,
}

impl Datagrams {
    fn delivered_mfps(&self) -> f64 {
        let delivered = self.packets as f64 - self.lost_packets.max(0) as f64;
        delivered * 1e-6 / self.seconds.max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_says_of_tcp() {
        let text = r#"{"end":{"sum_sent":{"bits_per_second":9e9},"sum_received":{"bits_per_second":7.5e9}}}"#;
        let tcp: Tcp = serde_json::from_str(text).expect("understood");
        assert_eq!(tcp.end.sum_received.bits_per_second, 7.5e9);
    }

    #[test]
    fn what_iperf3_says_of_udp() {
        let text = r#"{"end":{"sum":{"seconds":2.0,"packets":1000000,"lost_packets":200000}}}"#;
        let udp: Udp = serde_json::from_str(text).expect("understood");
        assert!((udp.end.sum.delivered_mfps() - 0.4).abs() < 1e-9);
    }
}
