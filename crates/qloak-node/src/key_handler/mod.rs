//! The key handler: it agrees keys with the far node, keeps them ready, and says when an SA changes.
//!
//! It lies on the way of a key, between the KME and the SecY. Its core is a pure state machine: events
//! and the time go in, actions come out; frames, HTTP, threads and the clock are the driver's.

pub mod door;
pub(crate) mod drive;
pub mod limits;
pub(crate) mod source;

pub use door::{
    Action, AgreeChannel, AgreeState, AgreedSa, ChannelAgreement, Command, Event, KeyHandlerConfig,
    Note, Refusal, SourceFailure, Timings,
};

/// The key handler of one link.
pub struct KeyHandler {
    config: KeyHandlerConfig,
    now_ns: u64,
}

impl KeyHandler {
    /// A key handler that knows nobody yet. Its first act is to ask the KME for keys.
    ///
    /// # Errors
    /// The configuration contradicts itself; see [`Refusal`].
    pub fn new(config: KeyHandlerConfig) -> Result<Self, Refusal> {
        Ok(Self { config, now_ns: 0 })
    }

    /// Takes in one event; what is to be done is appended to `actions`, in order.
    pub fn handle(&mut self, now_ns: u64, event: Event<'_>, actions: &mut Vec<Action>) {
        self.now_ns = self.now_ns.max(now_ns);
        if let Event::Command(command) = event
            && let Err(refusal) = self.command(now_ns, command, actions)
        {
            actions.push(Action::Note(Note::Refused(refusal)));
        }
    }

    /// Carries out a command, or says why not.
    ///
    /// # Errors
    /// See [`Refusal`]; nothing has changed then.
    pub fn command(
        &mut self,
        now_ns: u64,
        command: Command,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let _ = (now_ns, actions);
        match command {
            Command::Resize { slots } if !limits::RAM_SLOTS.contains(&slots) => {
                Err(Refusal::Slots(slots))
            }
            _ => Ok(()),
        }
    }

    /// When [`Event::Tick`] is due, on the clock of the events.
    pub fn next_wake_ns(&self) -> u64 {
        self.now_ns + self.config.timings.sync_ns
    }

    /// The state at this time, for people and the controller.
    pub fn state(&self, now_ns: u64) -> AgreeState {
        let _ = now_ns;
        AgreeState {
            key_handler: qloak_api::manage::KeyHandlerState {
                ram_slots: self.config.ram_slots,
                outbound_keys: 0,
                inbound_keys: 0,
                kme_reachable: false,
                peer_alive: false,
                kme_requests: 0,
                kme_failures: 0,
                forged: 0,
                replayed: 0,
                zeroised: 0,
            },
            alarms: Vec::new(),
            channels: Vec::new(),
            malformed: 0,
        }
    }
}
