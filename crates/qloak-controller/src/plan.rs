//! The difference between what is wanted and what is seen, as steps for one end of a channel.
//!
//! ```text
//!   intent ----.
//!              +--> steps(intent, end) --> [Suite, Limits] --> south
//!   observed --'                                |
//!       ^                                       v
//!       '--------------- telemetry ----------- node
//! ```
//! Pure, and idempotent: an end that was told everything needs no step, whatever its SAs do meanwhile.
//! Whether the intent is *met* is another question: only when the far end's frames are under the new
//! suite is the change done.

use qloak_api::{Limits, control::Intent, manage::ChannelState};

/// One command to one end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `PUT /v1/channels/{n}/suite`. First, as it is the one that a node may refuse.
    Suite(String),
    /// `PUT /v1/channels/{n}/limits`.
    Limits(Limits),
}

/// What an end must still be told. An end that was never seen is told everything.
pub fn steps(intent: &Intent, end: Option<&ChannelState>) -> Vec<Step> {
    let mut steps = Vec::with_capacity(2);
    if end.is_none_or(|end| end.suite_intended != intent.suite) {
        steps.push(Step::Suite(intent.suite.clone()));
    }
    if end.is_none_or(|end| end.limits != intent.limits) {
        steps.push(Step::Limits(intent.limits));
    }
    steps
}

/// Whether an end was told everything and its outbound SA encodes with the suite that is wanted.
pub fn met(intent: &Intent, end: &ChannelState) -> bool {
    let encoding = end.outbound.encoding.as_ref();
    steps(intent, Some(end)).is_empty() && encoding.is_some_and(|sa| sa.suite == intent.suite)
}

/// What an end is by itself, to go back to.
pub fn as_intent(end: &ChannelState) -> Intent {
    Intent {
        suite: end.suite_intended.clone(),
        limits: end.limits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_api::{
        An, Carriage, KeyId, MacAddress, Sci,
        manage::{ChannelStatus, InboundState, OutboundState, SaState},
    };

    fn end(intended: &str, encoding: Option<&str>) -> ChannelState {
        let sci = Sci {
            address: MacAddress([2; 6]),
            port: 1,
        };
        ChannelState {
            number: 1.try_into().expect("a channel"),
            name: "trunk".to_owned(),
            peer: "b".parse().expect("a name"),
            carriage: Carriage::Aggregated,
            status: ChannelStatus::Open,
            suite_intended: intended.to_owned(),
            limits: Limits::default(),
            outbound: OutboundState {
                sci,
                encoding: encoding.map(|suite| SaState {
                    an: An::from_low_bits(0),
                    suite: suite.to_owned(),
                    key_id: KeyId([0; 16]),
                    pn: 1,
                    age_s: 0,
                }),
                counters: Default::default(),
            },
            inbound: InboundState {
                sci,
                accepted: Vec::new(),
                counters: Default::default(),
            },
            rekeys: 0,
            last_suite_change_ms: None,
        }
    }

    #[test]
    fn only_the_difference_is_told() {
        let intent = Intent {
            suite: "new".to_owned(),
            limits: Limits::default(),
        };
        assert_eq!(
            steps(&intent, Some(&end("old", None))),
            [Step::Suite("new".to_owned())]
        );
        assert_eq!(steps(&intent, None).len(), 2);
        let longer = Intent {
            limits: Limits {
                seconds: 7200,
                ..intent.limits
            },
            ..intent.clone()
        };
        assert_eq!(
            steps(&longer, Some(&end("new", None))),
            [Step::Limits(longer.limits)]
        );
        assert_eq!(
            steps(&as_intent(&end("old", None)), Some(&end("old", None))),
            []
        );
    }

    #[test]
    fn told_is_not_yet_met() {
        let intent = as_intent(&end("new", None));
        assert!(!met(&intent, &end("new", None)));
        assert!(!met(&intent, &end("new", Some("old"))));
        assert!(!met(&intent, &end("old", Some("new"))));
        assert!(met(&intent, &end("new", Some("new"))));
    }
}
