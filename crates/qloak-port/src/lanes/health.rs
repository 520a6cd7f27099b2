//! Which lanes carry: each end tells the other, on every lane, which of its lanes it hears.
//!
//! ```text
//!   probe   DA | SA | 0x88B6 | "lane" | version 1 | number of the lane | bits of lanes heard | zeros to 60
//!
//!   we transmit on lane n  <=  the far end said, within 6 ms, that it heard a probe of our lane n within 6 ms
//! ```
//!
//! A probe goes out on each lane each 2 ms, dead or not, so a lane that dies is left out within 10 ms and one
//! that heals is taken back as fast. Without word from the far end every lane is used: then no choice
//! is better. Probes are not authenticated: whoever can forge them is on the line and can cut lanes anyway.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::limits::{LANE_DEAD_NS, LANE_PROBE_NS, LANES_MAX};

/// Local experimental 2 (IEEE 802-2014, 9.2.3): not seen outside a SecTAG otherwise.
const ETHERTYPE: [u8; 2] = [0x88, 0xb6];

/// What a probe begins with behind its EtherType.
const MAGIC: [u8; 5] = *b"lane\x01";

/// Octets of a probe: the shortest Ethernet frame.
pub(super) const PROBE_OCTETS: usize = 60;

/// What the handles of a port share.
pub(super) struct Usable(AtomicU32);

impl Usable {
    /// All lanes, to begin with.
    pub(super) fn all(lanes: usize) -> Self {
        Self(AtomicU32::new(bits(lanes)))
    }

    /// The lanes to transmit on, as bits; never none.
    pub(super) fn lanes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the receiving handle knows.
pub(super) struct Health {
    lanes: usize,
    /// When a probe of the far end's lane came last.
    heard_ns: [Option<u64>; LANES_MAX],
    /// Which of our lanes the far end hears, and when it said so.
    told: Option<(u32, u64)>,
    next_probe_ns: u64,
}

impl Health {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes,
            heard_ns: [None; LANES_MAX],
            told: None,
            next_probe_ns: 0,
        }
    }

    /// Whether it is time for probes.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let due = now_ns >= self.next_probe_ns;
        if due {
            self.next_probe_ns = now_ns + LANE_PROBE_NS;
        }
        due
    }

    /// The probe of a lane.
    pub(super) fn probe(
        &self,
        to: [u8; 6],
        from: [u8; 6],
        lane: usize,
        now_ns: u64,
    ) -> [u8; PROBE_OCTETS] {
        let mut heard = 0_u32;
        for (lane, heard_ns) in self.heard_ns.iter().enumerate() {
            if heard_ns.is_some_and(|heard_ns| now_ns.saturating_sub(heard_ns) < LANE_DEAD_NS) {
                heard |= 1 << lane;
            }
        }
        let mut probe = [0; PROBE_OCTETS];
        probe[..6].copy_from_slice(&to);
        probe[6..12].copy_from_slice(&from);
        probe[12..14].copy_from_slice(&ETHERTYPE);
        probe[14..19].copy_from_slice(&MAGIC);
        probe[19] = lane as u8;
        probe[20..24].copy_from_slice(&heard.to_be_bytes());
        probe
    }

    /// Whether a frame is a probe; if so it is heeded.
    pub(super) fn heed(&mut self, frame: &[u8], now_ns: u64) -> bool {
        let Some((head, rest)) = frame.get(12..).and_then(|rest| rest.split_at_checked(7)) else {
            return false;
        };
        if head[..2] != ETHERTYPE || head[2..] != MAGIC {
            return false;
        }
        if let Some(&[lane, a, b, c, d]) = rest.first_chunk::<5>() {
            if let Some(heard_ns) = self.heard_ns.get_mut(usize::from(lane)) {
                *heard_ns = Some(now_ns);
            }
            self.told = Some((u32::from_be_bytes([a, b, c, d]), now_ns));
        }
        true
    }

    /// Says on which lanes to transmit.
    pub(super) fn judge(&self, now_ns: u64, usable: &Usable) {
        let all = bits(self.lanes);
        let told = self
            .told
            .filter(|(_, told_ns)| now_ns.saturating_sub(*told_ns) < LANE_DEAD_NS);
        let lanes = match told.map_or(0, |(lanes, _)| lanes & all) {
            0 => all,
            lanes => lanes,
        };
        usable.0.store(lanes, Ordering::Relaxed);
    }
}

/// A bit for each lane.
fn bits(lanes: usize) -> u32 {
    u32::MAX >> (32 - lanes.clamp(1, LANES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Two ends with lanes of which some are dead, for so many milliseconds; what the first may use at each.
    fn run(ends: &mut [Health; 2], from_ms: u64, ms: u64, dead: u32) -> Vec<u32> {
        let usable = Usable::all(ends[0].lanes);
        let mut seen = Vec::new();
        for now_ms in from_ms..from_ms + ms {
            let now_ns = now_ms * MS;
            for (from, to) in [(0, 1), (1, 0)] {
                if ends[from].is_due(now_ns) {
                    for lane in 0..ends[from].lanes {
                        let probe = ends[from].probe([1; 6], [2; 6], lane, now_ns);
                        if dead & 1 << lane == 0 {
                            assert!(ends[to].heed(&probe, now_ns));
                        }
                    }
                }
            }
            ends[0].judge(now_ns, &usable);
            seen.push(usable.lanes());
        }
        seen
    }

    #[test]
    fn a_dead_lane_is_left_out_within_10_ms_and_taken_back_as_fast() {
        let mut ends = [Health::new(4), Health::new(4)];
        let seen = run(&mut ends, 0, 100, 0);
        assert!(seen[10..].iter().all(|lanes| *lanes == 0b1111), "{seen:?}");
        let seen = run(&mut ends, 100, 100, 0b0100);
        assert!(seen[10..].iter().all(|lanes| *lanes == 0b1011), "{seen:?}");
        let seen = run(&mut ends, 200, 100, 0);
        assert!(seen[10..].iter().all(|lanes| *lanes == 0b1111), "{seen:?}");
        let seen = run(&mut ends, 300, 100, 0b1110);
        assert!(seen[10..].iter().all(|lanes| *lanes == 0b0001), "{seen:?}");
        let seen = run(&mut ends, 400, 100, 0b1111);
        assert!(
            seen[10..].iter().all(|lanes| *lanes == 0b1111),
            "none is better than another"
        );
    }

    #[test]
    fn what_is_no_probe_is_left_alone() {
        let mut health = Health::new(2);
        let probe = health.probe([1; 6], [2; 6], 1, 0);
        for octets in 0..19 {
            assert!(!health.heed(&probe[..octets], 0));
        }
        for at in 12..19 {
            let mut other = probe;
            other[at] ^= 1;
            assert!(!health.heed(&other, 0));
        }
        // A number that no lane has, and one cut short: a probe that says nothing.
        let mut other = probe;
        other[19] = 200;
        assert!(health.heed(&other, 0) && health.heed(&probe[..20], 0));
    }
}
