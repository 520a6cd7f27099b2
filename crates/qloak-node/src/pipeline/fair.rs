//! Whose turn it is when client ports want more than the line takes.
//!
//! Each client port has a credit in octets. In its turn a port in credit hands over a whole batch and
//! pays for it; a port in debt is passed over, and each turn pays back as much as its weight allows:
//!
//! ```text
//!   weight 1   batch . . . . . . batch . . . . . . batch        octets taken, in the long run,
//!   weight 3   batch . . batch . . batch . . batch . .          are as the weights are
//! ```
//!
//! (Surplus round robin: deficit round robin, Shreedhar and Varghese 1996, paid afterwards.) A port that
//! has nothing to send saves nothing up: its credit is never more than one turn's.

/// Octets of credit that a turn gives a port of weight 1: a batch of standard frames in six turns.
const QUANTUM: i64 = 16 << 10;

/// Share of the line that a client port has when others want it too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    weight: u8,
    /// Octets; negative is debt.
    credit: i64,
}

impl Share {
    /// A port out of debt.
    pub(crate) fn new(weight: u8) -> Self {
        Self { weight, credit: 0 }
    }

    /// Its turn has come: whether it may hand over a batch.
    pub(crate) fn turn(&mut self) -> bool {
        let quantum = QUANTUM * i64::from(self.weight);
        self.credit = (self.credit + quantum).min(quantum);
        self.credit > 0
    }

    /// It has handed over `octets`.
    pub(crate) fn pay(&mut self, octets: usize) {
        self.credit -= octets as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets that ports with always full batches get in so many turns. A port sends frames of one size.
    fn sent(ports: &[(u8, usize)], turns: usize) -> Vec<usize> {
        let mut shares: Vec<_> = ports.iter().map(|port| Share::new(port.0)).collect();
        let mut octets = vec![0; ports.len()];
        for _ in 0..turns {
            for (index, share) in shares.iter_mut().enumerate() {
                if share.turn() {
                    let batch = ports[index].1 * crate::limits::BATCH_FRAMES;
                    share.pay(batch);
                    octets[index] += batch;
                }
            }
        }
        octets
    }

    #[test]
    fn octets_are_as_the_weights_whatever_the_frames() {
        for sizes in [[64, 64, 64], [64, 1500, 9000], [16_000, 1500, 64]] {
            let octets = sent(&[(1, sizes[0]), (3, sizes[1]), (8, sizes[2])], 100_000);
            for (index, weight) in [1.0, 3.0, 8.0].into_iter().enumerate() {
                // A batch of the shortest frames is under a quantum: such a port takes what it has.
                if sizes[index] * crate::limits::BATCH_FRAMES < (QUANTUM as usize) * weight as usize
                {
                    continue;
                }
                let share = octets[index] as f64 / (QUANTUM as f64 * 100_000.0);
                assert!(
                    (share / weight - 1.0).abs() < 0.01,
                    "{sizes:?}: {share} of {weight}"
                );
            }
        }
    }

    #[test]
    fn a_port_that_was_silent_has_no_more_than_one_turn() {
        let mut share = Share::new(2);
        for _ in 0..1000 {
            assert!(share.turn());
        }
        share.pay(10 * QUANTUM as usize);
        // It had two quanta, owes eight, and gets two a turn.
        let passed_over = (0..).take_while(|_| !share.turn()).count();
        assert_eq!(passed_over, 4);
    }
}
