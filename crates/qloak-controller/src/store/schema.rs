//! The tables, and how an older file becomes a newer one: `user_version` counts the steps taken.

use std::time::Duration;

use rusqlite::Connection;

use super::StoreError;

/// One entry per version; an entry is never changed once released, only followed by another.
const STEPS: [&str; 1] = [
    "CREATE TABLE node (name TEXT PRIMARY KEY, url TEXT NOT NULL) STRICT;
     CREATE TABLE kms (kme_id TEXT PRIMARY KEY, url TEXT NOT NULL) STRICT;
     CREATE TABLE link (name TEXT PRIMARY KEY, a TEXT NOT NULL, b TEXT NOT NULL) STRICT;
     CREATE TABLE library (node TEXT PRIMARY KEY, suites TEXT NOT NULL) STRICT;
     CREATE TABLE intent (
         link TEXT NOT NULL,
         channel INTEGER NOT NULL,
         intent TEXT NOT NULL,
         fallback TEXT,
         commanded_unix_ms INTEGER NOT NULL,
         converged_after_ms REAL,
         PRIMARY KEY (link, channel)
     ) STRICT;
     -- What was begun: becomes a line of the log when its outcome is known.
     CREATE TABLE audit_open (
         id INTEGER PRIMARY KEY,
         time TEXT NOT NULL,
         caller TEXT NOT NULL,
         action TEXT NOT NULL
     ) STRICT;
     CREATE TABLE audit (
         number INTEGER PRIMARY KEY,
         time TEXT NOT NULL,
         caller TEXT NOT NULL,
         action TEXT NOT NULL,
         outcome TEXT NOT NULL
     ) STRICT;
     CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
         BEGIN SELECT RAISE(ABORT, 'the audit log is append only'); END;
     CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
         BEGIN SELECT RAISE(ABORT, 'the audit log is append only'); END;
     CREATE TRIGGER audit_has_no_gap BEFORE INSERT ON audit
         WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM audit)
         BEGIN SELECT RAISE(ABORT, 'the audit log has no gaps'); END;",
];

pub(super) fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = STEPS.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}
