//! Key agreement from a seed: what must hold on a good line, a bad line and a hostile one.
//! A failure names its seed; `SEED=n cargo test -p qloak-sim` runs that seed alone,
//! `SEEDS=1000` the first thousand.

mod bad_line;
mod commands;
mod forger;
mod good_line;
mod supply;

use qloak_api::manage::{AlarmKind, ChannelStatus};
use qloak_cipher::suite::Suite;
use qloak_sim::{Side, World};

fn seeds(count: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, more) => (1..=more.unwrap_or(count)).collect(),
    }
}

fn suite(name: &str) -> &'static Suite {
    Suite::by_name(name).unwrap_or_else(|| panic!("no suite {name}"))
}

fn alarms(world: &World, side: Side) -> Vec<AlarmKind> {
    let state = world.node(side).state(world.now_ns());
    state.alarms.iter().map(|alarm| alarm.kind).collect()
}

fn status(world: &World, side: Side) -> ChannelStatus {
    world.node(side).state(world.now_ns()).channels[0].status
}

fn rekeys(world: &World, side: Side) -> u64 {
    world.node(side).state(world.now_ns()).channels[0].rekeys
}
