//! What the demo walks through, in order, and what must be true of each phase.
//!
//! | phase | while traffic flows | must be so |
//! |---|---|---|
//! | first suite | nothing | nothing lost |
//! | change of suite | one command to the controller | nothing lost, all channels under the new suite |
//! | rekey | rekeys of all channels, again and again | nothing lost, rekeys counted |
//! | key supply cut | both KMSs stop, come back later | the old key goes on, alarm, closed at the limit, open again |
//! | attack | frames replayed, changed, forged on the line | each one counted, none delivered |

use std::time::{Duration, Instant};

use super::{report::Row, stage::Stage};
use crate::{
    lab::{
        config::{Place, Site},
        count::{Count, Snapshot},
        layout::{CHANNELS, CLIENT_PORTS, FIRST_SUITE},
        ping::{Ping, RoundTrips},
        programs::Part,
        state::Node,
    },
    parts::{Injected, Sent},
    ui::{BAD, Done, Failure, GOOD, NOTE},
};

/// Octets per second on each client port and way: 20 Mb/s, on ten ports both ways 400 Mb/s. Two cores
/// carry that under the slowest suite too, with the hosts' TCP, both nodes and the demo on them.
const PACE: u64 = 2_500_000;

/// Frames of each kind that the attack puts on the line.
const ATTACK_FRAMES: u64 = 50;

/// Client ports that carry a ping: one of the aggregated channel, one of a transparent one.
const PING_PORTS: [u8; 2] = [1, 10];

/// The limit of an SA while the key supply is cut, and the share at which a rekey is tried.
const CUT_LIMIT: Duration = Duration::from_secs(5);
const CUT_REKEY_PERCENT: u8 = 40;

/// What is done while traffic flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Nothing.
    Look,
    /// All channels change to this suite.
    Suite(&'static str),
    /// All channels take a new key, this many times.
    Rekey(u32),
    /// The KMSs stop and come back.
    Cut,
    /// An attacker on the line.
    Attack,
}

/// A phase of the demo.
pub(crate) struct Phase {
    title: String,
    act: Act,
    /// How long traffic flows.
    pub(crate) time: Duration,
}

/// All phases that can be shown at a place.
pub(crate) fn plan(quick: bool, place: Place) -> Vec<Phase> {
    let s = |full: u64, short: u64| Duration::from_secs(if quick { short } else { full });
    let suite = |name: &'static str| Phase {
        title: name.to_owned(),
        act: Act::Suite(name),
        time: s(10, 4),
    };
    let phase = |title: &str, act, time| Phase {
        title: title.to_owned(),
        act,
        time,
    };
    let mut plan = vec![
        phase(FIRST_SUITE, Act::Look, s(8, 3)),
        suite("camellia-256-gcm"),
        suite("serpent-256-ocb"),
        suite("aes-128-ocb"),
        phase(
            "rekey under load",
            Act::Rekey(if quick { 5 } else { 15 }),
            s(12, 4),
        ),
        phase("key supply cut", Act::Cut, s(14, 10)),
    ];
    if place == Place::Namespaces {
        plan.push(phase("attack", Act::Attack, s(6, 3)));
    }
    plan
}

/// Walks through all phases; a failure of the stage itself ends the walk.
pub(crate) fn walk(stage: &mut Stage, plan: &[Phase]) -> Done<Vec<Row>> {
    let mut rows = Vec::new();
    for (index, phase) in plan.iter().enumerate() {
        stage.view.phase(index + 1, plan.len(), &phase.title);
        rows.push(walk_one(stage, phase)?);
    }
    Ok(rows)
}

fn walk_one(stage: &mut Stage, phase: &Phase) -> Done<Row> {
    let before = snapshot(stage)?;
    let traffic = Traffic::start(stage, phase, &before)?;
    let begin = Instant::now();
    let mut seen = Seen::default();
    stage.watch(Duration::from_millis(700))?;
    act(stage, phase, &mut seen)?;
    let ended = traffic.finish(stage, phase, begin)?;
    // Captured traffic flows as long as it was laid out for, whatever we did meanwhile.
    let time = match stage.lab.place {
        Place::Namespaces => ended.time,
        Place::Memory { .. } => phase.time,
    };
    seen.faults
        .extend(ended.tcp.into_iter().map(|text| format!("TCP: {text}")));
    let after = snapshot(stage)?;
    let mut row = Row {
        title: phase.title.clone(),
        time,
        round_trips: ended.round_trips,
        change_ms: seen.change_ms,
        faults: seen.faults,
        notes: seen.notes,
        count: after.since(&before),
    };
    judge(&mut row, phase.act, &before, &after);
    if let Some(injected) = seen.injected {
        judge_attack(&mut row, &injected);
    }
    for fault in &row.faults {
        stage.view.event(BAD, fault);
    }
    if row.faults.is_empty() {
        let text = format!(
            "{} frames in, {} out, none lost",
            row.count.taken, row.count.delivered
        );
        stage.view.event(GOOD, &text);
    }
    Ok(row)
}

