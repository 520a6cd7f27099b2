//! One direction of the line: what becomes of a frame between two line ports.

use crate::{MS, Random};

/// How a direction treats frames.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    /// From one end to the other.
    pub delay_ns: u64,
    /// Up to this much more for each frame alone: frames overtake one another.
    pub jitter_ns: u64,
    /// Frames that are lost, 0 to 1.
    pub loss: f64,
    /// Frames that arrive twice, 0 to 1.
    pub duplication: f64,
    /// Nothing arrives.
    pub cut: bool,
}

impl Default for Wire {
    /// Twenty kilometres of good fibre.
    fn default() -> Self {
        Self {
            delay_ns: MS / 10,
            jitter_ns: 0,
            loss: 0.0,
            duplication: 0.0,
            cut: false,
        }
    }
}

impl Wire {
    /// When the copies of a frame that is sent now arrive.
    pub fn arrivals(&self, now_ns: u64, random: &mut Random) -> Vec<u64> {
        if self.cut || random.chance(self.loss) {
            return Vec::new();
        }
        let copies = if random.chance(self.duplication) {
            2
        } else {
            1
        };
        let arrival = |_| now_ns + self.delay_ns + random.below(self.jitter_ns + 1);
        (0..copies).map(arrival).collect()
    }
}
