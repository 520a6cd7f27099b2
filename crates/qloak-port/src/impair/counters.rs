//! What was done to frames on purpose, by kind.

/// What an impaired port did since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impairments {
    /// To frames that are received.
    pub receive: FaultCounters,
    /// To frames that are transmitted.
    pub transmit: FaultCounters,
}

/// What was done to frames of one way; all are 0 where no fault is set. At any time
/// `taken + duplicated = passed + lost + overflowed + too_long + waiting`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Frames that came.
    pub taken: u64,
    /// Frames that went on.
    pub passed: u64,
    /// Frames that vanished.
    pub lost: u64,
    /// Frames that were made because a frame was to come twice.
    pub duplicated: u64,
    /// Frames that were dropped because as many waited as may.
    pub overflowed: u64,
    /// Frames that were dropped because they are longer than the port, or a batch, was made for.
    pub too_long: u64,
    /// Frames that wait now: the one number that does not only grow.
    pub waiting: u64,
    /// Frames that had to wait for their time, by delay or rate.
    pub delayed: u64,
    /// Frames that went on behind one that had come later.
    pub reordered: u64,
    /// Frames with at least one bit flipped.
    pub bit_damaged: u64,
    /// Bits flipped.
    pub bits_flipped: u64,
    /// Frames with at least one octet changed by the radio.
    pub radio_damaged: u64,
    /// Octets changed by the radio.
    pub radio_octets_changed: u64,
    /// Code words sent.
    pub radio_words: u64,
    /// Code words with more wrong symbols than the code corrects.
    pub radio_words_failed: u64,
}

impl Impairments {
    /// Those of several ports that are used as one.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            receive: self.receive.and(&other.receive),
            transmit: self.transmit.and(&other.transmit),
        }
    }
}

impl FaultCounters {
    fn and(&self, other: &Self) -> Self {
        Self {
            taken: self.taken + other.taken,
            passed: self.passed + other.passed,
            lost: self.lost + other.lost,
            duplicated: self.duplicated + other.duplicated,
            overflowed: self.overflowed + other.overflowed,
            too_long: self.too_long + other.too_long,
            waiting: self.waiting + other.waiting,
            delayed: self.delayed + other.delayed,
            reordered: self.reordered + other.reordered,
            bit_damaged: self.bit_damaged + other.bit_damaged,
            bits_flipped: self.bits_flipped + other.bits_flipped,
            radio_damaged: self.radio_damaged + other.radio_damaged,
            radio_octets_changed: self.radio_octets_changed + other.radio_octets_changed,
            radio_words: self.radio_words + other.radio_words,
            radio_words_failed: self.radio_words_failed + other.radio_words_failed,
        }
    }
}