/// Everything that counts, while nothing is under way.
fn snapshot(stage: &mut Stage) -> Done<Snapshot> {
    let (a, b) = stage.drain()?;
    Snapshot::take(a, b, stage.lab.place == Place::Namespaces)
}

/// The traffic of a phase.
enum Traffic {
    /// TCP and pings of the hosts' own stack.
    Live { tcp: Part, pings: Vec<Ping> },
    /// Frames that the client ports read from a file at their own time.
    Captured,
}

/// What the traffic says at its end.
#[derive(Default)]
struct Ended {
    time: Duration,
    tcp: Vec<String>,
    round_trips: RoundTrips,
}

impl Traffic {
    fn start(stage: &mut Stage, phase: &Phase, before: &Snapshot) -> Done<Self> {
        if stage.lab.place == Place::Namespaces {
            let tcp = Part::send(stage.folder(), CLIENT_PORTS, phase.time, PACE)?;
            let pings = PING_PORTS
                .iter()
                .map(|port| Ping::start(*port, phase.time, stage.folder()));
            return Ok(Self::Live {
                tcp,
                pings: pings.collect::<Done<_>>()?,
            });
        }
        let taken = |node: &Node| -> u64 {
            node.clients
                .iter()
                .map(|client| client.port.counters.received_frames)
                .sum()
        };
        let silent = taken(&before.a);
        let begun = stage.until(Duration::from_secs(20), |a, _| taken(a) > silent)?;
        begun.map(|_| Self::Captured).ok_or_else(|| {
            Failure::new(format!(
                "no captured traffic came for phase {}",
                phase.title
            ))
        })
    }

    fn finish(self, stage: &mut Stage, phase: &Phase, begin: Instant) -> Done<Ended> {
        let Self::Live { tcp, pings } = self else {
            // The next silence ends it; draining waits for that.
            return Ok(Ended::default());
        };
        let patience = phase.time + Duration::from_secs(40);
        let sent = loop {
            if let Some(line) = tcp.said()? {
                break Sent::parse(&line)?;
            }
            if begin.elapsed() > patience {
                return Err(Failure::new(format!(
                    "the traffic of phase {} did not end",
                    phase.title
                )));
            }
            stage.watch(Duration::from_millis(200))?;
        };
        let mut ended = Ended {
            time: begin.elapsed(),
            tcp: sent.faults,
            ..Ended::default()
        };
        for ping in pings {
            ended.round_trips = ended.round_trips.join(ping.finish(Duration::from_secs(5))?);
        }
        Ok(ended)
    }
}

/// What an act saw.
#[derive(Default)]
struct Seen {
    change_ms: Option<f64>,
    injected: Option<Injected>,
    faults: Vec<String>,
    notes: Vec<String>,
}

fn act(stage: &mut Stage, phase: &Phase, seen: &mut Seen) -> Done {
    match phase.act {
        Act::Look => Ok(()),
        Act::Suite(suite) => change_suite(stage, suite, seen),
        Act::Rekey(times) => rekey(stage, times),
        Act::Cut => cut(stage, seen),
        Act::Attack => attack(stage, seen),
    }
}

fn change_suite(stage: &mut Stage, suite: &'static str, seen: &mut Seen) -> Done {
    for (channel, name, ..) in CHANNELS {
        stage
            .view
            .event(NOTE, &format!("qloak suite set: {name} to {suite}"));
        stage.lab.operator.set_suite(channel, suite)?;
    }
    let patience = Duration::from_secs(10);
    if stage
        .until(patience, |a, b| a.all_encode(suite) && b.all_encode(suite))?
        .is_none()
    {
        seen.faults
            .push(format!("not every channel encodes with {suite}"));
    }
    // The old SA is retired a moment after the new one encodes; the time is known then.
    stage.watch(Duration::from_millis(300))?;
    let (a, b) = stage.look()?;
    seen.change_ms = [&a, &b]
        .iter()
        .flat_map(|node| &node.channels)
        .filter_map(|channel| channel.last_suite_change_ms)
        .fold(None, |most: Option<f64>, ms| {
            Some(most.map_or(ms, |most| most.max(ms)))
        });
    if seen.change_ms.is_none() {
        seen.faults
            .push("no node says how long the change took".to_owned());
    }
    Ok(())
}

fn rekey(stage: &mut Stage, times: u32) -> Done {
    stage.view.event(
        NOTE,
        &format!("qloak key rekey: all channels, {times} times"),
    );
    for _ in 0..times {
        for (channel, ..) in CHANNELS {
            stage.lab.operator.rekey(channel)?;
        }
        stage.watch(Duration::from_millis(250))?;
    }
    Ok(())
}

