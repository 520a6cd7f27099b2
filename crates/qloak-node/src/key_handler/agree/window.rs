//! Which counters of an association have come, so that no message counts twice; and the bucket that
//! bounds what strangers may cost.

/// The highest counter and the 64 below it. Messages may overtake one another by that much.
#[derive(Default)]
pub(in crate::key_handler) struct Window {
    highest: u64,
    /// Bit i: `highest - i` has come.
    seen: u64,
}

impl Window {
    /// True for a counter that has not come yet, and remembers it. Counters start at 1.
    pub(in crate::key_handler) fn accept(&mut self, counter: u64) -> bool {
        if counter > self.highest {
            let ahead = counter - self.highest;
            self.seen = if ahead < 64 { self.seen << ahead } else { 0 } | 1;
            self.highest = counter;
            return true;
        }
        let behind = self.highest - counter;
        let fresh = counter > 0 && behind < 64 && self.seen & (1 << behind) == 0;
        if fresh {
            self.seen |= 1 << behind;
        }
        fresh
    }
}

/// A bucket of tokens that fills with time.
pub(in crate::key_handler) struct Tokens {
    /// Credit in nanoseconds; one token is `token_ns` of it.
    credit_ns: u64,
    token_ns: u64,
    most_ns: u64,
    filled_ns: u64,
}

impl Tokens {
    /// A full bucket.
    pub(in crate::key_handler) fn new(token_ns: u64, most: u64) -> Self {
        let most_ns = token_ns.saturating_mul(most);
        Self {
            credit_ns: most_ns,
            token_ns,
            most_ns,
            filled_ns: 0,
        }
    }

    /// Takes a token if there is one.
    pub(in crate::key_handler) fn take(&mut self, now_ns: u64) -> bool {
        let since = now_ns.saturating_sub(self.filled_ns);
        self.credit_ns = self.credit_ns.saturating_add(since).min(self.most_ns);
        self.filled_ns = now_ns;
        let enough = self.credit_ns >= self.token_ns;
        if enough {
            self.credit_ns -= self.token_ns;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_counter_counts_twice(counters in prop::collection::vec(0..300_u64, 0..400)) {
            let (mut window, mut seen, mut highest) = (Window::default(), HashSet::new(), 0);
            for counter in counters {
                let fresh = counter > 0 && counter + 64 > highest && !seen.contains(&counter);
                prop_assert_eq!(window.accept(counter), fresh);
                if fresh {
                    seen.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_numbers_do_not_break_it() {
        let mut window = Window::default();
        assert!(window.accept(u64::MAX) && !window.accept(u64::MAX));
        assert!(window.accept(u64::MAX - 63) && !window.accept(u64::MAX - 64));
        assert!(!window.accept(0));
    }

    #[test]
    fn three_tokens_at_once_then_one_a_second() {
        let mut tokens = Tokens::new(1000, 3);
        assert_eq!((0..9).filter(|_| tokens.take(5000)).count(), 3);
        assert!(!tokens.take(5999) && tokens.take(6000) && !tokens.take(6001));
    }
}
