//! The audit log: who asked what, and what became of it. Numbered from 1 without gaps, append only.
//!
//! A command is written down twice: before it is carried out in `audit_open`, afterwards as a line of
//! the log. What a crash left open becomes a line at the next start, so that no command that may have
//! had an effect is missing. If the first cannot be written, the command is not carried out.

use qloak_api::control::AuditRecord;
use rusqlite::{Transaction, params};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{Store, StoreError};
use crate::limits;

/// A command that was begun and whose outcome is not yet written.
#[derive(Debug)]
#[must_use = "an entry that is not closed reads as a crash"]
pub struct OpenEntry {
    id: i64,
}

impl Store {
    /// Writes down that a command begins.
    ///
    /// # Errors
    /// The database failed; the command must not be carried out.
    pub fn audit_begin(&self, caller: &str, action: &str) -> Result<OpenEntry, StoreError> {
        self.transaction(|tx| {
            tx.execute(
                "INSERT INTO audit_open (time, caller, action) VALUES (?1, ?2, ?3)",
                params![now(), cut(caller), cut(action)],
            )?;
            Ok(OpenEntry {
                id: tx.last_insert_rowid(),
            })
        })
    }

    /// Writes down what became of it.
    ///
    /// # Errors
    /// The database failed; the entry stays open and becomes a line at the next start.
    pub fn audit_end(&self, entry: OpenEntry, outcome: &str) -> Result<u64, StoreError> {
        self.transaction(|tx| close(tx, entry.id, outcome))
    }

    /// Writes down what the controller did by itself.
    ///
    /// # Errors
    /// The database failed.
    pub fn audit_note(&self, caller: &str, action: &str, outcome: &str) -> Result<u64, StoreError> {
        self.transaction(|tx| append(tx, &now(), caller, action, outcome))
    }

    /// Closes what a crash left open. Returns how many entries that were.
    ///
    /// # Errors
    /// The database failed.
    pub fn audit_recover(&self) -> Result<usize, StoreError> {
        self.transaction(|tx| {
            let mut statement = tx.prepare("SELECT id FROM audit_open ORDER BY id")?;
            let open: Vec<i64> = statement
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for id in &open {
                close(
                    tx,
                    *id,
                    "not known: the controller stopped while it was carried out",
                )?;
            }
            Ok(open.len())
        })
    }

    /// Lines of the log, oldest first: those above `after`, or without it the newest `count`.
    ///
    /// # Errors
    /// The database failed.
    pub fn audit_page(
        &self,
        after: Option<u64>,
        count: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        self.transaction(|tx| {
            let after = match after {
                Some(after) => i64::try_from(after).unwrap_or(i64::MAX),
                None => last(tx)? - i64::from(count),
            };
            let mut statement = tx.prepare(
                "SELECT number, time, caller, action, outcome FROM audit WHERE number > ?1 ORDER BY number LIMIT ?2",
            )?;
            let rows = statement.query_map(params![after, count], |row| {
                Ok(AuditRecord {
                    number: row.get::<_, i64>(0)?.unsigned_abs(),
                    time: row.get(1)?,
                    caller: row.get(2)?,
                    action: row.get(3)?,
                    outcome: row.get(4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

fn close(tx: &Transaction<'_>, id: i64, outcome: &str) -> Result<u64, StoreError> {
    let (time, caller, action): (String, String, String) = tx.query_row(
        "DELETE FROM audit_open WHERE id = ?1 RETURNING time, caller, action",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    append(tx, &time, &caller, &action, outcome)
}

fn append(
    tx: &Transaction<'_>,
    time: &str,
    caller: &str,
    action: &str,
    outcome: &str,
) -> Result<u64, StoreError> {
    let number = last(tx)? + 1;
    tx.execute(
        "INSERT INTO audit (number, time, caller, action, outcome) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![number, time, cut(caller), cut(action), cut(outcome)],
    )?;
    Ok(number.unsigned_abs())
}

fn last(tx: &Transaction<'_>) -> Result<i64, StoreError> {
    Ok(
        tx.query_row("SELECT coalesce(max(number), 0) FROM audit", [], |row| {
            row.get(0)
        })?,
    )
}

fn now() -> String {
    // The format of a time that the operating system gives cannot fail.
    OffsetDateTime::now_utc()
        .format(&Rfc3339)
        .unwrap_or_default()
}

/// One line, bounded: callers choose paths and names, and a log with line breaks can be forged.
fn cut(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let end = (0..=limits::AUDIT_TEXT_OCTETS_MAX)
        .rev()
        .find(|at| line.is_char_boundary(*at));
    if line.len() > limits::AUDIT_TEXT_OCTETS_MAX {
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("state.sqlite")).expect("opened");
        (folder, store)
    }

    #[test]
    fn numbers_have_no_gaps_and_lines_do_not_change() {
        let (folder, store) = store();
        for number in 1..=5 {
            let entry = store.audit_begin("alice", "POST /v1/nodes").expect("begun");
            assert_eq!(store.audit_end(entry, "done").expect("written"), number);
        }
        assert_eq!(
            store
                .audit_note("the controller", "roll back", "done")
                .expect("written"),
            6
        );
        let page = store.audit_page(None, 2).expect("read");
        assert_eq!(
            page.iter().map(|line| line.number).collect::<Vec<_>>(),
            [5, 6]
        );
        assert_eq!(store.audit_page(Some(3), 100).expect("read").len(), 3);
        assert_eq!(store.audit_page(Some(u64::MAX), 100).expect("read"), []);

        let direct =
            rusqlite::Connection::open(folder.path().join("state.sqlite")).expect("opened");
        for attempt in [
            "UPDATE audit SET caller = 'mallory'",
            "DELETE FROM audit",
            "INSERT INTO audit VALUES (9, '', '', '', '')",
            "INSERT OR REPLACE INTO audit VALUES (1, '', '', '', '')",
        ] {
            assert!(direct.execute(attempt, []).is_err(), "{attempt}");
        }
    }

    #[test]
    fn what_a_crash_left_open_becomes_a_line() {
        let (folder, store) = store();
        let _ = store.audit_begin("alice", "PUT intent").expect("begun");
        drop(store);
        let store = Store::open(&folder.path().join("state.sqlite")).expect("opened");
        assert_eq!(store.audit_recover().expect("recovered"), 1);
        assert_eq!(store.audit_recover().expect("recovered"), 0);
        let page = store.audit_page(None, 10).expect("read");
        assert!(
            page.len() == 1 && page[0].outcome.contains("stopped") && page[0].caller == "alice"
        );
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        let (_folder, store) = store();
        store
            .audit_note("mallory\n7 alice", &"ä".repeat(5000), "x")
            .expect("written");
        let page = store.audit_page(None, 1).expect("read");
        assert_eq!(page[0].caller, "mallory 7 alice");
        assert!(page[0].action.len() <= limits::AUDIT_TEXT_OCTETS_MAX + '…'.len_utf8());
    }
}
