//! Round trips of the host's own stack through a line, measured by `ping`.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::{
    lab::network::Space,
    proc,
    ui::{Context, Done},
};

/// Between two echo requests: a hundred a second, enough for a p99 after a few seconds.
const INTERVAL: Duration = Duration::from_millis(10);

/// A `ping` under way.
pub(crate) struct Ping {
    child: Child,
    log: PathBuf,
}

/// What it found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RoundTrips {
    /// Milliseconds, ascending.
    times_ms: Vec<f64>,
    /// Echo requests sent.
    pub(crate) sent: u64,
    /// Echo replies received.
    pub(crate) received: u64,
}

impl Ping {
    /// Starts one through a client port, for as long as `time`.
    pub(crate) fn start(port: u8, time: Duration, folder: &Path) -> Done<Self> {
        let count = (time.as_millis() / INTERVAL.as_millis()).max(1) as u64;
        let interval = format!("{}", INTERVAL.as_secs_f64());
        let (log, far) = (format!("ping-{port}.log"), format!("10.77.{port}.2"));
        Self::spawn(
            Space::HostsA,
            &far,
            count,
            &["-i", &interval],
            &folder.join(log),
        )
    }

    /// Starts one that sends the next request when the last was answered.
    pub(crate) fn one_by_one(space: Space, far: &str, count: u64, folder: &Path) -> Done<Self> {
        Self::spawn(space, far, count, &["-A"], &folder.join("ping.log"))
    }

    fn spawn(space: Space, far: &str, count: u64, pace: &[&str], log: &Path) -> Done<Self> {
        let output = File::create(log).cannot(format_args!("write {}", log.display()))?;
        let child = space
            .command("ping")
            // -W: wait so long for the last reply. A count and no deadline: every request gets its chance.
            .args(["-n", "-c", &count.to_string(), "-W", "2"])
            .args(pace)
            .arg(far)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .cannot("start ping")?;
        let log = log.to_owned();
        Ok(Self { child, log })
    }

    /// Waits for its end. A ping without any reply ends with an error of its own; that is no failure here.
    pub(crate) fn finish(mut self, patience: Duration) -> Done<RoundTrips> {
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() && begin.elapsed() < patience {
            proc::check_interrupt()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = fs::read_to_string(&self.log).cannot("read what ping says")?;
        Ok(RoundTrips::parse(&text))
    }
}

impl Drop for Ping {
    fn drop(&mut self) {
        proc::end(&mut self.child, Duration::from_millis(200));
    }
}

impl RoundTrips {
    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            if let Some(time) = line.split("time=").nth(1) {
                let number = time.split_whitespace().next().unwrap_or_default();
                found.times_ms.extend(number.parse::<f64>());
            } else if let Some((sent, rest)) = line.split_once(" packets transmitted, ") {
                found.sent = sent.trim().parse().unwrap_or(0);
                let received = rest.split_whitespace().next().unwrap_or_default();
                found.received = received.parse().unwrap_or(0);
            }
        }
        found.times_ms.sort_by(f64::total_cmp);
        found
    }

    /// Both together.
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.times_ms.extend(other.times_ms);
        self.times_ms.sort_by(f64::total_cmp);
        self.sent += other.sent;
        self.received += other.received;
        self
    }

    /// Mean and standard deviation, milliseconds; none without a reply.
    pub(crate) fn mean_and_deviation_ms(&self) -> Option<(f64, f64)> {
        let count = self.times_ms.len() as f64;
        if self.times_ms.is_empty() {
            return None;
        }
        let mean = self.times_ms.iter().sum::<f64>() / count;
        let squares = self.times_ms.iter().map(|time| (time - mean).powi(2));
        Some((mean, (squares.sum::<f64>() / count).sqrt()))
    }

    /// The time that this share of the round trips stays under; 0 to 1.
    pub(crate) fn quantile_ms(&self, share: f64) -> Option<f64> {
        let last = self.times_ms.len().checked_sub(1)?;
        self.times_ms
            .get((share * last as f64).round() as usize)
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The words are those of iputils' ping. tidy: allow packet in this file
    const TEXT: &str = "PING 10.77.1.2 (10.77.1.2) 56(84) bytes of data.\n\
        64 bytes from 10.77.1.2: icmp_seq=1 ttl=64 time=0.300 ms\n\
        64 bytes from 10.77.1.2: icmp_seq=2 ttl=64 time=0.100 ms\n\
        64 bytes from 10.77.1.2: icmp_seq=3 ttl=64 time=0.200 ms\n\n\
        --- 10.77.1.2 ping statistics ---\n\
        4 packets transmitted, 3 received, 25% packet loss, time 30ms\n";

    #[test]
    fn times_and_counts_are_read() {
        let found = RoundTrips::parse(TEXT);
        assert_eq!((found.sent, found.received), (4, 3));
        assert_eq!(found.quantile_ms(0.5), Some(0.2));
        assert_eq!(found.quantile_ms(0.99), Some(0.3));
        let (mean, deviation) = found.mean_and_deviation_ms().expect("replies");
        assert!((mean - 0.2).abs() < 1e-9 && (deviation - 0.0816).abs() < 1e-3);
        let both = found.clone().join(found);
        assert_eq!((both.sent, both.received), (8, 6));
        assert_eq!(both.quantile_ms(0.0), Some(0.1));
    }

    #[test]
    fn no_reply_is_no_time() {
        assert_eq!(RoundTrips::parse("").quantile_ms(0.5), None);
    }
}
