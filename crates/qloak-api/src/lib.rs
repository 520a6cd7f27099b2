//! The words of Qloak: identifiers, management messages, the encryption library.
//!
//! Pure data, shared by the node, the KMS, the controller and the command line. Nothing here does
//! I/O, and nothing here can hold a key: the controller imports only this crate, so the compiler
//! proves that it never sees one.

pub mod capture;
pub mod channel;
pub mod control;
pub mod id;
pub mod kms;
pub mod latency;
pub mod library;
pub mod limits;
pub mod manage;
pub mod problem;

pub use capture::{CAPTURE_MEDIA_TYPE, CaptureOrder, Side};
pub use channel::{Carriage, Limits};
pub use id::{An, ChannelNumber, ClientPort, IdError, KeyId, MacAddress, SaeId, Sci, SuiteId};
pub use latency::{Latency, LatencyBucket, NodeLatency};
pub use library::SuiteEntry;
pub use problem::Problem;
