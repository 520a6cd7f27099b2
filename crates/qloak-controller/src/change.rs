//! A command of an operator: both ends of a link, or neither.
//!
//! ```text
//!   vet -> store intent + fallback -> push to both ends at once
//!            both took it ............... done; pollers watch until it is met
//!            one cannot be reached ...... pending; the reconciler tells it when it answers
//!            one refuses ................ intent and the other end go back; the caller learns why
//! ```
//! Stored before pushed: a controller that dies in between goes on with the intent at its next start.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use qloak_api::{
    CaptureOrder, ChannelNumber, Problem, SaeId,
    control::{ChannelView, Intent, LinkRecord},
    manage::{ChannelState, KeyOperation},
};
use qloak_door::Flow;

use crate::{
    controller::Controller,
    intent::{self, ChannelKey, Fallback, Standing},
    limits,
    observed::{Picture, UnderWay},
    plan,
    push::Pushed,
    south::SouthError,
};

/// What became of an intent that was not refused.
#[derive(Debug)]
pub struct Changed {
    /// The channel now.
    pub view: ChannelView,
    /// Whether both ends were told.
    pub complete: bool,
    /// The same in words, for the audit log.
    pub note: String,
}

impl Controller {
    /// Makes an intent stand and tells both ends.
    ///
    /// # Errors
    /// 404 without such a channel, 400 and 409 from [`intent::vet`], 409 when an end refuses (the other
    /// was put back), 500 when the database failed.
    pub async fn set_intent(
        &self,
        link: &str,
        channel: ChannelNumber,
        intent: Intent,
    ) -> Result<Changed, Problem> {
        let commanded = Instant::now();
        let lock = self.link_change(link);
        let _held = lock.lock().await;
        let (record, key) = self.find_channel(link, channel)?;
        self.vet(&record, channel, &intent)?;

        let before = self.picture().intents.get(&key).cloned();
        let standing = Standing {
            fallback: Some(self.fallback(&record, &key)),
            intent: intent.clone(),
            commanded_unix_ms: unix_ms(),
            converged_after_ms: None,
        };
        self.stand(&key, Some(standing.clone())).await?;
        let [a, b] = [&record.a, &record.b].map(|node| {
            let steps = plan::steps(&intent, self.fresh_end(node, &key).as_ref());
            self.push(&key, node, steps)
        });
        let (a, b) = tokio::join!(a, b);
        let ends = [a, b];

        let refusals: Vec<String> = ends.iter().filter_map(Pushed::refusal).collect();
        if !refusals.is_empty() {
            // Back to what stood a moment ago, though that may itself still have been under way.
            let was = Fallback {
                intent: before.as_ref().map(|before| before.intent.clone()),
                ends: standing
                    .fallback
                    .map(|fallback| fallback.ends)
                    .unwrap_or_default(),
            };
            let undone = self.roll_back(&key, &ends, &was, before).await?;
            let detail = refusals
                .into_iter()
                .chain(undone)
                .collect::<Vec<_>>()
                .join("; ");
            return Err(Problem::conflict(detail));
        }
        let failures: Vec<String> = ends.iter().filter_map(Pushed::failure).collect();
        if ends
            .iter()
            .any(|end| !end.touched.is_empty() || end.outcome.is_err())
        {
            self.mark_push(&key);
        }
        self.mark_command(&key, commanded);
        self.trouble(&key, (!failures.is_empty()).then(|| failures.join("; ")));
        self.hurry(&record.a);
        self.hurry(&record.b);
        let note = if failures.is_empty() {
            format!("{} told to both ends", intent.suite)
        } else {
            format!("{} stands; {}", intent.suite, failures.join("; "))
        };
        Ok(Changed {
            view: self.picture().channel(&record, channel),
            complete: failures.is_empty(),
            note,
        })
    }

