//! Key agreement from a seed: what must hold on a good line, a bad line and a hostile one.
//! A failure names its seed; `SEED=n cargo test -p qloak-sim` runs that seed alone.

mod bad_line;
mod commands;
mod forger;
mod good_line;
mod supply;

use qloak_api::manage::{AlarmKind, ChannelStatus};
use qloak_cipher::suite::Suite;
use qloak_sim::{Side, World};

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => vec![seed],
        None => (1..=count).collect(),
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
