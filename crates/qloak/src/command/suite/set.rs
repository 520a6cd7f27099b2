//! `qloak suite set`.

use std::time::{Duration, Instant};

use clap::Args;
use qloak_api::{
    Limits, SuiteEntry,
    control::{ChannelView, Intent, Overview},
};
use qloak_door::Client;
use serde::Serialize;

use crate::{
    command::{picture, service},
    connect::{Connection, Peer},
    error::{Error, Outcome},
    limits, output, words,
};

/// Say which suite a channel of a link shall use
///
/// The controller tells both ends; traffic goes on meanwhile. Limits that are not given stay as they are.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the link
    link: String,
    /// Number or name of the channel
    channel: String,
    /// Name of the suite, see `qloak suite list`; left out, it stays
    #[arg(required_unless_present_any = ["frames", "octets", "seconds", "rekey_at_percent", "rekey_every_us"])]
    suite: Option<String>,
    /// Wait until both ends encode with it, at most so long (10 unless said)
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    wait: Option<u64>,
    /// Frames that one key may protect
    #[arg(long, value_name = "COUNT", help_heading = "Limits of a key")]
    frames: Option<u64>,
    /// Octets that one key may protect
    #[arg(long, value_name = "COUNT", help_heading = "Limits of a key")]
    octets: Option<u64>,
    /// Seconds that one key may be in use
    #[arg(long, value_name = "COUNT", help_heading = "Limits of a key")]
    seconds: Option<u64>,
    /// Share of a limit at which the next key is agreed on, 1 to 99
    #[arg(long, value_name = "PERCENT", help_heading = "Limits of a key")]
    rekey_at_percent: Option<u8>,
    /// Time after which a key is replaced however far its limits are, in microseconds; 0: the limits alone decide
    #[arg(long, value_name = "MICROSECONDS", help_heading = "Limits of a key")]
    rekey_every_us: Option<u64>,
    // Last: its heading is that of every argument after it.
    #[command(flatten)]
    connection: Connection,
}

/// What became of it.
#[derive(Debug, Serialize)]
struct Report {
    link: String,
    channel: u16,
    intent: Intent,
    /// Both ends encode with it, as far as was waited for.
    converged: bool,
    /// Milliseconds from the command until that was seen; none without `--wait`.
    elapsed_ms: Option<f64>,
    /// The same as the controller measured it.
    controller_ms: Option<f64>,
}

impl Set {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let peer = self.connection.controller()?;
        let report = service::block_on(self.carry_out(&peer))?;
        if json {
            output::json(&report)?;
        } else {
            output::text_line(&self.in_words(&report))?;
        }
        let met = report.converged || self.wait.is_none();
        Ok(if met {
            Outcome::Well
        } else {
            Outcome::NotAllWell
        })
    }

    async fn carry_out(&self, peer: &Peer) -> Result<Report, Error> {
        let overview: Overview = peer.get("/v1/overview").await?;
        let view = picture::channel(&overview, &self.link, &self.channel)?;
        let standing = view.intent.clone();
        let observed = view.observed.first();
        let suite = match &self.suite {
            Some(name) => {
                known_suite(peer, name).await?;
                name.clone()
            }
            None => standing
                .as_ref()
                .map(|intent| intent.suite.clone())
                .or_else(|| observed.map(|end| end.suite_intended.clone()))
                .ok_or_else(|| {
                    Error::Usage("name the suite too: neither end was seen yet".into())
                })?,
        };
        let limits = standing
            .map(|intent| intent.limits)
            .or_else(|| observed.map(|end| end.limits))
            .unwrap_or_default();
        let intent = Intent {
            suite,
            limits: self.limits(limits),
        };
        let (link, channel) = (Client::segment(&view.link), view.channel);
        let begin = Instant::now();
        peer.put(
            &format!("/v1/links/{link}/channels/{channel}/intent"),
            &intent,
        )
        .await?;
        let mut report = Report {
            link: view.link.clone(),
            channel: channel.number(),
            intent,
            converged: false,
            elapsed_ms: None,
            controller_ms: None,
        };
        if let Some(seconds) = self.wait {
            let end = begin + Duration::from_secs(seconds);
            loop {
                let views: Vec<ChannelView> =
                    peer.get(&format!("/v1/links/{link}/channels")).await?;
                let met = views
                    .iter()
                    .find(|view| view.channel == channel && meets(view, &report.intent));
                if let Some(view) = met {
                    report.converged = true;
                    report.controller_ms = view.converged_after_ms;
                    report.elapsed_ms = Some(begin.elapsed().as_secs_f64() * 1000.0);
                    break;
                }
                if Instant::now() >= end {
                    break;
                }
                tokio::time::sleep(limits::WAIT_POLL).await;
            }
        }
        Ok(report)
    }

    fn limits(&self, standing: Limits) -> Limits {
        Limits {
            frames: self.frames.unwrap_or(standing.frames),
            octets: self.octets.unwrap_or(standing.octets),
            seconds: self.seconds.unwrap_or(standing.seconds),
            rekey_at_percent: self.rekey_at_percent.unwrap_or(standing.rekey_at_percent),
            rekey_every_us: match self.rekey_every_us {
                Some(us) => Some(us).filter(|us| *us > 0),
                None => standing.rekey_every_us,
            },
        }
    }

    fn in_words(&self, report: &Report) -> String {
        let Report {
            link,
            channel,
            intent,
            ..
        } = report;
        let what = format!("{link} channel {channel}: {}", intent.suite);
        match (self.wait, report.elapsed_ms) {
            (None, _) => {
                format!("{what} is wanted now; `qloak status` shows when both ends encode with it")
            }
            (Some(_), Some(ms)) => {
                let seen = words::milliseconds(Duration::from_secs_f64(ms / 1000.0));
                let controller = report.controller_ms.map_or(String::new(), |ms| {
                    format!(" ({ms:.1} ms by the controller)")
                });
                format!("{what} at both ends after {seen}{controller}")
            }
            (Some(seconds), None) => output::loud(&format!(
                "{what} is wanted, but was not seen at both ends within {seconds} s; `qloak status` says why"
            )),
        }
    }
}

/// Whether a channel is seen to do what is wanted.
fn meets(view: &ChannelView, intent: &Intent) -> bool {
    let encodes =
        |end: &qloak_api::control::EndView| end.encoding_suite.as_ref() == Some(&intent.suite);
    view.converged && view.intent.as_ref() == Some(intent) && view.observed.iter().all(encodes)
}

/// Refuses a name that no node offers, with the nearest ones.
async fn known_suite(peer: &Peer, name: &str) -> Result<(), Error> {
    let suites: Vec<SuiteEntry> = peer.get("/v1/suites").await?;
    // A controller that has seen no node yet knows no suite: then it shall say so itself.
    if suites.is_empty() || suites.iter().any(|suite| suite.name == name) {
        return Ok(());
    }
    Err(Error::unknown(
        "suite",
        name,
        suites
            .iter()
            .filter(|suite| !suite.hazmat)
            .map(|suite| suite.name.as_str()),
    ))
}
