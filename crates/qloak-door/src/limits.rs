//! Every bound of this crate, and why.

use std::time::Duration;

/// Connections that a door holds at once. Each costs a task and some 100 KiB; a lab has tens.
pub const CONNECTIONS_MAX: usize = 512;

/// How long a TLS handshake may take. A caller that dawdles holds one of the connections.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// How often refused callers of one address are told in the log, with their number since.
pub const REFUSED_TOLD_EVERY: Duration = Duration::from_secs(10);

/// Addresses of refused callers that are counted apart.
pub const REFUSED_ADDRESSES_MAX: usize = 1024;

/// How long a caller may take to send a request head; also how long a connection may idle. Longer
/// than [`CLIENT_IDLE_TIME_MAX`], so that our own client closes first.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a handler may work on one request before the caller is told 503.
pub const HANDLER_TIME_MAX: Duration = Duration::from_secs(30);

/// How long open connections may finish what they do once a door is told to close.
pub const CLOSING_TIME_MAX: Duration = Duration::from_secs(3);

/// Octets of a request body. The largest honest one is a container of keys between two KMSs.
pub const REQUEST_OCTETS_MAX: usize = 1 << 20;

/// Octets of all header fields of a request.
pub const HEAD_OCTETS_MAX: usize = 32 * 1024;

/// Requests at once on one HTTP/2 connection.
pub const STREAMS_MAX: u32 = 128;

/// Octets of an answer that a client reads. State documents of a full node are below 1 MiB.
pub const ANSWER_OCTETS_MAX: usize = 8 << 20;

/// Octets of a refusal where an answer was to come bit by bit.
pub const PROBLEM_OCTETS_MAX: usize = 64 << 10;

/// How long a client waits for a connection.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a client waits for an answer, unless told otherwise.
pub const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How long a client keeps an unused connection.
pub const CLIENT_IDLE_TIME_MAX: Duration = Duration::from_secs(20);

/// Octets of a PEM file. Keeps a wrong path (a disk image, a device) from being read whole.
pub const PEM_OCTETS_MAX: u64 = 1 << 20;

/// Characters of a foreign error body that an error message shows.
pub const SHOWN_CHARS_MAX: usize = 300;

/// Characters of a name in a certificate: the upper bound of a common name (RFC 5280, A.1).
pub const NAME_CHARS_MAX: usize = 64;

/// Certificates that one call of the PKI makes.
pub const CERTIFICATES_MAX: usize = 1024;