    /// Starts a rekey at both ends; each end's outbound SC has its own keys.
    ///
    /// # Errors
    /// 404 without such a channel, 409 when an end refuses, 502 when one does not answer. The detail
    /// says which end and what the other did.
    pub async fn rekey(&self, link: &str, channel: ChannelNumber) -> Result<String, Problem> {
        let lock = self.link_change(link);
        let _held = lock.lock().await;
        let (record, _) = self.find_channel(link, channel)?;
        let (south_a, south_b) = (self.south(&record.a)?, self.south(&record.b)?);
        let (a, b) = tokio::join!(south_a.rekey(channel), south_b.rekey(channel));
        self.hurry(&record.a);
        self.hurry(&record.b);
        let told = |node: &SaeId, outcome: &Result<(), SouthError>| match outcome {
            Ok(()) => format!("{node} rekeys"),
            Err(error) => format!("{node} does not: {error}"),
        };
        let text = format!("{}; {}", told(&record.a, &a), told(&record.b, &b));
        match (a, b) {
            (Ok(()), Ok(())) => Ok(text),
            (Err(SouthError::Refused(_)), _) | (_, Err(SouthError::Refused(_))) => {
                Err(Problem::conflict(text))
            }
            _ => Err(Problem::peer(text)),
        }
    }

    /// Hands an operation to a node's key handler.
    ///
    /// # Errors
    /// 404 without such a node, 400 for an operation out of bounds, 409 when the node refuses, 502
    /// when it does not answer.
    pub async fn keys(&self, node: &SaeId, operation: &KeyOperation) -> Result<String, Problem> {
        let out_of_bounds = |what: &str| Err(Problem::bad_request(what.to_owned()));
        match operation {
            KeyOperation::Resize { slots } if !limits::RAM_SLOTS.contains(slots) => {
                return out_of_bounds("slots: 8 to 65536 are allowed");
            }
            KeyOperation::LoadOutbound { count }
                if *count == 0 || !limits::RAM_SLOTS.contains(&(*count).max(8)) =>
            {
                return out_of_bounds("count: 1 to 65536 are allowed");
            }
            KeyOperation::LoadInbound { key_ids }
                if key_ids.is_empty() || key_ids.len() > limits::KEY_IDS_MAX =>
            {
                return out_of_bounds("key_ids: 1 to 4096 are allowed");
            }
            _ => {}
        }
        let south = self.south(node)?;
        let outcome = south.keys(operation).await;
        self.hurry(node);
        match outcome {
            Ok(()) => Ok(format!("{node} did it")),
            Err(SouthError::Refused(why)) => {
                Err(Problem::conflict(format!("{node} refused: {why}")))
            }
            Err(SouthError::Failed(why)) => Err(Problem::peer(why)),
        }
    }

    /// Begins a capture at a node.
    ///
    /// # Errors
    /// 404 without such a node, 400 for an order out of bounds, 409 when the node refuses, 502 when it does not
    /// answer.
    pub async fn capture(&self, node: &SaeId, order: &CaptureOrder) -> Result<Flow, Problem> {
        order.check().map_err(Problem::bad_request)?;
        let south = self.south(node)?;
        south.capture(order).await.map_err(|error| match error {
            SouthError::Refused(why) => Problem::conflict(format!("{node} refused: {why}")),
            SouthError::Failed(why) => Problem::peer(why),
        })
    }

    /// Restores what stood before, first on disk, then at each end that was touched.
    pub(crate) async fn roll_back(
        &self,
        key: &ChannelKey,
        ends: &[Pushed; 2],
        was: &Fallback,
        before: Option<Standing>,
    ) -> Result<Vec<String>, Problem> {
        self.stand(key, before).await?;
        let [a, b] = ends;
        let (a, b) = tokio::join!(
            self.undo(key, a, was.of(&a.node)),
            self.undo(key, b, was.of(&b.node))
        );
        for end in ends {
            self.hurry(&end.node);
        }
        let put_back = if was.intent.is_none() {
            was.ends.clone()
        } else {
            Vec::new()
        };
        self.mark_push(key);
        self.repaint(|picture| {
            if let Some(moments) = picture.under_way.get_mut(key) {
                moments.put_back = put_back;
            }
        });
        let undone: Vec<String> = [a, b].into_iter().flatten().collect();
        Ok(if undone.is_empty() {
            vec!["nothing was changed".to_owned()]
        } else {
            undone
        })
    }

    /// Writes how an intent stands, first on disk, then in the picture.
    pub(crate) async fn stand(
        &self,
        key: &ChannelKey,
        standing: Option<Standing>,
    ) -> Result<(), Problem> {
        let (kept_key, kept) = (key.clone(), standing.clone());
        self.store(move |store| store.save_intent(&kept_key, kept.as_ref()))
            .await?;
        self.repaint(|picture| {
            picture.troubles.remove(key);
            match standing {
                Some(standing) => picture.intents.insert(key.clone(), standing),
                None => picture.intents.remove(key),
            }
        });
        Ok(())
    }

