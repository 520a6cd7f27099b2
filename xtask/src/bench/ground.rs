//! What every benchmark of the whole product stands on: namespaces, the tools that make them, and the lab
//! with all channels open.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    lab::{
        Lab,
        config::Place,
        count::{Count, Snapshot},
        layout::{Layout, Threads},
        network,
        programs::Part,
    },
    parts::Sent,
    proc,
    setup::{self, Need},
    tree,
    ui::{self, Done, Failure},
};

/// How a benchmark in the lab is told what everybody wants to tell it.
#[derive(clap::Args)]
pub(super) struct Common {
    /// One JSON document instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Measure this `qloak` instead of building one.
    #[arg(long, value_name = "FILE")]
    pub(super) binary: Option<std::path::PathBuf>,
    /// Threads that carry the frames of each node: 2, one each way, or 1 for both.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(super) threads: u8,
    /// These threads never sleep. Wants a core for each of them.
    #[arg(long)]
    pub(super) busy_poll: bool,
}

impl Common {
    /// Makes sure that there can be a lab here, and that whoever wants JSON gets nothing else.
    pub(super) fn prepare(&self, needs: &[Need]) -> Done {
        if self.json {
            ui::keep_output_for_json();
        }
        if !tree::is_root() {
            return Err(Failure::new(
                "this benchmark makes network namespaces: run it as root",
            ));
        }
        setup::ensure(&[Need::Iproute2, Need::Ethtool])?;
        setup::ensure(needs)?;
        match network::obstacle() {
            Some(why) => Err(Failure::new(format!(
                "root, but no network namespaces here: {why}"
            ))),
            None => Ok(()),
        }
    }

    /// The lab with all channels open.
    pub(super) fn open(&self, layout: &Layout) -> Done<Lab> {
        let binary: Option<&Path> = self.binary.as_deref();
        let layout = Layout {
            threads: Threads {
                count: self.threads,
                busy_poll: self.busy_poll,
            },
            ..layout.clone()
        };
        let mut lab = Lab::start(Place::Namespaces, &layout, binary, |_| Ok(()))?;
        lab.until_open(&mut |_, _| {})?;
        Ok(lab)
    }
}

/// How long TCP may take to end after its time: the last retransmission of a stalled machine included.
const TCP_END_PATIENCE: Duration = Duration::from_secs(40);

/// What TCP through all client ports came to.
pub(super) struct Loaded {
    /// From its begin to its end.
    pub(super) time: Duration,
    /// From the first count to the last: longer, because nothing may be under way at either.
    pub(super) counted: Duration,
    /// Everything that was counted, taken while nothing was under way.
    pub(super) count: Count,
    /// Losses, contradictions between the counters of the two nodes, complaints of TCP; in words.
    pub(super) faults: Vec<String>,
}

/// TCP through all client ports for a time, both ways (0 octets per second: as fast as it goes), and
/// `meanwhile` again and again until it ends, told how long the load is on. [`Part::answer`] must be there.
pub(super) fn under_load(
    lab: &mut Lab,
    layout: &Layout,
    time: Duration,
    octets_per_s: u64,
    mut meanwhile: impl FnMut(&mut Lab, Duration) -> Done,
) -> Done<Loaded> {
    let (before, still_before) = snapshot(lab)?;
    let counted = Instant::now();
    let traffic = Part::send(lab.folder(), layout.client_ports(), time, octets_per_s)?;
    let begin = Instant::now();
    let sent = loop {
        proc::check_interrupt()?;
        if let Some(line) = traffic.said()? {
            break Sent::parse(&line)?;
        }
        if begin.elapsed() > time + TCP_END_PATIENCE {
            return Err(Failure::new("the traffic did not end"));
        }
        meanwhile(lab, begin.elapsed())?;
    };
    let time = begin.elapsed();
    let (after, still_after) = snapshot(lab)?;
    let counted = counted.elapsed();
    let count = after.since(&before);
    let mut faults: Vec<String> = sent
        .faults
        .iter()
        .map(|text| format!("TCP: {text}"))
        .collect();
    if still_before && still_after {
        faults.extend(count.losses());
        faults.extend(after.disagreements(&before));
    } else {
        faults.push("frames never stood still, so what was lost is not known".to_owned());
    }
    Ok(Loaded {
        time,
        counted,
        count,
        faults,
    })
}

/// Everything that counts, while nothing is under way; false when frames still came after all patience.
fn snapshot(lab: &mut Lab) -> Done<(Snapshot, bool)> {
    let (a, b, still) = lab.drain(&mut |_, _| {})?;
    Ok((Snapshot::take(a, b, true)?, still))
}
