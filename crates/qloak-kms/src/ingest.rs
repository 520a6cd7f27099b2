//! Keys come in: the emulated link's source at alice, and the messages that keep both ends level.
//!
//! ```text
//! each tick, alice:  time -> emulator -> blocks, each for the end that has fewer -> ledger (pending)
//!                    oldest pending batch -> bob -> on disk there -> usable here
//! each second, both: voids that the other end has not been told -> tell it
//! ```
//!
//! What always holds: one batch is under way at most, and is sent again until bob has answered for it;
//! bob knows batches by number, so none is kept twice. No block is made while bob is not heard, has no
//! room, or an operator of either end has cut the source: time passes without key, as on a dark fibre.

use std::{sync::Arc, time::Instant};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use qloak_door::DoorError;
use qloak_qkd::{Emulator, EmulatorError, RandomFailed};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    config::End,
    kms::{Kms, Link},
    limits, peer,
    store::{Counts, LedgerError, Owner, Store},
};

/// One end of a link at work.
pub(crate) struct Source {
    kms: Arc<Kms>,
    link: Arc<Link>,
    emulator: Option<Emulator>,
    random: SystemRandom,
    /// When something was last sent, and when voids were last looked for.
    sent: Option<Instant>,
    swept: Instant,
}

impl Source {
    pub(crate) fn of(kms: &Arc<Kms>, link: &Arc<Link>) -> Result<Self, EmulatorError> {
        let now = kms.started.elapsed();
        let emulator = match link.config.end {
            End::Bob => None,
            End::Alice { fibre, rate_factor } => {
                let block_octets = kms.config.keys.size_bits as usize / 8;
                let emulator = Emulator::new(fibre, block_octets, rate_factor, now)?;
                let mut view = link.view();
                view.source = emulator.describe();
                view.skr_bps = emulator.rate_bps();
                view.qber_ratio = emulator.figures().qber_ratio;
                Some(emulator)
            }
        };
        Ok(Self {
            kms: kms.clone(),
            link: link.clone(),
            emulator,
            random: SystemRandom::new(),
            sent: None,
            swept: Instant::now(),
        })
    }

    pub(crate) async fn run(mut self) {
        let mut tick = interval(limits::TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            // A ledger that failed is told by `Kms::ledger`; the next tick tries again.
            if let Err(error) = self.step().await {
                self.link.view().error = Some(error.to_string());
            }
        }
    }

    async fn step(&mut self) -> Result<(), LedgerError> {
        if self.emulator.is_some() {
            self.generate().await?;
            self.send().await?;
        }
        if self.swept.elapsed() >= limits::HEARTBEAT {
            self.swept = Instant::now();
            self.tell_voids().await?;
        }
        Ok(())
    }

    async fn generate(&mut self) -> Result<(), LedgerError> {
        let name = self.link.config.name.clone();
        let (counts, pending) = self
            .kms
            .ledger(move |store| Ok((store.counts(&name)?, store.pending_batch(&name)?.is_some())))
            .await?;
        let octets_max = self.kms.octets_max();
        let room = [Owner::Alice, Owner::Bob]
            .iter()
            .any(|owner| counts.octets(*owner) < octets_max);
        let wanted = {
            let view = self.link.view();
            view.enabled
                && view.peer_enabled
                && !view.peer_full
                && view.fresh()
                && view.peer_epoch.is_some()
        };
        let now = self.kms.started.elapsed();
        let Some(emulator) = &mut self.emulator else {
            return Ok(());
        };
        if pending || !room || !wanted {
            emulator.idle(now);
            return Ok(());
        }
        let random = &self.random;
        let emitted = emulator.emit(now, &mut |octets| {
            random.fill(octets).map_err(|_| RandomFailed)
        });
        let Ok(blocks) = emitted else {
            self.link.view().error = Some("the system's randomness failed".to_owned());
            return Ok(());
        };
        let mut shares = Shares { counts, octets_max };
        let blocks: Vec<_> = blocks
            .into_iter()
            .filter_map(|block| {
                shares
                    .next(block.key.octets() as u64)
                    .map(|owner| (block, owner))
            })
            .collect();
        if blocks.is_empty() {
            return Ok(());
        }
        let name = self.link.config.name.clone();
        self.kms
            .ledger(move |store| store.add_batch(&name, blocks))
            .await
    }