fn cut(stage: &mut Stage, seen: &mut Seen) -> Done {
    let tell = |stage: &Stage, text: &str| stage.view.event(NOTE, text);
    tell(
        stage,
        &format!("limit of every SA: {} s", CUT_LIMIT.as_secs()),
    );
    for (channel, ..) in CHANNELS {
        stage
            .lab
            .operator
            .set_limit_seconds(channel, CUT_LIMIT.as_secs(), CUT_REKEY_PERCENT)?;
    }
    for (channel, ..) in CHANNELS {
        stage.lab.operator.rekey(channel)?;
    }
    stage.watch(Duration::from_millis(500))?;
    tell(
        stage,
        "both KMSs stop; both nodes forget the keys that they had fetched ahead",
    );
    for kms in &mut stage.lab.kms {
        kms.stop();
    }
    for site in Site::BOTH {
        stage.lab.operator.soft_reset(site)?;
    }
    let cut = Instant::now();
    let mut expect =
        |stage: &mut Stage, what: &str, patience, is_so: &dyn Fn(&Node, &Node) -> bool| -> Done {
            match stage.until(patience, is_so)? {
                Some(_) => {
                    let at = cut.elapsed().as_secs_f64();
                    stage
                        .view
                        .event(NOTE, &format!("{what}, {at:.1} s after the cut"));
                    seen.notes.push(format!("{what} {at:.1} s after the cut"));
                }
                None => seen.faults.push(format!("this did not happen: {what}")),
            }
            Ok(())
        };
    expect(
        stage,
        "alarm key-supply while the old key goes on",
        CUT_LIMIT,
        &|a, b| {
            [a, b].iter().all(|node| {
                node.alarms.iter().any(|alarm| alarm.kind == "key-supply") && node.all_open()
            })
        },
    )?;
    expect(
        stage,
        "limit reached, every channel closed",
        CUT_LIMIT * 2,
        &|a, b| {
            [a, b].iter().all(|node| {
                node.channels
                    .iter()
                    .all(|channel| channel.status == "closed")
            })
        },
    )?;
    stage.watch(Duration::from_millis(500))?;
    tell(stage, "both KMSs start again");
    for kms in &mut stage.lab.kms {
        kms.start()?;
    }
    expect(
        stage,
        "every channel open again without an operator",
        Duration::from_secs(15),
        &|a, b| a.all_open() && b.all_open(),
    )?;
    for (channel, ..) in CHANNELS {
        stage.lab.operator.set_limit_seconds(channel, 3600, 80)?;
    }
    Ok(())
}

fn attack(stage: &mut Stage, seen: &mut Seen) -> Done {
    // A rekey just before, so that there are announces of this very association to repeat.
    for (channel, ..) in CHANNELS {
        stage.lab.operator.rekey(channel)?;
    }
    stage.watch(Duration::from_millis(800))?;
    let Some(line) = &mut stage.line else {
        return Ok(());
    };
    line.tell(&ATTACK_FRAMES.to_string())?;
    let injected = Injected::parse(&line.hear(Duration::from_secs(10))?)?;
    let text = format!(
        "on the line: {} frames replayed, {} changed, {} announces forged, {} replayed",
        injected.replayed, injected.changed, injected.announces_forged, injected.announces_replayed
    );
    stage.view.event(NOTE, &text);
    seen.injected = Some(injected);
    stage.watch(Duration::from_millis(500))
}

/// What must be so in every phase.
fn judge(row: &mut Row, act: Act, before: &Snapshot, after: &Snapshot) {
    let Count {
        lost,
        extra,
        refused,
        rekeys,
        taken,
        ..
    } = row.count;
    let mut fault = |text: String| row.faults.push(text);
    if lost > 0 {
        fault(format!(
            "{lost} client frames lost, {} of them dropped by the kernel at client ports; on the line {} frames were dropped",
            row.count.kernel_drops,
            after.line_drops_since(before)
        ));
    }
    if extra > 0 {
        fault(format!(
            "{extra} frames were delivered that no client had sent"
        ));
    }
    if taken == 0 {
        fault("no traffic".to_owned());
    }
    let closes = act == Act::Cut;
    if !closes && refused > 0 {
        fault(format!("{refused} frames met a closed channel"));
    }
    if closes && refused == 0 {
        fault("no frame met a closed channel, so it never failed closed".to_owned());
    }
    if !closes && row.round_trips.received < row.round_trips.sent {
        let missing = row.round_trips.sent - row.round_trips.received;
        fault(format!(
            "{missing} of {} pings without reply",
            row.round_trips.sent
        ));
    }
    // Each rekey changes an SA at each end of each channel.
    if let Act::Rekey(times) = act
        && rekeys < u64::from(times) * CHANNELS.len() as u64
    {
        fault(format!(
            "{rekeys} rekeys were counted, {times} of each channel were asked for"
        ));
    }
}

/// Every injected frame must have been counted for what it was.
fn judge_attack(row: &mut Row, injected: &Injected) {
    let checks = [
        ("replayed frames", injected.replayed, row.count.replayed),
        ("changed frames", injected.changed, row.count.not_valid),
        (
            "forged announces",
            injected.announces_forged,
            row.count.agreement_forged,
        ),
        (
            "replayed announces",
            injected.announces_replayed,
            row.count.agreement_replayed,
        ),
    ];
    for (what, injected, counted) in checks {
        if injected == 0 {
            row.faults.push(format!("no {what} could be injected"));
        } else if counted != injected {
            row.faults.push(format!(
                "{injected} {what} were injected, {counted} were counted"
            ));
        } else {
            row.notes.push(format!(
                "{injected} {what} injected, {counted} counted, none delivered"
            ));
        }
    }
}
