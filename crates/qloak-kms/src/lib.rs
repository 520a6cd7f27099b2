//! The key management system: ETSI GS QKD 014 in front, a ledger behind.
