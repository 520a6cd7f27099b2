//! Whole networks in one process from one seed. Never shipped.
//!
//! Two nodes, each with the real key handler and the real halves of the SecY, on a simulated wire with
//! a simulated pair of KMEs and a simulated clock:
//!
//! ```text
//!          Kme (keys delivered once for each end)
//!         /  \        take, fetch: some milliseconds, outages, lost replies
//!     Node   Node     KeyHandler | Outbound | Inbound
//!         \  /
//!          Wire       delay, loss, duplication, reordering; a forger may add frames
//! ```
//!
//! What always holds: a run is a function of its seed and its script; every event has a time and the
//! clock jumps from one to the next; the [`Book`] checks, at every step, what must never happen, and a
//! failure names the seed. What is left out: threads, sockets, HTTP; those are the node's own tests.

mod book;
mod kme;
mod node;
mod plan;
mod random;
mod wire;
mod world;

pub use book::Book;
pub use kme::{Answer, Kme};
pub use node::Node;
pub use plan::Plan;
pub use random::Random;
pub use wire::Wire;
pub use world::{Side, World};

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;
