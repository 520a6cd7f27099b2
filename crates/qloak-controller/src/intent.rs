//! What an operator wants of a channel, and whether it can be had.
//!
//! An intent is the same for both ends of a link. It is vetted before anything is stored or pushed:
//! its limits are such that a node takes them, and its suite is offered at both ends now (a suite
//! that failed its self-test, or a hazmat one that a node's own configuration does not name, is not
//! offered). While an intent is under way the state before it is kept as `Fallback`, so that a
//! refusal at one end can be undone at the other.

use std::collections::BTreeSet;

use qloak_api::{ChannelNumber, Limits, Problem, SaeId, SuiteEntry, control::Intent};
use serde::{Deserialize, Serialize};

use crate::limits;

/// A channel of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelKey {
    /// The link's name.
    pub link: String,
    /// The channel's number.
    pub channel: ChannelNumber,
}

/// An intent as it stands, and how far it has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// What is wanted.
    pub intent: Intent,
    /// Where to go back to if an end refuses; none once both ends have met the intent.
    pub fallback: Option<Fallback>,
    /// When the command came, milliseconds since the Unix epoch.
    pub commanded_unix_ms: u64,
    /// Milliseconds from the command until both ends were seen to meet it.
    pub converged_after_ms: Option<f64>,
}

/// What was before an intent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Fallback {
    /// The intent that stood before, if one did.
    pub intent: Option<Intent>,
    /// What each end was, where no intent stood.
    pub ends: Vec<(SaeId, Intent)>,
}

impl Fallback {
    /// What an end goes back to: the intent that stood, otherwise what the end was by itself.
    pub fn of(&self, node: &SaeId) -> Option<&Intent> {
        let own = || {
            self.ends
                .iter()
                .find(|(end, _)| end == node)
                .map(|(_, was)| was)
        };
        self.intent.as_ref().or_else(own)
    }
}

/// What one end offers: its name and its library, if it was ever seen.
pub type Offer<'a> = (&'a SaeId, Option<&'a [SuiteEntry]>);

/// Whether an intent can be had of a link with these two ends.
///
/// # Errors
/// 400 for limits that no node takes and for a suite that neither end knows; 409 for a suite that is
/// not offered at both ends and for an end whose library is not known yet. The detail names what is
/// allowed.
pub fn vet(intent: &Intent, ends: [Offer<'_>; 2]) -> Result<(), Problem> {
    vet_limits(&intent.limits)?;
    for (node, library) in &ends {
        if library.is_none() {
            return Err(Problem::conflict(format!(
                "{node} has not been seen yet, so it is not known which suites it offers; \
                 see its entry in GET /v1/overview for why it does not answer"
            )));
        }
    }
    let allowed = offered_at_both(ends);
    if allowed.contains(intent.suite.as_str()) {
        return Ok(());
    }
    let allowed: Vec<&str> = allowed.into_iter().collect();
    let allowed = if allowed.is_empty() {
        "the two ends have no suite in common".to_owned()
    } else {
        format!("allowed are: {}", allowed.join(", "))
    };
    let given: String = intent.suite.chars().take(64).collect();
    let lacking: Vec<String> = ends
        .iter()
        .filter_map(|(node, library)| why_not(node, library.unwrap_or_default(), &intent.suite))
        .collect();
    let known = ends.iter().any(|(_, library)| {
        library.is_some_and(|library| library.iter().any(|suite| suite.name == intent.suite))
    });
    if known {
        Err(Problem::conflict(format!(
            "{given:?} cannot be had at both ends: {}; {allowed}",
            lacking.join("; ")
        )))
    } else {
        Err(Problem::bad_request(format!(
            "{given:?} is no cipher suite; {allowed}"
        )))
    }
}

/// The suites that both ends offer, by name.
pub fn offered_at_both<'a>(ends: [Offer<'a>; 2]) -> BTreeSet<&'a str> {
    let [a, b] = ends.map(|(_, library)| -> BTreeSet<&'a str> {
        let offered = library
            .unwrap_or_default()
            .iter()
            .filter(|suite| suite.offered);
        offered.map(|suite| suite.name.as_str()).collect()
    });
    a.intersection(&b).copied().collect()
}

fn why_not(node: &SaeId, library: &[SuiteEntry], suite: &str) -> Option<String> {
    match library.iter().find(|entry| entry.name == suite) {
        None => Some(format!("{node} does not know it")),
        Some(entry) if entry.offered => None,
        Some(entry) if !entry.self_test_passed => {
            Some(format!("it failed its self-test at {node}"))
        }
        Some(entry) if entry.hazmat => Some(format!(
            "it is hazmat (frames are not authenticated) and the configuration of {node} does not name it in [policy]"
        )),
        Some(_) => Some(format!("{node} does not offer it")),
    }
}

