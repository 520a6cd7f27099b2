//! What must never happen, checked whenever it could.

use std::collections::{HashMap, HashSet};

use qloak_api::{ChannelNumber, KeyId};
use qloak_cipher::suite::Suite;
use qloak_keys::Key;

use crate::Side;

/// The use of every key of a run, at both ends.
#[derive(Default)]
pub struct Book {
    seed: u64,
    uses: HashMap<KeyId, Vec<Use>>,
    delivered: [HashSet<u64>; 2],
    /// SAs that came to encode, by sender.
    pub encoded: [u64; 2],
    /// Frames that a sender's SecY protected, by sender.
    pub sent: [u64; 2],
    /// Client frames that a sender had to discard, by sender.
    pub discarded: [u64; 2],
    /// Frames of a sender that arrived twice at the far client port.
    pub doubled: u64,
}

struct Use {
    sender: Side,
    outbound: bool,
    channel: ChannelNumber,
    suite: &'static Suite,
    sak: Key,
}

impl Book {
    /// An empty book of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// An SA was installed at one end; `sender` is who transmits under it.
    ///
    /// # Panics
    /// The key served another SA before, or its two ends differ.
    pub fn installed(
        &mut self,
        sender: Side,
        outbound: bool,
        channel: ChannelNumber,
        key_id: KeyId,
        suite: &'static Suite,
        sak: &Key,
    ) {
        let seed = self.seed;
        let uses = self.uses.entry(key_id).or_default();
        for earlier in uses.iter() {
            assert_ne!(
                (earlier.sender, earlier.outbound),
                (sender, outbound),
                "seed {seed}: key {key_id} was installed twice at one end"
            );
            assert!(
                earlier.sender == sender && earlier.channel == channel,
                "seed {seed}: key {key_id} serves two channels"
            );
            assert_eq!(
                earlier.suite.id, suite.id,
                "seed {seed}: the two ends of key {key_id} have different suites"
            );
            assert!(
                earlier.sak.same_as(sak),
                "seed {seed}: the two ends of key {key_id} have different SAKs"
            );
        }
        assert!(
            !outbound || uses.iter().any(|earlier| !earlier.outbound),
            "seed {seed}: key {key_id} would encode before the far end accepts it"
        );
        uses.push(Use {
            sender,
            outbound,
            channel,
            suite,
            sak: sak.duplicate(),
        });
    }

    /// A client frame came out at the far end.
    ///
    /// # Panics
    /// It was never sent.
    pub fn delivered(&mut self, sender: Side, number: u64) {
        let (seed, sent) = (self.seed, self.sent[sender.index()]);
        assert!(number < sent, "seed {seed}: frame {number} was never sent");
        let first = self.delivered[sender.index()].insert(number);
        self.doubled += u64::from(!first);
    }

    /// Client frames of a sender that arrived.
    pub fn arrived(&self, sender: Side) -> u64 {
        self.delivered[sender.index()].len() as u64
    }

    /// Client frames of a sender that were protected and did not arrive.
    pub fn lost(&self, sender: Side) -> u64 {
        self.sent[sender.index()] - self.arrived(sender)
    }
}
