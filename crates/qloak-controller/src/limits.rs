//! Every bound of this crate, and why.

use std::time::Duration;

/// Nodes that one controller steers. Each is polled by its own task twice a second; more of them is
/// a hierarchy of controllers and not a bigger table.
pub const NODES_MAX: usize = 256;

/// KMSs that one controller watches: one beside each node.
pub const KMS_MAX: usize = 256;

/// Links. A node has one line port, so there can be no more than half as many as nodes.
pub const LINKS_MAX: usize = NODES_MAX / 2;

/// Octets of a link's name: it stands in URLs, log lines and a column of the dashboard.
pub const LINK_NAME_OCTETS_MAX: usize = 64;

/// Octets of a URL of a door.
pub const URL_OCTETS_MAX: usize = 256;

/// Octets of a configuration file. A hand-written one has a few hundred lines; beyond this it is
/// the wrong file.
pub const CONFIG_OCTETS_MAX: u64 = 1 << 20;

/// Channels of one node that are looked at. The words allow 1024 (`qloak_api::limits`); a node that
/// claims more is not believed.
pub const CHANNELS_MAX: usize = qloak_api::limits::CHANNELS_MAX as usize;

/// Suites of one node's library. The product has 31; a node that lists thousands is not believed.
pub const SUITES_MAX: usize = 256;

/// Shortest interval between two polls of a node: below it polling costs the node more than it tells.
pub const POLL_INTERVAL_MS_MIN: u64 = 50;

/// Longest interval between two polls: beyond it the picture is history.
pub const POLL_INTERVAL_MS_MAX: u64 = 60_000;

/// Between two polls while a change is under way, so that the time from command to convergence is
/// known to this precision.
pub const HURRY_INTERVAL: Duration = Duration::from_millis(50);

/// How long polling stays quick after a command. A rekey takes milliseconds where it works.
pub const HURRY_SPAN: Duration = Duration::from_secs(10);

/// A poll fetches the suite list again after this many answers, beside each restart of the node.
pub const LIBRARY_EVERY_POLLS: u32 = 120;

/// How long a node or KMS may take to answer. A change makes at most four pushes one after the other
/// and may wait for the reconciler's two; all of it stays within the time of a handler at the door.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// How long after a push a node may still show what was before: it publishes its state at intervals.
/// A difference seen within this time is no reason to push again.
pub const SETTLING: Duration = Duration::from_millis(200);

/// First pause after a push that did not get through; doubled each time.
pub const RETRY_PAUSE_MIN: Duration = Duration::from_millis(250);

/// Longest pause between two pushes to the same channel: a node that comes back waits no longer.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_secs(15);

/// Listeners of `GET /v1/events` at once: each costs one rendering of the overview per event.
pub const EVENT_LISTENERS_MAX: usize = 64;

/// Shortest time between two events to a listener: a dashboard that draws faster only flickers.
pub const EVENT_INTERVAL: Duration = Duration::from_millis(200);

/// An event is sent after this time even if nothing changed, so that a listener knows we live.
pub const EVENT_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Connections at the loopback door. It has no certificate to tell friend from foe; this many leave
/// the process enough descriptors for its other doors.
pub const LOOPBACK_CONNECTIONS_MAX: usize = 128;

/// How long requests at the loopback door may finish what they do when the program ends.
pub const CLOSING_TIME_MAX: Duration = Duration::from_secs(3);

/// Records in one answer of `GET /v1/audit`.
pub const AUDIT_PAGE_MAX: u32 = 1000;

/// Records in one answer of `GET /v1/audit` when the caller names no number.
pub const AUDIT_PAGE_DEFAULT: u32 = 100;

/// Octets of one text of an audit record. Longer ones are cut: a caller chooses the path.
pub const AUDIT_TEXT_OCTETS_MAX: usize = 1024;

/// Octets of a request body. The largest one is a key operation with its list of key IDs.
pub const BODY_OCTETS_MAX: usize = 256 * 1024;

/// Key IDs in one `load-inbound`: as many as the largest key RAM has slots.
pub const KEY_IDS_MAX: usize = 4096;

/// Slots of a key RAM, smallest and largest (`qloak_api::manage::KeyOperation::Resize`).
pub const RAM_SLOTS: std::ops::RangeInclusive<u32> = 8..=65536;

/// Least frames per SAK that an intent may ask for: no node takes less (it would rekey faster than
/// four ANs allow).
pub const LIMIT_FRAMES_MIN: u64 = 16;

/// Least octets per SAK, for the same reason.
pub const LIMIT_OCTETS_MIN: u64 = 4096;

/// Pieces of a capture that wait for the caller; the node drops and counts what does not fit.
pub const CAPTURE_PIECES_WAITING: usize = 4;
