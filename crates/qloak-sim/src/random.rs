//! Randomness from a seed: SplitMix64 (Steele, Lea, Flood 2014), enough for dice, nothing for secrets.

/// A stream of numbers that a seed decides.
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.next_u64() % bound
        }
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }

    /// Fills with random octets.
    pub fn fill(&mut self, octets: &mut [u8]) {
        for chunk in octets.chunks_mut(8) {
            let next = self.next_u64().to_be_bytes();
            chunk.copy_from_slice(&next[..chunk.len()]);
        }
    }
}