fn vet_limits(wanted: &Limits) -> Result<(), Problem> {
    let least = |what: &str, given: u64, min: u64| {
        if given >= min {
            Ok(())
        } else {
            Err(Problem::bad_request(format!(
                "limits.{what} is {given}, at least {min} is allowed"
            )))
        }
    };
    least("frames", wanted.frames, limits::LIMIT_FRAMES_MIN)?;
    least("octets", wanted.octets, limits::LIMIT_OCTETS_MIN)?;
    least("seconds", wanted.seconds, 1)?;
    if !(1..=99).contains(&wanted.rekey_at_percent) {
        return Err(Problem::bad_request(format!(
            "limits.rekey_at_percent is {}, 1 to 99 is allowed",
            wanted.rekey_at_percent
        )));
    }
    let every = Limits::REKEY_EVERY_US;
    match wanted.rekey_every_us.filter(|us| !every.contains(us)) {
        None => Ok(()),
        Some(us) => Err(Problem::bad_request(format!(
            "limits.rekey_every_us is {us}, {} to {} is allowed",
            every.start(),
            every.end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, offered: bool) -> SuiteEntry {
        SuiteEntry {
            name: name.to_owned(),
            id: qloak_api::SuiteId(1),
            cipher: String::new(),
            mode: String::new(),
            key_octets: 32,
            icv_octets: 16,
            hazmat: name == "plain",
            macsec: false,
            backend: "soft".to_owned(),
            self_test_passed: name != "broken",
            offered,
            seal_gbps: 1.0,
            about: String::new(),
        }
    }

    fn vetted(suite: &str, limits: Limits) -> Result<(), Problem> {
        let [a, b]: [SaeId; 2] = ["a", "b"].map(|name| name.parse().expect("an SAE ID"));
        let at_a = [
            entry("aes", true),
            entry("serpent", true),
            entry("plain", true),
            entry("broken", true),
        ];
        let at_b = [
            entry("aes", true),
            entry("plain", false),
            entry("broken", false),
        ];
        let intent = Intent {
            suite: suite.to_owned(),
            limits,
        };
        vet(&intent, [(&a, Some(&at_a)), (&b, Some(&at_b))])
    }

    #[test]
    fn only_what_both_ends_offer_is_allowed() {
        let limits = Limits::default();
        assert_eq!(vetted("aes", limits), Ok(()));
        for (suite, status, word) in [
            ("rot13", 400, "no cipher suite"),
            ("serpent", 409, "b does not know it"),
            ("plain", 409, "hazmat"),
            ("broken", 409, "self-test at b"),
        ] {
            let problem = vetted(suite, limits).unwrap_err();
            assert_eq!(problem.status, status);
            assert!(
                problem.detail.contains(word) && problem.detail.ends_with("allowed are: aes"),
                "{problem}"
            );
        }
    }

    #[test]
    fn limits_that_no_node_takes_are_refused() {
        let good = Limits::default();
        for (limits, word) in [
            (Limits { frames: 1, ..good }, "limits.frames"),
            (Limits { octets: 1, ..good }, "limits.octets"),
            (Limits { seconds: 0, ..good }, "limits.seconds"),
            (
                Limits {
                    rekey_at_percent: 100,
                    ..good
                },
                "1 to 99",
            ),
            (
                Limits {
                    rekey_every_us: Some(99),
                    ..good
                },
                "limits.rekey_every_us is 99, 100 to 3600000000",
            ),
        ] {
            let problem = vetted("aes", limits).unwrap_err();
            assert!(
                problem.status == 400 && problem.detail.contains(word),
                "{problem}"
            );
        }
    }

    #[test]
    fn an_end_never_seen_is_no_consent() {
        let [a, b]: [SaeId; 2] = ["a", "b"].map(|name| name.parse().expect("an SAE ID"));
        let library = [entry("aes", true)];
        let intent = Intent {
            suite: "aes".to_owned(),
            limits: Limits::default(),
        };
        let problem = vet(&intent, [(&a, Some(&library)), (&b, None)]).unwrap_err();
        assert!(
            problem.status == 409 && problem.detail.starts_with("b has not been seen"),
            "{problem}"
        );
    }

    #[test]
    fn the_intent_before_goes_before_what_an_end_was() {
        let [a, b]: [SaeId; 2] = ["a", "b"].map(|name| name.parse().expect("an SAE ID"));
        let intent = |suite: &str| Intent {
            suite: suite.to_owned(),
            limits: Limits::default(),
        };
        let mut fallback = Fallback {
            intent: None,
            ends: vec![(a.clone(), intent("aes"))],
        };
        assert_eq!(fallback.of(&a), Some(&intent("aes")));
        assert_eq!(fallback.of(&b), None);
        fallback.intent = Some(intent("serpent"));
        assert_eq!(fallback.of(&a), Some(&intent("serpent")));
    }
}
