//! Welch's t-test on two classes of times.
//!
//! The slowest samples were disturbed by interrupts and neighbours, and how many to leave out nobody
//! knows beforehand. So the test is made at several crops, and the largest |t| counts (Reparaz and others,
//! "Dude, is my code constant time?", 2017).

use crate::limits::{CROP_SAMPLES_MIN, CROPS};

/// One timed batch.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// The class of its secret: false is the fixed one.
    pub(crate) class: bool,
    /// How long it took.
    pub(crate) ns: f64,
}

/// The largest |t| over all crops.
pub(crate) fn t_max(samples: &[Sample]) -> f64 {
    let mut sorted: Vec<f64> = samples.iter().map(|sample| sample.ns).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| ((sorted.len() as f64 * share) as usize).clamp(1, sorted.len()) - 1;
    CROPS
        .iter()
        .filter_map(|share| t(samples, *sorted.get(at(*share))?))
        .fold(0.0, f64::max)
}

/// |t| of the samples that took at most `longest`; None when a class has too few.
fn t(samples: &[Sample], longest: f64) -> Option<f64> {
    let mut classes = [Moments::default(); 2];
    for sample in samples.iter().filter(|sample| sample.ns <= longest) {
        classes[usize::from(sample.class)].add(sample.ns);
    }
    let [fixed, random] = classes;
    if fixed.count.min(random.count) < CROP_SAMPLES_MIN as f64 {
        return None;
    }
    let difference = (fixed.mean - random.mean).abs();
    let error = (fixed.variance() / fixed.count + random.variance() / random.count).sqrt();
    // A clock that ticks coarsely may show one time only: then they are equal, or could not differ more.
    Some(match (difference, error) {
        (0.0, _) => 0.0,
        (_, 0.0) => f64::INFINITY,
        (difference, error) => difference / error,
    })
}

/// Count, mean and the sum of squared distances from it, one sample at a time (Welford).
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let distance = value - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (value - self.mean);
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Times around 1000 ns, and the random class later by `later`; each hundredth one is far off.
    fn samples(later: f64) -> Vec<Sample> {
        let mut random = Random::new(4);
        let sample = |n| {
            let class = random.next() & 1 == 1;
            let noise = (random.next() % 200) as f64 + (random.next() % 200) as f64;
            let disturbed = if n % 100 == 0 { 50_000.0 } else { 0.0 };
            let ns = 800.0 + noise + disturbed + if class { later } else { 0.0 };
            Sample { class, ns }
        };
        (0..20_000).map(sample).collect()
    }

    #[test]
    fn equal_classes_are_even() {
        assert!(t_max(&samples(0.0)) < crate::limits::T_EVEN_MAX);
    }

    #[test]
    fn a_hundredth_is_seen_through_the_disturbance() {
        assert!(t_max(&samples(10.0)) > crate::limits::T_EVEN_MAX);
        assert!(t_max(&samples(20.0)) > crate::limits::T_DIFFERS_MIN);
    }

    /// Student's own sleep data (1908), as every book on statistics has them: t = 1.8608.
    #[test]
    fn t_is_welchs() {
        let fixed = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let random = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let mut moments = [Moments::default(); 2];
        fixed.iter().for_each(|ns| moments[0].add(*ns));
        random.iter().for_each(|ns| moments[1].add(*ns));
        let [a, b] = moments;
        let t = (b.mean - a.mean) / ((a.variance() + b.variance()) / 10.0).sqrt();
        assert!((t - 1.8608).abs() < 1e-4, "{t}");
        // Ten samples a class are too few to be looked at.
        let samples = fixed.map(|ns| Sample { class: false, ns });
        assert_eq!(super::t(&samples, 100.0), None);
    }

    #[test]
    fn a_coarse_clock_tells_equal_from_different() {
        let sample = |class, ns| Sample { class, ns };
        let equal: Vec<_> = (0..2000).map(|n| sample(n % 2 == 0, 7.0)).collect();
        let apart: Vec<_> = (0..2000)
            .map(|n| sample(n % 2 == 0, f64::from(n % 2)))
            .collect();
        assert_eq!(t_max(&equal), 0.0);
        assert_eq!(t_max(&apart), f64::INFINITY);
    }
}
