//! Every bound of this crate, and why.

use std::{ops::RangeInclusive, time::Duration};

/// Octets of a configuration file. Keeps a wrong path from being read whole.
pub const CONFIG_OCTETS_MAX: u64 = 1 << 20;

/// SAEs that one KME serves or reaches over one link.
pub const SAES: RangeInclusive<usize> = 1..=1024;

/// Links of one KME. Each costs a task and a connection.
pub const LINKS: RangeInclusive<usize> = 1..=64;

/// Bits of a key: what a key container can hold (8 to 128 octets).
pub const KEY_BITS: RangeInclusive<u32> = 64..=1024;

/// Keys in one request: what a key container can hold.
pub const KEYS_PER_REQUEST: RangeInclusive<u32> = 1..=1024;

/// Keys kept ready for each end of a link. Each costs about 300 octets of disk, and counting the stock
/// walks an index of it: 65536 are some milliseconds, and three hours of the best link's keys.
pub const STORE: RangeInclusive<u64> = 16..=1 << 16;

/// Additional SAEs in one request, the bound of `qloak_keys::limits::ADDITIONAL_SAES_MAX`.
pub const ADDITIONAL_SAES: RangeInclusive<u32> = 0..=64;

/// Seconds until a key that nobody fetched is destroyed.
pub const UNFETCHED_S: RangeInclusive<u64> = 10..=604_800;

/// Characters of a link's name, which stands in URLs and log lines.
pub const LINK_NAME_CHARS: RangeInclusive<usize> = 1..=64;

/// Keys that a KME holds at once for its SAEs to fetch. A peer that orders more is told to wait.
pub const HELD_KEYS_MAX: u64 = 65_536;

/// Rows of destroyed keys that the ledger remembers, so that a late request for one is answered in
/// the same words as ever and the file stays small.
pub const HISTORY_ROWS_MAX: u64 = 100_000;

/// Blocks in one message over the inter-KMS door: 1024 blocks of 128 octets are 200 KiB in base64.
pub const BLOCKS_PER_BATCH_MAX: usize = 1024;

/// Blocks that one key may be made of: 1024 bits from blocks of 64.
pub const BLOCKS_PER_KEY_MAX: usize = 16;

/// Voids that wait for a peer are sent so many at once.
pub const VOIDS_PER_MESSAGE_MAX: usize = 256;

/// Between two looks at an emulated source. Short, so that keys come evenly.
pub const TICK: Duration = Duration::from_millis(100);

/// Between two messages of alice when there is nothing to send, so that bob knows it is there.
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// Silence after which a link counts as down: three heartbeats and room for a slow machine.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How long an operator is shown that a link was emptied: long enough to be seen by someone who looks
/// why keys ran short.
pub const EMPTIED_SHOWN: Duration = Duration::from_secs(600);

/// How long a peer may take to answer. Less than the door allows a handler, so that an SAE gets an
/// answer in words.
pub const PEER_TIME_MAX: Duration = Duration::from_secs(5);

/// Between two rounds of upkeep (expiry, history, checkpoint).
pub const UPKEEP: Duration = Duration::from_secs(10);

/// How long keys that are being agreed when the program is told to end may take. Longer than a peer may
/// take to answer.
pub const LEDGER_CLOSING_TIME_MAX: Duration = Duration::from_secs(10);

/// Between two looks whether the ledger is closed.
pub const LEDGER_CLOSING_LOOK: Duration = Duration::from_millis(5);
