//! What a run starts with.

use qloak_api::{Carriage, Limits};
use qloak_cipher::suite::Suite;
use qloak_node::key_handler::Timings;

use crate::{MS, node};

/// What a run starts with.
#[derive(Clone)]
pub struct Plan {
    /// Everything random comes from it.
    pub seed: u64,
    /// Channels, numbered from 1.
    pub channels: u16,
    /// The suite that all start with.
    pub suite: &'static Suite,
    /// Limits of all outbound SAs.
    pub limits: Limits,
    /// Slots of the key RAMs, by side.
    pub ram_slots: [u32; 2],
    /// How a side carries client frames on its channels.
    pub carriage: [Carriage; 2],
    /// Suites that a side offers.
    pub offered: [Vec<&'static Suite>; 2],
    /// Timings of both key handlers.
    pub timings: Timings,
    /// Client frames for each channel, side and millisecond.
    pub frames_per_ms: u64,
    /// The protecting thread applies a change up to this much later.
    pub pipeline_ns: u64,
}

impl Plan {
    /// One channel of AES-256-GCM and no traffic.
    ///
    /// # Panics
    /// Never: the suite is in the table.
    pub fn new(seed: u64) -> Self {
        let Some(suite) = Suite::by_name("aes-256-gcm") else {
            unreachable!("every node has aes-256-gcm");
        };
        Self {
            seed,
            channels: 1,
            suite,
            limits: Limits::default(),
            ram_slots: [512; 2],
            carriage: [Carriage::Transparent; 2],
            offered: [node::offered(), node::offered()],
            timings: node::timings(),
            frames_per_ms: 0,
            pipeline_ns: MS / 5,
        }
    }
}
