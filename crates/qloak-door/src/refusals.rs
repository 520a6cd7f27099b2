//! How often a refused caller is told in the log: a storm from one address must not bury the rest.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::limits;

/// Who was told when, and what has been left untold since. At most [`limits::REFUSED_ADDRESSES_MAX`]
/// addresses; further ones share one line.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    told: Mutex<HashMap<IpAddr, Told>>,
}

#[derive(Debug)]
struct Told {
    at: Instant,
    untold: u64,
}

impl Refusals {
    /// Counts a refusal. A number says that it may be told now, and how many before it were not.
    pub(crate) fn count(&self, address: IpAddr, now: Instant) -> Option<u64> {
        // Plain numbers: a thread that panicked has left them whole.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let old =
            |told: &Told| now.saturating_duration_since(told.at) >= limits::REFUSED_TOLD_EVERY;
        let mut address = address.to_canonical();
        if !told.contains_key(&address) && told.len() >= limits::REFUSED_ADDRESSES_MAX {
            told.retain(|_, told| !old(told));
            if told.len() >= limits::REFUSED_ADDRESSES_MAX {
                address = Ipv6Addr::UNSPECIFIED.into();
            }
        }
        let Some(entry) = told.get_mut(&address) else {
            told.insert(address, Told { at: now, untold: 0 });
            return Some(0);
        };
        if !old(entry) {
            entry.untold += 1;
            return None;
        }
        let untold = entry.untold;
        *entry = Told { at: now, untold: 0 };
        Some(untold)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use super::*;

    #[test]
    fn one_address_is_told_once_in_a_while_with_a_count_and_another_at_once() {
        let (refusals, begun) = (Refusals::default(), Instant::now());
        let [a, b] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        assert_eq!(refusals.count(a, begun), Some(0));
        for ms in 1..=300 {
            let now = begun + Duration::from_millis(ms);
            assert_eq!(refusals.count(a, now), None);
        }
        assert_eq!(refusals.count(b, begun), Some(0));
        let later = begun + limits::REFUSED_TOLD_EVERY;
        assert_eq!(refusals.count(a, later), Some(300));
        assert_eq!(refusals.count(a, later), None);
    }

    #[test]
    fn many_addresses_take_no_more_room_and_share_a_line() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let address = |number: u32| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + number));
        let all = limits::REFUSED_ADDRESSES_MAX as u32;
        for number in 0..all {
            assert_eq!(refusals.count(address(number), now), Some(0));
        }
        assert_eq!(refusals.count(address(all), now), Some(0));
        for number in all + 1..all + 1000 {
            assert_eq!(refusals.count(address(number), now), None);
        }
        assert!(refusals.told.lock().unwrap().len() <= limits::REFUSED_ADDRESSES_MAX + 1);
        let later = now + limits::REFUSED_TOLD_EVERY;
        assert_eq!(refusals.count(address(all + 1), later), Some(0));
        assert_eq!(refusals.told.lock().unwrap().len(), 1);
    }
}
