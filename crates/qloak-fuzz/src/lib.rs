//! What the fuzzer feeds to the data path, and what must hold. Never shipped.
//!
//! Each module has one function, `run`, that takes any octets, reads choices out of them, does with the
//! product what they say, and panics when something does not hold. libFuzzer calls it from `fuzz/`, which
//! needs a nightly compiler; ordinary tests call it with the inputs kept in `fuzz/corpus`, so that what
//! was once interesting is tried on every change.
//!
//! | target | what it feeds | what must hold, besides no panic |
//! |---|---|---|
//! | [`line`] | line frames: sound, changed, made up, of a peer that lies | only what was sent is delivered, once; each frame in one counter |
//! | [`mux`] | client frames of any size, lost and swapped line frames | what goes in comes out; what is lost never joins wrong halves |
//! | [`agreement`] | key-agreement frames to the reader, and to two nodes at work | what reads is written the same; no key serves twice; the link heals |
//! | [`capture`] | pcap and pcapng files | what reads is written and reads the same; short reads change nothing |
//! | [`offload`] | super-frames and virtio headers | the payload is all there, in frames whose lengths and checksums are right |
//!
//! The ciphers have a target of their own, `fuzz/src/cipher.rs`, which needs other libraries.

pub mod agreement;
pub mod capture;
mod choices;
mod ends;
pub mod line;
pub mod mux;
pub mod offload;

/// A function that takes any octets.
pub type Run = fn(&[u8]);

/// Every target of this crate by its name, which is also its folder in `fuzz/corpus`.
pub const TARGETS: [(&str, Run); 5] = [
    ("agreement", agreement::run),
    ("capture", capture::run),
    ("line", line::run),
    ("mux", mux::run),
    ("offload", offload::run),
];
