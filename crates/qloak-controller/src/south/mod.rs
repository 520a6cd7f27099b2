//! The way from the controller to what it steers and watches.
//!
//! `Southbound` is what the reconciler knows of a node: a handful of questions and commands. Today one
//! kind of node answers, by the REST door of `qloak node` (`rest`). Another management protocol
//! (RESTCONF, an optical switch's own) is another file here and another arm in `Dial::node`; nothing
//! above this folder would notice.
//!
//! No answer that can come back through here has a place for a key.

mod rest;

use std::{future::Future, pin::Pin, sync::Arc};

use qloak_api::{
    CaptureOrder, ChannelNumber, Limits, SuiteEntry,
    control::{KmsRecord, NodeRecord},
    kms::KmsState,
    manage::{KeyOperation, NodeState},
};

use qloak_door::Flow;

pub use rest::RestDial;

/// An answer that is still on its way.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SouthError>> + Send + 'a>>;

/// Why a node or KMS did not do as it was asked. Each text names the fault and, where it can, the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SouthError {
    /// It said no. Asking again changes nothing until someone changes something.
    #[error("{0}")]
    Refused(String),
    /// It could not be reached, failed, or answered nonsense. Whether a command took effect is not
    /// known; asking again may help.
    #[error("{0}")]
    Failed(String),
}

/// A node, as the controller sees it.
pub trait Southbound: Send + Sync {
    /// What it does now.
    fn state(&self) -> Answer<'_, NodeState>;
    /// What it offers.
    fn library(&self) -> Answer<'_, Vec<SuiteEntry>>;
    /// Sets the suite of a channel, by name.
    fn set_suite<'a>(&'a self, channel: ChannelNumber, suite: &'a str) -> Answer<'a, ()>;
    /// Sets the limits of a channel's SAs.
    fn set_limits<'a>(&'a self, channel: ChannelNumber, limits: &'a Limits) -> Answer<'a, ()>;
    /// Starts a rekey of a channel.
    fn rekey(&self, channel: ChannelNumber) -> Answer<'_, ()>;
    /// An operation of the key handler.
    fn keys<'a>(&'a self, operation: &'a KeyOperation) -> Answer<'a, ()>;
    /// Records frames; pcapng as they pass.
    fn capture<'a>(&'a self, order: &'a CaptureOrder) -> Answer<'a, Flow>;
}

/// A KMS, as the controller sees it.
pub trait Watched: Send + Sync {
    /// What it does now.
    fn state(&self) -> Answer<'_, KmsState>;
}

/// Makes the client that fits a record. Makes no connection: whatever is wrong shows in the answers.
pub trait Dial: Send + Sync {
    /// The client of a node.
    fn node(&self, record: &NodeRecord) -> Arc<dyn Southbound>;
    /// The client of a KMS.
    fn kms(&self, record: &KmsRecord) -> Arc<dyn Watched>;
}
