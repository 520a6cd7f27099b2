//! What is wrong now. An alarm rises once, keeps its age and, but for [`Alarms::state`], its first words,
//! and is cleared when its cause is gone; rising, new words and clearing are each one line in the log.

use qloak_api::{
    ChannelNumber,
    manage::{Alarm, AlarmKind},
};

use super::{
    door::{Action, Note},
    limits,
};

/// The alarms that stand.
#[derive(Default)]
pub(super) struct Alarms {
    standing: Vec<Standing>,
}

struct Standing {
    kind: AlarmKind,
    channel: Option<ChannelNumber>,
    text: String,
    since_ns: u64,
}

impl Alarms {
    fn at(&self, kind: AlarmKind, channel: Option<ChannelNumber>) -> Option<usize> {
        self.standing
            .iter()
            .position(|alarm| alarm.kind == kind && alarm.channel == channel)
    }

    /// Raises an alarm unless it stands already.
    pub(super) fn raise(
        &mut self,
        kind: AlarmKind,
        channel: Option<ChannelNumber>,
        now_ns: u64,
        text: impl FnOnce() -> String,
        actions: &mut Vec<Action>,
    ) {
        if self.standing.len() >= limits::ALARMS_MAX || self.at(kind, channel).is_some() {
            return;
        }
        let text = text();
        actions.push(Action::Note(Note::Raised {
            kind,
            channel,
            text: text.clone(),
        }));
        self.standing.push(Standing {
            kind,
            channel,
            text,
            since_ns: now_ns,
        });
    }

    /// Raises an alarm of the whole node, or gives the one that stands other words: more is known now.
    pub(super) fn state(
        &mut self,
        kind: AlarmKind,
        now_ns: u64,
        text: String,
        actions: &mut Vec<Action>,
    ) {
        let Some(at) = self.at(kind, None) else {
            return self.raise(kind, None, now_ns, || text, actions);
        };
        let alarm = &mut self.standing[at];
        if alarm.text != text {
            alarm.text.clone_from(&text);
            actions.push(Action::Note(Note::Raised {
                kind,
                channel: None,
                text,
            }));
        }
    }

    /// Ends an alarm if it stands.
    pub(super) fn clear(
        &mut self,
        kind: AlarmKind,
        channel: Option<ChannelNumber>,
        actions: &mut Vec<Action>,
    ) {
        if let Some(at) = self.at(kind, channel) {
            self.standing.remove(at);
            actions.push(Action::Note(Note::Cleared { kind, channel }));
        }
    }

    /// As people see them, oldest first.
    pub(super) fn list(&self, now_ns: u64) -> Vec<Alarm> {
        let shown = |alarm: &Standing| Alarm {
            kind: alarm.kind,
            channel: alarm.channel,
            text: alarm.text.clone(),
            age_s: now_ns.saturating_sub(alarm.since_ns) / 1_000_000_000,
        };
        self.standing.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_rises_once_and_is_cleared_once() {
        let (mut alarms, mut actions) = (Alarms::default(), Vec::new());
        for now_ns in [0, 5_000_000_000] {
            let text = || format!("since {now_ns}");
            alarms.raise(AlarmKind::KeySupply, None, now_ns, text, &mut actions);
        }
        let list = alarms.list(7_000_000_000);
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].text.as_str(), list[0].age_s), ("since 0", 7));
        alarms.clear(AlarmKind::KeySupply, None, &mut actions);
        alarms.clear(AlarmKind::KeySupply, None, &mut actions);
        assert_eq!(actions.len(), 2);
        assert!(alarms.list(0).is_empty());
    }
}
