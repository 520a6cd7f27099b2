//! The one way in and out over the network: HTTPS with mutual TLS.
//!
//! Every program of Qloak listens with [`serve`] and asks with [`Client`]; nothing else opens a TLS
//! socket. A certificate says who a caller is ([`Caller`]: its common name and its role), and one
//! call makes all certificates of a lab ([`pki`]).
//!
//! What always holds: no caller reaches a handler without a certificate of the configured CA; no
//! client sends a request before the server has shown a certificate of the configured CA with the
//! name that was asked for; TLS 1.3 with the hybrid X25519MLKEM768 key exchange is preferred and
//! nothing below TLS 1.2 is spoken (ETSI GS QKD 014 V1.1.1, clause 5.1, asks for TLS 1.2 or later and
//! mutual authentication). Connections, headers, bodies and waiting are bounded ([`limits`]).
//!
//! Who may do what is left to the handlers, retries are left to the callers.

mod caller;
mod client;
mod error;
mod files;
mod flow;
pub mod limits;
pub mod pki;
mod refusals;
mod server;
mod verify;

pub use caller::{Caller, role};
pub use client::{Client, Reply};
pub use error::DoorError;
pub use files::{TlsFiles, certificate_name, client_config, server_config};
pub use flow::{Flow, flowing};
pub use server::{Door, serve};