    /// Notes that a push has just ended.
    pub(crate) fn mark_push(&self, key: &ChannelKey) {
        let pushed = Instant::now();
        self.repaint(|picture| {
            let earlier = picture.under_way.get(key);
            let moments = UnderWay {
                commanded: earlier.and_then(|earlier| earlier.commanded),
                pushed,
                put_back: Vec::new(),
            };
            picture.under_way.insert(key.clone(), moments);
        });
    }

    /// Notes when a command came. If nothing had to be pushed for it, what was seen before still counts.
    fn mark_command(&self, key: &ChannelKey, commanded: Instant) {
        self.repaint(|picture| {
            if let Some(moments) = picture.under_way.get_mut(key) {
                moments.commanded = Some(commanded);
            }
        });
    }

    /// Shows what holds an intent up, or that nothing does. True if that is news.
    pub(crate) fn trouble(&self, key: &ChannelKey, why: Option<String>) -> bool {
        if self.picture().troubles.get(key) == why.as_ref() {
            return false;
        }
        self.repaint(|picture| match why {
            Some(why) => picture.troubles.insert(key.clone(), why),
            None => picture.troubles.remove(key),
        });
        true
    }

    fn vet(
        &self,
        link: &LinkRecord,
        channel: ChannelNumber,
        wanted: &Intent,
    ) -> Result<(), Problem> {
        let picture = self.picture();
        let offer = |node| (node, picture.libraries.get(node).map(Vec::as_slice));
        intent::vet(wanted, [offer(&link.a), offer(&link.b)])?;
        for node in [&link.a, &link.b] {
            let seen = picture
                .nodes
                .get(node)
                .is_some_and(|seen| seen.state.is_some());
            if seen && picture.end_of(link, node, channel).is_none() {
                return Err(Problem::conflict(format!(
                    "{node} has no channel {channel} on link {}; configure it there first, since a channel needs both ends",
                    link.name
                )));
            }
        }
        Ok(())
    }

    /// Where to go back to: the intent that stood; without one, what each end is by itself. While an
    /// intent is still under way, its own fallback stays, since that was the last one known to work.
    fn fallback(&self, link: &LinkRecord, key: &ChannelKey) -> Fallback {
        let picture = self.picture();
        match picture.intents.get(key) {
            Some(Standing {
                fallback: Some(fallback),
                ..
            }) => fallback.clone(),
            Some(standing) => Fallback {
                intent: Some(standing.intent.clone()),
                ends: Vec::new(),
            },
            None => Fallback {
                intent: None,
                ends: [&link.a, &link.b]
                    .into_iter()
                    .filter_map(|node| Some((node.clone(), own_mind(&picture, key, node)?)))
                    .collect(),
            },
        }
    }

    /// An end as seen after the last push; what was seen before says nothing about now.
    pub(crate) fn fresh_end(&self, node: &SaeId, key: &ChannelKey) -> Option<ChannelState> {
        let picture = self.picture();
        fresh(&picture, key, node).then(|| picture.end(node, key.channel).cloned())?
    }
}

/// Whether what is shown of a node was asked for when the last push had taken effect there.
fn fresh(picture: &Picture, key: &ChannelKey, node: &SaeId) -> bool {
    let asked = picture
        .nodes
        .get(node)
        .filter(|seen| seen.reachable())
        .and_then(|seen| seen.asked_at);
    let settled = picture
        .under_way
        .get(key)
        .map(|moments| moments.pushed + limits::SETTLING);
    asked.is_some_and(|asked| settled.is_none_or(|settled| asked >= settled))
}

/// What an end is where no intent stands. Just after a rollback that is what it was put back to,
/// since a picture from in between may still show what was refused.
fn own_mind(picture: &Picture, key: &ChannelKey, node: &SaeId) -> Option<Intent> {
    let put_back = picture
        .under_way
        .get(key)
        .map(|moments| moments.put_back.as_slice());
    let put_back = put_back
        .unwrap_or_default()
        .iter()
        .find(|(end, _)| end == node);
    match put_back {
        Some((_, was)) if !fresh(picture, key, node) => Some(was.clone()),
        _ => picture.end(node, key.channel).map(plan::as_intent),
    }
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
