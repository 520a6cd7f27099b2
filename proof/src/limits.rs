//! Every bound of this crate, and why.

/// Samples of a figure of the statistics, usually. Enough to see a hundredth of a batch's time on a
/// shared machine, little enough for all suites and levels in some minutes.
pub(crate) const SAMPLES: u32 = 20_000;

/// Fewer say nothing: the crops below would be left without samples.
pub(crate) const SAMPLES_MIN: i64 = 2_000;

/// A crop with fewer samples of a class is left out.
pub(crate) const CROP_SAMPLES_MIN: usize = 500;

/// Shares of the quickest samples that are compared, since the slow ones were disturbed by others.
pub(crate) const CROPS: [f64; 10] = [1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3];

/// Below this |t| nothing was seen: the bound of Goodwill and others (2011), once in 150 000 by chance.
pub(crate) const T_EVEN_MAX: f64 = 4.5;

/// From this |t| on the two classes differ, as Reparaz and others (dudect, 2017) have it. Between the two,
/// measure longer.
pub(crate) const T_DIFFERS_MIN: f64 = 10.0;

/// Frames of a timed batch: more than one, so that lanes are filled across frames.
pub(crate) const TIMED_FRAMES: usize = 8;

/// Octets of a timed frame: whole blocks, a stripe of the wider registers, and a tail.
pub(crate) const TIMED_OCTETS: usize = 203;

/// Octets of data of the frames whose secrets are followed: every path through the kernels, from
/// nothing over a tail alone to stripes of the widest registers with a tail behind.
pub(crate) const FOLLOWED_OCTETS: [usize; 10] = [0, 1, 15, 16, 17, 64, 100, 300, 607, 1420];
