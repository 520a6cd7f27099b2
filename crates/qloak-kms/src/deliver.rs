//! From a request for keys to keys that both sides may have: the one place where the order matters.
//!
//! ```text
//! reserve here (disk) -> the peer holds (disk there) -> confirm here (disk) -> answer
//!     |                      |             |
//!     | not enough           | certainly   | anything else: in doubt
//!     v                      v not held    v
//!    503                 release, 503    void, 503; empty the link if the peer lacks the blocks
//! ```
//!
//! What always holds: octets are answered only after the last step; a step that fails or is cut short
//! loses keys and never repeats them. The work goes on when the asking SAE hangs up, so that no key is
//! left half way while the program runs; what is half way when it ends is void at the next start.

use std::sync::Arc;

use qloak_api::{KeyId, SaeId};

use crate::{
    kms::{Kms, Link, now_s},
    peer::{self, Hold},
    store::{LedgerError, Order, Recipe, Reserved},
};

pub(crate) mod etsi014;

/// A checked request of an SAE.
pub(crate) struct Request {
    pub(crate) order: Order,
    /// Where the other KME is.
    pub(crate) link: Arc<Link>,
    /// SAEs of that KME: at least one.
    pub(crate) targets: Vec<SaeId>,
    /// SAEs of this KME.
    pub(crate) local_targets: Vec<SaeId>,
}

/// Why no keys can be given now, in words for the SAE (a 503).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoKeys(pub(crate) String);

/// Makes keys that the other KME holds too.
pub(crate) async fn deliver(kms: Arc<Kms>, request: Request) -> Result<Vec<Reserved>, NoKeys> {
    // A task of its own: an SAE that hangs up drops its request, but not this.
    let work = tokio::spawn(async move { work(&kms, request).await });
    work.await.unwrap_or_else(|_| {
        Err(NoKeys(
            "the request failed within the KME; its keys are void".to_owned(),
        ))
    })
}

async fn work(kms: &Kms, request: Request) -> Result<Vec<Reserved>, NoKeys> {
    let Request {
        order,
        link,
        targets,
        local_targets,
    } = request;
    let (name, owner, reserving) = (link.config.name.clone(), link.own(), order.clone());
    // The epoch first: if the link is emptied in between, it is not emptied again for these keys.
    let (epoch, reserved) = kms
        .ledger(move |store| {
            let epoch = store.epoch(&name)?;
            Ok((epoch, store.reserve(&name, owner, &reserving, now_s())?))
        })
        .await
        .map_err(no_keys)?;
    let recipes: Vec<Recipe> = reserved.iter().map(|key| key.recipe.clone()).collect();
    let ids: Vec<KeyId> = recipes.iter().map(|recipe| recipe.key_id).collect();
    let peer = &link.config.peer;
    match peer::order_keys(&link, &order.initiator, &targets, &recipes).await {
        Hold::Held => {}
        Hold::Untouched(why) => {
            tracing::warn!(
                peer,
                why,
                keys = ids.len(),
                "the peer could not be told; the keys go back into the store"
            );
            kms.ledger(move |store| store.release(&ids))
                .await
                .map_err(no_keys)?;
            return Err(NoKeys(format!(
                "KME {peer} cannot be told of the keys now; ask again later"
            )));
        }
        Hold::Gone(why) => {
            let name = link.config.name.clone();
            let emptied = kms
                .ledger(move |store| {
                    store.void(&ids, "the peer lacks blocks")?;
                    store.empty(&name, owner, epoch)
                })
                .await
                .map_err(no_keys)?;
            if emptied {
                link.emptied(&format!("{peer} lacks blocks that are stored here ({why})"));
            }
            return Err(NoKeys(format!(
                "KME {peer} does not store the same blocks; the link begins anew, ask again later"
            )));
        }
        Hold::Doubtful(why) => {
            tracing::warn!(
                peer,
                why,
                keys = ids.len(),
                "whether the peer holds the keys is in doubt; they are void"
            );
            kms.ledger(move |store| store.void(&ids, "in doubt"))
                .await
                .map_err(no_keys)?;
            return Err(NoKeys(format!(
                "KME {peer} did not confirm the keys; they are void, ask for others"
            )));
        }
    }
    let confirmed = kms
        .ledger(move |store| {
            store
                .confirm(&reserved, &order.initiator, &local_targets)
                .map(|()| reserved)
        })
        .await;
    match confirmed {
        Ok(reserved) => Ok(reserved),
        Err(error) => {
            // If even this fails the keys stay reserved, and the next start voids them.
            let _ = kms
                .ledger(move |store| store.void(&ids, "not confirmed"))
                .await;
            Err(no_keys(error))
        }
    }
}

fn no_keys(error: LedgerError) -> NoKeys {
    match error {
        LedgerError::NotEnough { .. } => NoKeys(error.to_string()),
        _ => NoKeys("the KME's ledger failed; no key was given out".to_owned()),
    }
}