    async fn send(&mut self) -> Result<(), LedgerError> {
        let name = self.link.config.name.clone();
        let (heard, failing) = {
            let view = self.link.view();
            (
                view.peer_epoch.is_some(),
                view.error.is_some() || view.peer_full,
            )
        };
        let due = self
            .sent
            .is_none_or(|sent| sent.elapsed() >= limits::HEARTBEAT);
        // A peer that does not answer is asked once a second, not at every tick.
        if failing && !due {
            return Ok(());
        }
        let (epoch, batch) = self
            .kms
            .ledger(move |store: &dyn Store| {
                // Before bob's ledger is known, no block is sent: it could be meant for another one.
                let batch = if heard {
                    store.pending_batch(&name)?
                } else {
                    None
                };
                Ok((store.epoch(&name)?, batch))
            })
            .await?;
        if batch.is_none() && !due {
            return Ok(());
        }
        self.sent = Some(Instant::now());
        let ack = match peer::send_batch(&self.link, epoch, batch.as_ref()).await {
            Ok(ack) => ack,
            Err(error) => {
                self.failed(&error);
                return Ok(());
            }
        };
        let name = self.link.config.name.clone();
        let number = batch.map(|batch| batch.number);
        let reset = self
            .kms
            .ledger(move |store| {
                // The link was emptied meanwhile: this is an answer to what is no longer so.
                if store.epoch(&name)? != epoch {
                    return Ok(None);
                }
                let reset = store.meet(&name, Owner::Alice, ack.epoch)?;
                if let Some(number) = number.filter(|_| ack.stored && !reset) {
                    store.confirm_batch(&name, number)?;
                }
                Ok(Some(reset))
            })
            .await?;
        let same = reset == Some(false);
        if reset == Some(true) {
            self.link
                .emptied("the peer's store is another one than before");
        }
        if !same {
            // Bob is told at the next tick, and says which store it has then.
            self.sent = None;
        }
        let mut view = self.link.view();
        if view.error.take().is_some() || view.heard.is_none() {
            tracing::info!(
                link = self.link.config.name,
                peer = self.link.config.peer,
                "the peer answers"
            );
        }
        view.heard = Some(Instant::now());
        view.peer_epoch = same.then_some(ack.epoch);
        view.peer_enabled = ack.enabled;
        view.peer_full = ack.full;
        Ok(())
    }

    async fn tell_voids(&mut self) -> Result<(), LedgerError> {
        let name = self.link.config.name.clone();
        let voids = self
            .kms
            .ledger(move |store| store.untold_voids(&name))
            .await?;
        if voids.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = voids.iter().map(|void| void.key_id).collect();
        match peer::tell_voids(&self.link, voids).await {
            Ok(()) => self.kms.ledger(move |store| store.told_voids(&keys)).await,
            Err(error) => {
                self.failed(&error);
                Ok(())
            }
        }
    }

    /// Told in the log when it begins, shown for as long as it lasts.
    fn failed(&self, error: &DoorError) {
        let mut view = self.link.view();
        if view.error.is_none() {
            tracing::warn!(link = self.link.config.name, %error, "the peer does not answer");
        }
        view.error = Some(error.to_string());
    }
}

/// Gives each new block to the end that has fewer, so that one-sided use does not fill the other side.
struct Shares {
    counts: Counts,
    octets_max: u64,
}

impl Shares {
    fn next(&mut self, octets: u64) -> Option<Owner> {
        let owner = if self.counts.alice_octets <= self.counts.bob_octets {
            Owner::Alice
        } else {
            Owner::Bob
        };
        let own = match owner {
            Owner::Alice => &mut self.counts.alice_octets,
            Owner::Bob => &mut self.counts.bob_octets,
        };
        if *own + octets > self.octets_max {
            return None;
        }
        *own += octets;
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_has_fewer_is_served_first_and_no_end_beyond_its_room() {
        let counts = Counts {
            alice_octets: 64,
            bob_octets: 0,
            ..Counts::default()
        };
        let mut shares = Shares {
            counts,
            octets_max: 96,
        };
        let owners: Vec<_> = (0..6).map(|_| shares.next(32)).collect();
        let (a, b) = (Some(Owner::Alice), Some(Owner::Bob));
        assert_eq!(owners, [b, b, a, b, None, None]);
    }
}
