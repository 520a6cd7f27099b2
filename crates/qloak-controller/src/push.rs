//! Telling one end of a channel, and undoing it. The two-sided rules live in `change` and `reconcile`.

use qloak_api::{SaeId, control::Intent};

use crate::{controller::Controller, intent::ChannelKey, plan::Step, south::SouthError};

/// What became of telling one end.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) node: SaeId,
    /// Steps that took effect, or may have: these must be undone if it comes to that.
    pub(crate) touched: Vec<Step>,
    pub(crate) outcome: Result<(), SouthError>,
}

impl Pushed {
    pub(crate) fn refusal(&self) -> Option<String> {
        match &self.outcome {
            Err(SouthError::Refused(why)) => Some(format!("{} refused: {why}", self.node)),
            _ => None,
        }
    }

    pub(crate) fn failure(&self) -> Option<String> {
        match &self.outcome {
            Err(SouthError::Failed(why)) => {
                Some(format!("{} could not be told yet: {why}", self.node))
            }
            _ => None,
        }
    }
}

impl Controller {
    /// Tells one end, step by step; stops at the first that fails.
    pub(crate) async fn push(&self, key: &ChannelKey, node: &SaeId, steps: Vec<Step>) -> Pushed {
        let mut pushed = Pushed {
            node: node.clone(),
            touched: Vec::new(),
            outcome: Ok(()),
        };
        let south = match self.south(node) {
            Ok(south) => south,
            Err(problem) => {
                pushed.outcome = Err(SouthError::Failed(problem.detail));
                return pushed;
            }
        };
        for step in steps {
            let outcome = match &step {
                Step::Suite(suite) => south.set_suite(key.channel, suite).await,
                Step::Limits(limits) => south.set_limits(key.channel, limits).await,
            };
            self.metrics.pushed(&outcome);
            // A refused step changed nothing; of a failed one nobody knows.
            if !matches!(outcome, Err(SouthError::Refused(_))) {
                pushed.touched.push(step);
            }
            if outcome.is_err() {
                pushed.outcome = outcome;
                break;
            }
        }
        pushed
    }

    /// Puts an end back to what it was, as far as it was touched. In words: what became of it.
    pub(crate) async fn undo(
        &self,
        key: &ChannelKey,
        pushed: &Pushed,
        was: Option<&Intent>,
    ) -> Option<String> {
        if pushed.touched.is_empty() {
            return None;
        }
        let node = &pushed.node;
        let Some(was) = was else {
            return Some(format!(
                "{node} was never seen before and keeps what it was told"
            ));
        };
        let back = pushed.touched.iter().map(|step| match step {
            Step::Suite(_) => Step::Suite(was.suite.clone()),
            Step::Limits(_) => Step::Limits(was.limits),
        });
        let undone = self.push(key, node, back.collect()).await;
        self.metrics.rolled_back();
        Some(match undone.outcome {
            Ok(()) => format!("{node} was put back to {}", was.suite),
            Err(error) => format!("{node} could not be put back to {}: {error}", was.suite),
        })
    }
}
